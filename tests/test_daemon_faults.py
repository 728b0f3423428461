"""Another try, patience, or giving up: faults of photos, of places, and of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from animed.daemon.looking import Digest
from animed.engine import events
from animed.engine.events import PhotosReturned, WorkersCannotStart
from animed.errors import PhotoError, WorkersError
from animed.opening import NotRegularError
from animed.records import FileStat, PhotoKey, Sighting
from animed.schedule.identity import Known, decide
from animed.schedule.store import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def paths(run: Bench) -> list[bytes]:
    return sorted(job.key.path for job in run.pool.jobs)


def test_a_passing_fault_is_tried_again_until_the_tries_are_used_up(bench: Callable[..., Bench]) -> None:
    """Each try waits longer, is counted in the ledger, and the last one ends it."""
    run, tries = bench(attempts=3), []
    run.sight()
    while run.pool.jobs:
        tries.append((run.pool.jobs[0].attempt, round(run.now - 100)))
        run.fail("truncated")
        row = run.row()
        assert row is not None
        assert row.attempts == len(tries)
        run.run(100)
    assert [attempt for attempt, _ in tries] == [1, 2, 3]
    assert run.outcomes() == [("a.jpg", "truncated")]
    assert [line["after_s"] for line in run.log.events("file.retry")] == [5.0, 15.0]


@pytest.mark.parametrize("reason", ["not_an_image", "unsupported:PSD", "too_large", "empty", "conflict"])
def test_a_permanent_fault_ends_at_once(bench: Callable[..., Bench], reason: str) -> None:
    """What another try cannot change is failed after one."""
    run = bench()
    run.sight()
    run.fail(reason)
    assert run.outcomes() == [("a.jpg", reason)]
    run.run(1000)
    assert not run.pool.jobs


def test_a_failed_photo_is_tried_again_when_it_changes(bench: Callable[..., Bench]) -> None:
    """A scan that finds the same file changes nothing; a new stat makes it new."""
    run = bench()
    run.sight()
    run.fail("not_an_image")
    run.inbox.scans.wanted = True
    run.run(10)
    assert not run.pool.jobs
    run.world.write(b"a.jpg", b"photo", mtime_ns=2)
    run.inbox.scans.wanted = True
    run.run(10)
    assert [job.attempt for job in run.pool.jobs] == [1]


def test_a_dead_worker_s_photos_run_alone(bench: Callable[..., Bench]) -> None:
    """Both photos of a dead worker become suspects; the innocent one is done, the other fails after its crashes."""
    run = bench(workers=1)
    run.sight(b"a.jpg", b"good")
    run.sight(b"b.jpg", b"evil")
    assert paths(run) == [b"a.jpg", b"b.jpg"]
    run.die()
    run.turn()
    assert paths(run) == [b"a.jpg"]
    assert run.pool.jobs[0].alone
    run.draw()
    run.turn()
    assert paths(run) == [b"b.jpg"]
    run.die()
    run.run(10)
    assert run.pool.jobs[0].crashes == 1
    run.die()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "worker_crashed:SIGKILL")]
    row = run.row(b"b.jpg")
    assert row is not None
    assert (row.status, row.crashes, row.attempts) == ("failed", 2, 1)
    assert run.is_clean()


def test_a_silent_worker_s_photo_times_out(bench: Callable[..., Bench]) -> None:
    """A worker that is killed for its silence gives the reason `timeout`."""
    run = bench(workers=1)
    run.sight()
    for _ in range(3):
        run.die(cause="timeout")
        run.run(30)
    assert run.outcomes() == [("a.jpg", "timeout")]


def test_suspicion_outlives_a_restart(bench: Callable[..., Bench]) -> None:
    """A photo that has killed a worker alone is still alone, and still counted, after a restart."""
    run = bench(workers=1)
    run.sight()
    run.die()
    run.die()
    run.restart()
    run.run(60)
    assert [(job.alone, job.crashes) for job in run.pool.jobs] == [(True, 1)]
    run.die()
    assert run.outcomes() == [("a.jpg", "worker_crashed:SIGKILL")]


def test_a_suspect_keeps_others_out_of_its_worker(bench: Callable[..., Bench]) -> None:
    """Other photos go on in other workers while a suspect has one for itself."""
    run = bench(workers=2, batch=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg"):
        run.sight(name, name)
    run.die(run.pool.held[0][0])
    run.run(1)
    assert all(len(held) == 1 for held in run.pool.held if any(job.alone for job in held))
    run.draw_all()
    run.run(1)
    run.draw_all()
    assert len(run.outcomes()) == 4


def test_an_unavailable_inbox_blames_no_photo(bench: Callable[..., Bench]) -> None:
    """A worker that dies while its share is away took nobody's fault: the photos wait, unsuspected."""
    run = bench(workers=1)
    run.sight(b"a.jpg", b"one")
    run.sight(b"b.jpg", b"two")
    run.inbox.suspend(run.world.break_inbox(), run.now)
    run.die(cause="timeout")
    assert not run.pool.jobs
    assert run.row(b"a.jpg") is None
    run.world.heal()
    run.run(70)
    assert [(job.attempt, job.alone) for job in run.pool.jobs] == [(1, False), (1, False)]
    run.draw_all()
    assert run.is_clean()


