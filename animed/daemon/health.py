"""Which of an inbox's places are suspended, and when each is looked at again. Pure: time is an argument."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from animed.schedule.retry import PlaceBackoff

if TYPE_CHECKING:
    from animed.errors import PlaceRole

DOUBT_S: Final = 60.0  # seconds until an inbox is scanned again of which a part could not be looked at
State = Literal["ready", "degraded", "unavailable"]
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(slots=True)
class Trouble:
    """One suspended place."""

    code: int  # errno
    path: str
    detail: str
    backoff: PlaceBackoff = field(default_factory=PlaceBackoff)

    def event(self, role: PlaceRole) -> str:
        """Return what its beginning is called in the log."""
        if role == "inbox":
            return "inbox.unavailable"
        return "disk.low" if self.full else "inbox.degraded"

    @property
    def full(self) -> bool:
        """Say whether the place is full, rather than broken."""
        return self.code in FULL


class Health:
    """The suspended places of one inbox, by role."""

    def __init__(self) -> None:
        self.troubles: dict[PlaceRole, Trouble] = {}

    @property
    def state(self) -> State:
        """Return the inbox's state: without its root it is unavailable, without another place degraded."""
        if "inbox" in self.troubles:
            return "unavailable"
        return "degraded" if self.troubles else "ready"

    @property
    def draws(self) -> bool:
        """Say whether photos can be drawn: read, and placed."""
        return not self.troubles.keys() & {"inbox", "output"}

    @property
    def shelves(self) -> list[PlaceRole]:
        """Return the suspended places where originals go."""
        return [role for role in self.troubles if role in {"processed", "failed"}]

    def fault(self, role: PlaceRole, trouble: Trouble, now: float) -> bool:
        """Note a fault of a place; say whether the place was well before."""
        known = self.troubles.get(role)
        if known is None:
            self.troubles[role] = known = trouble
            known.backoff.fault(now)
            return True
        known.code, known.path, known.detail = trouble.code, trouble.path, trouble.detail
        known.backoff.fault(now)
        return False

    def well(self, role: PlaceRole) -> Trouble | None:
        """Note that a place is well; return the trouble that it had."""
        return self.troubles.pop(role, None)

    def due(self, now: float) -> list[PlaceRole]:
        """Return the places to be looked at now."""
        return [role for role, trouble in self.troubles.items() if trouble.backoff.due(now)]

    def postpone(self, now: float) -> None:
        """Let the places that are due wait for their next turn."""
        for role in self.due(now):
            self.troubles[role].backoff.fault(now)

    def next_due(self) -> float | None:
        """Return when the next place is to be looked at."""
        times = [t.backoff.next_due for t in self.troubles.values() if t.backoff.next_due is not None]
        return min(times, default=None)


class ScanClock:
    """When an inbox is scanned next: after its interval, or as soon as it is wanted, but never too often.

    A scan never starts sooner than a hundred times the processor time that the last one took, nor sooner than the time
    that a slow file system took for it: scanning takes half of the time at most.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval  # seconds; 0 = only when wanted
        self.wanted = False
        self.resting = False  # no scan by the clock: only what is wanted
        self.doubtful = False  # something could not be looked at for a reason that may pass
        self.running = False
        self._ended: float | None = None
        self._rest = 0.0  # seconds after the end

    def begin(self) -> None:
        """Note that a scan begins."""
        self.running, self.wanted, self.doubtful = True, False, False

    def end(self, cpu_s: float, now: float, *, wall_s: float = 0.0) -> None:
        """Note that a scan has ended, and what it cost."""
        self.running, self._ended, self._rest = False, now, max(100 * cpu_s, wall_s)

    def next_due(self) -> float | None:
        """Return when the next scan may begin; None while one runs, or when none is wanted."""
        interval = min(self.interval or DOUBT_S, DOUBT_S) if self.doubtful else self.interval
        by_clock = interval and not self.resting and self._ended is not None
        if self.running or not (self.wanted or by_clock):
            return None
        if self._ended is None:
            return 0.0
        return self._ended + max(self._rest, 0.0 if self.wanted else interval)
