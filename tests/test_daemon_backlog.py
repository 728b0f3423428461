"""The bounded backlog: what does not fit is found again, and inboxes take turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animed.daemon.looking import Scan
from animed.records import PhotoKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def test_what_does_not_fit_is_found_again(bench: Callable[..., Bench]) -> None:
    """A full backlog marks its inbox; the scan that follows when there is room brings the rest, and none twice."""
    run = bench(backlog=4, batch=1, workers=1)
    names = [b"%02d.jpg" % number for number in range(20)]
    for name in names:
        run.world.write(name, name)
    run.inbox.scans.wanted = True
    run.run(5)
    assert run.inbox.dirty
    assert 0 < len(run.parts.backlog.batcher) <= 4
    for _ in range(60):
        run.draw_all()
        run.run(2)
    assert sorted(run.outcomes()) == [(name.decode(), "done") for name in names]
    assert not run.inbox.dirty
    assert run.is_clean()


def test_a_full_backlog_of_a_suspended_inbox_is_not_scanned_over_and_over(bench: Callable[..., Bench]) -> None:
    """While its pictures cannot be placed there is no room to wait for, and nothing to scan for."""
    run = bench(backlog=4, batch=1, poll_interval=3600.0)
    run.inbox.suspend(run.world.break_output(), run.now)
    for number in range(8):
        run.world.write(b"%d.jpg" % number, b"%d" % number)
    run.inbox.scans.wanted = True
    run.run(5)
    assert run.inbox.dirty
    scans = 0
    for _ in range(100):
        run.now += 1
        run.tick()
        scans += len(run.thread.of(Scan))
        run._answer_all()
    assert scans == 0
    run.world.heal()
    run.run(120)
    for _ in range(20):
        run.draw_all()
        run.run(2)
    assert len(run.outcomes()) == 8


def test_a_back_off_goes_on_after_a_restart(bench: Callable[..., Bench]) -> None:
    """A restart neither shortens a back-off nor gives tries back."""
    run = bench(attempts=3)
    run.sight()
    run.fail("truncated")
    run.restart()
    run.run(2)
    assert not run.pool.jobs
    run.run(5)
    assert [job.attempt for job in run.pool.jobs] == [2]
    run.fail("truncated")
    run.restart()
    run.run(20)
    assert [job.attempt for job in run.pool.jobs] == [3]
    run.fail("truncated")
    assert run.outcomes() == [("a.jpg", "truncated")]
    row = run.row()
    assert row is not None
    assert row.attempts == 3


def test_two_inboxes_take_turns(bench: Callable[..., Bench]) -> None:
    """A single photo of one inbox does not wait behind the import of another."""
    run = bench(names=("import", "phone"), workers=1, batch=1)
    for number in range(10):
        run.worlds["import"].write(b"%d.jpg" % number, b"i%d" % number)
    run.worlds["phone"].write(b"a.jpg", b"phone")
    for inbox in run.desk.inboxes.values():
        inbox.scans.wanted = True
    run.run(5)
    for _ in range(3):
        run.draw()
        run.turn()
    assert ("a.jpg", "done") in run.outcomes() or PhotoKey("phone", b"a.jpg") in [job.key for job in run.pool.jobs]
    run.draw_all()
    assert len(run.outcomes()) == 11
