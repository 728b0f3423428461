"""A pipeline without a network, processes without a system, and a loop that drives a pool: for tests of the engine.

Worker processes import this module by name, so it stays as small as the pipeline's own parent side.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time
from multiprocessing import connection
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import psutil

from animed.engine import staging
from animed.engine.limits import OOM_SCORE
from animed.engine.plan import Plan
from animed.engine.pool import Pool
from animed.engine.protocol import Channel, Message, Ready, Result, WorkerSpec
from animed.errors import PhotoError, PlaceError, StyleError
from animed.records import FileStat, Fingerprint, Job, PhotoKey, Picture, Recipe, Skip, Stage, Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from animed.engine.events import PoolEvent
    from animed.engine.protocol import Life

E = TypeVar("E")
PATIENCE = 60.0  # seconds; only a failing test waits that long
STAT = FileStat(5, 1_600_000_000_123_456_789, 0, 1, 1, 0o100644)
RECIPE = Recipe("cel", "00", "half_pixel", 1.0, 1024, "same", 92, exif=True, gps=True)


class Unheard:
    """The signs of life of a step that nobody listens to."""

    def beat(self) -> None:
        """Hear nothing."""

    def announce(self, pixels: int) -> None:
        """Look after nothing."""


class FakePipeline:
    """Do what the photo's name says: `crash-7.jpg` calls `do_crash`."""

    precision = "fp32"

    def __init__(self) -> None:
        self._loaded: set[str] = set()
        self._change = threading.Condition()

    def load(self, task: Task, life: Life) -> Any:
        """Refuse what is refused while loading, and remember what was loaded."""
        word = word_of(task.path)
        if word == "animated":
            return Skip("animated")
        if word == "broken":
            raise PhotoError("truncated", "the file ends early")
        if word == "loaderexit":
            sys.exit(5)
        with self._change:
            self._loaded.add(os.fsdecode(task.path))
            self._change.notify_all()
        return word

    def fingerprint(self, loaded: Any) -> Fingerprint | None:
        """Say nothing of what photos look like."""
        return None

    def draw(self, task: Task, loaded: Any, beat: Callable[[], None]) -> Any:
        """Act."""
        action = getattr(self, f"do_{loaded}", None)
        if action is not None:
            action(task, beat)
        return loaded

    def finish(self, task: Task, drawn: Any, life: Life) -> tuple[Picture, int | None]:
        """Stage a few bytes that tell about the worker."""
        if drawn == "full":
            raise PlaceError("output", 28, task.stage.folder, "no space left")
        told = f"{drawn} threads={task.threads} nice={os.getpriority(os.PRIO_PROCESS, 0)} env={os.environ.get('PROBE')}"
        staged, fd = staging.write(told.encode(), task.stage, task.stat.mtime_ns)
        return Picture(staged, ".jpg", 4, 3, 4, 3, 5, staged.size, 0.0, 0.0, 0.0), fd

    def do_priorities(self, task: Task, beat: Callable[[], None]) -> NoReturn:
        """Fail with the priorities of every thread of this worker."""
        threads = [int(name) for name in os.listdir("/proc/self/task")]
        nice = {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}
        disk = {tuple(map(int, psutil.Process(thread).ionice())) for thread in threads}
        raise PhotoError("unreadable", json.dumps([len(threads), sorted(nice), sorted(disk)]))

    def do_kill(self, task: Task, beat: Callable[[], None]) -> None:
        """Die as from the OOM killer."""
        os.kill(os.getpid(), signal.SIGKILL)

    def do_segv(self, task: Task, beat: Callable[[], None]) -> None:
        """Crash in native code."""
        ctypes.string_at(0)

    def do_exit(self, task: Task, beat: Callable[[], None]) -> NoReturn:
        """Leave without a word."""
        sys.exit(3)

    def do_hang(self, task: Task, beat: Callable[[], None]) -> None:
        """Never come back."""
        time.sleep(3600)

    def do_held(self, task: Task, beat: Callable[[], None]) -> None:
        """Wait until a file appears beside the photo; show life meanwhile."""
        while not os.path.exists(os.path.join(task.root, "go")):
            beat()
            time.sleep(0.01)

    def do_pair(self, task: Task, beat: Callable[[], None]) -> None:
        """Wait until the next photo is loaded: it only ends when loading overlaps drawing."""
        with self._change:
            if not self._change.wait_for(lambda: "next.jpg" in self._loaded, PATIENCE):
                raise RuntimeError("the next photo was not loaded meanwhile")

    def do_memory(self, task: Task, beat: Callable[[], None]) -> NoReturn:
        """Ask for too much."""
        raise MemoryError("1 TiB")

    def do_native(self, task: Task, beat: Callable[[], None]) -> NoReturn:
        """Ask for too much as native libraries say it."""
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    def do_bug(self, task: Task, beat: Callable[[], None]) -> NoReturn:
        """Fail as nobody expected."""
        raise ValueError("nobody\nexpected this")

    def do_print(self, task: Task, beat: Callable[[], None]) -> None:
        """Write to both outputs, from Python and below it."""
        print("to stdout")  # noqa: T201  # the output is what is tested
        print("to stderr", file=sys.stderr)  # noqa: T201  # the same
        os.write(2, b"part of ")
        os.write(2, b"a line\xff\n")

    def do_often(self, task: Task, beat: Callable[[], None]) -> None:
        """Call the beat twenty times."""
        for _ in range(20):
            beat()

    def do_limits(self, task: Task, beat: Callable[[], None]) -> NoReturn:
        """Tell the limits of this process."""
        names = ("core", "fsize", "nofile", "data")
        found: dict[str, Any] = {n: resource.getrlimit(getattr(resource, f"RLIMIT_{n.upper()}"))[0] for n in names}
        with open("/proc/self/oom_score_adj", encoding="ascii") as file:
            found["oom"] = int(file.read()) >= OOM_SCORE
        raise PhotoError("unsupported:limits", json.dumps(found))


