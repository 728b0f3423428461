"""How an inbox is watched: by events, by regular scans, or both, and the fallback from the one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from animed.intake.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.config import InboxConfig
    from animed.daemon.looking import RootFound
    from animed.intake.rules import Rules
    from animed.intake.watch import Hint

Mode = Literal["native", "poll", "both", "off"]
CHECK_S: Final = 5.0  # seconds between two looks at the watch's threads; that costs no disk access
RETRY_S: Final = 60.0  # a watch that the kernel had no room for is tried again, at first after this time


class Watching:
    """Which mode is wanted, which is in force, and whether the watch still lives."""

    def __init__(self, config: InboxConfig, rules: Rules, sink: Callable[[Hint], None]) -> None:
        self._config = config
        self._rules = rules
        self._sink = sink
        self._check_at = 0.0
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

    def renew(self) -> tuple[Watch | None, Watch]:
        """Return the watch to stop, if there is one, and the one to start."""
        old, self.watch, self.live = self.watch, Watch(str(self._config.path), self._sink, rules=self._rules), False
        return old, self.watch

    def started(self, watch: Watch, now: float) -> bool:
        """Note that a watch lives; False when it has been replaced meanwhile."""
        if watch is not self.watch:
            return False
        self.live, self.limited, self._check_at = True, False, now + CHECK_S
        return True

    def drop(self) -> Watch | None:
        """Let go of the watch; returns it to be stopped."""
        old, self.watch, self.live = self.watch, None, False
        return old

    def next_check(self) -> float | None:
        """Return when the watch's threads are to be looked at."""
        return self._check_at if self.live else None

    def fault(self, now: float) -> str | None:
        """Look at the watch's threads when it is time; return what has died."""
        if not self.live or self.watch is None or now < self._check_at:
            return None
        self._check_at = now + CHECK_S
        return self.watch.health()
