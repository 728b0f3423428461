"""One inbox through missing roots, replaced roots, full watches, hung shares and refusing outputs."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from animed.daemon.looking import OpenRoot, Scan, StatPaths
from animed.daemon.putting import OpenOutput, OutputFound
from animed.errors import PhotoError, PlaceError
from animed.intake.scan import Found

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

GONE = PlaceError("inbox", errno.ENOENT, "/in/phone", "gone")


def events(run: Bench) -> list[str]:
    return [name for name in run.log.names() if name.startswith(("inbox.", "watch.", "disk."))]


def test_a_missing_root_is_a_state(bench: Callable[..., Bench]) -> None:
    """Without its root an inbox is unavailable and probed ever less often; when it comes it is scanned."""
    run = bench(start=False)
    run.world.break_inbox()
    run.world.write(b"a.jpg", b"one")
    run.start()
    assert run.state() == "unavailable"
    assert not run.log.events("inbox.ready")
    probes = 0
    for _ in range(64):
        run.now += 1
        run.tick()
        assert not run.thread.of(Scan)
        probes += len(run.thread.of(OpenRoot))
        run._answer_all()
    assert probes == 6
    run.world.heal()
    run.run(70)
    assert run.state() == "ready"
    assert events(run) == ["inbox.unavailable", "inbox.recovered"]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_a_root_that_goes_and_comes_back_is_scanned_anew(bench: Callable[..., Bench]) -> None:
    """What happened meanwhile is found; nothing is vanished because of the gap."""
    run = bench(poll_interval=30.0)
    run.sight()
    run.draw_all()
    run.world.break_inbox()
    run.run(31)
    assert run.state() == "unavailable"
    run.world.write(b"b.jpg", b"two")
    run.world.heal()
    run.run(70)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "done")]
    assert not run.log.events("file.vanished")


def test_a_hung_share_is_left_alone(bench: Callable[..., Bench]) -> None:
    """After 30 s of silence the inbox is unavailable: nothing more is asked of it, and the loop does not spin."""
    run = bench()
    run.inbox.scans.wanted = True
    run.inbox.hint(b"a.jpg", run.now)
    run.tick()
    held = len(run.thread.requests)
    run.thread.silence = 30.0
    run.tick()
    assert run.state() == "ready"
    turns = 0
    run.thread.silence = 30.1
    run.tick()
    assert run.state() == "unavailable"
    assert run.log.events("inbox.unavailable")[0]["error"] == "ETIMEDOUT"
    asked = len(run.thread.requests)
    assert asked <= held + 1
    end = run.now + 600
    while (due := run.inbox.next_deadline(run.now)) is not None and due < end:
        run.now, turns = max(due, run.now + 0.001), turns + 1
        run.tick()
    assert len(run.thread.requests) == asked
    assert turns < 20
    run.thread.silence = 0.0
    run.run(70)
    assert run.state() == "ready"
    assert events(run)[-1] == "inbox.recovered"


def test_a_share_that_hangs_with_its_output_suspended_does_not_spin(bench: Callable[..., Bench]) -> None:
    """The looks at an output that was full before the share hung come due, cannot be done, and wake nobody for that."""
    run = bench()
    run.world.faults[OpenOutput] = PlaceError("output", errno.ENOSPC, "/out", "full")
    run.inbox.suspend(PlaceError("output", errno.ENOSPC, "/out", "full"), run.now)
    run.run(5)
    run.thread.silence = 31.0
    turns, end = 0, run.now + 600
    while (due := run.inbox.next_deadline(run.now)) is not None and due < end and turns < 1000:
        run.now, turns = max(due, run.now + 0.001), turns + 1
        run.tick()
    assert turns < 40
    run.thread.silence = 0.0
    run.world.heal()
    run.run(130)
    assert run.state() == "ready"


def test_stats_that_meet_a_fault_are_asked_for_again(bench: Callable[..., Bench]) -> None:
    """A path that could not be looked at is neither settled nor forgotten."""
    run = bench()
    run.world.write(b"a.jpg", b"one")
    run.inbox.hint(b"a.jpg", run.now)
    run.world.faults[StatPaths] = GONE
    run.run(1)
    assert run.state() == "unavailable"
    assert run.inbox.settling.pending == 1
    run.world.heal()
    run.run(10)
    assert [job.key.path for job in run.pool.jobs] == [b"a.jpg"]


@pytest.mark.parametrize(
    "fault", [PlaceError("output", errno.EROFS, "/out", "read-only"), PhotoError("output_denied", "no")]
)
def test_a_refusing_output_degrades_the_inbox(bench: Callable[..., Bench], fault: Exception) -> None:
    """Photos are found but wait; when the output takes writes again they are drawn."""
    run = bench(start=False)
    run.world.faults[OpenOutput] = fault  # type: ignore[assignment]  # both are errors of animed
    run.world.write(b"a.jpg", b"one")
    run.start()
    run.run(5)
    assert run.state() == "degraded"
    assert not run.pool.jobs
    assert len(run.parts.backlog.batcher) == 1
    run.world.heal()
    run.run(61)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert events(run) == ["inbox.ready", "inbox.degraded", "inbox.recovered"]


def test_too_little_free_space_suspends_the_output(bench: Callable[..., Bench]) -> None:
    """Below `limits.min_free` work stops with `disk.low`, and goes on with `disk.recovered`, at no try's cost."""
    run = bench()
    run.world.free = 999
    run.sight()
    assert not run.pool.jobs
    run.run(10)
    run.world.free = 1000
    run.run(61)
    assert [job.attempt for job in run.pool.jobs] == [1]
    assert events(run) == ["inbox.ready", "disk.low", "disk.recovered"]


def test_leftovers_are_swept_once(bench: Callable[..., Bench]) -> None:
    """The first opening that works sweeps the output; later ones do not."""
    run = bench(start=False)
    run.inbox.start()
    assert run.thread.of(OpenOutput)[0].sweep == ("/out/phone",)
    run.answer(OpenOutput, PlaceError("output", errno.EIO, "/out"))
    run.now += 1
    run.tick()
    assert run.thread.of(OpenOutput)[0].sweep == ("/out/phone",)
    run.answer(OpenOutput, OutputFound(10**12, (1, 1)))
    run.inbox.suspend(PlaceError("output", errno.EIO, "/out"), run.now)
    run.now += 1
    run.tick()
    assert run.thread.of(OpenOutput)[0].sweep == ()


def test_the_marker_is_asked_for(bench: Callable[..., Bench]) -> None:
    """An inbox that requires its marker asks for it with every look at its root."""
    run = bench(start=False, require_marker=True)
    run.inbox.start()
    assert [request.require_marker for request in run.thread.of(OpenRoot)] == [True]


def test_a_single_pass_ends_although_its_output_is_full(bench: Callable[..., Bench]) -> None:
    """`once` does not wait for a place that is suspended, even when photos did not fit into the backlog."""
    run = bench(once=True, backlog=2, batch=1, start=False)
    run.world.faults[OpenOutput] = PlaceError("output", errno.ENOSPC, "/out")
    entries = [Found(b"%d.jpg" % number, run.world.write(b"%d.jpg" % number, b"x")) for number in range(6)]
    run.start()
    run.run(30)
    assert run.inbox.dirty
    assert len(entries) > len(run.parts.backlog.batcher)
    assert run.parts.is_through()
