"""Which places of an inbox are suspended, and when it is scanned."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.daemon.health import Health, ScanClock, Trouble

if TYPE_CHECKING:
    from animed.errors import PlaceRole

ROLES: Final[tuple[PlaceRole, ...]] = ("inbox", "output", "processed", "failed")
SECONDS = st.floats(0, 1e6)


def trouble(code: int = errno.EIO) -> Trouble:
    return Trouble(code, "/place", "made up")


def test_a_new_inbox_is_ready() -> None:
    """Without a trouble an inbox is ready, draws, and looks at nothing."""
    health = Health()
    assert (health.state, health.draws, health.shelves, health.next_due()) == ("ready", True, [], None)


@pytest.mark.parametrize(
    ("role", "state", "draws", "shelves"),
    [
        ("inbox", "unavailable", False, []),
        ("output", "degraded", False, []),
        ("processed", "degraded", True, ["processed"]),
        ("failed", "degraded", True, ["failed"]),
    ],
)
def test_each_place_weighs_differently(role: PlaceRole, state: str, draws: bool, shelves: list[str]) -> None:
    """Without its root or its output an inbox cannot draw; without a shelf for originals it can."""
    health = Health()
    assert health.fault(role, trouble(), 0.0)
    assert (health.state, health.draws, health.shelves) == (state, draws, shelves)
    assert health.well(role) is not None
    assert health.well(role) is None
    assert health.state == "ready"


@settings(deadline=None, max_examples=50)
@given(st.sets(st.sampled_from(ROLES)))
def test_the_worst_trouble_names_the_state(roles: set[PlaceRole]) -> None:
    """The inbox's own trouble outweighs all others."""
    health = Health()
    for role in roles:
        health.fault(role, trouble(), 0.0)
    expected = "unavailable" if "inbox" in roles else "degraded" if roles else "ready"
    assert health.state == expected
    assert health.draws == (not roles & {"inbox", "output"})


def test_a_second_fault_is_no_news_but_is_told() -> None:
    """Only the first fault of a place is news; the last one's error is the one that is shown."""
    health = Health()
    assert health.fault("output", trouble(errno.EIO), 0.0)
    assert not health.fault("output", trouble(errno.ENOSPC), 0.1)
    assert health.troubles["output"].code == errno.ENOSPC


@pytest.mark.parametrize(
    ("role", "code", "event"),
    [
        ("inbox", errno.EIO, "inbox.unavailable"),
        ("output", errno.EIO, "inbox.degraded"),
        ("output", errno.ENOSPC, "disk.low"),
        ("output", errno.EDQUOT, "disk.low"),
        ("processed", errno.ENOSPC, "disk.low"),
    ],
)
def test_a_full_place_has_its_own_event(role: PlaceRole, code: int, event: str) -> None:
    """What is full is told apart from what is broken."""
    assert trouble(code).event(role) == event


def test_probes_come_after_1_2_4_seconds_up_to_60() -> None:
    """Each look that finds the place ill doubles the wait, up to a minute; a success starts the series again."""
    health, now, waits = Health(), 0.0, []
    for _ in range(9):
        health.fault("output", trouble(), now)
        due = health.next_due()
        assert due is not None
        assert health.due(due - 0.01) == []
        assert health.due(due) == ["output"]
        waits.append(due - now)
        now = due
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    health.well("output")
    health.fault("output", trouble(), now)
    assert health.next_due() == now + 1


def test_photos_that_fail_together_count_as_one_fault() -> None:
    """A hundred faults at one moment do not push the next look away."""
    health = Health()
    for _ in range(100):
        health.fault("output", trouble(), 5.0)
    assert health.next_due() == 6.0


def test_the_next_look_is_the_earliest() -> None:
    """Of several places the one that is due first decides."""
    health = Health()
    health.fault("processed", trouble(), 3.0)
    health.fault("inbox", trouble(), 1.0)
    assert health.next_due() == 2.0


def test_no_scan_before_one_is_wanted() -> None:
    """An interval alone starts no first scan: the first look at the root does."""
    clock = ScanClock(60)
    assert clock.next_due() is None
    clock.wanted = True
    assert clock.next_due() == 0.0


def test_the_interval_counts_from_the_end_of_the_last_scan() -> None:
    """While a scan runs none is due; then one is due after the interval, or never when that is 0."""
    clock = ScanClock(60)
    clock.begin()
    assert clock.next_due() is None
    clock.end(0.0, 10.0)
    assert clock.next_due() == 70.0
    clock.interval = 0.0
    assert clock.next_due() is None


def test_what_is_wanted_while_a_scan_runs_is_not_lost() -> None:
    """A wish that comes during a scan leads to another scan after it."""
    clock = ScanClock(0)
    clock.begin()
    clock.wanted = True
    assert clock.next_due() is None
    clock.end(0.0, 10.0)
    assert clock.next_due() == 10.0
    clock.begin()
    assert not clock.wanted


@settings(deadline=None, max_examples=100)
@given(interval=SECONDS, cost=st.floats(0, 1e4), ended=SECONDS, wanted=st.booleans())
def test_no_scan_sooner_than_a_hundred_times_its_cost(interval: float, cost: float, ended: float, wanted: bool) -> None:
    """Whatever is wanted, scanning takes at most a hundredth of the processor."""
    clock = ScanClock(interval)
    clock.begin()
    clock.end(cost, ended)
    clock.wanted = wanted
    due = clock.next_due()
    if due is None:
        assert not wanted
        assert not interval
    else:
        assert due >= ended + 100 * cost
        assert due == ended + max(100 * cost, 0.0 if wanted else interval)
