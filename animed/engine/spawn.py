"""Start one worker process, and hold what the parent has of it: its pipe, its outputs, its end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import connection, resource_tracker
from typing import TYPE_CHECKING, Protocol

from animed.engine import worker
from animed.engine.protocol import Channel, WorkerSpec
from animed.system import REAL, System
from animed.tie import PARENTS_SIGNALS

if TYPE_CHECKING:
    import socket


class Process(Protocol):
    """What the pool needs of a started worker process."""

    pid: int
    channel: Channel
    sentinel: int  # becomes readable when the process ends
    outputs: tuple[int, int]  # descriptors of its stdout and stderr; they do not block

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit status, negative for the signal that ended it."""

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""

    def close(self) -> None:
        """Free everything that the parent has of it; it may still be running when it cannot be killed."""


Start = Callable[[WorkerSpec, int], Process]


class WorkerProcess:
    """A real worker process."""

    def __init__(
        self,
        process: multiprocessing.context.SpawnProcess,
        end: socket.socket,
        outputs: Sequence[connection.Connection],
        system: System = REAL,
    ) -> None:
        self._process = process
        self._outputs = tuple(outputs)
        self.channel = Channel(end, system)
        self.pid = process.pid or 0
        self.sentinel = process.sentinel
        self.outputs = (outputs[0].fileno(), outputs[1].fileno())

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit status, negative for the signal that ended it."""
        return self._process.exitcode

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs: until its exit status is fetched, its number cannot belong to another."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def close(self) -> None:
        """Free everything that the parent has of it."""
        self.channel.close()
        for output in self._outputs:
            output.close()
        if self._process.exitcode is not None:
            self._process.close()


def spawn(spec: WorkerSpec, threads: int) -> WorkerProcess:
    """Start a worker. Raises OSError when the system has no room for a process.

    Call it from the main thread only: the kernel ends a worker when the thread that started it ends.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("workers are started from the main thread only")
    resource_tracker.ensure_running()  # it unblocks signals when it starts, so it has to run before they are blocked
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        outputs = [_output(ours, theirs) for _ in range(2)]
        parent_end, worker_end = Channel.pair()
        ours.callback(parent_end.close)
        theirs.callback(worker_end.close)
        writers = (outputs[0][1], outputs[1][1])
        process = multiprocessing.get_context("spawn").Process(
            target=worker.main,
            args=(spec, threads),
            kwargs={"parent": os.getpid(), "end": worker_end, "outputs": writers},
            name="animed-worker",
            daemon=True,
        )
        with environment(spec.environment), blocked(PARENTS_SIGNALS):
            process.start()
        # Python waits at its exit for the children it knows, and these ignore its SIGTERM: a service that fails would
        # never end. The kernel ends them with this process.
        vars(multiprocessing.process).get("_children", set()).discard(process)
        ours.pop_all()
    return WorkerProcess(process, parent_end, [reader for reader, _ in outputs], spec.system)


def await_ends(processes: Sequence[Process], patience: float) -> list[Process]:
    """Wait at most `patience` seconds for processes that were killed; return those that still run."""
    until = time.monotonic() + patience
    running = [process for process in processes if process.exit_code() is None]
    while running and (left := until - time.monotonic()) > 0:
        connection.wait([process.sentinel for process in running], left)
        running = [process for process in running if process.exit_code() is None]
    return running


@contextlib.contextmanager
def environment(extra: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and put back what was there."""
    before = {name: os.environ.get(name) for name in extra}
    os.environ.update(extra)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def blocked(signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Hold signals back: a worker inherits that, and is not hit before it has its own dispositions."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _output(
    ours: contextlib.ExitStack, theirs: contextlib.ExitStack
) -> tuple[connection.Connection, connection.Connection]:
    reader, writer = multiprocessing.Pipe(duplex=False)
    ours.callback(reader.close)
    theirs.callback(writer.close)
    os.set_blocking(reader.fileno(), False)
    return reader, writer
