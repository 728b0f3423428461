"""The pool's decisions, with processes that the test plays and a clock that it sets."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pytest
from engine_fakes import READY, FakeProcess, Workshop, job, plan, result, spec, task_maker
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.engine.events import (
    PhotoFinished,
    PhotosReturned,
    PoolEvent,
    WorkerDied,
    WorkerOutput,
    WorkerRecycled,
    WorkersCannotStart,
    WorkerStarted,
    WorkerTimeout,
)
from animed.engine.pool import Pool
from animed.engine.protocol import Beat, BootFailed, Result, Started, Stop
from animed.records import Failure, Job, Picture, PlaceFault, Staged, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.engine.plan import Plan
    from animed.engine.protocol import WorkerSpec

E = TypeVar("E")


class Table:
    """A pool, its fake workers and everything it said."""

    def __init__(self, of: Plan | None = None, to: WorkerSpec | None = None) -> None:
        self.workshop = Workshop()
        self.pool = Pool(of or plan(), to or spec(timeout=10.0, boot_timeout=30.0), start=self.workshop)
        self.events: list[PoolEvent] = self.pool.start(0.0)

    @property
    def workers(self) -> list[FakeProcess]:
        """Return every fake process that was started, in order."""
        return self.workshop.started

    def look(self, now: float = 0.0) -> list[PoolEvent]:
        """Poll everything; return the events that were new."""
        fresh = self.pool.poll(self.pool.waitables(), now)
        self.events += fresh
        return fresh

    def tick(self, now: float) -> list[PoolEvent]:
        """Let time pass; return the events that were new."""
        fresh = self.pool.tick(now)
        self.events += fresh
        return fresh

    def all_ready(self, now: float = 0.0) -> Table:
        """Let every living worker say that it is ready."""
        for process in self.workers:
            if process.code is None and not process.closed:
                process.say(READY)
        self.look(now)
        return self

    def submit(self, name: str = "ok.jpg", now: float = 0.0, *, alone: bool = False, queued: bool = True) -> bool:
        """Offer a photo to the pool."""
        photo = job(name, alone=alone)
        return self.pool.submit(photo, task_maker(photo), now, queued=queued)


def only(events: list[PoolEvent], kind: type[E]) -> E:
    found = [event for event in events if isinstance(event, kind)]
    assert len(found) == 1, events
    return found[0]


def numbers(process: FakeProcess) -> list[int]:
    return [message.number for message in process.told() if isinstance(message, Task)]


@pytest.fixture
def tables() -> Iterator[list[Table]]:
    """Hold tables whose fake processes are freed in the end."""
    held: list[Table] = []
    yield held
    for table in held:
        table.workshop.close()


@pytest.fixture
def table(tables: list[Table]) -> Table:
    """Return a pool of one ready worker."""
    tables.append(Table().all_ready())
    return tables[0]


@pytest.fixture
def pair(tables: list[Table]) -> Table:
    """Return a pool of two ready workers."""
    tables.append(Table(plan(2)).all_ready())
    return tables[0]


def test_nothing_is_given_to_a_worker_before_it_is_ready(tables: list[Table]) -> None:
    """A starting worker has no room; when it says Ready it has room for two."""
    tables.append(Table())
    assert (tables[0].pool.free, tables[0].submit()) == (0, False)
    assert tables[0].pool.workers[0].state == "starting"
    tables[0].all_ready()
    assert only(tables[0].events, WorkerStarted).precision == "fp32"
    assert (tables[0].pool.free, tables[0].pool.workers[0].state) == (2, "idle")
    assert tables[0].pool.workers[0].memory_mb == 50


def test_photos_spread_before_they_stack(pair: Table) -> None:
    """The emptiest worker is served first, each has one ahead, and then the pool is full."""
    assert [pair.submit(f"{i}.jpg") for i in range(5)] == [True, True, True, True, False]
    assert [numbers(process) for process in pair.workers] == [[1, 3], [2, 4]]
    assert (pair.pool.free, pair.pool.idle, len(pair.pool.in_flight)) == (0, False, 4)


def test_a_worker_keeps_its_style_when_others_are_as_empty(pair: Table) -> None:
    """Of equally empty workers, the one that drew this style last is served."""
    for style in ("cel", "ink"):
        photo = job(style=style)
        assert pair.pool.submit(photo, task_maker(photo), 0.0, queued=True)
    pair.workers[0].say(result(1))
    pair.workers[1].say(result(2))
    pair.look()
    photo = job(style="ink")
    pair.pool.submit(photo, task_maker(photo), 0.0, queued=False)
    assert numbers(pair.workers[1]) == [2, 3]


@pytest.mark.parametrize(("queued", "threads"), [(False, 6), (True, 3)])
def test_a_photo_that_is_alone_gets_all_threads(tables: list[Table], queued: bool, threads: int) -> None:
    """With nothing in flight and nothing queued a photo has all planned threads, else its worker's share."""
    tables.append(Table(plan(2, threads=3)).all_ready())
    tables[0].submit(queued=queued)
    tables[0].submit(queued=False)
    first, second = (process.told()[-1] for process in tables[0].workers)
    assert isinstance(first, Task)
    assert isinstance(second, Task)
    assert (first.threads, second.threads) == (threads, 3)


