"""What a running service does when photos are to be drawn anew: failed ones, outdated ones, forgotten ones."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from daemon_bench import RECIPE, Bench

from animed.config.models import LimitsConfig
from animed.daemon.questions import Questions
from animed.daemon.recipes import Recipes
from animed.errors import PlaceError
from animed.schedule.store import LedgerError
from animed.service.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from animed.daemon.outcomes import BatchEnded, PhotoEnded
    from animed.records import PhotoKey


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


class Ear:
    """A listener that remembers what was forgotten."""

    def __init__(self) -> None:
        self.forgotten: list[PhotoKey] = []

    def photo_forgotten(self, key: PhotoKey) -> None:
        """Remember it."""
        self.forgotten.append(key)

    def photo_ended(self, ended: PhotoEnded) -> None:
        """Nothing of that here."""

    def batch_ended(self, ended: BatchEnded) -> None:
        """Nor of that."""


def questions_to(run: Bench, state: str = "running") -> Questions:
    """Return what answers the service's socket."""
    return Questions(
        run.desk, run.parts.backlog, run.parts.gate,
        status=lambda: {"state": state}, clock=lambda: run.now, reload=run.parts.reloader.answer,
    )  # fmt: skip


def ask(run: Bench, command: str, *paths: str, **more: Any) -> dict[str, Any]:
    """Ask the service as a command does."""
    encoded = [base64.b64encode(path.encode()).decode() for path in paths]
    return questions_to(run).answer(command, {"paths": encoded, **more})


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


def test_whoever_listens_hears_what_is_forgotten(bench: Callable[..., Bench]) -> None:
    """A listener of outcomes, such as the report files, is told of each photo that is forgotten."""
    run = bench()
    done(run, b"a.jpg", b"b.jpg")
    ear = Ear()
    run.desk.reporter.listeners.append(ear)
    ask(run, "forget", f"{run.inbox.root}/a.jpg")
    assert ear.forgotten == [run.key(b"a.jpg")]


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


def test_what_was_forgotten_before_the_state_folder_filled_up_is_drawn(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question ends in an error at its second path; the photo of the first one is looked at all the same."""
    run = bench()
    done(run, b"a.jpg", b"b.jpg")
    forget = run.ledger.forget

    def fill_up(keys: Iterable[PhotoKey]) -> list[PhotoKey]:
        gone = forget(keys)
        run.store.full = True
        return gone

    monkeypatch.setattr(run.ledger, "forget", fill_up)
    with pytest.raises(LedgerError):
        ask(run, "forget", "/in/phone/a.jpg", "/in/phone/b.jpg")
    run.store.full = False
    run.run(2)
    assert [job.key.path for job in run.pool.jobs] == [b"a.jpg"]


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
    run.inbox.recipes = Recipes({"cel": replace(RECIPE, quality=50)})
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
    run.inbox.recipes = Recipes({"cel": replace(RECIPE, quality=50)})
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
    questions = questions_to(run)
    for paths in (None, "x", [5], ["%"], ["é"], ["\ud800"]):
        with pytest.raises(RequestError):
            questions.answer("forget", {"paths": paths})


def where(run: Bench, state: str = "running", path: str = "/in/phone/a.jpg") -> dict[str, Any]:
    """Ask the service where a photo stands."""
    return questions_to(run, state).answer("where", {"path": base64.b64encode(path.encode()).decode()})


def test_each_stage_of_a_photos_way_is_told(bench: Callable[..., Bench]) -> None:
    """From its first sight to its outcome the service knows where a photo stands, and for how long."""
    run = bench(workers=1)
    assert where(run) == {"where": None, "held": []}
    run.world.write(b"a.jpg", b"photo")
    run.inbox.hint(b"a.jpg", run.now)
    run.now += 0.2
    assert where(run) == {"where": "waiting", "quiet_s": 0.2, "look_in_s": 0.0, "held": []}
    run.run(1)
    run.now += 2
    answer = where(run)
    assert (answer["where"], answer["step"], answer["attempt"]) == ("running", "running", 1)
    assert answer["for_s"] >= 2
    run.sight(b"twin.jpg", b"photo")
    assert where(run, path="/in/phone/twin.jpg")["step"] == "waiting"
    run.draw()
    assert (where(run)["where"], where(run)["step"]) == ("running", "placing")
    run.draw_all()
    assert where(run) == {"where": None, "held": []}
    assert where(run, path="/elsewhere/a.jpg") == {"where": None}


def test_what_holds_photos_back_is_told(bench: Callable[..., Bench]) -> None:
    """A place that fails, a pause, the schedule and a service that is not ready are named; a shelf holds no photo."""
    run = bench(originals="move")
    run.world.break_output()
    run.sight()
    run.run(1)
    run.inbox.suspend(PlaceError("processed", 5, "/shelf", "broken"), run.now)
    answer = where(run)
    assert answer["where"] == "queued"
    assert answer["held"] == [{"by": "output", "detail": "/out: broken"}]
    run.world.heal()
    run.world.break_inbox()
    run.run(70)
    run.inbox.dirty = True
    assert [each["by"] for each in where(run)["held"]] == ["inbox", "backlog"]
    for state, word in (("starting", "no worker"), ("degraded", "no worker"), ("draining", "stopping")):
        first = where(run, state)["held"][0]
        assert first["by"] == state
        assert word in first["detail"]


def test_what_the_gate_holds_back_is_told(bench: Callable[..., Bench]) -> None:
    """A pause by a user, and a pace that is used up, each say so; nothing does when the pause has ended."""
    run = bench()
    questions = questions_to(run)
    questions.answer("pause", {})
    run.sight()
    assert where(run) | {"for_s": 0} == {
        "where": "queued", "step": "queued", "for_s": 0, "attempt": 1, "alone": False,
        "held": [{"by": "paused", "detail": "paused by the user"}],
    }  # fmt: skip
    questions.answer("resume", {})
    run.draw_all()
    assert where(run) == {"where": None, "held": []}
    paced = run.config.model_copy(update={"limits": LimitsConfig(images_per_minute=1, min_free=1000)})
    run.parts.gate.configure(paced)
    run.parts.gate.started(run.now)
    assert [each["by"] for each in where(run)["held"]] == ["pace"]


def test_a_failed_photo_that_was_moved_away_keeps_its_record(bench: Callable[..., Bench]) -> None:
    """It is not there to be tried: the answer says where it lies, and it stays on the list of what failed."""
    run = bench(failed="move", attempts=1)
    run.sight()
    run.fail("not_an_image")
    run.run(1)
    run.desk.ledger.original_done(run.key(), moved=b"/failed/a.jpg")
    for answer in (ask(run, "retry", "/in/phone/a.jpg"), ask(run, "retry", all=True)):
        assert answer == {"queued": 0, "unknown": [], "busy": [], "moved": ["/failed/a.jpg"]}
    assert [row.again for row in run.desk.ledger.failures()] == [False]
