"""The worker process: decode the next photo while the network runs on this one, and report.

It is imported before the process is set up, so the network's libraries are imported inside functions only
(by the factory that the specification names).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import threading
import time
import traceback
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from animed.engine import limits, machine
from animed.engine.protocol import (
    EXIT_BOOT,
    EXIT_ERROR,
    EXIT_LEFT,
    Beat,
    BootFailed,
    Channel,
    Looks,
    Message,
    Pipeline,
    Ready,
    Result,
    Started,
    Verdict,
    WorkerSpec,
    clip,
)
from animed.engine.pulse import Pulse
from animed.errors import AnimedError, PhotoError, PlaceError, starved
from animed.records import Failure, Outcome, Picture, PlaceFault, Reason, Task
from animed.system import REAL, STARVED, System, shut

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from multiprocessing.connection import Connection

# Photos of many shapes slowly cut the heap into pieces, and it reaches further up. A worker that holds more than it did
# when it was warm, by this factor, gives its free pages back; taking them again costs one photo a tenth of a second.
GROWTH: Final = 1.02
LOADER_HEAP: Final = 56 << 20  # bytes; the C library gives a thread's arena 64 MiB at a time
MEASURE_EVERY: Final = 4  # photos between two measurements of memory: reading them walks all page tables
ROOM_S: Final = 0.1  # between two tries to send or receive while the machine has no memory for it

T = TypeVar("T")


def main(
    spec: WorkerSpec, threads: int, *, parent: int, end: socket.socket, outputs: tuple[Connection, Connection]
) -> NoReturn:
    """Be a worker until told to leave; never returns (native libraries' exit handlers are not waited for)."""
    refused = limits.settle(parent, (outputs[0].fileno(), outputs[1].fileno()), spec.limits)
    for output in outputs:
        output.close()
    try:
        status = run(spec, threads, Link(Channel(end, spec.system)), refused)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else EXIT_ERROR
    except Exception:  # noqa: BLE001  # the worker loop's boundary: whatever it was, the parent reads it on stderr
        traceback.print_exc()
        status = EXIT_ERROR
    _leave(status)


def run(spec: WorkerSpec, threads: int, link: Link, refused: tuple[str, ...] = ()) -> int:
    """Build the pipeline, say so, and work until told to stop; return the exit status."""
    began = time.monotonic()
    built = build(spec)
    if isinstance(built, BootFailed):
        link.send(built)
        return EXIT_BOOT
    loop = Loop(built, link, beat_every=min(1.0, spec.timeout / 20), system=spec.system)
    loop.start()
    link.send(Ready(built.precision, threads, time.monotonic() - began, machine.unshared(), refused))
    loop.run()
    return EXIT_LEFT


def build(spec: WorkerSpec) -> Pipeline | BootFailed:
    """Return the warm pipeline, or why there can be none; what is unexpected is raised."""
    module, _, function = spec.factory.partition(":")
    try:
        make = getattr(importlib.import_module(module), function)
        return cast("Pipeline", make(**spec.arguments))
    except ImportError as error:
        remedy = "install animed again, with all its requirements, in an environment of its own"
        return BootFailed(final=True, title=clip(f"a library cannot be imported: {error}"), remedy=remedy)
    except AnimedError as error:
        place = f"{error.path}: " if error.path else ""
        return BootFailed(final=True, title=clip(place + error.title), remedy=clip(error.remedy))
    except MemoryError:
        return BootFailed(final=False, title="there is not enough memory to load the network", remedy="fewer workers")


class Link:
    """The worker's end of the pipe. A parent that is gone ends the worker at once: nobody wants its work."""

    def __init__(self, channel: Channel, pause: Callable[[float], None] = time.sleep) -> None:
        self._channel = channel
        self._pause = pause

    def send(self, message: Message, descriptor: int | None = None) -> None:
        """Send a message, with a descriptor perhaps; wait while the machine has no room for it."""
        while True:
            try:
                self._channel.send(message, () if descriptor is None else (descriptor,))
            except (BrokenPipeError, ConnectionResetError):
                _leave(EXIT_LEFT)
            except OSError as error:
                if error.errno not in STARVED:
                    raise
                self._pause(ROOM_S)
            else:
                return

    def receive(self) -> Message:
        """Wait for a message."""
        while True:
            try:
                received = self._channel.receive()
            except BlockingIOError:
                self._pause(ROOM_S)
                continue
            if received is None:
                _leave(EXIT_LEFT)
            return received[0]


class Loop:
    """The work of one worker: a thread that loads, one photo ahead, and the main thread that does the rest."""

    def __init__(
        self,
        pipeline: Pipeline,
        link: Link,
        *,
        beat_every: float,
        clock: Callable[[], float] = time.monotonic,
        system: System = REAL,
    ) -> None:
        self._system = system
        self._pipeline = pipeline
        self._link = link
        self._settled = threading.Event()
        self._most = 0  # bytes
        self._pulse = Pulse(lambda: link.send(Beat()), every=beat_every, clock=clock)
        self._loaded: queue.Queue[tuple[Task, Any] | None] = queue.Queue(maxsize=1)
        self._early: deque[Message] = deque()  # came while the loader waited for a verdict
        self._images = 0

    def start(self) -> None:
        """Start the thread that loads, and note what this worker holds when it is warm."""
        threading.Thread(target=self._load_all, name="loader", daemon=True).start()
        self._pulse.start()
        self._settled.wait()
        self._most = int(machine.anonymous() * GROWTH)

    def run(self) -> None:
        """Work until a Stop comes, or the parent is gone."""
        while self._work_next():
            pass

    def _load_all(self) -> None:
        finished = False
        try:
            # The loader's heap spreads to about this size within a few hundred photos; so it has it from the start.
            limits.touch(LOADER_HEAP)
            self._settled.set()
            while self._load_next():
                pass
            finished = True
        finally:
            # A thread that dies alone would leave the main thread waiting for ever.
            if not finished:
                traceback.print_exc()
                _leave(EXIT_ERROR)

    def _load_next(self) -> bool:
        message = self._early.popleft() if self._early else self._link.receive()
        if not isinstance(message, Task):
            self._loaded.put(None)  # a Stop: the main thread comes to it after the photos before it
            return False
        with self._pulse.step() as effort:
            loaded = attempt(lambda: self._pipeline.load(message, effort))
        if not message.compare or isinstance(loaded, Outcome):
            self._loaded.put((message, loaded))
        else:
            self._compare(message, loaded)
        return True

    def _compare(self, task: Task, loaded: Any) -> None:
        """Tell what a photo looks like, and hand it on only if it is to be drawn.

        All of it in this thread: the network goes on with the photo before, and what is left costs it no wait.
        """
        looks = attempt(lambda: self._pipeline.fingerprint(loaded))
        if isinstance(looks, Outcome):
            self._loaded.put((task, looks))
        elif looks is None or self._is_wanted(Looks(task.number, looks)):
            self._loaded.put((task, loaded))

    def _is_wanted(self, looks: Looks) -> bool:
        """Ask the parent; what else it sends meanwhile, the next photo or a Stop, waits its turn."""
        self._link.send(looks)
        while True:
            message = self._link.receive()
            if isinstance(message, Verdict) and message.number == looks.number:
                return message.draw
            self._early.append(message)

    def _work_next(self) -> bool:
        """Do one photo; its pixels are local here, so that they are freed before the wait for the next."""
        item = self._loaded.get()
        if item is None:
            return False
        task, *held = item
        del item
        done = (held[0], None) if isinstance(held[0], Outcome) else attempt(lambda: self._draw(task, held))
        outcome, descriptor = done if isinstance(done, tuple) else (done, None)
        # Before it is measured: what one large photo took and left is no reason to replace a worker.
        if machine.anonymous() > self._most:
            limits.give_back()
        self._report(task.number, outcome, descriptor)
        return True

    def _draw(self, task: Task, held: list[Any]) -> tuple[Picture, int | None]:
        """Draw the one photo in `held`, and take it out: its pixels are not to lie beside an encoder's."""
        self._pulse.said()
        self._link.send(Started(task.number))
        drawn = self._pipeline.draw(task, held.pop(), self._pulse.beat)
        self._pulse.beat()
        with self._pulse.step() as effort:
            return self._pipeline.finish(task, drawn, effort)

    def _report(self, number: int, outcome: Outcome, descriptor: int | None) -> None:
        self._images += 1
        memory = machine.unshared() if self._images % MEASURE_EVERY == 0 else None
        self._link.send(Result(number, outcome, memory), descriptor)
        if descriptor is not None:
            shut(self._system, descriptor)


def attempt(step: Callable[[], T]) -> T | Failure | PlaceFault:
    """Do one step of a photo; what goes wrong becomes its outcome, so that it is neither lost nor stops the others."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001  # the boundary around each photo
        return fault_of(error)


def fault_of(error: Exception) -> Failure | PlaceFault:
    """Say what an error means for the photo; an unexpected one is also printed, with its traceback."""
    if isinstance(error, PhotoError):
        return Failure(error.reason, clip(error.detail))
    if isinstance(error, PlaceError):
        return PlaceFault(error.role, error.code, error.path, clip(error.detail))
    one_line = clip(" ".join(f"{type(error).__name__}: {error}".split()))
    if starved(error):
        return Failure(Reason.OUT_OF_MEMORY, one_line)
    traceback.print_exception(error)
    return Failure(f"{Reason.WORKER_CRASHED}:PYTHON", one_line)


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the parent closed its side: there is nobody left to read this
            stream.flush()
    os._exit(status)