def make(boot: str = "", mark: str = "") -> FakePipeline:
    """Be the factory. `boot` says how to fail; `mark` is a file that makes it fail only until it exists."""
    if boot and not (mark and os.path.exists(mark)):
        if mark:
            os.close(os.open(mark, os.O_CREAT | os.O_WRONLY))
        _fail(boot)
    return FakePipeline()


def _fail(boot: str) -> None:
    if boot == "style":
        raise StyleError("the digest is wrong", remedy="pull it again", path="/weights/cel.safetensors")
    if boot == "import":
        raise ModuleNotFoundError("No module named 'torch'")
    if boot == "memory":
        raise MemoryError
    if boot == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if boot == "bug":
        raise ValueError("a bug in boot")
    time.sleep(3600)


def word_of(path: bytes) -> str:
    """Return the word that a photo's name begins with."""
    return os.fsdecode(path).split(".")[0].split("-")[0]


def job(name: str = "ok.jpg", *, alone: bool = False, style: str = "cel") -> Job:
    """Return a photo to draw."""
    recipe = RECIPE if style == "cel" else Recipe(style, "00", "half_pixel", 1.0, 1024, "same", 92, exif=True, gps=True)
    return Job(PhotoKey("phone", name.encode()), STAT, recipe, 0.0, alone=alone)


def task_maker(photo: Job, folder: str = "/nowhere") -> Callable[[int, int], Task]:
    """Return the function that a pool builds the photo's task with."""
    stage = Stage(folder, ".syncthing.animed-test-", None, keep_mtime=False)

    def build(number: int, threads: int) -> Task:
        return Task(number, folder, photo.key.path, photo.stat, photo.recipe, 10**6, "first", stage, threads)

    return build


def plan(count: int = 1, *, threads: int = 1, max_memory: int = 1 << 40) -> Plan:
    """Return a plan."""
    return Plan(count, threads, count * threads, max_memory)


def spec(**changes: Any) -> WorkerSpec:
    """Return the specification of workers with the fake pipeline."""
    return WorkerSpec("engine_fakes:make", **changes)


