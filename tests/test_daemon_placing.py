"""From a finished picture to its name, whatever stands in the way."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from daemon_fakes import open_stages, staged_fd

from animed.daemon.putting import OpenOutput, Place, Resolve, Resolved
from animed.delivery.faults import SourceGone
from animed.errors import PhotoError, PlaceError
from animed.records import Failure, PlaceFault, Skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

NAME = b"/out/phone/a.cel.jpg"


def test_the_name_is_claimed_before_it_is_taken(bench: Callable[..., Bench]) -> None:
    """The first commit stands before the disk is asked; the outcome is logged only after the second one."""
    run = bench()
    run.sight()
    run.draw()
    row = run.row()
    assert row is not None
    assert (row.status, row.output) == ("publishing", NAME)
    assert row.staged is not None
    assert run.outcomes() == []
    run.turn()
    assert run.status() == "done"
    assert run.outcomes() == [("a.jpg", "done")]


def test_nothing_is_placed_while_the_ledger_is_full(bench: Callable[..., Bench]) -> None:
    """Without the first commit no name is taken, and no new photo is started; later all goes on in order."""
    run = bench(batch=1, workers=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg"):
        run.sight(name, name)
    run.store.full = True
    run.draw()
    run.turn()
    assert run.names() == []
    assert len(run.pool.jobs) == 1
    run.store.full = False
    run.run(2)
    run.draw_all()
    assert sorted(run.names()) == ["a.cel.jpg", "b.cel.jpg", "c.cel.jpg", "d.cel.jpg"]
    assert run.log.names().count("disk.low") == run.log.names().count("disk.recovered") == 1


def test_a_placed_picture_whose_commit_waits_is_logged_once(bench: Callable[..., Bench]) -> None:
    """A ledger that fills up between the two commits delays the outcome and repeats nothing."""
    run = bench()
    run.sight()
    run.draw()
    run.store.full = True
    run.turn()
    assert run.names() == ["a.cel.jpg"]
    assert run.outcomes() == []
    run.store.full = False
    run.run(5)
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.names() == ["a.cel.jpg"]


@pytest.mark.parametrize("late", [False, True])
def test_a_place_fault_during_placing_is_resolved_later(bench: Callable[..., Bench], late: bool) -> None:
    """The row stays `publishing`; when the place is well, the picture is there and done, or the photo drawn again."""
    run = bench(originals="delete")
    run.sight()
    run.world.break_output(late=late)
    run.draw()
    run.turn()
    assert run.status() == "publishing"
    assert run.state() == "degraded"
    assert not open_stages()
    run.run(20)
    assert run.status() == "publishing"
    run.world.heal()
    run.run(70)
    assert bool(run.pool.jobs) == (not late)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.names() == ["a.cel.jpg"]
    assert [owed.what for _, owed in run.world.put_away] == ["delete"]
    row = run.row()
    assert row is not None
    assert row.attempts == 1
    assert row.original_pending is None
    assert run.is_clean()


@pytest.mark.parametrize("late", [False, True])
def test_a_crash_during_placing_is_resolved_at_the_start(bench: Callable[..., Bench], late: bool) -> None:
    """After a crash the claimed name decides: its picture is there, or the photo is drawn again."""
    run = bench()
    run.sight()
    run.draw()
    if late:
        run.world.answers(run.thread.of(Place)[0])
    run.restart()
    run.run(10)
    run.draw_all()
    assert run.names() == ["a.cel.jpg"]
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.is_clean()


@pytest.mark.parametrize("placed", [False, True])
def test_a_claim_is_resolved_once_although_the_ledger_is_full(bench: Callable[..., Bench], placed: bool) -> None:
    """A place that comes back again and again while the commit waits leads to no second commit."""
    run = bench()
    run.sight()
    run.draw()
    run.answer(Place, PlaceError("output", errno.EIO, "/out"))
    run.store.full = True
    for _ in range(3):
        run.parts.arrivals.up(run.inbox, run.now)
        for request in run.thread.of(Resolve):
            run.answer(Resolve, Resolved(placed, run.world.stat(request.row.key.path)))
    assert run.parts.placing.busy
    run.store.full = False
    run.run(100)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert not run.parts.placing.busy


def test_a_refusal_is_resolved_before_the_photo_is_blamed(bench: Callable[..., Bench]) -> None:
    """A photo's fault from placing may have come after the name was taken: then the photo is done."""
    run = bench(attempts=1)
    for path, placed in ((b"a.jpg", True), (b"b.jpg", False)):
        run.sight(path, path)
        run.draw()
        run.answer(Place, PhotoError("output_denied", "made up"))
        assert run.status(path) == "publishing"
        run.answer(Resolve, Resolved(placed, run.world.stat(path)))
        run.turn()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "output_denied")]
    assert not open_stages()
    row = run.row(b"b.jpg")
    assert row is not None
    assert row.output is None