def test_a_result_frees_room_and_returns_the_job(table: Table) -> None:
    """A result ends its own job and counts as a picture of its worker."""
    table.submit("a.jpg")
    table.submit("b.jpg")
    table.workers[0].say(Started(1))
    table.workers[0].say(result(1, memory=80 << 20))
    finished = only(table.look(), PhotoFinished)
    assert (finished.job.key.path, finished.pid) == (b"a.jpg", 100)
    status = table.pool.workers[0]
    assert (status.images, status.memory_mb, status.style, status.state) == (1, 80, "cel", "busy")


def test_a_descriptor_arrives_with_its_result(table: Table, tmp_path: object) -> None:
    """The descriptor on a result's message is the event's."""
    reader, writer = os.pipe()
    table.submit()
    table.workers[0].say(result(1), writer)
    os.close(writer)
    fd = only(table.look(), PhotoFinished).fd
    assert fd is not None
    os.write(fd, b"x")
    os.close(fd)
    assert os.read(reader, 9) == b"x"
    os.close(reader)


def test_a_lost_descriptor_is_a_fault_of_the_place(table: Table) -> None:
    """A picture that is an unnamed file, without its descriptor, is not taken for finished."""
    table.submit()
    staged = Staged(1, 2, 3, "00", None)
    table.workers[0].say(Result(1, Picture(staged, ".jpg", 1, 1, 1, 1, 1, 1, 0.0, 0.0, 0.0)))
    outcome = only(table.look(), PhotoFinished).outcome
    assert isinstance(outcome, PlaceFault)
    assert outcome.code == errno.EMFILE


def test_an_unknown_result_is_dropped_with_its_descriptor(table: Table) -> None:
    """A result that nobody waits for leaks nothing and is no event."""
    reader, writer = os.pipe()
    table.workers[0].say(result(99), writer)
    os.close(writer)
    assert table.look() == []
    assert os.read(reader, 1) == b""  # the last writer is closed
    os.close(reader)


def test_a_suspect_goes_to_an_empty_worker_and_nothing_joins_it(pair: Table) -> None:
    """While a suspect runs, its worker has no room for others."""
    assert pair.submit("suspect.jpg", alone=True)
    assert pair.pool.free == 2
    assert [pair.submit() for _ in range(3)] == [True, True, False]
    assert [len(numbers(process)) for process in pair.workers] == [1, 2]


def test_a_waiting_suspect_gets_a_worker_emptied(pair: Table) -> None:
    """Once a suspect was refused, one worker takes no more until it is empty, so a suspect never starves."""
    for _ in range(4):
        pair.submit()
    pair.workers[0].say(result(1))
    pair.look()
    assert not pair.submit("suspect.jpg", alone=True)
    assert (pair.pool.free, pair.submit()) == (0, False)
    pair.workers[0].say(result(3))
    pair.look()
    assert pair.pool.empty == 1
    assert pair.submit("suspect.jpg", alone=True)


