"""How an inbox is watched: by events, by regular scans, or both, and the fallback from the one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from animed.daemon.looking import StartWatch, StopWatch
from animed.intake.watch import Watch
from animed.schedule.retry import Backoff, PlaceBackoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.config import InboxConfig
    from animed.daemon.looking import RootFound
    from animed.intake.rules import Rules
    from animed.intake.watch import Hint

Mode = Literal["native", "poll", "both", "off"]
CHECK_S: Final = 5.0  # seconds between two looks at the watch's threads; that costs no disk access
RETRY_S: Final = 60.0  # a watch that the kernel had no room for is tried again, at first after this time
LONGEST_S: Final = 3600.0  # and at last after this one
MOST_CHECK_S: Final = 600.0  # a watch that dies again and again is looked at, and renewed, no more seldom than this


class Watching:
    """Which mode is wanted, which is in force, and whether the watch still lives."""

    def __init__(self, config: InboxConfig, rules: Rules, sink: Callable[[Hint], None]) -> None:
        self._config = config
        self._rules = rules
        self._sink = sink
        self._check_at = 0.0
        self._check_s = CHECK_S  # until the next look; it doubles with every death in a row
        self._retry = PlaceBackoff(Backoff(RETRY_S, 2, LONGEST_S))
        self.watch: Watch | None = None  # started, or being started
        self.live = False
        self.limited = False  # the kernel had no room: polling instead

    def wants_events(self, found: RootFound) -> bool:
        """Say whether this inbox is to be watched by events."""
        wanted = self._config.watch
        return wanted in {"native", "both"} or (wanted == "auto" and not found.polled)

    @property
    def mode(self) -> Mode:
        """Return the mode in force."""
        if self._config.watch == "off":
            return "off"
        if self.watch is None or self.limited:
            return "poll"
        return "both" if self._config.watch == "both" else "native"

    @property
    def interval(self) -> float:
        """Return the seconds between two scans in this mode; 0 = none."""
        config = self._config
        if self.mode in {"native", "off"}:
            return config.rescan_interval
        return min(config.poll_interval, config.rescan_interval or config.poll_interval)

    def renew(self) -> tuple[StopWatch | StartWatch, ...]:
        """Return the requests that stop the watch, if there is one, and start another."""
        old, self.watch, self.live = self.watch, Watch(str(self._config.path), self._sink, rules=self._rules), False
        start = StartWatch(self.watch)
        return (start,) if old is None else (StopWatch(old), start)

    def started(self, watch: Watch, now: float) -> bool:
        """Note that a watch lives; False when it has been replaced meanwhile."""
        if watch is not self.watch:
            return False
        self.live, self.limited, self._check_at = True, False, now + self._check_s
        self._retry.reset()
        return True

    def refused(self, watch: Watch, now: float) -> bool:
        """Note that the kernel has no room for a watch; say whether that is news."""
        if watch is not self.watch:
            return False
        news, self.limited = not self.limited, True
        self._retry.fault(now)
        return news

    def retry_due(self, now: float) -> bool:
        """Say whether it is time to try again what the kernel had no room for; the next time is later."""
        due = self.limited and self._retry.due(now)
        if due:
            self._retry.fault(now)
        return due

    def drop(self) -> Watch | None:
        """Let go of the watch; returns it to be stopped."""
        old, self.watch, self.live = self.watch, None, False
        self._retry.reset()
        return old

    def next_check(self) -> float | None:
        """Return when the watch's threads are to be looked at, or a watch is to be tried again."""
        return self._check_at if self.live else self._retry.next_due

    def fault(self, now: float) -> str | None:
        """Look at the watch's threads when it is time; return what has died.

        Each death leads to a scan, so that the look after a death in a row comes later than the last one.
        """
        if not self.live or self.watch is None or now < self._check_at:
            return None
        dead = self.watch.health()
        self._check_s = CHECK_S if dead is None else min(2 * self._check_s, MOST_CHECK_S)
        self._check_at = now + self._check_s
        return dead
