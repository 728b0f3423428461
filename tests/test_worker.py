"""Real worker processes, most without a network: how they start, work, die, and never outlive their parent."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from engine_fakes import PATIENCE, RECIPE, Driver, FakePipeline, job, plan, spec, task_maker
from PIL import Image

from animed.engine import limits, machine
from animed.engine import plan as plans
from animed.engine.environment import environment
from animed.engine.events import (
    PhotoFinished,
    PhotosReturned,
    WorkerDied,
    WorkerOutput,
    WorkerRecycled,
    WorkersCannotStart,
    WorkerStarted,
    WorkerTimeout,
)
from animed.engine.plan import Wishes
from animed.engine.protocol import EXIT_ERROR, Beat, Channel, Limits, Message, Result, Started, Stop, WorkerSpec
from animed.engine.spawn import spawn
from animed.engine.worker import Link, Loop
from animed.records import Failure, FileStat, Picture, PlaceFault, Skip, WeightsFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


HERE = Path(__file__).resolve().parent


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Say whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def everything(parent: Channel) -> Iterator[tuple[Message, int | None]]:
    """Yield what lies in a channel."""
    with contextlib.suppress(BlockingIOError):
        while (received := parent.receive()) is not None:
            yield received


def text_of(finished: PhotoFinished) -> str:
    """Return what is in the picture's unnamed file."""
    assert finished.fd is not None
    return os.pread(finished.fd, 4096, 0).decode()


def test_a_picture_arrives_as_a_descriptor_that_can_be_linked(drive: Callable[..., Driver], tmp_path: Path) -> None:
    """A picture comes back as an unnamed file; threads, niceness and environment are as planned."""
    here = os.getpriority(os.PRIO_PROCESS, 0)
    to = spec(environment={"PROBE": "set"}, limits=Limits(nice=here + 3))
    driver = drive(plan(2), to)
    started = driver.next(WorkerStarted)
    assert (started.precision, started.boot_s >= 0) == ("fp32", True)
    assert "PROBE" not in os.environ
    driver.submit("ok.jpg", queued=False)
    finished = driver.next(PhotoFinished)
    assert isinstance(finished.outcome, Picture)
    assert text_of(finished) == f"ok threads=2 nice={min(19, here + 3)} env=set"
    where = os.open(tmp_path, os.O_RDONLY)
    os.link(f"/proc/self/fd/{finished.fd}", "final.jpg", dst_dir_fd=where, follow_symlinks=True)
    os.close(where)
    assert (tmp_path / "final.jpg").stat().st_ino == finished.outcome.staged.inode
    driver.until(lambda: all(worker.memory_mb > 0 for worker in driver.pool.workers))


def test_each_fault_of_a_photo_is_its_outcome_and_stops_nothing(drive: Callable[..., Driver]) -> None:
    """Expected and unexpected errors, in loading, drawing or staging, become outcomes; the worker goes on."""
    driver = drive()
    names = ["broken.jpg", "animated.gif", "full.jpg", "bug.jpg", "ok.jpg"]
    driver.submit(*names)
    found = {event.job.key.path.decode(): event.outcome for event in (driver.next(PhotoFinished) for _ in names)}
    assert found["broken.jpg"] == Failure("truncated", "the file ends early")
    assert found["animated.gif"] == Skip("animated")
    assert found["full.jpg"] == PlaceFault("output", 28, str(driver.folder), "no space left")
    assert found["bug.jpg"] == Failure("worker_crashed:PYTHON", "ValueError: nobody expected this")
    assert isinstance(found["ok.jpg"], Picture)
    driver.until(lambda: any("Traceback" in e.line for e in driver.events if isinstance(e, WorkerOutput)))
    assert {event.pid for event in driver.events if isinstance(event, PhotoFinished)} == {driver.pool.workers[0].pid}


@pytest.mark.parametrize("name", ["memory.jpg", "native.jpg"])
def test_a_worker_out_of_memory_reports_and_is_replaced(drive: Callable[..., Driver], name: str) -> None:
    """Memory that cannot be had fails the photo, not the worker; a fresh one follows all the same."""
    driver = drive()
    driver.submit(name)
    outcome = driver.next(PhotoFinished).outcome
    assert isinstance(outcome, Failure)
    assert outcome.reason == "out_of_memory"
    assert driver.next(WorkerRecycled).why == "out_of_memory"
    driver.next(WorkerStarted)
    driver.next(WorkerStarted)