def test_an_emptied_worker_does_not_wait_for_a_suspect_that_is_gone(table: Table) -> None:
    """When the suspect does not come back, the emptied worker takes the next photo."""
    table.submit()
    assert not table.submit("suspect.jpg", alone=True)
    table.workers[0].say(result(1))
    table.look()
    assert table.submit()


def test_both_photos_in_a_dying_worker_are_suspects(pair: Table) -> None:
    """A death names the cause and every photo that was inside, and touches no other worker."""
    for name in ("a", "b", "c"):
        pair.submit(f"{name}.jpg")
    pair.workers[0].die(-signal.SIGKILL)
    died = only(pair.look(), WorkerDied)
    assert (died.pid, died.cause, [s.key.path for s in died.suspects]) == (100, "SIGKILL", [b"a.jpg", b"c.jpg"])
    assert "memory" in died.hint
    assert [photo.key.path for photo in pair.pool.in_flight] == [b"b.jpg"]


def test_a_result_that_was_sent_before_death_counts(table: Table) -> None:
    """What lies in the pipe of a dead worker is read before its photos become suspects."""
    table.submit("a.jpg")
    table.submit("b.jpg")
    table.workers[0].say(result(1))
    table.workers[0].write(b"last words")
    table.workers[0].die(-signal.SIGSEGV)
    events = table.look()
    assert only(events, PhotoFinished).job.key.path == b"a.jpg"
    assert [s.key.path for s in only(events, WorkerDied).suspects] == [b"b.jpg"]
    assert only(events, WorkerOutput).line == "last words"


@pytest.mark.parametrize(("code", "cause"), [(3, "exit:3"), (-11, "SIGSEGV"), (-40, "SIG40"), (0, "exit:0")])
def test_a_cause_is_a_signal_or_an_exit_status(table: Table, code: int, cause: str) -> None:
    """The cause of a death is one stable word."""
    table.workers[0].die(code)
    assert only(table.look(), WorkerDied).cause == cause


def test_crashes_are_answered_at_once_and_then_later_and_later(table: Table) -> None:
    """After a first crash the next worker starts at once, then after 1, 2, 4 … 60 s; a finished photo resets that."""
    delays: list[float] = []
    now = 0.0
    for _ in range(9):
        table.workers[-1].die(-9)
        table.look(now)
        due = now if len(table.workers) > len(delays) + 1 else table.pool.next_deadline(now)
        assert due is not None
        delays.append(due - now)
        table.tick(due)
        now = due
        table.workers[-1].say(READY)
        table.look(now)
    assert delays == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    table.submit(now=now)
    table.workers[-1].say(result(1))
    table.look(now)
    started = len(table.workers)
    table.workers[-1].die(-9)
    table.look(now)
    assert len(table.workers) == started + 1


def test_a_killed_boot_backs_off_and_is_degraded(tables: list[Table]) -> None:
    """Workers that die before they are ready are started ever later; the pool says so until one is ready."""
    tables.append(Table())
    table, now = tables[0], 0.0
    for delay in (1, 2, 4):
        table.workers[-1].die(-9)
        died = [event for event in table.look(now) if isinstance(event, WorkerDied)]
        assert (died[0].cause, table.pool.degraded) == ("SIGKILL", True)
        assert table.pool.next_deadline(now) == now + delay
        now += delay
        table.tick(now)
    table.all_ready(now)
    assert not table.pool.degraded
    assert table.pool.ready


def test_a_late_boot_is_ended(tables: list[Table]) -> None:
    """A worker that is not ready in time is told to say where it stands, then killed, and counts as a failed start."""
    tables.append(Table())
    table = tables[0]
    assert table.pool.next_deadline(0.0) == 30.0
    assert table.tick(29.9) == []
    assert only(table.tick(30.0), WorkerTimeout).silent_s == 30.0
    assert table.workers[0].signals == [signal.SIGABRT]
    table.tick(32.0)
    assert table.workers[0].signals == [signal.SIGABRT, signal.SIGKILL]
    table.workers[0].die(-9)
    assert only(table.look(32.0), WorkerDied).cause == "timeout"
    assert table.pool.degraded


