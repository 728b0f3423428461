"""What a running service does when photos are to be drawn anew: failed ones, outdated ones, forgotten ones."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from daemon_bench import RECIPE, Bench

from animed.daemon.questions import Questions
from animed.service.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Return a maker of benches that are closed at the end."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def ask(run: Bench, command: str, *paths: str, **more: Any) -> dict[str, Any]:
    """Ask the service as a command does."""
    questions = Questions(run.desk, run.parts.backlog, dict, lambda: run.now)
    encoded = [base64.b64encode(path.encode()).decode() for path in paths]
    return questions.answer(command, {"paths": encoded, **more})


def done(run: Bench, *paths: bytes) -> None:
    """Let photos of different content come and be drawn."""
    for path in paths:
        run.sight(path, path)
        run.draw_all()
    assert all(run.status(path) == "done" for path in paths)


def test_a_forgotten_photo_is_drawn_at_once(bench: Callable[..., Bench]) -> None:
    """A photo that is still in the inbox is drawn anew without a scan, beside its old picture."""
    run = bench()
    done(run, b"a.jpg", b"b.jpg")
    assert ask(run, "forget", "/in/phone/a.jpg") == {"forgotten": 1, "unknown": [], "busy": [], "busy_count": 0}
    assert run.row() is None
    run.run(2)
    run.draw_all()
    assert run.names() == ["a.cel.jpg", "b.cel.jpg", "a.cel-2.jpg"]
    assert run.status() == "done"
    assert run.is_clean()


def test_a_folder_and_an_inbox_are_forgotten_whole(bench: Callable[..., Bench]) -> None:
    """A folder means all below it, the inbox all of it; what is gone from the inbox is forgotten and not missed."""
    run = bench()
    done(run, b"a.jpg", b"s/b.jpg", b"s/t/c.jpg", b"s.jpg")
    assert ask(run, "forget", "/in/phone/s")["forgotten"] == 2
    assert [run.status(path) for path in (b"a.jpg", b"s/b.jpg", b"s/t/c.jpg", b"s.jpg")] == ["done", None, None, "done"]
    del run.world.photos[b"a.jpg"], run.world.photos[b"s/b.jpg"]
    assert ask(run, "forget", "/in/phone")["forgotten"] == 2
    run.run(2)
    run.draw_all()
    assert sorted(run.names()[4:]) == ["s.cel-2.jpg", "s/t/c.cel-2.jpg"]
    assert run.log.events("file.vanished") == []


def test_a_photo_on_its_way_is_not_forgotten(bench: Callable[..., Bench]) -> None:
    """What waits, is in a worker, or is being placed is told as busy, and ends as if nobody had asked."""
    run = bench()
    run.sight()
    answer = ask(run, "forget", "/in/phone/a.jpg", "/in/phone/none.jpg", "/elsewhere/x.jpg")
    assert (answer["forgotten"], answer["busy_count"]) == (0, 1)
    assert answer["busy"] == [{"inbox": "phone", "path": "/in/phone/a.jpg"}]
    assert [base64.b64decode(text) for text in answer["unknown"]] == [b"/in/phone/none.jpg", b"/elsewhere/x.jpg"]
    run.draw()
    assert run.status() == "publishing"
    assert ask(run, "forget", "/in/phone")["busy_count"] == 1
    run.turn()
    run.run(3)
    assert run.names() == ["a.cel.jpg"]
    assert run.status() == "done"


@pytest.mark.parametrize("command", ["forget", "retry"])
def test_a_back_off_is_void(bench: Callable[..., Bench], command: str) -> None:
    """A photo that waits out a back-off is tried at once, with all tries ahead of it."""
    run = bench(attempts=2)
    run.sight()
    run.fail("encode")
    assert len(run.parts.backlog.retries) == 1
    ask(run, command, "/in/phone/a.jpg")
    assert len(run.parts.backlog.retries) == 0
    run.run(1)
    assert [job.attempt for job in run.pool.jobs] == [1]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_pictures_of_another_recipe_are_drawn_again(bench: Callable[..., Bench]) -> None:
    """After a change of recipe the finished photos are drawn by the new one, once; those of today's are left."""
    run = bench()
    done(run, b"a.jpg", b"b.jpg")
    run.inbox.recipe = replace(RECIPE, quality=50)
    done(run, b"c.jpg")
    assert ask(run, "retry", outdated=True) == {"queued": 2, "unknown": [], "busy": []}
    run.run(2)
    assert {job.recipe.quality for job in run.pool.jobs} == {50}
    assert ask(run, "retry", outdated=True)["queued"] == 0  # those on their way are new already
    run.draw_all()
    assert run.names()[3:] == ["a.cel-2.jpg", "b.cel-2.jpg"]
    assert ask(run, "retry", outdated=True)["queued"] == 0
    assert run.is_clean()


def test_an_outdated_picture_without_its_original_stays(bench: Callable[..., Bench]) -> None:
    """A photo that left the inbox cannot be drawn again: it stays done, and nothing waits for it for ever."""
    run = bench()
    done(run, b"a.jpg")
    run.inbox.recipe = replace(RECIPE, quality=50)
    run.world.photos.clear()
    assert ask(run, "retry", outdated=True)["queued"] == 1
    run.run(2)
    row = run.row()
    assert row is not None
    assert (row.status, row.again) == ("done", False)
    assert run.log.events("file.vanished") == []


def test_a_question_that_makes_no_sense_is_refused(bench: Callable[..., Bench]) -> None:
    """Paths that are no list, or no base64, are an error of the one who asks."""
    run = bench()
    questions = Questions(run.desk, run.parts.backlog, dict, lambda: run.now)
    for paths in (None, "x", [5], ["%"]):
        with pytest.raises(RequestError):
            questions.answer("forget", {"paths": paths})
