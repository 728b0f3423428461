"""What a file is to the ledger, and who draws content that is there twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.records import FileStat, Job, PhotoKey, Recipe
from animed.schedule.identity import Busy, CheckContent, Known, New, SameContent, after_content, decide
from animed.schedule.rows import Row
from animed.schedule.twins import Twins

if TYPE_CHECKING:
    from animed.records import Status

KEY = PhotoKey("phone", b"a.jpg")
STAT = FileStat(size=100, mtime_ns=10, ctime_ns=20, inode=3, device=4, mode=0o100644)
OTHER_TIME = replace(STAT, mtime_ns=11)
OTHER_SIZE = replace(STAT, size=101)
RECIPE = Recipe("cel", "00" * 32, "half_pixel", 1.0, 1024, "same", 92, exif=True, gps=True)


def row(status: Status, **changes: object) -> Row:
    return replace(Row(KEY, STAT.size, STAT.mtime_ns, STAT.ctime_ns, status, sha256="aa"), **changes)  # type: ignore[arg-type]  # fields by name


def test_a_file_without_a_record_is_new() -> None:
    """What the ledger does not know is drawn."""
    assert decide(None, STAT) == New()


@pytest.mark.parametrize("status", ["done", "duplicate", "skipped"])
def test_an_outcome_stays(status: Status) -> None:
    """A photo with an outcome is known by size and mtime, whatever ctime, inode and device are now."""
    moved = replace(STAT, inode=99, device=98, ctime_ns=97, mode=0o100600)
    assert decide(row(status), moved) == Known()


@pytest.mark.parametrize("status", ["done", "duplicate", "skipped"])
def test_a_new_mtime_alone_is_not_a_new_photo(status: Status) -> None:
    """Its content decides: the same digest updates the record, another one is a new photo."""
    check = decide(row(status), OTHER_TIME)
    assert check == CheckContent("aa")
    assert after_content(check, "aa") == SameContent()
    assert after_content(check, "bb") == New()


@pytest.mark.parametrize("status", ["done", "duplicate", "skipped"])
def test_another_size_is_a_new_photo(status: Status) -> None:
    """Another size is other content: there is nothing to compare."""
    assert decide(row(status), OTHER_SIZE) == New()


def test_an_outcome_without_a_digest_cannot_be_compared() -> None:
    """A photo that was skipped unread is new when its stat changes."""
    assert decide(row("skipped", sha256=""), OTHER_TIME) == New()


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        (STAT, Known()),
        (replace(STAT, inode=9, device=9), Known()),
        (OTHER_TIME, New()),
        (OTHER_SIZE, New()),
        (replace(STAT, ctime_ns=21), New()),
    ],
)
def test_a_failed_photo_is_tried_again_when_its_stat_changes(stat: FileStat, expected: New | Known) -> None:
    """Size, mtime or ctime (a change of rights) make it new, with all tries ahead."""
    assert decide(row("failed", attempts=5, crashes=1), stat) == expected


def test_a_waiting_photo_keeps_what_it_used_up() -> None:
    """A restart does not give a photo more tries, nor spare it the wait; other bytes start afresh."""
    waiting = row("retry", attempts=3, crashes=1, next_try=50.0)
    assert decide(waiting, replace(STAT, ctime_ns=99)) == New(3, 1, 50.0)
    assert decide(waiting, OTHER_TIME) == New()


@settings(deadline=None)
@given(size=st.integers(100, 101), mtime=st.integers(10, 11), again=st.booleans())
def test_a_photo_that_is_being_placed_is_left_alone(size: int, mtime: int, again: bool) -> None:
    """Nothing is decided while the outcome is open."""
    assert decide(row("publishing", again=again), replace(STAT, size=size, mtime_ns=mtime)) == Busy()


def test_a_new_file_waits_until_the_old_original_is_put_away() -> None:
    """The record of an unfinished move must not be lost to a new file under the same name."""
    pending = row("done", original_pending="{}")
    assert decide(pending, STAT) == Known()
    assert decide(pending, OTHER_TIME) == Busy()


@pytest.mark.parametrize("status", ["done", "duplicate", "skipped", "failed", "retry"])
def test_a_photo_that_was_asked_for_again_is_new(status: Status) -> None:
    """A request for a new try holds across restarts, with all tries ahead."""
    assert decide(row(status, again=True, attempts=0), STAT) == New()


def job(name: str, sha256: str = "aa", recipe: Recipe = RECIPE) -> Job:
    return Job(PhotoKey("phone", name.encode()), STAT, recipe, 0.0, sha256=sha256)


def test_equal_photos_wait_for_the_first() -> None:
    """One of them is drawn; when it has ended, the others come back in order and one of them may lead."""
    twins = Twins()
    assert [twins.join(job(name)) for name in "abc"] == [True, False, False]
    assert twins.join(job("a")), "a retry keeps its lead"
    assert (len(twins), twins.waits(job("a").key), twins.waits(job("b").key)) == (2, False, True)
    assert twins.leave(job("a").key) == (job("b"), job("c"))
    assert [twins.join(job(name)) for name in "cb"] == [True, False]


def test_other_content_and_other_recipes_do_not_wait() -> None:
    """Only the same bytes under the same recipe share a picture; without a digest nothing is compared."""
    twins = Twins()
    others = [job("a"), job("b", "bb"), job("c", recipe=replace(RECIPE, style="ink")), job("d", ""), job("e", "")]
    assert all(twins.join(each) for each in others)
    assert len(twins) == 0


def test_a_waiting_photo_that_vanished_is_forgotten() -> None:
    """It does not come back with the others; and what never joined leaves without a trace."""
    twins = Twins()
    for name in "abc":
        twins.join(job(name))
    assert twins.leave(job("b").key) == ()
    assert twins.leave(job("z").key) == ()
    assert twins.leave(job("a").key) == (job("c"),)


def test_a_photo_leaves_before_it_joins_with_other_content() -> None:
    """Two contents of one photo at once are a mistake of the caller."""
    twins = Twins()
    twins.join(job("a"))
    with pytest.raises(ValueError, match="must leave"):
        twins.join(job("a", "bb"))