def test_a_final_boot_failure_is_told(tables: list[Table]) -> None:
    """A reason that will not go away is handed on with its remedy; a passing one is only a death."""
    tables.append(Table(plan(2)))
    table = tables[0]
    table.workers[0].say(BootFailed(final=True, title="wrong digest", remedy="pull it"))
    table.workers[1].say(BootFailed(final=False, title="no memory", remedy="fewer"))
    for process in table.workers:
        process.die(80)
    events = table.look()
    assert only(events, WorkersCannotStart) == WorkersCannotStart("wrong digest", "pull it")
    assert [event.hint for event in events if isinstance(event, WorkerDied)] == ["wrong digest", "no memory"]


def test_a_start_that_the_system_refuses_is_tried_again(tables: list[Table]) -> None:
    """No room for a process is a passing fault: reported, backed off, tried again."""
    table = Table()
    tables.append(table)
    table.workers[0].die(-9)
    table.workshop.errors = [OSError(errno.EAGAIN, "no more processes")]
    table.look()
    assert only(table.tick(1.0), WorkerDied).cause == "start:EAGAIN"
    assert table.pool.workers[0].state == "dead"
    assert table.pool.next_deadline(1.0) == 3.0
    table.tick(3.0)
    assert len(table.workers) == 2


def test_silence_is_measured_from_the_last_word(table: Table) -> None:
    """Each word of a busy worker grants it another silence limit; an idle one may be silent for ever."""
    assert table.pool.next_deadline(5.0) is None
    table.submit(now=100.0)
    assert table.pool.next_deadline(100.0) == 110.0
    table.workers[0].say(Beat())
    table.look(108.0)
    assert table.pool.next_deadline(108.0) == 118.0
    assert (table.pool.silent(117.9), table.pool.silent(118.0)) == (False, True)


def test_a_word_that_lies_unread_saves_a_worker(table: Table) -> None:
    """A loop that was late itself reads before it judges."""
    table.submit(now=0.0)
    table.workers[0].say(Beat())
    assert table.tick(11.0) == []
    assert table.workers[0].signals == []


def test_a_silent_worker_is_ended_and_its_photos_are_suspects(table: Table) -> None:
    """Silence ends in SIGABRT, then SIGKILL; the death is a timeout with the photos that were inside."""
    table.submit("a.jpg")
    table.submit("b.jpg")
    assert only(table.tick(10.0), WorkerTimeout).silent_s == 10.0
    assert table.pool.free == 0
    table.tick(11.9)
    assert table.workers[0].signals == [signal.SIGABRT]
    table.tick(12.0)
    table.workers[0].die(-9)
    died = only(table.look(12.1), WorkerDied)
    assert (died.cause, len(died.suspects), died.hint) == ("timeout", 2, "")


def test_an_unkillable_worker_is_given_up(table: Table) -> None:
    """A process that the kernel holds is replaced; its photos are suspects and its end is still awaited."""
    table.submit()
    for now in (10.0, 12.0):
        table.tick(now)
    died = only(table.tick(22.0), WorkerDied)
    assert (died.cause, len(died.suspects)) == ("unkillable", 1)
    assert len(table.workers) == 2
    assert table.workers[0].closed
    assert not table.pool.silent(100.0)


def test_a_worker_that_closed_its_pipe_is_not_polled_for_ever(table: Table) -> None:
    """A pipe at its end leaves the wait, so that it cannot spin the loop; the process is ended if it stays."""
    table.workers[0].worker.close()
    table.look(1.0)
    assert table.workers[0].channel.fileno() not in table.pool.waitables()
    table.tick(11.0)
    assert table.workers[0].signals == [signal.SIGABRT]


def test_a_worker_is_replaced_after_its_images(tables: list[Table]) -> None:
    """A worker with max_images behind it finishes what it has, leaves, and is followed by a new one."""
    tables.append(Table(to=spec(max_images=1)).all_ready())
    table = tables[0]
    table.submit("a.jpg")
    table.submit("b.jpg")
    table.workers[0].say(result(1))
    assert only(table.look(), WorkerRecycled).why == "images"
    assert (table.pool.free, len(table.pool.in_flight)) == (0, 1)
    assert isinstance(table.workers[0].told()[-1], Stop)
    table.workers[0].say(result(2))
    table.workers[0].die(0)
    events = table.look(5.0)
    assert only(events, PhotoFinished).job.key.path == b"b.jpg"
    assert not [event for event in events if isinstance(event, WorkerDied)]
    assert len(table.workers) == 2
    assert not table.pool.degraded