class Driver:
    """The daemon's loop around a pool of real processes."""

    def __init__(self, folder: Path, of: Plan, to: WorkerSpec) -> None:
        self.folder = folder
        self.pool = Pool(of, to)
        self.events: list[PoolEvent] = self.pool.start(time.monotonic())
        self.picked: set[int] = set()

    def turn(self) -> None:
        """Wait for something to happen, a moment at most, and take it in."""
        now = time.monotonic()
        deadline = self.pool.next_deadline(now)
        patience = 0.2 if deadline is None else min(0.2, deadline - now)
        ready = connection.wait(self.pool.waitables(), patience)
        self.events += self.pool.poll([fd for fd in ready if isinstance(fd, int)], time.monotonic())
        self.events += self.pool.tick(time.monotonic())

    def until(self, condition: Callable[[], Any]) -> None:
        """Turn until a condition holds."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"it did not happen: {self.events}"
            self.turn()

    def next(self, kind: type[E]) -> E:
        """Turn until an event of a kind has come that was not taken before, and take it."""
        self.until(lambda: self._find(kind) is not None)
        place = self._find(kind)
        assert place is not None
        self.picked.add(place)
        found = self.events[place]
        assert isinstance(found, kind)
        return found

    def submit(self, *names: str, alone: bool = False, queued: bool = True) -> None:
        """Give photos to the pool, as soon as it takes them."""
        for name in names:
            photo = job(name, alone=alone)
            make_task = task_maker(photo, str(self.folder))
            self.until(lambda p=photo, m=make_task: self.pool.submit(p, m, time.monotonic(), queued=queued))  # type: ignore[misc]  # defaults bind the loop's values

    def end(self) -> None:
        """End everything, and close what was delivered."""
        self.events += self.pool.kill(time.monotonic())
        for event in self.events:
            fd = getattr(event, "fd", None)
            if fd is not None:
                os.close(fd)
        self.events = []

    def _find(self, kind: type) -> int | None:
        return next((i for i, e in enumerate(self.events) if isinstance(e, kind) and i not in self.picked), None)


class FakeProcess:
    """A worker process that the test plays."""

    def __init__(self, pid: int) -> None:
        end, other = Channel.pair()
        other.settimeout(0)
        self.pid = pid
        self.channel = Channel(end)
        self.worker = Channel(other)
        self.sentinel, self._alive = os.pipe()
        out, self._out = os.pipe()
        err, self._err = os.pipe()
        self.outputs = (out, err)
        for fd in self.outputs:
            os.set_blocking(fd, False)
        self.code: int | None = None
        self.signals: list[int] = []
        self.closed = False

    def exit_code(self) -> int | None:
        """Return what `die` said."""
        return self.code

    def signal(self, number: int) -> None:
        """Remember a signal."""
        self.signals.append(number)

    def close(self) -> None:
        """Free all descriptors."""
        if not self.closed:
            self.closed = True
            self.channel.close()
            self.worker.close()
            for fd in (self.sentinel, self._alive, *self.outputs, self._out, self._err):
                os.close(fd)

    def say(self, message: Message, *descriptors: int) -> None:
        """Send a message as the worker."""
        self.worker.send(message, descriptors)

    def told(self) -> list[Message]:
        """Return what the parent sent."""
        messages: list[Message] = []
        while True:
            try:
                received = self.worker.receive()
            except BlockingIOError:
                return messages
            assert received is not None
            messages.append(received[0])

    def write(self, text: bytes) -> None:
        """Write to the worker's stderr."""
        os.write(self._err, text)

    def die(self, code: int) -> None:
        """End with an exit status, negative for a signal."""
        self.code = code


class Workshop:
    """Start fake processes, and remember them."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        self.specs: list[WorkerSpec] = []
        self.errors: list[OSError] = []

    def __call__(self, wanted: WorkerSpec, threads: int) -> FakeProcess:
        """Be the pool's way to start a worker."""
        if self.errors:
            raise self.errors.pop()
        self.specs.append(wanted)
        process = FakeProcess(100 + len(self.started))
        self.started.append(process)
        return process

    def close(self) -> None:
        """Free what is left."""
        for process in self.started:
            process.close()


READY = Ready("fp32", 1, 0.5, 50 << 20)


def result(number: int, memory: int | None = None) -> Result:
    """Return the result of a photo that policy leaves out: the smallest there is."""
    return Result(number, Skip("animated"), memory)
