"""The daemon's parts on fakes: a disk that is a dictionary, workers that are a list, a clock that tests turn."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from animed.engine.events import PhotoFinished, PhotoLooks, WorkerDied
from animed.records import FileStat, Outcome, Picture, Staged
from animed.schedule.store import LedgerError, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.records import Fingerprint, Job, Task

STAGE_NAME: Final = "animed-test-stage"


class ListLog:
    """Keeps what is logged."""

    def __init__(self, lines: list[dict[str, Any]] | None = None, **bound: object) -> None:
        self.lines: list[dict[str, Any]] = [] if lines is None else lines
        self._bound = bound

    def bind(self, **fields: object) -> ListLog:
        """Return a log that adds these fields."""
        return ListLog(self.lines, **(self._bound | fields))

    def info(self, event: str, **fields: object) -> None:
        """Keep a line."""
        self.lines.append({"event": event, **self._bound, **fields})

    debug = warning = error = info

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the lines of these events."""
        return [line for line in self.lines if line["event"] in names]

    def names(self) -> list[str]:
        """Return the events in order."""
        return [line["event"] for line in self.lines]


class SickStore(Store):
    """A database whose disk can be full. Commits do not wait for the real disk."""

    full = False
    damaged = False

    @contextlib.contextmanager
    def write(self) -> Iterator[Any]:
        """Refuse where the disk is full or the file damaged."""
        if self.full:
            raise LedgerError("the disk is full", full=True)
        if self.damaged:
            raise LedgerError("the file is damaged")
        with super().write() as db:
            yield db

    def hurry(self) -> None:
        """Leave out what only a crash of the machine would need."""
        self._connection.execute("PRAGMA synchronous = OFF")