def test_loading_overlaps_drawing(drive: Callable[..., Driver]) -> None:
    """The next photo is decoded while the network runs on this one."""
    driver = drive()
    driver.submit("pair.jpg", "next.jpg")
    assert isinstance(driver.next(PhotoFinished).outcome, Picture)
    assert isinstance(driver.next(PhotoFinished).outcome, Picture)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("kill.jpg", "SIGKILL"),
        ("segv.jpg", "SIGSEGV"),
        ("exit.jpg", "exit:3"),
        ("loaderexit.jpg", f"exit:{EXIT_ERROR}"),
    ],
)
def test_a_death_makes_suspects_and_work_goes_on(drive: Callable[..., Driver], name: str, cause: str) -> None:
    """However a worker dies, its photos are suspects and the next worker draws the next photo."""
    driver = drive()
    driver.submit(name)
    died = driver.next(WorkerDied)
    assert (died.cause, [photo.key.path.decode() for photo in died.suspects]) == (cause, [name])
    driver.submit("ok.jpg")
    assert isinstance(driver.next(PhotoFinished).outcome, Picture)


def test_a_killed_worker_that_was_busy_loses_no_photo_of_another(drive: Callable[..., Driver]) -> None:
    """Kill -9 of a busy worker makes its two photos suspects; the other worker's photo finishes."""
    driver = drive(plan(2))
    driver.until(lambda: driver.pool.free == 4)
    driver.submit("held.jpg", "held-2.jpg", "held-3.jpg")
    victim = driver.pool.workers[0].pid
    os.kill(victim, signal.SIGKILL)
    died = driver.next(WorkerDied)
    assert (died.pid, {photo.key.path for photo in died.suspects}) == (victim, {b"held.jpg", b"held-3.jpg"})
    (driver.folder / "go").touch()
    assert driver.next(PhotoFinished).job.key.path == b"held-2.jpg"


def test_a_killed_worker_that_was_idle_hangs_nothing(drive: Callable[..., Driver]) -> None:
    """Kill -9 of an idle worker has no suspects; the next photo is drawn and the pool stops."""
    driver = drive()
    driver.next(WorkerStarted)
    os.kill(driver.pool.workers[0].pid, signal.SIGKILL)
    assert driver.next(WorkerDied).suspects == ()
    driver.submit("ok.jpg")
    driver.next(PhotoFinished)
    driver.pool.stop(time.monotonic())
    driver.until(lambda: driver.pool.stopped)


def test_a_silent_worker_says_where_it_stands_and_is_ended(drive: Callable[..., Driver]) -> None:
    """A hang ends as a timeout with its photo as the suspect, and the worker's stack is in the output."""
    driver = drive(to=spec(timeout=2.0))
    driver.submit("hang.jpg")
    assert driver.next(WorkerTimeout).silent_s >= 2.0
    died = driver.next(WorkerDied)
    assert (died.cause, len(died.suspects)) == ("timeout", 1)
    assert any("do_hang" in event.line for event in driver.events if isinstance(event, WorkerOutput))


def test_a_drawing_worker_beats_but_not_often(tmp_path: Path) -> None:
    """However often the network calls, a beat is sent once in an interval, after the start and before the result."""
    here, there = Channel.pair()
    parent, clock = Channel(here), iter(number / 4 for number in range(1000))
    photo = job("often.jpg")
    parent.send(task_maker(photo, str(tmp_path))(7, 1))
    parent.send(Stop())
    loop = Loop(FakePipeline(), Link(Channel(there)), beat_every=1.0, clock=lambda: next(clock))
    loop.start()
    loop.run()
    kinds, fds = zip(*everything(parent), strict=True)
    assert [type(message) for message in kinds] == [Started, *[Beat] * 5, Result]
    os.close(fds[-1])
    here.close()
    there.close()


def test_a_worker_is_limited(drive: Callable[..., Driver]) -> None:
    """A worker has no core files, bounded files, descriptors and memory, and is the first to go without memory."""
    bounds = Limits(nice=0, file_size=1 << 20, open_files=100)
    of = replace(plan(), data_limit=1 << 33)
    driver = drive(of, spec(limits=bounds))
    driver.submit("limits.jpg")
    outcome = driver.next(PhotoFinished).outcome
    assert isinstance(outcome, Failure)
    assert json.loads(outcome.detail) == {"core": 0, "fsize": 1 << 20, "nofile": 100, "data": 1 << 33, "oom": True}


