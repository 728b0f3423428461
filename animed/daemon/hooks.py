"""Hooks: programs of the user's that are started after outcomes. They are told what happened, and change nothing.

A hook is started at most once for each outcome, after the picture is durable and the outcome recorded; kill -9 may lose
a start, never repeat one. MOST run at once and QUEUE wait, in the order of the outcomes; what comes beyond that is
dropped, and the log says so. The loop waits for none of them: it starts them, reads what they print, and ends those
that take too long, with all that they started.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from animed.daemon import hookprocess
from animed.daemon.hookcall import call_for_batch, call_for_photo, environment
from animed.daemon.hookstart import CANNOT_RUN, NOT_FOUND
from animed.engine.output import Output

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from animed.config import Config
    from animed.daemon.hookcall import Call
    from animed.daemon.hookprocess import Process, Start
    from animed.daemon.outcomes import BatchEnded, PhotoEnded
    from animed.records import PhotoKey

MOST: Final = 2  # at once
QUEUE: Final = 1000  # outcomes that wait for a hook
GRACE_S: Final = 2.0  # between SIGTERM and SIGKILL
LAST_S: Final = 2.0  # for killed ones to be gone, when the service ends
LOOK_S: Final = 0.2  # between two looks for the end of a hook, where the kernel does not tell


@dataclass(slots=True, eq=False)
class _Running:
    """A hook under way."""

    call: Call
    process: Process
    began_at: float
    due: float | None  # when the next signal is sent; None after the last
    timeout: float  # seconds that it had from its start; a reload may give others more or less
    cause: str = ""  # why it was ended, if it was
    outputs: list[Output] = field(default_factory=list)

    @classmethod
    def of(cls, call: Call, process: Process, now: float, *, due: float, timeout: float) -> _Running:
        outputs = [Output(process.outputs[0], "stdout"), Output(process.outputs[1], "stderr")]
        return cls(call, process, now, due, timeout, outputs=outputs)


class Hooks:
    """Starts hooks, at most MOST at once, and sees them to their end. Only the main thread uses it."""

    def __init__(self, log: FilteringBoundLogger, config: Config, *, start: Start = hookprocess.start) -> None:
        self._log = log
        self._start_process = start
        self._queue: deque[Call] = deque()
        self._running: list[_Running] = []
        self._stop_by: float | None = None  # the service is stopping: nothing waits any more
        self._closed = False
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Take a new configuration: it holds for outcomes from now on, and its timeout for hooks that start."""
        self._hooks = config.hooks
        self._nice = config.workers.nice
        self._source = config.source

    # What is heard of.

    def photo_ended(self, ended: PhotoEnded) -> None:
        """Queue what is to be started after this outcome."""
        self._queue_call(call_for_photo(ended, self._hooks))

    def photo_forgotten(self, key: PhotoKey) -> None:
        """Do nothing: no hook is about that."""

    def batch_ended(self, ended: BatchEnded) -> None:
        """Queue what is to be started after this batch."""
        self._queue_call(call_for_batch(ended, self._hooks))

    def _queue_call(self, call: Call | None) -> None:
        if call is None:
            return
        stopping = self._closed or self._stop_by is not None
        room = MOST - len(self._running) if stopping else QUEUE
        if self._closed or len(self._queue) >= room:
            self._drop(call, "the service stops" if stopping else f"{QUEUE} are waiting already")
        else:
            self._queue.append(call)

    def _drop(self, call: Call, why: str) -> None:
        self._log.warning("hook.dropped", hook=call.event, **call.about, detail=f"it is not started: {why}")

    # What the loop asks and does.

    @property
    def busy(self) -> bool:
        """Say whether a hook runs or waits."""
        return bool(self._running or self._queue)

    @property
    def running(self) -> bool:
        """Say whether a hook runs."""
        return bool(self._running)

    def waitables(self) -> list[int]:
        """Return the descriptors that become readable when a hook has something for `poll`."""
        open_outputs = [output.fd for each in self._running for output in each.outputs if output.open]
        return open_outputs + [s for each in self._running if (s := each.process.sentinel) is not None]

    def next_deadline(self, now: float) -> float | None:
        """Return when `tick` is to be called next."""
        dues = [each.due for each in self._running]
        dues += [now + LOOK_S for each in self._running if each.process.sentinel is None]
        dues += [now] if self._queue and len(self._running) < MOST else []
        return min((due for due in dues if due is not None), default=None)

    def poll(self, ready: frozenset[int], now: float) -> None:
        """Log what hooks print."""
        for each in self._running:
            for output in each.outputs:
                if output.fd in ready:
                    self._tell_output(each, output.read(now), output.stream)

    def tick(self, now: float) -> None:
        """See hooks to their end, end those that are late, start those that wait."""
        for each in list(self._running):
            if each.process.has_ended():
                self._finish(each, each.process.end(LAST_S), now)
            elif each.due is not None and now >= each.due:
                self._signal(each, now)
        while self._queue and len(self._running) < MOST:
            self._start(self._queue.popleft(), now)

    def drain(self, stop_by: float, now: float) -> None:
        """Begin to stop: what waits is dropped, what runs has until shortly before `stop_by`."""
        self._stop_by = stop_by
        while self._queue:
            self._drop(self._queue.popleft(), "the service stops")
        for each in self._running:
            if each.due is not None:
                each.due = min(each.due, self._due(now))

    def close(self, now: float) -> None:
        """End every hook at once; what comes later is dropped."""
        self._closed = True
        while self._queue:
            self._drop(self._queue.popleft(), "the service stops")
        for each in self._running:
            each.cause = each.cause or "stop"
            each.process.signal(signal.SIGKILL)
        for each in list(self._running):
            self._finish(each, each.process.end(LAST_S), now)

    # One hook.

    def _start(self, call: Call, now: float) -> None:
        environ = environment(os.environb, self._source, call)
        try:
            process = self._start_process(call.command, environ, self._nice)
        except OSError as error:
            why = "its arguments are too long" if error.errno == errno.E2BIG else str(error.strerror)
            self._failed(call, "not_started", why)
            return
        due, timeout = self._due(now), self._hooks.timeout
        self._running.append(_Running.of(call, process, now, due=due, timeout=timeout))

    def _due(self, now: float) -> float:
        """Return when a hook that starts now is told to end."""
        latest = now + self._hooks.timeout
        return latest if self._stop_by is None else min(latest, max(now, self._stop_by - GRACE_S))

    def _signal(self, each: _Running, now: float) -> None:
        """Ask the hook to end, then make it."""
        if each.cause:
            each.process.signal(signal.SIGKILL)
            each.due = None
            return
        each.cause = "timeout" if now - each.began_at >= each.timeout else "stop"
        each.process.signal(signal.SIGTERM)
        each.due = now + GRACE_S

    def _finish(self, each: _Running, code: int | None, now: float) -> None:
        for output in each.outputs:
            lines = output.read(now)
            self._tell_output(each, lines + output.finish(), output.stream)
        each.process.close()
        self._running.remove(each)
        if code == 0 and not each.cause:
            self._log.debug("hook.done", hook=each.call.event, **each.call.about, seconds=round(now - each.began_at, 3))
        else:
            self._failed(each.call, each.cause or _cause(code), self._advice(each, code))

    def _failed(self, call: Call, cause: str, detail: str) -> None:
        program = os.fsdecode(call.command[0])
        self._log.warning("hook.failed", hook=call.event, **call.about, cause=cause, program=program, detail=detail)

    def _advice(self, each: _Running, code: int | None) -> str:
        if each.cause == "timeout":
            return f"it was ended after hooks.timeout ({each.timeout:g} s): make it quicker, or raise that"
        if each.cause == "stop":
            return "it was ended because the service stops; workers.stop_timeout bounds how long it is waited for"
        if code in {CANNOT_RUN, NOT_FOUND}:
            return "it could not be started: `animed check` and the hook.output before this line say why"
        return "what it printed stands in the hook.output before this line; the photo is not affected"

    def _tell_output(self, each: _Running, lines: list[str], stream: str) -> None:
        for line in lines:
            self._log.info("hook.output", hook=each.call.event, pid=each.process.pid, stream=stream, line=line)


def _cause(code: int | None) -> str:
    """Return a word for how a hook ended."""
    if code in {None, CANNOT_RUN, NOT_FOUND}:
        return "not_ended" if code is None else "not_started"
    try:
        return signal.Signals(-code).name if code < 0 else f"exit:{code}"
    except ValueError:
        return f"signal:{-code}"  # a real-time one, which has no name
