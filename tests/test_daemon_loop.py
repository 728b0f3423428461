"""The loop's own decisions: readiness, states, signals, posts, and the manager's watchdog."""

from __future__ import annotations

import errno
import signal
from typing import TYPE_CHECKING

import pytest

from animed.daemon.iothread import Answer, Ended
from animed.daemon.looking import OpenRoot, Scan
from animed.daemon.putting import OpenOutput, OutputFound, Resolve
from animed.errors import PlaceError
from animed.intake.watch import Hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def state(run: Bench) -> str:
    return str(run.daemon.status()["state"])


def test_ready_means_workers_and_inboxes(bench: Callable[..., Bench]) -> None:
    """The service is ready once a worker is and every inbox has answered, well or not."""
    run = bench(start=False)
    run.pool.ready = False
    run.world.break_inbox()
    run.start()
    assert state(run) == "starting"
    run.pool.ready = True
    run.tick()
    assert state(run) == "running"
    assert run.notifier.said == ["ready"]
    assert run.daemon.status()["inboxes"][0]["state"] == "unavailable"


def test_an_inbox_that_does_not_answer_holds_up_readiness_for_a_while_only(bench: Callable[..., Bench]) -> None:
    """After ten seconds the service is ready without it; the loop wakes up for that by itself."""
    run = bench(start=False)
    run.inbox.start()
    run.tick()
    assert state(run) == "starting"
    due = run.daemon._next_deadline(run.now)
    assert due == run.now + 10
    run.now = due
    run.tick()
    assert state(run) == "running"


@pytest.mark.parametrize("what", ["pool", "ledger"])
def test_the_service_is_degraded_while_it_cannot_draw(bench: Callable[..., Bench], what: str) -> None:
    """Workers that do not start, or a full state folder, show in the state and go from it again."""
    run = bench()
    run.sight()
    run.pool.degraded = what == "pool"
    run.store.full = what == "ledger"
    run.fail("truncated")
    assert state(run) == "degraded"
    run.pool.degraded = run.store.full = False
    run.run(5)
    assert state(run) == "running"


def test_a_stop_signal_drains_and_a_second_one_hurries(bench: Callable[..., Bench]) -> None:
    """The first asks for an orderly end with a deadline; the second one is the deadline."""
    run = bench()
    run.sight()
    run.daemon._signalled(signal.SIGTERM, run.now)
    assert state(run) == "draining"
    assert not run.daemon._is_over()
    assert run.daemon._next_deadline(run.now) == run.now + 20
    run.daemon._signalled(signal.SIGINT, run.now)
    assert run.daemon._is_over()
    assert run.daemon._stop_by == signal.SIGTERM
    assert run.notifier.said == ["ready", "stopping"]


def test_other_signals_scan_dump_and_reload(bench: Callable[..., Bench]) -> None:
    """USR1 scans at once, USR2 writes the state, HUP has the configuration checked; during a stop it does not."""
    run = bench()
    run.run(1)
    run.daemon._signalled(signal.SIGUSR1, run.now)
    run.tick()
    assert len(run.thread.of(Scan)) == 1
    run.daemon._signalled(signal.SIGUSR2, run.now)
    (dump,) = run.log.events("daemon.dump")
    assert dump["status"]["state"] == "running"
    assert any("test_other_signals" in line for stack in dump["threads"].values() for line in stack)
    run.daemon._signalled(signal.SIGHUP, run.now)
    assert run.loads == [1]
    run.daemon._drain(None, run.now)
    run.daemon._signalled(signal.SIGHUP, run.now)
    assert run.loads == [1]


def test_a_dead_io_thread_ends_the_service(bench: Callable[..., Bench]) -> None:
    """An I/O thread that nobody stopped is a fault of the program; one that was asked to end is not."""
    run = bench()
    run.mailbox.post(Ended("phone", asked=True))
    run.daemon.incoming.posts(run.now)
    run.mailbox.post(Ended("phone", asked=False))
    with pytest.raises(RuntimeError, match="phone"):
        run.daemon.incoming.posts(run.now)