def priorities(driver: Driver) -> list[list[Any]]:
    """Let two generations of a worker tell how many threads they have, and their priorities for processor and disk."""
    told = []
    for name in ("priorities-1.jpg", "priorities-2.jpg", "priorities-3.jpg"):
        driver.submit(name)
        outcome = driver.next(PhotoFinished).outcome
        assert isinstance(outcome, Failure)
        told.append(json.loads(outcome.detail))
    return told


def test_a_worker_steps_back_once(drive: Callable[..., Driver]) -> None:
    """All threads of every generation have the priorities that were asked for, and the parent keeps its own."""
    here, disk = os.getpriority(os.PRIO_PROCESS, 0), psutil.Process().ionice()
    for asked, wanted in ((here + 3, here + 3), (40, 19)):
        driver = drive(plan(1), spec(max_images=1, limits=Limits(nice=asked)))
        for threads, nice, ioprio in priorities(driver):
            assert threads >= 2
            assert nice == [min(19, wanted)]
            assert ioprio == [[2, 7]]
        driver.next(WorkerRecycled)
    assert (os.getpriority(os.PRIO_PROCESS, 0), psutil.Process().ionice()) == (here, disk)


def test_a_worker_that_need_not_step_back_does_not(drive: Callable[..., Driver]) -> None:
    """With nice 0 both priorities stay; an I/O class that the service was given by somebody stays with any nice."""
    own, here = psutil.Process(), os.getpriority(os.PRIO_PROCESS, 0)
    (_, nice, _), *_ = told = priorities(drive(plan(1), spec(limits=Limits(nice=0))))
    assert nice == [here]
    assert {str(ioprio) for _, _, ioprio in told} == {str([list(map(int, own.ionice()))])}
    before = own.ionice()
    own.ionice(psutil.IOPRIO_CLASS_IDLE)
    try:
        told = priorities(drive(plan(1), spec(limits=Limits(nice=here + 1))))
    finally:
        own.ionice(before.ioclass, before.value if before.ioclass else None)
    assert {str(ioprio) for _, _, ioprio in told} == {"[[3, 0]]"}