@pytest.mark.parametrize(
    ("outcome", "memory", "why"),
    [(result(1), 2 << 30, "memory"), (Result(1, Failure("out_of_memory", "1 TiB")), None, "out_of_memory")],
)
def test_a_worker_is_replaced_for_its_memory(
    tables: list[Table], outcome: Result, memory: int | None, why: str
) -> None:
    """A worker over its memory, or one that ran out of it, is replaced."""
    tables.append(Table(plan(max_memory=1 << 30)).all_ready())
    tables[0].submit()
    tables[0].workers[0].say(replace(outcome, memory=memory))
    assert only(tables[0].look(), WorkerRecycled).why == why


def test_workers_are_never_replaced_all_at_once(tables: list[Table]) -> None:
    """A worn worker waits with its leave until all others are ready."""
    tables.append(Table(plan(2), spec(max_images=1)).all_ready())
    table = tables[0]
    table.submit()
    table.submit()
    for number, process in enumerate(table.workers, 1):
        process.say(result(number))
    assert only(table.look(), WorkerRecycled).pid == 100
    table.workers[0].die(0)
    assert not [event for event in table.look() if isinstance(event, WorkerRecycled)]
    table.workers[2].say(READY)
    assert only(table.look(), WorkerRecycled).pid == 101


def test_a_worker_that_does_not_leave_is_ended(tables: list[Table]) -> None:
    """Patience with a worker that was told to leave and has nothing to do is short."""
    tables.append(Table(to=spec(max_images=1)).all_ready())
    table = tables[0]
    table.submit()
    table.workers[0].say(result(1))
    table.look(1.0)
    table.tick(11.0)
    assert table.workers[0].signals == [signal.SIGABRT]


def test_a_new_specification_rolls_the_workers_one_by_one(pair: Table) -> None:
    """After a reload each worker is replaced, one at a time, and the new ones have the new specification."""
    fresh = spec(arguments={"mark": "new"})
    assert only(pair.pool.roll(plan(2), fresh, 0.0), WorkerRecycled).why == "reload"
    for old in (0, 1):
        pair.workers[old].die(0)
        pair.look()
        pair.workers[-1].say(READY)
        pair.look()
    assert len(pair.workers) == 4
    assert [wanted.arguments for wanted in pair.workshop.specs[2:]] == [{"mark": "new"}] * 2
    assert pair.look() == []


def test_workers_have_rolled_when_none_of_the_old_takes_photos(pair: Table) -> None:
    """An old worker that was told to leave takes nothing more; one that still takes photos is in the way."""
    assert pair.pool.rolled
    pair.pool.roll(plan(2), spec(arguments={"mark": "new"}), 0.0)
    assert not pair.pool.rolled
    pair.workers[0].die(0)
    pair.look()
    assert not pair.pool.rolled
    pair.workers[-1].say(READY)
    pair.look()
    assert pair.pool.rolled
    assert pair.pool.free == 2


@pytest.mark.parametrize("count", [1, 3])
def test_a_new_plan_changes_the_number_of_workers(pair: Table, count: int) -> None:
    """Missing workers are started, surplus ones leave and are not followed."""
    pair.events += pair.pool.roll(plan(count), spec(), 0.0)
    for _ in range(8):
        for process in pair.workers:
            if not process.closed and any(isinstance(message, Stop) for message in process.told()):
                process.die(0)
        pair.all_ready()
    assert [status.state for status in pair.pool.workers] == ["idle"] * count
    assert all(event.why == "reload" for event in pair.events if isinstance(event, WorkerRecycled))