def test_out_of_memory_is_tried_again_alone(bench: Callable[..., Bench]) -> None:
    """Memory that ran out may do for one photo alone; it costs a try."""
    run = bench(attempts=2)
    run.sight()
    run.fail("out_of_memory")
    run.run(10)
    assert [(job.attempt, job.alone) for job in run.pool.jobs] == [(2, True)]
    run.fail("out_of_memory")
    assert run.outcomes() == [("a.jpg", "out_of_memory")]


def test_photos_that_the_pool_hands_back_are_new(bench: Callable[..., Bench]) -> None:
    """What a worker never finished goes back into line as it was."""
    run = bench(workers=1)
    run.sight()
    job = run.pool.jobs[0]
    run.pool.held[0].clear()
    run.event(PhotosReturned((job,)))
    run.turn()
    assert [job.attempt for job in run.pool.jobs] == [1]
    run.draw_all()
    assert run.is_clean()


def test_workers_that_can_never_start_end_the_service(bench: Callable[..., Bench]) -> None:
    """A reason that does not go away is raised, with what to do."""
    run = bench()
    with pytest.raises(WorkersError, match="broken"):
        run.event(WorkersCannotStart("broken", "mend it"))


def test_a_photo_that_became_a_link_is_ignored(bench: Callable[..., Bench]) -> None:
    """What is no regular file any more when it is opened is logged as ignored, not as failed."""
    run = bench()
    stat = run.world.write(b"a.jpg", b"x")
    run.parts.arrivals.settled(Sighting(run.key(), stat, run.now), run.now)
    run.tick()
    run.answer(Digest, NotRegularError("symlink"))
    assert [line["rule"] for line in run.log.events("file.ignored")] == ["symlink"]
    assert run.is_clean()


def test_an_unreadable_photo_is_its_own_fault(bench: Callable[..., Bench]) -> None:
    """A photo that may not be read costs a try and suspends nothing."""
    run = bench()
    stat = run.world.write(b"a.jpg", b"x")
    run.parts.arrivals.settled(Sighting(run.key(), stat, run.now), run.now)
    run.tick()
    run.answer(Digest, PhotoError("unreadable", "mode 0000"))
    assert run.state() == "ready"
    assert run.status() == "retry"


def test_a_hung_share_does_not_keep_workers_from_other_inboxes(bench: Callable[..., Bench]) -> None:
    """Photos that a dead share does not give back must not count as work that is coming."""
    run = bench(names=("dead", "phone"), workers=1)
    run.threads["dead"].silence = 1.0
    for number in range(8):
        stat = run.worlds["dead"].write(b"%d.jpg" % number, b"%d" % number)
        run.parts.arrivals.settled(Sighting(PhotoKey("dead", b"%d.jpg" % number), stat, run.now), run.now)
    run.turn()
    assert len(run.threads["dead"].of(Digest)) == 8
    run.threads["dead"].silence = 31.0
    run.worlds["phone"].write(b"a.jpg", b"phone")
    run.desk.inboxes["phone"].scans.wanted = True
    run.run(5)
    assert [job.key.inbox for job in run.pool.jobs] == ["phone"]


