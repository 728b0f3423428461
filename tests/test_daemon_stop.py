"""An orderly stop: nothing new is begun, what runs is finished, nothing is left behind."""

from __future__ import annotations

import errno
import signal
from typing import TYPE_CHECKING

import pytest
from daemon_fakes import open_stages, picture_of, staged_fd

from animed.daemon.looking import Digest, Digested
from animed.daemon.putting import Place, StageCopy
from animed.delivery.faults import SourceGone
from animed.errors import PlaceError
from animed.records import Sighting

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def test_a_stop_drops_what_has_not_begun_and_finishes_what_runs(bench: Callable[..., Bench]) -> None:
    """Waiting photos are let go of, running ones are placed, nothing new is taken; a restart does the rest."""
    run = bench(workers=1, batch=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg"):
        run.sight(name, name)
    run.daemon._drain(signal.SIGTERM, run.now)
    assert sorted(job.key.path for job in run.pool.jobs) == [b"a.jpg", b"b.jpg"]
    assert set(run.desk.actives) == {run.key(b"a.jpg"), run.key(b"b.jpg")}
    run.sight(b"e.jpg", b"late")
    assert not run.daemon._is_over()
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "done")]
    assert run.daemon._is_over()
    run.restart()
    run.run(5)
    run.draw_all()
    assert sorted(run.outcomes()) == [(f"{letter}.jpg", "done") for letter in "abcde"]


def test_a_stop_with_a_copy_under_way_ends(bench: Callable[..., Bench]) -> None:
    """A photo whose shared picture turns out to be gone during a stop is dropped, not queued for ever."""
    run = bench()
    run.sight(b"a.jpg")
    run.draw_all()
    stat = run.world.write(b"b.jpg", b"photo")
    run.parts.arrivals.settled(Sighting(run.key(b"b.jpg"), stat, run.now), run.now)
    run.tick()
    run.answer(Digest, run.world.answers(run.thread.of(Digest)[0])[0])
    run.daemon._drain(signal.SIGTERM, run.now)
    run.answer(StageCopy, SourceGone("gone"))
    assert run.daemon._is_over()
    assert not run.desk.actives


@pytest.mark.parametrize("how", ["fail", "place", "fault"])
def test_faults_during_a_stop_leave_nothing_on_its_way(bench: Callable[..., Bench], how: str) -> None:
    """Whatever a running photo meets while the service stops, the stop ends and holds no descriptor."""
    run = bench(workers=1)
    run.sight()
    run.daemon._drain(None, run.now)
    if how == "fail":
        run.fail("truncated")
    else:
        run.event(run.pool.finish(run.pool.jobs[0], picture_of(b"x"), staged_fd()))
        fault = PlaceError("output", errno.EIO, "/out")
        run.answer(Place, fault if how == "fault" else run.world.answers(run.thread.of(Place)[0])[0])
    assert run.daemon._is_over()
    assert not open_stages()
    assert run.status() == {"fail": "retry", "place": "done", "fault": "publishing"}[how]


def test_a_late_answer_during_a_stop_begins_nothing(bench: Callable[..., Bench]) -> None:
    """A photo that was being read when the stop came is let go of, whatever the reading brings."""
    run = bench()
    stat = run.world.write(b"a.jpg", b"x")
    run.parts.arrivals.settled(Sighting(run.key(), stat, run.now), run.now)
    run.tick()
    run.daemon._drain(None, run.now)
    run.answer(Digest, Digested("aa", 10**12, name_taken=False))
    assert not run.desk.actives
    assert not run.pool.jobs
