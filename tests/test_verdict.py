"""The word whether a photo is to be drawn: between a worker's loader, its parent, and the deaths of either."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from engine_fakes import FakePipeline, job, plan, result, spec, task_maker
from test_pool import Table, only

from animed.engine.events import PhotoFinished, PhotoLooks, PhotosReturned, WorkerDied
from animed.engine.protocol import Channel, Looks, Result, Stop, Verdict
from animed.engine.worker import Link, Loop
from animed.records import Failure, Fingerprint, Picture, Skip, Task
from animed.system import System

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from animed.engine.protocol import Message

LOOKS = Fingerprint(1, 2, bytes(8))


class Looking(FakePipeline):
    """A pipeline that says what photos look like."""

    def fingerprint(self, loaded: Any) -> Fingerprint | None:
        """Answer as the photo's name says."""
        if loaded == "odd":
            raise MemoryError("a hash took too much")
        return None if loaded == "plain" else LOOKS


class Worker:
    """A worker's loop in this process, and the parent's end of its pipe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        here, there = Channel.pair()
        self.parent, self._end = Channel(here), Channel(there)
        self._loop = Loop(Looking(), Link(self._end), beat_every=1000.0)

    def give(self, number: int, name: str, *, compare: bool = True) -> None:
        """Send a photo."""
        self.parent.send(replace(task_maker(job(name), str(self.folder))(number, 1), compare=compare))

    def work(self) -> list[Message]:
        """Send a Stop, let the loop come to its end, and return what it said."""
        self.parent.send(Stop())
        self._loop.start()
        self._loop.run()
        return list(self._said())

    def close(self) -> None:
        """Free the pipe."""
        self.parent.close()
        self._end.close()

    def _said(self) -> Iterator[Message]:
        while True:
            try:
                received = self.parent.receive()
            except BlockingIOError:
                return
            assert received is not None
            message, fd = received
            if fd is not None:
                os.close(fd)
            yield message


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """Return a worker's loop."""
    made = Worker(tmp_path)
    yield made
    made.close()


def told(messages: list[Message]) -> list[tuple[str, int]]:
    """Return the kinds and numbers of messages, in order."""
    return [(type(message).__name__, getattr(message, "number", 0)) for message in messages]


@pytest.mark.parametrize("draw", [True, False])
def test_a_photo_is_drawn_if_the_parent_says_so(worker: Worker, *, draw: bool) -> None:
    """The looks are told before the network begins; a photo that is to be left leaves no word behind."""
    worker.give(1, "ok.jpg")
    worker.parent.send(Verdict(1, draw=draw))
    messages = worker.work()
    assert messages[0] == Looks(1, LOOKS)
    assert told(messages[1:]) == ([("Started", 1), ("Result", 1)] if draw else [])


def test_what_comes_while_the_loader_waits_has_its_turn(worker: Worker) -> None:
    """The next photo, and a Stop behind it, may overtake the answer; nothing is lost, and nothing waits for ever."""
    worker.give(1, "ok.jpg")
    worker.give(2, "ok-2.jpg")
    worker.give(3, "ok-3.jpg", compare=False)
    worker.parent.send(Verdict(1, draw=False))
    worker.parent.send(Verdict(2, draw=True))
    heard = told(worker.work())
    assert heard == [("Looks", 1), ("Looks", 2), ("Started", 2), ("Result", 2), ("Started", 3), ("Result", 3)]


def test_the_network_goes_on_while_the_loader_waits(worker: Worker) -> None:
    """A photo that has not been decided on keeps the one before it from nothing."""
    worker.give(1, "pair.jpg", compare=False)  # ends when the next one is loaded
    worker.give(2, "next.jpg")
    worker.parent.send(Verdict(2, draw=False))
    assert sorted(told(worker.work())) == [("Looks", 2), ("Result", 1), ("Started", 1)]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("plain.jpg", Picture),
        ("broken.jpg", Failure("truncated", "the file ends early")),
        ("animated.jpg", Skip("animated")),
        ("odd.jpg", Failure("out_of_memory", "MemoryError: a hash took too much")),
    ],
)
def test_what_cannot_be_compared_waits_for_nobody(worker: Worker, name: str, outcome: object) -> None:
    """A photo that says too little is drawn; what is no photo, or cannot be looked at, has its outcome at once."""
    worker.give(1, name)
    (*_, last) = messages = worker.work()
    assert not [message for message in messages if isinstance(message, Looks)]
    assert isinstance(last, Result)
    assert last.outcome == outcome or (outcome is Picture and isinstance(last.outcome, Picture))


