"""`dedupe: similar`: photos that look alike share the picture of the first, whatever happens on the way."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from animed.daemon.originals import ONLY_ALIKE
from animed.daemon.putting import Place, StageCopy
from animed.errors import PlaceError
from animed.records import Fingerprint, PlaceFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

GREY = bytes([128] * 8)
DETAIL = bytes(range(100, 200))
A, B, C, D = b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg"


def like(bits: int) -> Fingerprint:
    """Return looks that differ in as many bits as the numbers of two of them lie apart."""
    return Fingerprint((1 << bits) - 1, (1 << bits) - 1, GREY, DETAIL)


def other_inside(bits: int, spot: int) -> Fingerprint:
    """Return looks that are as near, of a photo with something else at one spot."""
    detail = bytes(value + 50 * (at == spot) for at, value in enumerate(DETAIL))
    return replace(like(bits), detail=detail)


@pytest.fixture
def run(bench: Callable[..., Bench]) -> Bench:
    """Return a daemon whose inbox compares photos."""
    return bench(dedupe="similar", similar_distance=10)


def arrive(run: Bench, *photos: tuple[bytes, int]) -> None:
    """Let photos come, and each be loaded by a worker; the number says what it looks like."""
    for path, bits in photos:
        run.sight(path, content=path)
        run.load(like(bits), path)


def test_similar_photos_wait_for_the_first_outside_of_the_workers(run: Bench) -> None:
    """Of photos that look alike one is drawn; the others leave their workers at once, and get its picture."""
    arrive(run, (A, 0), (B, 3), (C, 10))
    assert run.pool.answers == [(A, True), (B, False), (C, False)]
    assert [job.key.path for job in run.pool.jobs] == [A]
    run.draw_all()
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("b.jpg", "duplicate"), ("c.jpg", "duplicate")]
    assert sorted(run.names()) == ["a.cel.jpg", "b.cel.jpg", "c.cel.jpg"]
    lines = run.log.events("file.duplicate")
    assert {(line["of"], line["distance"]) for line in lines} == {
        ("/out/phone/a.cel.jpg", 3),
        ("/out/phone/a.cel.jpg", 10),
    }
    assert all(line["output"] for line in lines)
    assert run.is_clean()


def test_a_photo_like_a_finished_one_shares_its_picture_after_a_restart_too(run: Bench) -> None:
    """What finished photos look like survives in the ledger."""
    arrive(run, (A, 0))
    run.draw_all()
    run.restart()
    arrive(run, (B, 10), (C, 11))
    assert run.pool.answers == [(B, False), (C, True)]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate"), ("c.jpg", "done")]
    assert run.is_clean()


def test_likeness_makes_no_chains(run: Bench) -> None:
    """A like B and B like C does not make C like A: photos are compared with drawn ones only, after restarts too."""
    arrive(run, (A, 0), (B, 8))
    run.draw_all()
    run.restart()
    arrive(run, (C, 16))
    assert run.pool.answers == [(C, True)]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate"), ("c.jpg", "done")]


def test_the_nearest_finished_photo_is_the_one(run: Bench) -> None:
    """A photo that is like several shares with the one that it is most like."""
    arrive(run, (A, 0), (B, 11))
    run.draw_all()
    arrive(run, (C, 9))
    assert [(line["of"], line["distance"]) for line in run.log.events("file.duplicate")] == [
        ("/out/phone/b.cel.jpg", 2)
    ]


def test_equal_bytes_are_still_shared_without_a_worker(run: Bench) -> None:
    """Comparing looks is more than comparing content, not something else."""
    arrive(run, (A, 0))
    run.draw_all()
    run.sight(B, content=A)
    assert not run.pool.jobs
    assert [line["distance"] for line in run.log.events("file.duplicate")] == [0]


@pytest.mark.parametrize("reason", ["truncated", "not_an_image"])
def test_when_the_first_fails_the_next_is_drawn_without_a_question(run: Bench, reason: str) -> None:
    """A failure or a back-off of the first passes the lead on; those who waited are compared with each other."""
    arrive(run, (A, 0), (B, 6), (C, 10), (D, 7))
    run.fail(reason)
    assert [(task.path, task.compare) for task in run.pool.tasks[4:]] == [(B, False)]
    run.draw_all()
    assert run.outcomes()[-3:] == [("b.jpg", "done"), ("c.jpg", "duplicate"), ("d.jpg", "duplicate")]
    if reason == "truncated":
        run.run(60)
        run.load(like(0), A)
        assert run.outcomes()[-1] == ("a.jpg", "duplicate")
    assert run.is_clean()


def test_photos_that_are_only_like_the_one_that_failed_are_drawn_both(run: Bench) -> None:
    """Waiting for the same photo makes two photos no copies of each other."""
    arrive(run, (A, 10), (B, 0), (C, 20))
    run.fail("not_an_image")
    assert sorted(job.key.path for job in run.pool.jobs) == [B, C]


def test_a_picture_that_is_gone_is_drawn_anew_once(run: Bench) -> None:
    """Where somebody deleted the first picture one photo is drawn, and the next one shares that."""
    arrive(run, (A, 0))
    run.draw_all()
    run.world.pictures.clear()
    arrive(run, (B, 1))
    assert [(task.path, task.compare) for task in run.pool.tasks[2:]] == [(B, False)]
    arrive(run, (C, 2))
    run.draw_all()
    assert run.outcomes()[1:] == [("b.jpg", "done"), ("c.jpg", "duplicate")]
    assert run.is_clean()


def test_a_forgotten_photo_is_no_match(run: Bench) -> None:
    """What was forgotten was never seen; it comes back as a new photo, and its duplicates do not count."""
    arrive(run, (A, 0), (B, 1))
    run.draw_all()
    run.ledger.forget([run.key(A)])
    arrive(run, (C, 2))
    assert run.pool.answers[-1] == (C, True)


def test_a_photo_is_not_like_itself(run: Bench) -> None:
    """A finished photo that is to be drawn again is drawn, although its old picture looks just the same."""
    arrive(run, (A, 0))
    run.draw_all()
    run.ledger.requeue([run.key(A)])
    arrive(run, (A, 0))
    assert run.pool.answers == [(A, True), (A, True)]


def test_other_looks_other_recipes_and_plain_photos_are_drawn(bench: Callable[..., Bench]) -> None:
    """A worker that says nothing of a photo just draws it; in inboxes that do not compare none is asked."""
    run = bench(dedupe="similar")
    run.sight(A, content=A)
    run.sight(B, content=B)
    run.draw_all()
    assert [how for _, how in run.outcomes()] == ["done", "done"]
    run = bench(dedupe="content")
    run.sight(C, content=C)
    assert [task.compare for task in run.pool.tasks] == [False]


def test_a_death_before_the_answer_leaves_the_photo_to_the_fault(run: Bench) -> None:
    """Looks that a dying worker sent last decide nothing: its photo is a suspect, and is asked again."""
    arrive(run, (A, 0))
    run.draw_all()
    run.sight(B, content=B)
    event = run.pool.looks(run.pool.jobs[0], like(1))
    death = run.pool.die(run.pool.jobs[0])
    run.event(event)
    run.event(death)
    run.run(60)
    assert [(task.path, task.compare) for task in run.pool.tasks] == [(A, True), (B, True), (B, True)]
    run.load(like(1), B)
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]
    assert run.is_clean()


def test_the_death_of_the_first_frees_those_who_wait(run: Bench) -> None:
    """Nobody waits for a photo that is not in a worker any more."""
    arrive(run, (A, 0), (B, 1))
    run.die()
    run.draw(next(job for job in run.pool.jobs if job.key.path == B))
    run.run(60)
    run.load(like(0), A)
    assert run.outcomes() == [("b.jpg", "done"), ("a.jpg", "duplicate")]
    assert run.is_clean()


def test_a_full_state_folder_holds_up_no_answer(run: Bench) -> None:
    """While commits wait, workers are still told what to do: they must not look silent."""
    arrive(run, (A, 0))
    run.store.full = True
    run.draw()
    run.turn()
    assert run.desk.journal.blocked
    run.sight(B, content=B)
    run.store.full = False
    run.run(60)
    run.load(like(1), B)
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]


def test_a_stop_drops_what_would_wait(run: Bench) -> None:
    """While the service ends nothing new waits for anything: the photo is in the inbox, and comes after the restart."""
    arrive(run, (A, 0))
    run.sight(B, content=B)
    run.daemon._drain(None, run.now)
    run.looks(like(1), B)
    assert [key.path for key in run.desk.actives] == [A]
    run.draw()
    run.turn()
    assert run.daemon._is_over()


def test_a_place_that_fails_costs_nobody_a_try(run: Bench) -> None:
    """An output that is full while the first is staged suspends the place; all come out when it is well."""
    arrive(run, (A, 0), (B, 1))
    run.end(PlaceFault("output", errno.ENOSPC, "/out/phone", "no space left"))
    run.run(120)
    for _ in range(4):
        for job in list(run.pool.jobs):
            run.load(like(0), job.key.path)
        run.draw_all()
    assert sorted(how for _, how in run.outcomes()) == ["done", "duplicate"]
    assert run.is_clean()


def test_a_crash_between_the_commits_keeps_the_looks(run: Bench) -> None:
    """A picture that got its name before the crash is found after it, and others share it."""
    arrive(run, (A, 0))
    run.draw()
    (request,) = run.thread.of(Place)
    run.world.answers(request)  # and nobody hears of it
    assert run.status(A) == "publishing"
    run.restart()
    assert run.status(A) == "done"
    arrive(run, (B, 1))
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]


def test_a_reload_that_compares_less_strictly_counts_for_what_comes(run: Bench) -> None:
    """The distance is a key like others: what was finished before is compared by the new one."""
    arrive(run, (A, 0), (B, 20))
    run.draw_all()
    run.reload(run.changed(similar_distance=50))
    run.run(5)
    arrive(run, (C, 60))
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "done"), ("c.jpg", "duplicate")]


def test_a_place_error_while_a_picture_is_copied_puts_the_photo_back(run: Bench) -> None:
    """The copy is tried again; the photo is neither lost nor drawn."""
    arrive(run, (A, 0))
    run.draw_all()
    run.world.faults[StageCopy] = PlaceError("output", errno.ENOSPC, "/out/phone", "no space left")
    arrive(run, (B, 1))
    run.world.heal()
    run.run(120)
    run.load(like(1), B)
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]
    assert run.is_clean()


def test_a_reload_while_an_answer_is_awaited_lets_the_photo_come_again(run: Bench) -> None:
    """What would wait or share under the old set-up is dropped, what is to be drawn is drawn; the successor has all."""
    arrive(run, (A, 0))
    run.sight(B, content=B)
    run.sight(C, content=C)
    run.reload(run.changed(quality=50))
    for path, bits in ((B, 1), (C, 90)):
        run.looks(like(bits), path)
    assert run.pool.answers[1:] == [(B, False), (C, True)]
    run.draw_all()
    run.run(5)
    assert run.outcomes() == [("a.jpg", "done"), ("c.jpg", "done")]
    run.load(like(1), B)  # drawn by the new recipe, under which nothing looks like it
    run.draw_all()
    assert run.outcomes()[2:] == [("b.jpg", "done")]
    assert run.is_clean()


def test_looks_that_come_while_the_state_folder_is_full_are_answered(run: Bench) -> None:
    """A worker is never left waiting for a disk; who is told to leave gets its picture when the disk is well."""
    arrive(run, (A, 0))
    run.sight(B, content=B)
    run.sight(C, content=C)
    run.store.full = True
    run.draw(run.pool.jobs[0])
    run.turn()
    assert run.desk.journal.blocked
    run.load(like(1), B)
    run.load(like(90), C)
    assert run.pool.answers[1:] == [(B, False), (C, True)]
    run.store.full = False
    run.draw_all()
    run.run(60)
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("b.jpg", "duplicate"), ("c.jpg", "done")]
    assert run.is_clean()


def test_forgetting_the_first_while_it_is_copied_takes_nothing_from_the_copy(run: Bench) -> None:
    """The copy is a picture of its own; the first comes as a new photo, and shares nothing with what is no first."""
    arrive(run, (A, 0))
    run.draw_all()
    run.sight(B, content=B)
    run.event(run.pool.looks(run.pool.jobs[0], like(1)))
    assert run.thread.of(StageCopy)
    run.ledger.forget([run.key(A)])
    run.turn()
    assert run.outcomes()[-1] == ("b.jpg", "duplicate")
    arrive(run, (A, 0))
    run.draw_all()
    assert run.outcomes()[-1] == ("a.jpg", "done")
    assert sorted(run.names()) == ["a.cel-2.jpg", "a.cel.jpg", "b.cel.jpg"]
    assert run.is_clean()


def test_a_new_try_of_the_first_while_others_wait_frees_them_in_the_end(run: Bench) -> None:
    """The photo that is drawn anew leads like any other: what looks like it gets its new picture, or its old one."""
    arrive(run, (A, 0))
    run.draw_all()
    run.ledger.requeue([run.key(A)])
    run.sight(A, content=A)
    run.sight(B, content=B)
    run.load(like(0), A)
    run.load(like(1), B)
    assert run.outcomes()[-1] == ("b.jpg", "duplicate")  # the old picture is there still
    run.draw_all()
    assert run.outcomes()[-1] == ("a.jpg", "done")
    assert run.is_clean()


def test_a_pause_keeps_those_who_wait_from_being_drawn(run: Bench) -> None:
    """The running photo finishes, and its copies with it; where it fails, the others wait out the pause."""
    arrive(run, (A, 0), (B, 1))
    run.parts.gate.pause(run.now)
    run.fail("not_an_image")
    assert not run.pool.jobs
    run.run(600)
    assert not run.pool.jobs
    run.parts.gate.resume(run.now)
    run.turn()
    run.load(like(1), B)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "not_an_image"), ("b.jpg", "done")]
    assert run.is_clean()


def deleting(bench: Callable[..., Bench], originals: str = "delete") -> Bench:
    """Return a daemon whose inbox compares photos, and takes finished ones away."""
    return bench(dedupe="similar", similar_distance=10, originals=originals)


@pytest.mark.parametrize("bits", [0, 3])
def test_the_original_of_a_photo_that_is_only_alike_is_never_deleted(bench: Callable[..., Bench], bits: int) -> None:
    """Its picture shows another photo, so it stays and the log says why, even where no bit tells the two apart."""
    run = deleting(bench)
    arrive(run, (A, 0), (B, bits))
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]
    assert list(run.world.photos) == [B]
    assert [(line["path"], line["detail"]) for line in run.log.events("original.kept")] == [
        ("/in/phone/b.jpg", ONLY_ALIKE)
    ]
    run.restart()
    run.run(5)
    assert list(run.world.photos) == [B]
    assert run.is_clean()


def test_the_original_of_equal_content_is_deleted(bench: Callable[..., Bench]) -> None:
    """Where bytes are equal nothing is lost."""
    run = deleting(bench)
    arrive(run, (A, 0))
    run.draw_all()
    run.sight(B, content=A)
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "duplicate")]
    assert not run.world.photos
    assert not run.log.events("original.kept")


def test_the_original_of_a_photo_that_is_only_alike_is_moved(bench: Callable[..., Bench]) -> None:
    """Moving loses nothing."""
    run = deleting(bench, "move")
    arrive(run, (A, 0), (B, 3))
    run.draw_all()
    assert [(path, owed.what) for path, owed in run.world.put_away] == [(A, "move"), (B, "move")]
    assert not run.log.events("original.kept")


def test_a_crash_between_the_commits_does_not_delete_what_is_only_alike(bench: Callable[..., Bench]) -> None:
    """That a picture is another photo's is known from the first commit on, whatever the configuration says later."""
    run = deleting(bench)
    arrive(run, (A, 0))
    run.draw_all()
    run.sight(B, content=B)
    run.event(run.pool.looks(run.pool.jobs[0], like(3)))
    while not (requests := run.thread.of(Place)):
        run.step()
    run.world.answers(requests[0])  # and nobody hears of it
    assert run.status(B) == "publishing"
    run.config = run.changed(dedupe="content")
    run.restart()
    assert run.status(B) == "duplicate"
    assert [(line["path"], line["detail"]) for line in run.log.events("original.kept")] == [
        ("/in/phone/b.jpg", ONLY_ALIKE)
    ]
    run.sight(C, content=B)
    assert [job.key.path for job in run.pool.jobs] == [C]  # equal to B, whose picture is not its own
    run.run(5)
    assert B in run.world.photos


def test_a_photo_that_is_drawn_after_all_is_deleted(bench: Callable[..., Bench]) -> None:
    """Where the picture to share is gone the photo gets its own, and its original goes as any other."""
    run = deleting(bench)
    arrive(run, (A, 0))
    run.draw_all()
    run.world.pictures.clear()
    arrive(run, (B, 3))
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done"), ("b.jpg", "done")]
    assert not run.world.photos


def test_a_photo_with_something_else_in_it_is_drawn(run: Bench) -> None:
    """Few bits apart is not enough: the parts of both are compared, under way and when finished, after restarts too."""
    arrive(run, (A, 0))
    run.sight(B, content=B)
    run.load(other_inside(1, 30), B)
    assert run.pool.answers == [(A, True), (B, True)]
    run.draw_all()
    run.restart()
    run.sight(C, content=C)
    run.load(other_inside(0, 60), C)
    assert run.pool.answers[-1] == (C, True)
    run.sight(D, content=D)
    run.load(other_inside(0, 30), D)  # nearer to A by its bits, and B's copy
    run.draw_all()
    assert [(line["of"], line["distance"]) for line in run.log.events("file.duplicate")] == [
        ("/out/phone/b.cel.jpg", 1)
    ]
    assert run.is_clean()
