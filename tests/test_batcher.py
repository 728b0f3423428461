"""The backlog: nothing lost, nothing twice, in order, fairly, in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from animed.records import FileStat, Job, PhotoKey, Recipe
from animed.schedule.batcher import Batcher

if TYPE_CHECKING:
    from animed.records import Batch

STAT = FileStat(100, 1, 1, 1, 1, 0o100644)


def recipe(style: str = "cel") -> Recipe:
    return Recipe(style, "00" * 32, "half_pixel", 1.0, 1024, "same", 92, exif=True, gps=True)


def job(inbox: str, name: str, *, at: float = 0.0, style: str = "cel") -> Job:
    return Job(PhotoKey(inbox, name.encode()), STAT, recipe(style), at)


def names(batch: Batch | None) -> list[str]:
    assert batch is not None
    return [each.key.path.decode() for each in batch.jobs]


def filled(*jobs: Job, max_size: int = 8, max_wait: float = 10.0, backlog: int = 100) -> Batcher:
    batcher = Batcher(max_size, max_wait, backlog)
    for each in jobs:
        assert batcher.add(each, each.settled_at)
    return batcher


def test_a_free_worker_takes_at_once() -> None:
    """With a free worker nothing waits for company, and batches are numbered from 1."""
    batcher = filled(job("phone", "a"))
    batch = batcher.take(0.0, idle=True)
    assert names(batch) == ["a"]
    assert batch is not None
    assert batch.number == 1
    assert batcher.take(0.0, idle=True) is None
    batcher.add(job("phone", "b"), 0.0)
    second = batcher.take(0.0, idle=True)
    assert second is not None
    assert second.number == 2


def test_without_a_free_worker_a_batch_waits_for_its_age() -> None:
    """A group is due exactly when `next_due` says, and not before."""
    batcher = filled(job("phone", "a", at=5.0), job("phone", "b", at=6.0))
    assert batcher.take(14.9, idle=False) is None
    due = batcher.next_due(7.0)
    assert due == 15.0
    assert names(batcher.take(due, idle=False)) == ["a", "b"]
    assert batcher.next_due(due) is None


def test_a_full_batch_is_due_at_once() -> None:
    """`max_size` photos of a recipe do not wait, and the rest stays."""
    batcher = filled(*(job("phone", f"{n}", at=n) for n in range(4)), max_size=3)
    assert batcher.next_due(3.0) == 3.0
    assert names(batcher.take(3.0, idle=False)) == ["0", "1", "2"]
    assert batcher.take(3.0, idle=False) is None
    assert batcher.queued("phone") == 1


def test_shutdown_drains_without_waiting() -> None:
    """At shutdown a group is due whatever its size and age."""
    batcher = filled(job("phone", "a"))
    assert names(batcher.take(0.0, idle=False, drain=True)) == ["a"]


def test_an_import_does_not_starve_one_photo() -> None:
    """Behind ten thousand photos of one inbox, the photo of another one is in the very next batch."""
    batcher = Batcher(8, 0.2, 10_000)
    for number in range(10_000):
        batcher.add(job("import", f"{number}", at=number / 1e4), 1.0)
    assert names(batcher.take(1.0, idle=True))[0] == "0"
    assert batcher.add(job("phone", "mine", at=2.0), 2.0)
    assert "mine" in names(batcher.take(2.0, idle=True))[:2]


def test_a_full_backlog_still_lets_another_inbox_in() -> None:
    """An import that fills the backlog is told so, and shuts nobody else out."""
    batcher = filled(*(job("import", f"{n}", at=n) for n in range(5)), max_size=2, backlog=5)
    assert not batcher.add(job("import", "5"), 9.0)
    assert [batcher.add(job("phone", f"{n}"), 9.0) for n in range(3)] == [True, True, False]


def test_inboxes_alternate_inside_a_batch() -> None:
    """A batch of one recipe takes one photo of each inbox in turn, each inbox in the order of settling."""
    jobs = [job("import", f"i{n}", at=n) for n in range(5)] + [job("phone", f"p{n}", at=10 + n) for n in range(2)]
    batcher = filled(*jobs, max_size=6)
    assert names(batcher.take(20.0, idle=True)) == ["i0", "p0", "i1", "p1", "i2", "i3"]


def test_the_order_is_that_of_settling_not_of_arrival() -> None:
    """A photo that settled earlier but arrives later goes first: a retry does not queue at the end."""
    batcher = filled(job("phone", "late", at=5.0), job("phone", "early", at=1.0))
    assert names(batcher.take(9.0, idle=True)) == ["early", "late"]


def test_recipes_are_never_mixed() -> None:
    """Each batch has one recipe, and the inbox's oldest photo decides which one comes first."""
    batcher = filled(job("a", "1", at=1), job("a", "2", at=2, style="ink"), job("a", "3", at=3))
    assert names(batcher.take(9.0, idle=True)) == ["1", "3"]
    assert names(batcher.take(9.0, idle=True)) == ["2"]


def test_a_suspended_inbox_keeps_its_place() -> None:
    """Held jobs are not taken, make nothing due, leave the backlog to others, and come back in order."""
    batcher = filled(*(job("import", f"{n}", at=n) for n in range(4)), max_size=8, backlog=4)
    batcher.hold("import")
    assert batcher.take(99.0, idle=True) is None
    assert batcher.next_due(99.0) is None
    assert batcher.below_half
    assert len(batcher) == 4
    assert batcher.add(job("phone", "p", at=50.0), 50.0)
    assert names(batcher.take(99.0, idle=False)) == ["p"]
    batcher.release("import")
    assert not batcher.below_half
    assert names(batcher.take(99.0, idle=False)) == ["0", "1", "2", "3"]


def test_a_photo_is_queued_once() -> None:
    """Adding a photo again replaces its job, even in a full backlog and under another recipe."""
    batcher = filled(job("a", "x", at=1), backlog=1)
    assert batcher.add(job("a", "x", at=2, style="ink"), 2.0)
    batch = batcher.take(9.0, idle=True)
    assert batch is not None
    assert [(each.settled_at, each.recipe.style) for each in batch.jobs] == [(2, "ink")]
    assert len(batcher) == 0


def test_clear_returns_everything_in_order() -> None:
    """What is dropped at a stop is handed back, held jobs too."""
    batcher = filled(job("b", "2", at=2), job("a", "1", at=1, style="ink"), job("a", "3", at=3))
    batcher.hold("a")
    assert [each.key.path for each in batcher.clear()] == [b"1", b"2", b"3"]
    assert len(batcher) == 0


def test_a_held_lane_does_not_gather_dead_entries() -> None:
    """A photo that is replaced again and again in an inbox that nobody takes from costs no growing memory."""
    batcher = Batcher(8, 1.0, 100)
    batcher.hold("a")
    for number in range(2000):
        batcher.add(job("a", "first", at=0.0), 0.0)
        batcher.add(job("a", "x", at=float(number)), 0.0)
    assert len(batcher._inboxes["a"][recipe()]._heap) < 50


@pytest.mark.parametrize(("max_size", "max_wait", "backlog"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_impossible_limits_are_refused(max_size: int, max_wait: float, backlog: int) -> None:
    """A backlog that could hold nothing, or wait backwards, is an error."""
    with pytest.raises(ValueError, match="at least"):
        Batcher(max_size, max_wait, backlog)