# The parent's side.


@pytest.fixture
def table() -> Iterator[Table]:
    """Return a pool of one fake worker, which is ready."""
    made = Table(plan(1), spec(timeout=10.0)).all_ready()
    yield made
    made.workshop.close()


def asked(table: Table, name: str = "ok.jpg") -> PhotoLooks:
    """Let a worker tell the looks of a photo that it is given."""
    table.submit(name)
    (*_, task) = table.workers[-1].told()
    assert isinstance(task, Task)
    table.workers[-1].say(Looks(task.number, LOOKS))
    return only(table.look(), PhotoLooks)


def test_a_photo_that_is_to_be_drawn_stays_in_its_worker(table: Table) -> None:
    """The worker is told, and its result counts as ever."""
    event = asked(table)
    assert (event.job.key.path, event.fingerprint) == (b"ok.jpg", LOOKS)
    assert table.pool.answer(event.number, draw=True, now=0.0)
    assert table.workers[0].told() == [Verdict(event.number, draw=True)]
    table.workers[0].say(result(event.number))
    assert only(table.look(), PhotoFinished).job == event.job


def test_a_photo_that_is_left_makes_room_and_is_no_suspect(table: Table) -> None:
    """From the answer on the worker has nothing to do with it, whatever becomes of the worker."""
    event = asked(table)
    room = table.pool.free
    assert table.pool.answer(event.number, draw=False, now=0.0)
    assert (table.pool.free, table.pool.in_flight) == (room + 1, ())
    table.workers[0].die(-signal.SIGKILL)
    assert only(table.look(), WorkerDied).suspects == ()


@pytest.mark.parametrize("draw", [True, False])
def test_nobody_answers_the_dead(table: Table, *, draw: bool) -> None:
    """Looks that a dying worker sent last are told, but the photo is with its death, or with whoever ended it."""
    table.submit()
    (task,) = table.workers[0].told()
    assert isinstance(task, Task)
    table.workers[0].say(Looks(task.number, LOOKS))
    table.workers[0].die(-signal.SIGKILL)
    looks, died = table.look()
    assert isinstance(looks, PhotoLooks)
    assert isinstance(died, WorkerDied)
    assert not table.pool.answer(task.number, draw=draw, now=0.0)
    assert died.suspects == (looks.job,)


def test_a_killed_pool_hands_back_what_waits_for_an_answer(table: Table) -> None:
    """At a stop a photo that nobody has decided on is returned, once."""
    event = asked(table)
    table.workers[0].die(-signal.SIGKILL)
    events = table.pool.kill(0.0, patience=0.0)
    assert only(events, PhotosReturned).jobs == (event.job,)
    assert not table.pool.answer(event.number, draw=False, now=0.0)


class Full(System):
    """A machine without room for messages, until the test says so."""

    room = False

    def send(self, end: socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Refuse."""
        if not self.room:
            raise OSError(errno.ENOBUFS, "no room")
        super().send(end, data, descriptors)


@pytest.mark.parametrize("draw", [True, False])
def test_an_answer_that_cannot_be_sent_is_sent_later_and_is_no_silence(table: Table, *, draw: bool) -> None:
    """A worker that waits for this side is not ended for its patience."""
    event, system = asked(table), Full()
    table.workers[0].channel._system = system
    assert table.pool.answer(event.number, draw=draw, now=5.0)
    now = 5.0
    while now < 60:
        due = table.pool.next_deadline(now)
        assert due is not None
        now = max(due, now + 0.1)
        assert table.tick(now) == []
    assert table.workers[0].told() == []
    system.room = True
    table.tick(now + 1)
    assert table.workers[0].told() == [Verdict(event.number, draw=draw)]
    assert table.workers[0].signals == []
    assert table.pool.next_deadline(now + 1) == (now + 10 if draw else None)  # since the last try


def test_an_answer_to_a_closed_pipe_is_dropped(table: Table) -> None:
    """A worker that closed its pipe is dying: its end is waited for, for a limited time, and the photo goes with it."""
    event = asked(table)
    table.workers[0].worker.close()
    assert table.pool.answer(event.number, draw=True, now=0.0)
    table.look()
    assert table.pool.next_deadline(0.0) == 10.0
    table.workers[0].die(-signal.SIGKILL)
    assert only(table.look(), WorkerDied).suspects == (event.job,)
