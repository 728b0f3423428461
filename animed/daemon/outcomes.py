"""What those hear who only listen to outcomes: hooks and report files. They hear it after it is durable and logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animed.records import PhotoKey

Ending = Literal["done", "duplicate", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class PhotoEnded:
    """One photo that has its outcome."""

    key: PhotoKey
    status: Ending
    photo: bytes  # full path; the file may have been moved or deleted by the time that anyone looks
    output: bytes = b""  # full path of its picture; empty where there is none
    style: str = ""
    reason: str = ""  # why it failed, or was skipped
    detail: str = ""  # one line for people
    attempt: int | None = None  # 1 = the first try; None where a crash kept it from being known
    batch: int = 0  # 0 = in none


@dataclass(frozen=True, slots=True)
class BatchEnded:
    """One batch whose last photo has left."""

    number: int
    size: int
    inboxes: tuple[str, ...]  # whose photos were in it
    seconds: float
    ended: Mapping[str, int]  # how many photos ended in which way: outcomes, retry, vanished, known …


class Listener(Protocol):
    """Hears of outcomes on the main thread: it must neither block nor raise."""

    def photo_ended(self, ended: PhotoEnded) -> None:
        """Hear of a photo that has its outcome."""

    def photo_forgotten(self, key: PhotoKey) -> None:
        """Hear of a photo whose record is gone, as if it had never been seen."""

    def batch_ended(self, ended: BatchEnded) -> None:
        """Hear of a batch that is over."""