class FakeThread:
    """Records what an inbox asks for."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.silence = 0.0
        self.started = self.stopped = self.ended = False

    def start(self) -> None:
        """Note that it works."""
        self.started = True

    def submit(self, request: object) -> None:
        """Keep the request; what comes after the word to end is never done."""
        if not self.stopped:
            self.requests.append(request)

    def stop(self) -> None:
        """Note that it is to end."""
        self.stopped = True

    def join(self, timeout: float) -> bool:
        """Say that it has ended."""
        return True

    def silent_for(self, now: float) -> float:
        """Return the silence that the test made up."""
        return self.silence

    @property
    def moves(self) -> bool:
        """Say whether it has something to answer, or is to end; one that hangs has not."""
        return self.silence == 0 and bool(self.requests or (self.stopped and not self.ended))

    def of(self, kind: type) -> list[Any]:
        """Return the requests of one kind that wait for an answer."""
        return [request for request in self.requests if isinstance(request, kind)]


@dataclass
class FakePool:
    """Workers that draw when the test says so; each holds at most two photos, and a suspect has one for itself."""

    count: int = 2
    held: list[list[Job]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    answers: list[tuple[bytes, bool]] = field(default_factory=list)
    stopping: bool = False
    ready: bool = True
    degraded: bool = False
    rolled: bool = True
    rolls: list[tuple[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.held = [[] for _ in range(self.count)]

    @property
    def free(self) -> int:
        """Return how many photos fit."""
        return 0 if self.stopping else sum(self._room(jobs) for jobs in self.held)

    @property
    def jobs(self) -> list[Job]:
        """Return all photos that are in workers."""
        return [job for jobs in self.held for job in jobs]

    @property
    def stopped(self) -> bool:
        """Say whether all have left."""
        return self.stopping and not self.jobs

    workers = ()

    def submit(self, job: Job, make_task: Callable[[int, int], Task], now: float, *, queued: bool) -> bool:
        """Keep the request, or take the photo where there is room."""
        for jobs in sorted(self.held, key=len):
            if (not jobs) if job.alone else self._room(jobs):
                if self.stopping:
                    return False
                self.tasks.append(make_task(len(self.tasks) + 1, 1))
                jobs.append(job)
                return True
        return False

    def stop(self, now: float) -> None:
        """Note that it is to end."""
        self.stopping = True

    def roll(self, plan: Any, spec: Any, now: float) -> list[object]:
        """Note that the workers are to be replaced; the test says when they are."""
        self.rolls.append((plan, spec))
        return []

    def next_deadline(self, now: float) -> float | None:
        """Return that nothing is due."""
        return None

    def silent(self, now: float) -> bool:
        """Say that nobody is silent."""
        return False

    def tick(self, now: float) -> list[object]:
        """Return that nothing happened."""
        return []

    def looks(self, job: Job, fingerprint: Fingerprint) -> PhotoLooks:
        """Return the event that says what a photo in a worker looks like."""
        return PhotoLooks(job, next(task.number for task in self.tasks if task.path == job.key.path), fingerprint)

    def answer(self, number: int, *, draw: bool, now: float) -> bool:
        """Keep the answer; a photo that is not to be drawn leaves its worker."""
        path = self.tasks[number - 1].path
        self.answers.append((path, draw))
        found = [(jobs, job) for jobs in self.held for job in jobs if job.key.path == path]
        for jobs, job in found if not draw else ():
            jobs.remove(job)
        return bool(found)

    def finish(self, job: Job, outcome: Outcome, fd: int | None = None) -> PhotoFinished:
        """Take a photo out of its worker and return the event that says how it ended."""
        next(jobs for jobs in self.held if job in jobs).remove(job)
        return PhotoFinished(job, outcome, fd, 4711)

    def die(self, job: Job, cause: str = "SIGKILL") -> WorkerDied:
        """Let the worker of a photo die and return the event."""
        jobs = next(jobs for jobs in self.held if job in jobs)
        suspects = tuple(jobs)
        jobs.clear()
        return WorkerDied(4711, cause, suspects, "")

    def _room(self, jobs: list[Job]) -> int:
        return 0 if any(job.alone for job in jobs) else 2 - len(jobs)


class FakeNotifier:
    """A service manager that listens."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def watchdog_interval(self) -> float | None:
        """Return that no sign of life is wanted."""
        return None

    def ready(self, status: str) -> None:
        """Keep the word."""
        self.said.append("ready")

    def status(self, text: str) -> None:
        """Keep the line."""
        self.said.append(text)

    def reloading(self, now: float) -> None:
        """Keep the word."""
        self.said.append("reloading")

    def reloaded(self, status: str) -> None:
        """Keep the word."""
        self.said.append("reloaded")

    def stopping(self) -> None:
        """Keep the word."""
        self.said.append("stopping")

    def watchdog(self) -> None:
        """Keep the word."""
        self.said.append("watchdog")


_inodes = iter(range(1000, 10**9))


def stat_of(content: bytes, *, mtime_ns: int = 1) -> FileStat:
    """Return the stat of a new file with this content."""
    return FileStat(len(content), mtime_ns, mtime_ns, next(_inodes), 1, 0o100644)


def sha_of(content: bytes) -> str:
    """Return a content's digest."""
    return hashlib.sha256(content).hexdigest()


def staged_fd() -> int:
    """Return a descriptor as a worker sends it; `open_stages` counts those that are open."""
    return os.memfd_create(STAGE_NAME)


def open_stages() -> int:
    """Count the unnamed stages that this process holds open."""
    links = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sum(STAGE_NAME in link for link in links)


def picture_of(content: bytes, *, name: str | None = None, ext: str = ".jpg") -> Picture:
    """Return what a worker makes of a photo."""
    staged = Staged(1, next(_inodes), len(content) + 1, sha_of(b"picture of " + content), name)
    return Picture(staged, ext, 4, 3, 4, 3, len(content), staged.size, 0.1, 0.2, 0.3)


def copy_of(staged: Staged) -> Staged:
    """Return an unnamed copy of a picture."""
    return replace(staged, inode=next(_inodes), name=None)
