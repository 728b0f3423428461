"""Equal photos: one is drawn, the others get their own copy of its picture."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from daemon_fakes import open_stages

from animed.daemon.putting import StageCopy
from animed.errors import PlaceError
from animed.records import PhotoKey, PlaceFault, Sighting

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def told_by_a_worker(fault: PlaceError) -> PlaceFault:
    return PlaceFault(fault.role, fault.code, fault.path, fault.detail)


def test_equal_photos_wait_for_the_first(bench: Callable[..., Bench]) -> None:
    """Of equal photos that come together one is drawn; the others have pictures of their own, named after them."""
    run = bench()
    for name in (b"a.jpg", b"b.jpg", b"c.jpg"):
        run.sight(name)
    assert [job.key.path for job in run.pool.jobs] == [b"a.jpg"]
    run.draw_all()
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("b.jpg", "duplicate"), ("c.jpg", "duplicate")]
    assert sorted(run.names()) == ["a.cel.jpg", "b.cel.jpg", "c.cel.jpg"]
    assert {line["of"] for line in run.log.events("file.duplicate")} == {"/out/phone/a.cel.jpg"}
    assert run.is_clean()
    assert len(run.pool.tasks) == 1


def test_a_photo_equal_to_a_finished_one_needs_no_worker(bench: Callable[..., Bench]) -> None:
    """Also after a restart, and with a name of its own."""
    run = bench()
    run.sight(b"a.jpg")
    run.draw_all()
    run.restart()
    run.sight(b"b.jpg")
    assert not run.pool.tasks
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]


def test_without_comparison_each_path_is_drawn(bench: Callable[..., Bench]) -> None:
    """With `dedupe: path` equal photos are drawn each."""
    run = bench(dedupe="path")
    run.sight(b"a.jpg")
    run.sight(b"b.jpg")
    assert len(run.pool.jobs) == 2
    run.draw_all()
    assert [how for _, how in run.outcomes()] == ["done", "done"]


@pytest.mark.parametrize("reason", ["truncated", "not_an_image"])
def test_when_the_first_fails_the_next_one_draws(bench: Callable[..., Bench], reason: str) -> None:
    """A failure or a back-off of the first passes the lead on; nobody waits for ever."""
    run = bench()
    for name in (b"a.jpg", b"b.jpg", b"c.jpg"):
        run.sight(name)
    run.fail(reason)
    assert [job.key.path for job in run.pool.jobs] == [b"b.jpg"]
    run.draw_all()
    run.run(60)
    assert sorted(run.outcomes()) == [
        ("a.jpg", "duplicate" if reason == "truncated" else reason),
        ("b.jpg", "done"),
        ("c.jpg", "duplicate"),
    ]
    assert run.is_clean()


def test_a_finished_picture_that_is_gone_is_drawn_anew(bench: Callable[..., Bench]) -> None:
    """Where somebody deleted the first picture, the equal photo is drawn."""
    run = bench()
    run.sight(b"a.jpg")
    run.draw_all()
    run.world.pictures.clear()
    run.sight(b"b.jpg")
    assert [job.key.path for job in run.pool.jobs] == [b"b.jpg"]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "done")]
    assert run.is_clean()


def test_a_place_fault_of_a_copy_costs_no_try(bench: Callable[..., Bench]) -> None:
    """The output fails while a picture is shared: the photo waits and is shared later."""
    run = bench()
    run.sight(b"a.jpg")
    run.draw_all()
    run.world.faults[StageCopy] = PlaceError("output", errno.EIO, "/out")
    run.sight(b"b.jpg")
    assert run.state() == "degraded"
    run.world.heal()
    run.run(61)
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]
    assert not run.pool.tasks[1:]
    assert not open_stages()


def test_equal_photos_of_different_inboxes_are_drawn_each(bench: Callable[..., Bench]) -> None:
    """No photo waits for, or copies from, another inbox: a share that hangs there must not reach it."""
    run = bench(names=("phone", "camera"))
    for name, world in run.worlds.items():
        world.write(b"a.jpg", b"photo")
        run.desk.inboxes[name].scans.wanted = True
    run.worlds["camera"].pictures = run.worlds["phone"].pictures
    run.run(5)
    run.draw_all()
    assert [how for _, how in run.outcomes()] == ["done", "done"]
    assert sorted(run.worlds["phone"].pictures) == [b"/out/camera/a.cel.jpg", b"/out/phone/a.cel.jpg"]


def test_a_slow_inbox_does_not_keep_the_workers_from_another(bench: Callable[..., Bench]) -> None:
    """Photos whose reading does not come back count as coming work for two seconds, and only for their own inbox."""
    run = bench(names=("phone", "camera"), workers=1, dedupe="path")
    phone = run.threads["phone"]
    for number in range(8):
        stat = run.worlds["phone"].write(b"%d.jpg" % number, b"photo")
        sighting = Sighting(PhotoKey("phone", b"%d.jpg" % number), stat, run.now)
        run.parts.arrivals.settled(sighting, run.now)
    phone.silence = 0.5
    run.turn()
    stat = run.worlds["camera"].write(b"a.jpg", b"photo")
    run.parts.arrivals.settled(Sighting(PhotoKey("camera", b"a.jpg"), stat, run.now), run.now)
    run.turn()
    assert [job.key.inbox for job in run.pool.jobs] == ["camera"]
