"""An inbox's I/O thread: the only thread that works on its inbox and its output, through a process of its own.

A share that hangs holds up this thread and nothing else. The thread runs requests in order, and a scan in slices
between them, so that a scan of a hundred thousand files does not hold up the placing of a picture.
"""

from __future__ import annotations

import errno
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from animed.errors import AnimedError, PlaceError
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLOW_S: Final = 2.0  # after so much silence nobody counts on this inbox to bring the next photo
SILENCE_S: Final = 30.0  # a file system that has not answered one call for so long hangs


class Request(Protocol):
    """Something to do on a file system that may block."""

    def run(self, beat: Callable[[], None], system: System) -> object:
        """Do it and return the answer; `beat` is called between system calls of a long one."""


@runtime_checkable
class Slices(Protocol):
    """A request that answers bit by bit."""

    def slices(self, system: System) -> Iterator[object]:
        """Yield the answers."""


class Runner(Protocol):
    """Where requests are done."""

    def run(self, request: Request, beat: Callable[[], None]) -> object:
        """Do a request and return its answer."""

    def slices(self, request: Slices) -> Iterator[object]:
        """Yield the answers of a request bit by bit."""

    def close(self) -> None:
        """Give back what it holds."""


class Here:
    """Does requests in the calling thread."""

    def __init__(self, system: System) -> None:
        self._system = system

    def run(self, request: Request, beat: Callable[[], None]) -> object:
        """Do it."""
        return request.run(beat, self._system)

    def slices(self, request: Slices) -> Iterator[object]:
        """Yield the answers."""
        return request.slices(self._system)

    def close(self) -> None:
        """Hold nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to; an expected error is an answer like any other."""

    inbox: str
    request: Request | Slices
    result: Any  # what the request says that it answers, or the AnimedError that it raised
    origin: object = field(default=None, compare=False)  # the thread that answers


@dataclass(frozen=True, slots=True)
class Ended:
    """The thread is over. `asked` is false when something unexpected ended it: a fault of the program."""

    inbox: str
    asked: bool
    origin: object = field(default=None, compare=False)  # the thread


class IoThread:
    """Runs requests one after another and posts the answers."""

    def __init__(
        self,
        inbox: str,
        post: Callable[[Answer | Ended], None],
        *,
        runner: Runner | None = None,
        clock: Callable[[], float] = time.monotonic,
        system: System = REAL,
    ) -> None:
        self.inbox = inbox
        self._post = post
        self._runner: Runner = Here(system) if runner is None else runner
        self._clock = clock
        self._requests: queue.SimpleQueue[Request | Slices | None] = queue.SimpleQueue()
        self._scans: list[tuple[Slices, Iterator[object]]] = []
        self._beat_at: float | None = None
        # A daemon thread: one that is stuck in a system call on a dead share must not keep the process alive.
        self._thread = threading.Thread(target=self._work, name=f"io-{inbox}", daemon=True)

    def start(self) -> None:
        """Begin to take requests."""
        self._thread.start()

    def submit(self, request: Request | Slices) -> None:
        """Queue a request; never blocks. From now on the thread owes a sign of life."""
        if self._beat_at is None:
            self._beat()
        self._requests.put(request)

    def stop(self) -> None:
        """End after what is queued; a scan under way is dropped."""
        self._requests.put(None)

    def join(self, timeout: float) -> bool:
        """Wait for the end and say whether it came; a thread that was never started has ended."""
        if self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def silent_for(self, now: float) -> float:
        """Return for how many seconds the running request has not given a sign of life; 0 when idle."""
        began = self._beat_at
        return 0.0 if began is None else max(0.0, now - began)

    def _beat(self) -> None:
        self._beat_at = self._clock()

    def _work(self) -> None:
        asked = False
        try:
            while (request := self._next()) is not None:
                if isinstance(request, Slices):
                    self._scans.append((request, self._runner.slices(request)))
                else:
                    self._run(request)
            asked = True
        finally:
            self._runner.close()
            self._post(Ended(self.inbox, asked, self))

    def _next(self) -> Request | Slices | None:
        """Return the next request; while none is waiting, go on with the scan."""
        while self._scans:
            try:
                return self._requests.get_nowait()
            except queue.Empty:
                self._go_on()
        self._beat_at = None
        return self._requests.get()

    def _go_on(self) -> None:
        scan, slices = self._scans[0]
        self._beat()
        try:
            result = next(slices)
        except StopIteration:
            self._scans.pop(0)
        except (AnimedError, OSError) as error:
            self._scans.pop(0)
            self._post(Answer(self.inbox, scan, _expected(error), self))
        else:
            self._post(Answer(self.inbox, scan, result, self))

    def _run(self, request: Request) -> None:
        self._beat()
        try:
            result = self._runner.run(request, self._beat)
        except (AnimedError, OSError) as error:
            result = _expected(error)
        self._beat_at = None
        self._post(Answer(self.inbox, request, result, self))


def _expected(error: AnimedError | OSError) -> AnimedError:
    """Return an error as an answer; a bare system error that nobody placed is a fault of the inbox."""
    if isinstance(error, AnimedError):
        return error
    return PlaceError("inbox", error.errno or errno.EIO, str(error.filename or ""), error.strerror or str(error))