def test_a_refused_priority_is_told_and_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sandbox forbids it the worker goes on, and says what was refused; the rest is still done."""

    def forbidden(*_arguments: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", forbidden)
    monkeypatch.setattr(limits, "_raise_oom_score", lambda: None)
    monkeypatch.setattr(psutil.Process, "ionice", denied)
    assert limits.step_back(19) == [
        "nice 19 is not allowed here: Operation not permitted",
        "the lowest I/O priority is not allowed here: Operation not permitted",
    ]


def denied(*_arguments: object) -> None:
    raise psutil.AccessDenied


def test_a_workers_words_arrive_as_lines(drive: Callable[..., Driver]) -> None:
    """What a worker writes, from Python or below it, arrives line by line with its stream."""
    driver = drive()
    driver.submit("print.jpg")
    driver.next(PhotoFinished)
    wanted = {("stdout", "to stdout"), ("stderr", "to stderr"), ("stderr", "part of a line\\xff")}
    driver.until(lambda: wanted <= {(e.stream, e.line) for e in driver.events if isinstance(e, WorkerOutput)})


def test_a_worker_is_replaced_after_its_images(drive: Callable[..., Driver]) -> None:
    """Every photo of a long run comes out although workers are replaced on the way; none dies."""
    driver = drive(to=spec(max_images=2))
    names = [f"ok-{number}.jpg" for number in range(5)]
    driver.submit(*names)
    assert {driver.next(PhotoFinished).job.key.path.decode() for _ in names} == set(names)
    assert driver.next(WorkerRecycled).why == "images"
    assert not [event for event in driver.events if isinstance(event, WorkerDied)]


@pytest.mark.parametrize(
    ("boot", "title", "remedy"),
    [
        ("style", "/weights/cel.safetensors: the digest is wrong", "pull it again"),
        ("import", "a library cannot be imported: No module named 'torch'", "install animed again"),
    ],
)
def test_a_boot_that_cannot_succeed_is_told(drive: Callable[..., Driver], boot: str, title: str, remedy: str) -> None:
    """Damaged weights and missing libraries are told as what they are, with the remedy."""
    told = drive(to=spec(arguments={"boot": boot})).next(WorkersCannotStart)
    assert told.title == title
    assert told.remedy.startswith(remedy)


@pytest.mark.parametrize(("boot", "cause"), [("kill", "SIGKILL"), ("memory", "exit:80"), ("bug", f"exit:{EXIT_ERROR}")])
def test_a_boot_that_may_succeed_later_is_tried_again(
    drive: Callable[..., Driver], tmp_path: Path, boot: str, cause: str
) -> None:
    """A boot that was killed or failed for a passing reason degrades the pool until the next one succeeds."""
    driver = drive(to=spec(arguments={"boot": boot, "mark": str(tmp_path / "mark")}))
    assert driver.next(WorkerDied).cause == cause
    assert driver.pool.degraded
    driver.next(WorkerStarted)
    assert not driver.pool.degraded


def test_a_boot_that_hangs_is_ended(drive: Callable[..., Driver], tmp_path: Path) -> None:
    """A boot has a limit of its own."""
    to = spec(arguments={"boot": "hang", "mark": str(tmp_path / "mark")}, boot_timeout=3.0)
    driver = drive(to=to)
    assert driver.next(WorkerDied).cause == "timeout"


def test_a_worker_that_ignores_everything_is_killed(drive: Callable[..., Driver]) -> None:
    """Told to stop, a hanging worker stays; kill ends it, hands its photo back, and returns."""
    driver = drive()
    driver.submit("hang.jpg")
    pid = driver.pool.workers[0].pid
    driver.pool.stop(time.monotonic())
    os.kill(pid, signal.SIGTERM)
    returned = [event for event in driver.pool.kill(time.monotonic()) if isinstance(event, PhotosReturned)]
    assert [len(event.jobs) for event in returned] == [1]
    assert driver.pool.stopped
    assert not psutil.pid_exists(pid)


def test_restarts_leak_neither_descriptors_nor_zombies(drive: Callable[..., Driver]) -> None:
    """After twenty deaths and starts the parent has the descriptors and children that it had."""
    driver = drive()
    driver.submit("ok.jpg")
    os.close(driver.next(PhotoFinished).fd or -1)
    driver.events.clear()
    driver.picked.clear()
    me = psutil.Process()
    before = (me.num_fds(), len(me.children()))
    for _ in range(20):
        driver.submit("kill.jpg", "ok.jpg")
        driver.next(WorkerDied)
        driver.until(lambda: not driver.pool.in_flight)
        while (finished := driver._find(PhotoFinished)) is not None:
            event = driver.events[finished]
            assert isinstance(event, PhotoFinished)
            os.close(event.fd or -1)
            driver.picked.add(finished)
        slot = driver.pool._slots[0]
        slot.crash_strikes = 0
    driver.until(lambda: driver.pool.free == 2)
    assert (me.num_fds(), len(me.children())) == before
    driver.events.clear()


def test_workers_start_from_the_main_thread_only() -> None:
    """The kernel ends a worker with the thread that started it, so any other thread is refused."""
    refused: list[BaseException] = []

    def start() -> None:
        try:
            spawn(spec(), 1)
        except RuntimeError as error:
            refused.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(refused[0])


PARENT = """
    import signal, sys, time
    from multiprocessing.connection import wait
    from animed.engine.events import WorkerStarted
    from animed.engine.pool import Pool
    import engine_fakes as fakes

    def main():
        pool = Pool(fakes.plan(2), fakes.spec())
        events = pool.start(time.monotonic())
        while sum(isinstance(event, WorkerStarted) for event in events) < 2:
            events += pool.poll(wait(pool.waitables(), 1), time.monotonic())
        photo = fakes.job("held.jpg")
        assert pool.submit(photo, fakes.task_maker(photo, "/nowhere"), time.monotonic(), queued=True)
        signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
        print(*[worker.pid for worker in pool.workers], flush=True)
        if "fail" in sys.argv:
            raise ValueError("the parent fails")
        time.sleep(3600)

    if __name__ == "__main__":
        main()