def test_stop_lets_workers_finish_and_starts_none(pair: Table) -> None:
    """After stop, photos in workers finish, nothing new is taken, and the pool is stopped when all have left."""
    pair.submit("a.jpg")
    pair.pool.stop(0.0)
    assert (pair.submit(), pair.pool.free, pair.pool.stopped) == (False, 0, False)
    pair.workers[0].say(result(1))
    for process in pair.workers:
        assert isinstance(process.told()[-1], Stop)
        process.die(0)
    events = pair.look(1.0)
    assert [type(event) for event in events] == [PhotoFinished]
    assert pair.pool.stopped
    assert (len(pair.workers), pair.pool.next_deadline(1.0)) == (2, None)


def test_stop_ends_a_worker_that_is_still_starting(tables: list[Table]) -> None:
    """Nothing is lost with a worker that is not ready: it is not waited for."""
    tables.append(Table())
    tables[0].pool.stop(0.0)
    assert tables[0].workers[0].signals == [signal.SIGKILL]
    tables[0].workers[0].die(-9)
    assert tables[0].look() == []
    assert tables[0].pool.stopped


def test_kill_hands_photos_back_without_suspicion(pair: Table) -> None:
    """Photos in workers that the pool itself ends are handed back; what they finished before that counts."""
    pair.submit("a.jpg")
    pair.submit("b.jpg")
    pair.workers[0].say(result(1))
    for process in pair.workers:
        process.die(-9)
    events = pair.pool.kill(0.0, patience=0.0)
    assert only(events, PhotoFinished).job.key.path == b"a.jpg"
    assert [photo.key.path for photo in only(events, PhotosReturned).jobs] == [b"b.jpg"]
    assert not [event for event in events if isinstance(event, WorkerDied)]
    assert pair.pool.stopped


def test_kill_reports_what_it_cannot_end(table: Table) -> None:
    """A process that outlives SIGKILL is reported, not waited for, and its photos come back."""
    table.submit()
    events = table.pool.kill(0.0, patience=0.0)
    assert only(events, WorkerDied).cause == "unkillable"
    assert len(only(events, PhotosReturned).jobs) == 1
    assert table.pool.stopped


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["give", "suspect", "result", "crash", "ready", "wait", "roll"]), max_size=40))
def test_no_photo_is_ever_lost_or_doubled(steps: list[str]) -> None:
    """Whatever happens, each accepted photo is in flight, finished, a suspect, or handed back: exactly one of these."""
    table = Table(plan(2), spec(max_images=3, timeout=10.0, boot_timeout=30.0)).all_ready()
    accepted: list[Job] = []
    now = 0.0
    try:
        for at, step in enumerate(steps):
            now = _step(table, step, at, now=now, accepted=accepted)
            table.look(now)
            table.tick(now)
            assert sorted(_accounted(table)) == sorted(photo.key.path for photo in accepted)
            assert len(table.pool.workers) == 2
        table.events += table.pool.kill(now, patience=0.0)
        assert sorted(_accounted(table)) == sorted(photo.key.path for photo in accepted)
    finally:
        table.workshop.close()


def _step(table: Table, step: str, at: int, *, now: float, accepted: list[Job]) -> float:
    alive = [process for process in table.workers if not process.closed]
    if step == "result":
        for number in numbers(alive[0]) if alive else ():
            alive[0].say(result(number))
    elif step == "crash" and alive:
        alive[at % len(alive)].die(-9)
    elif step == "ready":
        table.all_ready(now)
    elif step == "roll":
        table.events += table.pool.roll(plan(2), spec(max_images=3, timeout=10.0, boot_timeout=30.0), now)
    else:
        _offer(table, step, at, now=now, accepted=accepted)
    return now + 6.0 if step == "wait" else now


def _offer(table: Table, step: str, at: int, *, now: float, accepted: list[Job]) -> None:
    photo = job(f"{at}.jpg", alone=step == "suspect")
    if step in {"give", "suspect"} and table.pool.submit(photo, task_maker(photo), now, queued=True):
        accepted.append(photo)


def _accounted(table: Table) -> list[bytes]:
    jobs = list(table.pool.in_flight)
    for event in table.events:
        if isinstance(event, PhotoFinished):
            jobs.append(event.job)
        elif isinstance(event, WorkerDied):
            jobs += event.suspects
        elif isinstance(event, PhotosReturned):
            jobs += event.jobs
    return [photo.key.path for photo in jobs]
