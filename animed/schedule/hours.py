"""The hours of the day in which photos are begun. Pure: wall-clock time is an argument (seconds since the epoch).

A window is meant as the clock on the wall shows it. Where the clock jumps, what it shows decides: a window that the
spring's gap leaves out does not happen that day, and one in the hour that autumn repeats happens twice.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.config.windows import Window

_DAY_S: Final = 86_400
_AHEAD_S: Final = 8 * _DAY_S  # a window that a gap leaves out comes the day after, so a change is never further off
_PROBE_S: Final = 3600  # no zone sets its clock twice within an hour


def system_offset(wall: int) -> int:
    """Return by how many seconds the clock of this system's zone is ahead of UTC at an instant."""
    return time.localtime(wall).tm_gmtoff


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time without a change: `start <= wall < end`, in seconds since the epoch."""

    active: bool
    start: float
    end: float

    def holds(self, wall: float) -> bool:
        """Say whether an instant lies in this stretch."""
        return self.start <= wall < self.end


class Hours:
    """The windows of every day, in the time zone whose clock `offset` (seconds ahead of UTC) tells."""

    def __init__(self, windows: tuple[Window, ...], offset: Callable[[int], int] = system_offset) -> None:
        self._windows = windows
        self._offset = offset
        self._edges = sorted({minute * 60 % _DAY_S for window in windows for minute in window})
        # The state changes at edges only: whoever is active from every edge on is never anything else.
        self.always = all(self._shows(edge) for edge in self._edges)

    def is_active(self, wall: float) -> bool:
        """Say whether photos may be begun at an instant."""
        at = math.floor(wall)
        return self.always or self._shows((at + self._offset(at)) % _DAY_S)

    def next_change(self, wall: float) -> int | None:
        """Return the first instant after `wall` at which `is_active` is another; None when that never happens."""
        if self.always:
            return None
        active, at = self.is_active(wall), math.floor(wall)
        while at < wall + _AHEAD_S:
            at = self._next_event(at)
            if self.is_active(at) != active:
                return at
        return None

    def span(self, wall: float) -> Span:
        """Return the stretch that begins at `wall` and ends with the next change."""
        change = self.next_change(wall)
        return Span(self.is_active(wall), wall, math.inf if change is None else change)

    def _shows(self, second: int) -> bool:
        """Say whether a second of the day on the wall's clock lies in a window."""
        minute = second // 60
        return any(
            start <= minute < end if start < end else minute >= start or minute < end for start, end in self._windows
        )

    def _next_event(self, at: int) -> int:
        """Return when something may change next: the clock reaches an edge, or is set."""
        offset = self._offset(at)
        edge = at + min((edge - at - offset) % _DAY_S or _DAY_S for edge in self._edges)
        for probe in [*range(at + _PROBE_S, edge, _PROBE_S), edge]:
            if self._offset(probe) != offset:
                return self._set_at(max(at, probe - _PROBE_S), probe)
        return edge

    def _set_at(self, before: int, after: int) -> int:
        """Return the first second of the new offset, which lies in `(before, after]`."""
        old = self._offset(before)
        while after - before > 1:
            middle = (before + after) // 2
            if self._offset(middle) == old:
                before = middle
            else:
                after = middle
        return after
