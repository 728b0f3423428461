"""The places of the workers, and how long one stays empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.engine.events import WorkerStatus

if TYPE_CHECKING:
    from animed.engine.child import Child

MAX_BACKOFF: Final = 60.0  # seconds


@dataclass(slots=True)
class Slot:
    """The place of one worker: whoever fills it now, and how its predecessors fared."""

    child: Child | None = None
    last: WorkerStatus | None = None  # the last worker's, when there is none now
    start_at: float | None = None  # when the next worker is started
    boot_strikes: int = 0  # starts in a row that came to nothing
    crash_strikes: int = 0  # deaths in a row without a finished photo between them
    surplus: bool = False  # the plan has become smaller: nobody follows


def delay(slot: Slot, child: Child) -> float:
    """Return how long the next start waits: not after an agreed end or a first crash, then 1, 2, 4 … 60 s."""
    if not child.ready and not child.leaving:
        slot.boot_strikes += 1
        return backoff(slot.boot_strikes - 1)
    if child.leaving:
        return 0.0
    slot.crash_strikes += 1
    return backoff(slot.crash_strikes - 2)


def backoff(strikes: int) -> float:
    """Return how long to wait after so many strikes, seconds."""
    return min(MAX_BACKOFF, 2.0 ** min(strikes, 6)) if strikes >= 0 else 0.0


def status(slot: Slot) -> WorkerStatus:
    """Return the worker of a place as `status` shows it; the last one's where there is none now."""
    if slot.child:
        return slot.child.status
    return slot.last or WorkerStatus(0, "dead", None, 0, 0)
