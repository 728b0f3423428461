"""The pace: how many photos a minute, at whatever moments somebody asks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.schedule.pace import Pace


def starts(pace: Pace, times: list[float]) -> list[float]:
    """Return those of the times at which a photo was begun."""
    begun = []
    for now in times:
        if pace.due(now) <= now:
            pace.started(now)
            begun.append(now)
    return begun


@settings(deadline=None)
@given(per_minute=st.integers(1, 100), steps=st.lists(st.floats(0.0, 90.0), max_size=200))
def test_no_minute_has_more(per_minute: int, steps: list[float]) -> None:
    """Whenever it is asked, no stretch of a minute has more photos than the limit, and idle time is not saved up."""
    times = [1000.0 + sum(steps[: i + 1]) for i in range(len(steps))]
    begun = starts(Pace(per_minute), times)
    for first in begun:
        assert sum(first <= now < first + 60 - 1e-6 for now in begun) <= per_minute


@settings(deadline=None)
@given(per_minute=st.integers(1, 6000))
def test_the_limit_is_reached(per_minute: int) -> None:
    """Whoever starts a photo whenever it is due begins as many as the limit says."""
    pace, now, begun = Pace(per_minute), 0.0, 0
    while now < 60 - 1e-6:
        pace.started(now)
        begun += 1
        now = pace.due(now)
    assert begun == per_minute


def test_zero_is_no_limit() -> None:
    """Without a limit every moment is as good as any."""
    assert starts(Pace(), [1.0, 1.0, 1.0]) == [1.0, 1.0, 1.0]


def test_a_new_limit_counts_from_the_last_start() -> None:
    """A faster pace does not wait for the end of the old gap, a slower one does not start at once."""
    pace = Pace(1)
    pace.started(100.0)
    assert pace.due(101.0) == 160.0
    pace.configure(6)
    assert pace.due(101.0) == 110.0
    pace.configure(0)
    assert pace.due(101.0) == 101.0
    with pytest.raises(ValueError, match="0"):
        pace.configure(-1)
