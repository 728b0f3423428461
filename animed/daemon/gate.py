"""When photos may be begun: unless someone has paused the service, in the hours of the schedule, at the pace allowed.

What the gate holds back waits in the backlog; what a worker has already is finished. A single pass (`once`) is an
order for now: neither a pause nor the schedule holds it back, but the pace does.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from animed.schedule.hours import Hours
from animed.schedule.pace import Pace

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from animed.config import Config
    from animed.daemon.desk import Desk

    By = Literal["user", "schedule"]

PAUSED: Final = "paused"  # the ledger's name for when a user paused the service, in wall-clock seconds; "" is not
LOOK_S: Final = 60.0  # between two looks at the wall clock, which anyone may set while the loop sleeps


class Gate:
    """Answers whether a photo may be begun now, why not, and when to ask again. Only the main thread calls it."""

    def __init__(self, config: Config, desk: Desk, log: FilteringBoundLogger, *, once: bool = False) -> None:
        self._desk = desk
        self._log = log
        self._once = once
        self._paused_at = None if once else _stored(desk.ledger.meta(PAUSED))
        self._pace = Pace()
        self._told: By | None = None
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Take new hours and a new pace, and the time zone that the system has now."""
        time.tzset()
        self._hours = Hours(() if self._once else config.schedule.active)
        self._span = self._hours.span(self._desk.wall())
        self._pace.configure(config.limits.images_per_minute)

    def tick(self) -> None:
        """Look at the wall clock, and tell when a pause has begun or ended."""
        wall = self._desk.wall()
        if not self._span.holds(wall):
            self._span = self._hours.span(wall)
        self._tell()

    @property
    def closed(self) -> bool:
        """Say whether the service is paused: nothing at all is begun."""
        return self.paused_by is not None

    @property
    def paused_by(self) -> By | None:
        """Return what the service is paused by; a user's pause comes first, for the schedule does not end it."""
        if self._paused_at is not None:
            return "user"
        return "schedule" if self.resting else None

    @property
    def resting(self) -> bool:
        """Say whether this is outside the hours of the schedule, when inboxes are not scanned by the clock either."""
        return not self._span.active

    def why_not(self, now: float) -> By | Literal["pace"] | None:
        """Return what keeps the next photo from being begun now, or None."""
        return self.paused_by or ("pace" if self._pace.due(now) > now else None)

    def may_start(self, now: float) -> bool:
        """Say whether a photo may be given to a worker now."""
        return self.why_not(now) is None

    def ahead(self, free: int) -> int:
        """Return how many photos to have read while workers could take `free`.

        At a pace one will do: what is read long before its turn may have changed by then.
        """
        return min(1, free) if self._pace.limited else free

    def started(self, now: float) -> None:
        """Count a photo that was given to a worker."""
        self._pace.started(now)

    def next_due(self, now: float) -> float | None:
        """Return when `tick` or `may_start` may say something new; None when only a command changes anything."""
        dues = []
        if not self._hours.always:
            dues.append(now + min(LOOK_S, max(0.0, self._span.end - self._desk.wall())))
        if not self.closed and (due := self._pace.due(now)) > now:
            dues.append(due)
        return min(dues, default=None)

    # A user's pause.

    def pause(self, now: float) -> bool:
        """Pause until `resume`, across restarts; False when a user has done so already."""
        if self._paused_at is not None:
            return False
        self._paused_at = self._desk.wall()
        self._keep(repr(self._paused_at), now)
        return True

    def resume(self, now: float) -> bool:
        """End a user's pause; False when there is none. Outside its hours the schedule still holds photos back."""
        if self._paused_at is None:
            return False
        self._paused_at = None
        self._keep("", now)
        return True

    def _keep(self, value: str, now: float) -> None:
        """Remember a pause or its end; while the state folder is full it counts already, and is written later."""
        self._desk.journal.commit(partial(self._desk.ledger.set_meta, PAUSED, value), lambda: None, now)
        self._tell()

    # What is said of it.

    def report(self) -> dict[str, Any] | None:
        """Return what the service is paused by, since when (by a user), and until when (by the schedule)."""
        by = self.paused_by
        if by is None:
            return None
        since = _stamp(self._paused_at) if self._paused_at is not None else None
        return {"by": by, "since": since, "until": _stamp(self._span.end) if by == "schedule" else None}

    def headline(self, otherwise: str) -> str:
        """Return the one line that the service manager shows."""
        return {None: otherwise, "user": "Paused", "schedule": "Paused by the schedule"}[self.paused_by]

    def _tell(self) -> None:
        """Log when what pauses the service has changed."""
        before, self._told = self._told, self.paused_by
        if self._told == before:
            return
        if self._told is None:
            self._log.info("daemon.resumed", by=before)
        else:
            self._log.info("daemon.paused", **(self.report() or {}))


def _stored(value: str | None) -> float | None:
    """Return when the service was paused, from what the ledger holds."""
    return float(value) if value else None


def _stamp(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
