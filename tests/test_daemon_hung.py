"""What the loop makes of an inbox that hangs: a single pass that ends, a worker that cannot be ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from animed.daemon.iothread import SILENCE_S, SLOW_S
from animed.daemon.looking import Digest, OpenRoot, RootFound
from animed.daemon.putting import OpenOutput, OutputFound
from animed.engine.events import UNKILLABLE
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def hang(run: Bench, inbox: str, seconds: float = SILENCE_S + 1) -> None:
    """Let the file systems of an inbox be silent for so long."""
    run.threads[inbox].silence = seconds


def test_a_single_pass_ends_though_an_inbox_was_never_opened(bench: Callable[..., Bench]) -> None:
    """One that hangs from the start is waited for no longer than its silence allows."""
    run = bench(names=("phone", "bee"), once=True, start=False)
    run.worlds["bee"].write(b"a.jpg", b"photo")
    hang(run, "phone", 1.0)
    run.start()
    run.run(5)
    run.draw_all()
    run.run(5)
    assert run.log.events("file.done")
    assert not run.parts.is_through()
    hang(run, "phone")
    run.turn()
    assert run.parts.is_through()
    assert {name: inbox.state for name, inbox in run.desk.inboxes.items()} == {"phone": "unavailable", "bee": "ready"}


def test_a_single_pass_does_not_wait_for_a_name_that_cannot_be_looked_at(bench: Callable[..., Bench]) -> None:
    """A picture that a crash left half placed on a share that hangs is left to a later run."""
    run = bench(start=False, once=True)
    run.start()
    run.sight(b"a.jpg")
    hang(run, "phone", 0.1)
    run.draw()
    assert run.status(b"a.jpg") == "publishing"
    run.restart(start=False)
    run.inbox.start()
    hang(run, "phone", 1.0)
    run.answer(OpenRoot, RootFound((1, 1), "nfs", polled=True))
    run.answer(OpenOutput, OutputFound(10**12, (1, 1)))
    assert run.parts.placing.busy
    hang(run, "phone")
    run.turn()
    assert not run.parts.placing.busy
    assert run.parts.is_through()


def test_a_worker_that_cannot_be_ended_costs_no_try(bench: Callable[..., Bench]) -> None:
    """Its photos are read again, and their output is probed, before another worker gets them, one at a time."""
    run = bench(workers=1)
    for name in (b"a.jpg", b"b.jpg"):
        run.sight(name, content=name)
    assert len(run.pool.jobs) == 2
    hang(run, "phone", 0.1)
    run.die(cause=UNKILLABLE)
    assert not run.log.events("file.retry", "file.failed")
    assert run.state() == "degraded"
    assert run.pool.jobs == []
    hang(run, "phone", 0.0)
    run.run(5)
    assert run.state() == "ready"
    run.draw_all()
    assert sorted(run.names()) == ["a.cel.jpg", "b.cel.jpg"]
    assert {line["attempt"] for line in run.log.events("file.done")} == {1}
    assert run.is_clean()


def test_a_photo_that_holds_workers_although_its_places_answer_is_to_blame(bench: Callable[..., Bench]) -> None:
    """It ends as a timeout after its tries: it must not cost one worker after the other for ever."""
    run = bench(workers=1)
    run.sight(b"a.jpg")
    for _ in range(10):
        if run.pool.jobs:
            run.die(cause=UNKILLABLE)
        run.run(30)
    assert run.outcomes() == [("a.jpg", Reason.TIMEOUT)]


@pytest.mark.parametrize("silence", [SLOW_S + 1, SILENCE_S + 1])
def test_a_worker_that_dies_while_its_share_is_silent_blames_no_photo(
    bench: Callable[..., Bench], silence: float
) -> None:
    """A worker that was ended for its silence while the inbox itself did not answer costs no try."""
    run = bench(workers=1)
    run.sight(b"a.jpg")
    hang(run, "phone", silence)
    run.die(cause="timeout")
    assert not run.log.events("file.retry", "file.failed")
    hang(run, "phone", 0.0)
    run.run(90)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert not run.thread.of(Digest)
