"""Which name a picture gets, and what a taken name leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon_fakes import open_stages, picture_of

from animed.daemon.putting import Discard, Place
from animed.delivery.publish import Taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

NAME = b"/out/phone/a.cel.jpg"
FOREIGN = picture_of(b"foreign").staged


@pytest.mark.parametrize(
    ("policy", "outcome", "names"),
    [
        ("suffix", "done", ["a.cel-2.jpg"]),
        ("overwrite", "done", ["a.cel.jpg"]),
        ("skip", "skipped", []),
        ("fail", "conflict", []),
    ],
)
def test_a_taken_name_is_handled_as_asked(
    bench: Callable[..., Bench], policy: str, outcome: str, names: list[str]
) -> None:
    """What holds the name already when the photo is read decides by the policy; skip and fail draw nothing."""
    run = bench(on_conflict=policy)
    run.world.pictures[NAME] = FOREIGN
    run.sight()
    assert bool(run.pool.jobs) == (policy in {"suffix", "overwrite"})
    run.draw_all()
    assert run.outcomes() == [("a.jpg", outcome)]
    assert run.names() == names
    assert run.is_clean()


@pytest.mark.parametrize(
    ("policy", "outcome"), [("suffix", "done"), ("overwrite", "done"), ("skip", "skipped"), ("fail", "conflict")]
)
def test_a_name_that_is_taken_meanwhile_is_handled_as_asked(
    bench: Callable[..., Bench], policy: str, outcome: str
) -> None:
    """The same holds for what takes the name while the photo is drawn; the claim is given up first."""
    run = bench(on_conflict=policy)
    run.sight()
    run.world.pictures[NAME] = FOREIGN
    run.draw_all()
    assert run.outcomes() == [("a.jpg", outcome)]
    assert (run.world.pictures[NAME] is FOREIGN) == (policy != "overwrite")
    assert not open_stages()
    row = run.row()
    assert row is not None
    assert (row.output is None) == (policy in {"skip", "fail"})


def test_suffixes_go_on_until_one_is_free(bench: Callable[..., Bench]) -> None:
    """Each taken name leads to the next candidate, and none is asked for twice."""
    run = bench()
    for number in ("", "-2", "-3"):
        run.world.pictures[f"/out/phone/a.cel{number}.jpg".encode()] = FOREIGN
    run.sight()
    run.draw_all()
    assert run.names() == ["a.cel-4.jpg"]


@pytest.mark.parametrize(
    ("policy", "outcomes", "names"),
    [
        ("suffix", ["done", "done"], ["a.cel.jpg", "a.cel-2.jpg"]),
        ("overwrite", ["done", "done"], ["a.cel.jpg", "a.cel-2.jpg"]),
        ("skip", ["done", "skipped"], ["a.cel.jpg"]),
        ("fail", ["done", "conflict"], ["a.cel.jpg"]),
    ],
)
def test_a_name_claimed_by_another_photo_is_taken(
    bench: Callable[..., Bench], policy: str, outcomes: list[str], names: list[str]
) -> None:
    """Two photos that would get one name never share it, even when neither picture is placed yet."""
    run = bench(on_conflict=policy)
    run.sight(b"a.jpg", b"one")
    run.sight(b"a.png", b"two")
    run.draw(run.pool.jobs[0])
    run.draw(run.pool.jobs[0])
    run.draw_all()
    assert [how for _, how in sorted(run.outcomes())] == outcomes
    assert run.names() == names
    assert run.is_clean()


def test_a_lost_race_for_a_claim_tries_the_next_name(bench: Callable[..., Bench]) -> None:
    """A claim that waited for a full ledger may find the name claimed by then."""
    run = bench()
    run.sight(b"a.jpg", b"one")
    run.sight(b"a.png", b"two")
    run.store.full = True
    run.draw(run.pool.jobs[0])
    run.draw(run.pool.jobs[0])
    run.store.full = False
    run.run(5)
    assert run.names() == ["a.cel.jpg", "a.cel-2.jpg"]
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("a.png", "done")]


def test_taken_after_a_refused_overwrite_is_no_loop(bench: Callable[..., Bench]) -> None:
    """A disk that keeps saying that names are taken is asked for another name each time."""
    run = bench()
    run.sight()
    run.draw()
    asked = [run.answer(Place, Taken(b"x")).target for _ in range(5)]
    assert asked == [b"a.cel.jpg", b"a.cel-2.jpg", b"a.cel-3.jpg", b"a.cel-4.jpg", b"a.cel-5.jpg"]
    assert not run.thread.of(Discard)
    run.turn()
    assert run.outcomes() == [("a.jpg", "done")]
