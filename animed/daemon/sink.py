"""Where an inbox's findings go: downstream, to whoever decides about photos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from animed.daemon.inbox import Inbox
    from animed.intake.scan import Found
    from animed.records import PhotoKey, Sighting


class Sink(Protocol):
    """Takes what intake finds. Every method is called by the main loop."""

    def found(self, inbox: Inbox, entries: list[Found], now: float) -> None:
        """Take files that a scan has listed."""

    def settled(self, sighting: Sighting, now: float) -> None:
        """Take a photo that is complete."""

    def empty(self, sighting: Sighting, now: float) -> None:
        """Take a file that has stayed empty."""

    def ignored(self, key: PhotoKey, rule: str) -> None:
        """Take a path that is never taken."""

    def vanished(self, key: PhotoKey, now: float, *, seen: bool) -> None:
        """Take a path that is gone; `seen` says whether it was there at an earlier look."""

    def scanned(self, inbox: Inbox, now: float) -> None:
        """Take the end of a scan of the whole inbox."""

    def waiting(self, key: PhotoKey) -> None:
        """Take a path that is not complete yet."""

    def up(self, inbox: Inbox, now: float) -> None:
        """Take the news that photos of this inbox can be read and placed (again)."""