"""


@contextlib.contextmanager
def parent_of_two(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Run a process, in a session of its own, with two workers of which one is busy."""
    script = folder / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    with subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        try:
            assert parent.stdout is not None
            yield parent, [int(word) for word in parent.stdout.readline().split()]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    """Kill -9 of the parent ends the busy and the idle worker."""
    with parent_of_two(tmp_path) as (parent, pids):
        assert all(alive(pid) for pid in pids)
        assert len(pids) == 2
        parent.kill()
        parent.wait(PATIENCE)
        wait_for(lambda: not any(alive(pid) for pid in pids))


def test_a_parent_that_fails_is_not_held_back_by_its_workers(tmp_path: Path) -> None:
    """An unexpected error in the parent ends it and its workers, with its own exit status."""
    with parent_of_two(tmp_path, "fail") as (parent, pids):
        assert parent.wait(PATIENCE) == 1
        wait_for(lambda: not any(alive(pid) for pid in pids))


def test_what_a_terminal_sends_hits_the_parent_only(tmp_path: Path) -> None:
    """Ctrl-C and hang-up reach the whole group; workers leave the decision to the parent, and print nothing."""
    with parent_of_two(tmp_path) as (parent, pids):
        assert parent.stdout is not None
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.readline() == "interrupted\n"
        for pid in pids:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                os.kill(pid, number)
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.readline() == "interrupted\n"
        assert all(alive(pid) for pid in pids)
        parent.kill()
        assert parent.stderr is not None
        assert parent.stderr.read() == ""


def test_the_parent_side_imports_no_network() -> None:
    """A process that only holds workers loads neither the network's library nor the image library."""
    heavy = "{'torch', 'torchvision', 'PIL', 'numpy'}"
    code = f"import sys, animed.engine.pool, animed.engine.plan; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.slow
def test_the_real_network_draws_in_a_worker_that_is_limited(tmp_path: Path) -> None:
    """The real pipeline boots, draws and stages a photo within the limits and the plan of a small worker."""
    weights = HERE.parent / "weights" / "cel.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    Image.new("RGB", (96, 64), (200, 120, 40)).save(tmp_path / "photo.jpg")
    arguments = {
        "weights_files": (WeightsFile("cel", str(weights), digest, "half_pixel"),),
        "threads": 1,
        "sizes": ((64, 96),),
    }
    of = plans.make(Wishes(count=1, threads=1, max_edge=256, max_memory=1 << 30), machine.read())
    to = WorkerSpec("animed.engine.pipeline:make", arguments, environment(threads=1))
    driver = Driver(tmp_path, of, to)
    try:
        assert driver.next(WorkerStarted).precision in {"float32", "bfloat16"}
        stat = FileStat.of((tmp_path / "photo.jpg").stat())
        photo = replace(job("photo.jpg"), stat=stat, recipe=replace(RECIPE, weights_sha256=digest))
        assert driver.pool.submit(photo, task_maker(photo, str(tmp_path)), time.monotonic(), queued=False)
        finished = driver.next(PhotoFinished)
        assert isinstance(finished.outcome, Picture), driver.events
        assert (finished.outcome.width, finished.outcome.height, finished.outcome.ext) == (96, 64, ".jpg")
        assert finished.fd is not None
    finally:
        driver.end()


@pytest.mark.slow
def test_wrong_weights_stop_the_real_worker_for_good(drive: Callable[..., Driver], tmp_path: Path) -> None:
    """Weights that are not what their card says are a reason that will not go away."""
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"not weights")
    arguments = {"weights_files": (WeightsFile("bad", str(bad), "00" * 32, "half_pixel"),), "threads": 1}
    told = drive(to=WorkerSpec("animed.engine.pipeline:make", arguments)).next(WorkersCannotStart)
    assert str(bad) in told.title


GROWN = """
import sys
from animed.engine import limits, machine
blocks = [bytearray(4000) for _ in range(30_000)]
kept = blocks[::500]  # they pin the heap's top, as photos of many shapes do
del blocks
before = machine.anonymous()
limits.give_back()
sys.exit(0 if before - machine.anonymous() > 64 << 20 else 1)
"""


def test_a_grown_heap_gives_its_free_pages_back() -> None:
    """Free pages between pinned blocks go back to the kernel when they are asked for, and not before."""
    keep = {"MALLOC_TRIM_THRESHOLD_": str(4 << 30), "MALLOC_MMAP_THRESHOLD_": str(4 << 30)}
    subprocess.run([sys.executable, "-c", GROWN], check=True, env=os.environ | keep, timeout=60)
