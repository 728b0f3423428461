"""What is owed to originals: written with the outcome, done afterwards, crossed off, and resumed."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from daemon_fakes import stat_of
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.daemon.owed import Owed
from animed.daemon.putting import PutAway
from animed.delivery.originals import Disposed, Kept
from animed.delivery.quarantine import FailureRecord
from animed.errors import PhotoError, PlaceError
from animed.records import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

    from animed.daemon.owed import What
    from animed.errors import PlaceRole


def pending(run: Bench, path: bytes = b"a.jpg") -> str | None:
    row = run.row(path)
    assert row is not None
    return row.original_pending


def shelf_fault(role: PlaceRole = "processed") -> PlaceError:
    return PlaceError(role, errno.EIO, "/shelf", "broken")


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(["move", "delete", "failed-move", "failed-copy"]), st.text(max_size=20), st.text(max_size=20))
def test_what_is_owed_survives_the_ledger(what: What, folder: str, message: str) -> None:
    """What was written is what is read, and its place is known."""
    record = FailureRecord("truncated", message, "phone", 2, "2026-01-01", "1") if what.startswith("failed") else None
    owed = Owed(what, stat_of(b"x"), folder, record)
    assert Owed.of(owed.text()) == owed
    expected = {"move": "processed", "delete": None, "failed-move": "failed", "failed-copy": "failed"}
    assert owed.role == expected[what]


@pytest.mark.parametrize(("policy", "what"), [("move", "move"), ("delete", "delete")])
def test_an_original_goes_only_after_its_picture_is_durable(
    bench: Callable[..., Bench], policy: str, what: str
) -> None:
    """The second commit says what is owed; it is asked for after that, and crossed off when it is done."""
    run = bench(originals=policy)
    run.sight()
    run.draw()
    assert not run.thread.of(PutAway)
    run.store.full = True
    run.turn()
    assert not run.world.put_away
    run.store.full = False
    run.run(2)
    assert [owed.what for _, owed in run.world.put_away] == [what]
    assert run.world.photos == {}
    assert pending(run) is None
    assert not run.parts.originals.busy


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"originals": "move"}, b"/in/phone-processed/s/a.jpg"),
        ({"originals": "delete"}, None),
        ({"failed": "move"}, b"/in/phone-failed/s/a.jpg"),
        ({"failed": "copy"}, None),
    ],
)
def test_where_an_original_lies_is_remembered(
    bench: Callable[..., Bench], keys: dict[str, str], place: bytes | None
) -> None:
    """An original that was moved away is known by its new place; one that is still there, or gone, has none."""
    run = bench(**keys)
    run.sight(b"s/a.jpg")
    if "failed" in keys:
        run.fail("not_an_image")
    else:
        run.draw_all()
    run.turn()
    row = run.row(b"s/a.jpg")
    assert row is not None
    assert (row.moved, row.original_pending) == (place, None)


def test_a_new_outcome_has_its_own_place(bench: Callable[..., Bench]) -> None:
    """A failed photo that was moved away, put back and drawn is not said to lie where it was."""
    run = bench(failed="move")
    run.sight()
    run.fail("not_an_image")
    run.sight(b"a.jpg", b"now a photo", mtime_ns=7)
    run.draw_all()
    row = run.row()
    assert row is not None
    assert (row.status, row.moved) == ("done", None)


def test_kept_originals_owe_nothing(bench: Callable[..., Bench]) -> None:
    """With `keep` and `leave` nothing is touched, whatever the outcome."""
    run = bench()
    run.sight(b"a.jpg", b"one")
    run.draw_all()
    run.sight(b"b.jpg", b"two")
    run.fail("not_an_image")
    assert run.world.put_away == []
    assert set(run.world.photos) == {b"a.jpg", b"b.jpg"}


@pytest.mark.parametrize(("policy", "what"), [("move", "failed-move"), ("copy", "failed-copy")])
def test_a_failed_photo_goes_with_its_reason(bench: Callable[..., Bench], policy: str, what: str) -> None:
    """After the failure is recorded the photo is set aside, with the reason and the tries."""
    run = bench(failed=policy, originals="delete")
    run.sight()
    run.fail("not_an_image")
    ((path, owed),) = run.world.put_away
    assert (path, owed.what) == (b"a.jpg", what)
    assert owed.record is not None
    assert (owed.record.reason, owed.record.attempts, owed.record.inbox) == ("not_an_image", 1, "phone")
    assert pending(run) is None
    assert run.outcomes() == [("a.jpg", "not_an_image")]


def test_what_is_owed_is_resumed_after_a_crash(bench: Callable[..., Bench]) -> None:
    """A crash before or after the act, but before it was crossed off, leads to the act once more, then no more."""
    run = bench(originals="move")
    run.sight()
    run.draw()
    run._answer_all()
    assert run.thread.of(PutAway)
    run.restart()
    run.run(5)
    assert [owed.what for _, owed in run.world.put_away] == ["move"]
    assert pending(run) is None
    run.restart()
    run.run(5)
    assert len(run.world.put_away) == 1


@pytest.mark.parametrize("result", [Kept("it changed"), PhotoError("output_denied", "no")])
def test_an_original_that_stays_is_told_once(bench: Callable[..., Bench], result: object) -> None:
    """What cannot be done is logged once and crossed off; the photo stays done."""
    run = bench(originals="delete")
    run.sight()
    run.draw()
    run._answer_all()
    run.answer(PutAway, result)
    assert len(run.log.events("original.kept")) == 1
    assert pending(run) is None
    run.restart()
    run.run(5)
    assert len(run.log.events("original.kept")) == 1
    assert run.status() == "done"


def test_a_shelf_that_fails_holds_up_originals_only(bench: Callable[..., Bench]) -> None:
    """Drawing goes on while `processed` is away; one original probes it, and when it is well all follow."""
    run = bench(originals="move")
    run.world.faults[PutAway] = shelf_fault()
    for name in (b"a.jpg", b"b.jpg", b"c.jpg"):
        run.sight(name, name)
        run.draw_all()
    assert [how for _, how in run.outcomes()] == ["done"] * 3
    assert run.state() == "degraded"
    asked = 0
    for _ in range(60):
        run.now += 1
        run.tick()
        asked += len(run.thread.of(PutAway))
        run._answer_all()
    assert 3 <= asked <= 7
    run.world.heal()
    run.run(61)
    assert sorted(path for path, _ in run.world.put_away) == [b"a.jpg", b"b.jpg", b"c.jpg"]
    assert all(pending(run, name) is None for name in (b"a.jpg", b"b.jpg", b"c.jpg"))
    assert run.state() == "ready"
    assert [line["role"] for line in run.log.events("inbox.recovered")] == ["processed"]


def test_one_shelf_does_not_vouch_for_another(bench: Callable[..., Bench]) -> None:
    """An original that was moved says nothing about the folder of failed photos."""
    run = bench(originals="move", failed="move")
    run.sight(b"bad.jpg", b"bad")
    run.event(run.pool.finish(run.pool.jobs[0], Failure("not_an_image", "made up")))
    run.answer(PutAway, shelf_fault("failed"))
    assert run.inbox.health.shelves == ["failed"]
    run.sight(b"a.jpg", b"good")
    run.draw_all()
    assert [path for path, _ in run.world.put_away] == [b"a.jpg"]
    assert run.inbox.health.shelves == ["failed"]
    run.run(10)
    assert [path for path, _ in run.world.put_away] == [b"a.jpg", b"bad.jpg"]
    assert run.state() == "ready"


def test_an_act_is_not_repeated_while_its_crossing_off_waits(bench: Callable[..., Bench]) -> None:
    """A full ledger keeps the row as it was; the act is not asked for again meanwhile."""
    run = bench(originals="delete")
    run.sight()
    run.draw()
    run._answer_all()
    run.store.full = True
    run.answer(PutAway, Disposed("deleted"))
    for _ in range(3):
        run.parts.arrivals.up(run.inbox, run.now)
    assert not run.thread.of(PutAway)
    assert run.parts.originals.busy
    run.store.full = False
    run.run(2)
    assert pending(run) is None
    assert not run.parts.originals.busy


def test_a_new_photo_under_the_name_waits_for_what_is_owed(bench: Callable[..., Bench]) -> None:
    """While an original is still to go, a new file under its name is left alone; afterwards it is drawn."""
    run = bench(originals="delete")
    run.sight(content=b"one")
    run.draw()
    run._answer_all()
    stat = run.world.write(b"a.jpg", b"second", mtime_ns=2)
    run.inbox.hint(b"a.jpg", run.now, stat)
    for _ in range(20):
        run.now += 0.5
        run.tick()
        held = run.thread.of(PutAway)
        run.thread.requests = [request for request in run.thread.requests if request not in held]
        run._answer_all()
        run.thread.requests += held
    assert not run.pool.jobs
    run.answer(PutAway, Kept("it is no longer the file that was read"))
    run.run(5)
    run.draw_all()
    assert run.names() == ["a.cel.jpg", "a.cel-2.jpg"]
    assert run.world.photos == {}


def test_a_recovered_picture_lets_go_only_of_the_photo_it_shows(bench: Callable[..., Bench]) -> None:
    """After a crash the original is removed only where it is still the file that was read."""
    run = bench(originals="delete")
    run.sight()
    run.draw()
    run.world.answers(run.thread.requests[0])
    run.world.write(b"a.jpg", b"another", mtime_ns=2)
    run.restart()
    run.run(5)
    assert run.world.put_away == []
    assert [job.stat.size for job in run.pool.jobs] == [7]
