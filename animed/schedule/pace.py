"""How fast photos are begun. Pure: time is an argument (`time.monotonic()` seconds)."""

from __future__ import annotations

from typing import Final

_MINUTE_S: Final = 60.0


class Pace:
    """At most `per_minute` photos a minute, evenly spaced: one in each 60 / per_minute seconds; 0 is no limit.

    What was not used up is not saved: after an idle hour there is no burst.
    """

    def __init__(self, per_minute: int = 0) -> None:
        self._last: float | None = None
        self.configure(per_minute)

    def configure(self, per_minute: int) -> None:
        """Take a new limit; the last start counts on under it. Raises ValueError below 0."""
        if per_minute < 0:
            raise ValueError(f"a pace is 0 (no limit) or more: {per_minute}")
        self._gap = _MINUTE_S / per_minute if per_minute else 0.0

    @property
    def limited(self) -> bool:
        """Say whether there is a limit."""
        return self._gap > 0

    def due(self, now: float) -> float:
        """Return when the next photo may be begun: `now` when it may be begun at once."""
        return now if self._last is None else max(now, self._last + self._gap)

    def started(self, now: float) -> None:
        """Count a photo that is begun."""
        self._last = now