def test_what_was_read_waits_when_its_inbox_goes_away(bench: Callable[..., Bench]) -> None:
    """No photo of a share that is away is sent to a worker, which would hang on it as well."""
    run = bench(names=("dead", "phone"), workers=1)
    for number in range(4):
        run.worlds["dead"].write(b"%d.jpg" % number, b"%d" % number)
    run.desk.inboxes["dead"].scans.wanted = True
    run.run(5)
    assert len(run.pool.jobs) == 2
    run.worlds["phone"].write(b"a.jpg", b"phone")
    run.desk.inboxes["dead"].suspend(run.worlds["dead"].break_inbox(), run.now)
    for _ in range(2):
        run.draw()
    run.desk.inboxes["phone"].scans.wanted = True
    run.run(5)
    assert [job.key.inbox for job in run.pool.jobs] == ["phone"]
    run.worlds["dead"].heal()
    run.run(70)
    run.draw_all()
    assert len(run.outcomes()) == 5
    assert run.is_clean()


def test_a_new_version_does_not_overtake_a_retry_that_waits_for_the_ledger(bench: Callable[..., Bench]) -> None:
    """While the ledger is full, a failed photo stays on its way; its new version comes after it, and only once."""
    run = bench(workers=1, attempts=5)
    run.sight(content=b"one")
    run.store.full = True
    run.fail("truncated")
    run.sight(content=b"second", mtime_ns=2)
    run.store.full = False
    for _ in range(5):
        run.run(10)
        assert len(run.pool.jobs) <= 1
        if run.pool.jobs:
            run.draw()
            run.turn()
    row = run.row()
    assert row is not None
    assert (row.status, row.size) == ("done", 6)
    assert run.names() == ["a.cel.jpg"]
    assert run.is_clean()


def test_a_damaged_ledger_ends_the_service(bench: Callable[..., Bench]) -> None:
    """An error of the ledger that waiting does not heal is not swallowed."""
    run = bench()
    run.sight()
    run.draw()
    run.store.damaged = True
    with pytest.raises(LedgerError, match="damaged"):
        run.turn()


def test_a_failed_photo_that_could_not_be_moved_is_not_tried_for_ever(bench: Callable[..., Bench]) -> None:
    """Hiding a photo and putting it back changes its ctime: that is no new version, while it is owed and after."""
    run = bench(failed="move", attempts=1)
    run.sight()
    run.fail("not_an_image")
    run.run(1)
    row = run.row()
    assert row is not None
    moved = FileStat(row.size, row.mtime_ns, row.ctime_ns + 1, 1, 1, 0o100644)
    owed = replace(row, original_pending="{}")
    assert isinstance(decide(owed, moved), Known)
    run.parts.originals._cross_off(run.key(), moved)
    again = run.row()
    assert again is not None
    assert isinstance(decide(again, moved), Known)


def test_what_a_worker_was_refused_is_told_once(bench: Callable[..., Bench]) -> None:
    """However many workers start, a priority that the system does not grant is one line, and another one another."""
    run = bench()
    for pid, refused in ((1, ("nice 10",)), (2, ("nice 10",)), (3, ("nice 10", "I/O")), (4, ())):
        run.event(events.WorkerStarted(pid, "bfloat16", 0.1, refused))
    assert [(line["worker"], line["detail"]) for line in run.log.events("worker.note")] == [(1, "nice 10"), (3, "I/O")]


def test_a_single_pass_survives_workers_that_die_at_work(bench: Callable[..., Bench]) -> None:
    """Deaths of workers that had started do not add up to workers that cannot start."""
    run = bench(once=True, workers=1)
    for _ in range(5):
        run.pool.ready = False
        run.event(events.WorkerDied(1, "SIGKILL", (), ""))
        run.pool.ready = True
        run.event(events.WorkerStarted(2, "bfloat16", 0.1))
    run.pool.ready = False
    gone = events.WorkerDied(0, "start:EAGAIN", (), "")
    run.event(gone)
    run.event(gone)
    with pytest.raises(WorkersError):
        run.event(gone)