def test_posts_reach_whom_they_are_for(bench: Callable[..., Bench]) -> None:
    """Hints and answers come through the mailbox to their inbox; during a stop hints are dropped."""
    run = bench(start=False, names=("phone", "camera"))
    for inbox in run.desk.inboxes.values():
        inbox.start()
    request = run.threads["camera"].of(OpenRoot)[0]
    run.mailbox.post(Answer("camera", request, PlaceError("inbox", errno.ENOENT, "/in/camera")))
    run.mailbox.post(("phone", Hint("file", b"a.jpg")))
    run.daemon.incoming.posts(run.now)
    assert [inbox.state for inbox in run.desk.inboxes.values()] == ["ready", "unavailable"]
    assert b"a.jpg" in run.inbox.settling
    run.daemon._drain(None, run.now)
    run.mailbox.post(("phone", Hint("file", b"b.jpg")))
    run.daemon.incoming.posts(run.now)
    assert b"b.jpg" not in run.inbox.settling


def test_an_idle_service_waits_for_nothing(bench: Callable[..., Bench]) -> None:
    """With nothing to do and no scan by the clock, the loop has no date to wake up at."""
    run = bench(watch="off")
    run.sight()
    run.draw_all()
    run.run(5)
    assert run.daemon._next_deadline(run.now) is None
    assert not run.thread.requests


def test_a_single_pass_ends_when_all_is_done(bench: Callable[..., Bench]) -> None:
    """`once` scans, draws, waits for retries and ends; a photo that keeps changing is left for another day."""
    run = bench(once=True, start=False)
    for number in range(3):
        run.world.write(b"%d.jpg" % number, b"%d" % number)
    run.start()
    run.run(2)
    assert not run.parts.is_through()
    run.fail("truncated")
    run.draw_all()
    assert not run.parts.is_through()
    run.run(10)
    run.draw_all()
    assert run.parts.is_through()
    assert not run.daemon._is_over()
    assert state(run) == "draining"
    assert run.daemon._is_over()
    assert sorted(run.outcomes()) == [("0.jpg", "done"), ("1.jpg", "done"), ("2.jpg", "done")]


def test_the_status_counts_what_there_is(bench: Callable[..., Bench]) -> None:
    """Waiting, queued, done and failed photos, and the troubles of places, are those of the moment."""
    run = bench(batch=1, workers=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg", b"e.jpg"):
        run.sight(name, name)
    run.fail("truncated")
    run.fail("not_an_image")
    run.draw()
    run.turn()
    run.inbox.suspend(PlaceError("output", errno.EIO, "/out", "broken"), run.now)
    shown = run.daemon.status()
    (inbox,) = shown["inboxes"]
    assert (inbox["state"], inbox["waiting"], inbox["queued"], inbox["done"], inbox["failed"]) == (
        "degraded",
        1,
        2,
        1,
        1,
    )
    assert [trouble["role"] for trouble in inbox["troubles"]] == ["output"]
    assert shown["totals"]["done"] == shown["since_start"]["done"] == 1
    assert shown["last_failures"] == [{"path": "/in/phone/b.jpg", "reason": "not_an_image"}]


def test_what_was_left_open_waits_for_both_places(bench: Callable[..., Bench]) -> None:
    """Claimed names are resolved only when both the root and the output have answered."""
    run = bench()
    run.sight()
    run.draw()
    run.restart(start=False)
    run.inbox.start()
    run.answer(OpenRoot, run.world.answers(run.thread.of(OpenRoot)[0])[0])
    assert not run.thread.of(Resolve)
    assert not run.parts.is_through()
    run.answer(OpenOutput, OutputFound(10**12, (1, 1)))
    assert [request.row.key.path for request in run.thread.of(Resolve)] == [b"a.jpg"]