def test_a_place_that_fails_while_a_refusal_is_resolved_is_asked_again(bench: Callable[..., Bench]) -> None:
    """The claim stays until the place can say what became of it."""
    run = bench()
    run.sight()
    run.draw()
    run.answer(Place, PhotoError("output_denied", "made up"))
    run.answer(Resolve, PlaceError("output", errno.EIO, "/out"))
    assert run.status() == "publishing"
    run.run(5)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_a_lost_stage_is_drawn_again_at_no_cost(bench: Callable[..., Bench]) -> None:
    """A staged picture that somebody removed is nobody's fault that is known: no try is used up."""
    run = bench(attempts=1)
    run.sight()
    run.draw()
    run.answer(Place, SourceGone("gone"))
    run.turn()
    assert [job.attempt for job in run.pool.jobs] == [1]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert [line["reason"] for line in run.log.events("file.retry")] == ["stage_lost"]


def test_named_stages_are_removed_in_the_end(bench: Callable[..., Bench]) -> None:
    """Where stages have names, none is left: after placing, after a conflict, and after a place's fault."""
    run = bench()
    run.sight(b"a.jpg", b"one")
    run.draw(name="tmp-1")
    run.turn()
    run.sight(b"b.jpg", b"two")
    run.draw(name="tmp-2")
    run.answer(Place, PlaceError("output", errno.EIO, "/out"))
    run.run(5)
    run.draw_all()
    assert [staged.name for staged in run.world.discarded] == ["tmp-1", "tmp-2"]
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("b.jpg", "done")]


def test_a_skip_and_a_failure_close_what_the_worker_sent(bench: Callable[..., Bench]) -> None:
    """A descriptor that comes with another outcome than a picture is closed."""
    run = bench(attempts=1)
    for path, outcome in ((b"a.jpg", Skip("animated")), (b"b.jpg", Failure("truncated", ""))):
        run.sight(path, path)
        run.event(run.pool.finish(run.pool.jobs[0], outcome, staged_fd()))
        run.turn()
    assert run.outcomes() == [("a.jpg", "skipped"), ("b.jpg", "truncated")]
    assert not open_stages()


def test_a_worker_s_place_fault_costs_no_try(bench: Callable[..., Bench]) -> None:
    """A full output suspends the inbox, the photo waits, and goes on with its first try."""
    run = bench()
    run.sight()
    run.world.faults[OpenOutput] = fault = PlaceError("output", errno.ENOSPC, "/out", "full")
    for _ in range(3):
        run.end(PlaceFault(fault.role, fault.code, fault.path, fault.detail))
        assert not run.pool.jobs
        run.world.faults.clear()
        run.run(61)
    assert [job.attempt for job in run.pool.jobs] == [1]
    assert run.log.names().count("disk.low") == run.log.names().count("disk.recovered") == 3
    run.draw_all()
    assert run.is_clean()
