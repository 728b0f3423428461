"""One worker as its parent sees it: what it was given, what it said, when its patience is over. Reads no clock."""

from __future__ import annotations

import errno
import signal
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from animed.engine.events import (
    UNKILLABLE,
    PhotoFinished,
    PhotoLooks,
    PoolEvent,
    WorkerDied,
    WorkerOutput,
    WorkerStarted,
    WorkerState,
    WorkerStatus,
    WorkerTimeout,
)
from animed.engine.output import Output
from animed.engine.protocol import BootFailed, Looks, Message, Ready, Result, Stop, Verdict, WorkerSpec
from animed.records import Failure, Job, Outcome, Picture, PlaceFault, Reason, Task
from animed.system import shut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.engine.spawn import Process

AHEAD: Final = 2  # photos in one worker: the one it draws and the one it decodes
LEAVE: Final = 10.0  # seconds for a worker that has nothing left to do to leave
LAST_WORDS: Final = 2.0  # seconds between SIGABRT (the worker prints where it stands) and SIGKILL
GIVE_UP: Final = 10.0  # seconds after SIGKILL: the kernel holds it, perhaps on a share that hangs
MIB: Final = 1 << 20

HINTS: Final = {
    "SIGKILL": "Perhaps out of memory?",
    "SIGILL": "This processor may lack an instruction that the libraries were built for.",
    "SIGSYS": "A sandbox forbids a system call that the worker needs.",
    UNKILLABLE: "The kernel does not let go of it; perhaps a share hangs.",
    "SIGXCPU": "A limit on processor time ended it.",
}

Why = Literal["images", "memory", "out_of_memory", "reload"]


class Child:
    """One life of one worker process."""

    def __init__(self, process: Process, spec: WorkerSpec, now: float) -> None:
        self.process = process
        self.spec = spec
        self.jobs: dict[int, Job] = {}
        self.images = 0
        self.memory = 0  # bytes
        self.style: str | None = None
        self.ready = False
        self.leaving = False  # it was told to finish what it has and leave
        self.dead = False  # it has ended, or was given up
        self.worked = False  # it finished a photo since it was last asked
        self.out_of_memory = False
        self.boot_failure: BootFailed | None = None
        self._outputs = (Output(process.outputs[0], "stdout"), Output(process.outputs[1], "stderr"))
        self._open = True  # its end of the pipe
        self._unsaid: deque[Verdict] = deque()  # the machine had no room for them yet
        self._heard_at = now
        self._signals: list[tuple[signal.Signals, float]] = []  # what was sent to end it, and when
        self._cause = ""  # why this side ended it

    @property
    def state(self) -> WorkerState:
        """Return what the worker is doing."""
        if self.dead:
            return "dead"
        if not self.ready:
            return "starting"
        return "busy" if self.jobs else "idle"

    @property
    def status(self) -> WorkerStatus:
        """Return the worker as `status` shows it."""
        return WorkerStatus(self.process.pid, self.state, self.style, self.images, self.memory // MIB)

    @property
    def room(self) -> int:
        """Return how many photos it can be given now; nothing joins a suspect."""
        usable = self.ready and self._open and not (self.dead or self.leaving or self._signals)
        suspect = any(job.alone for job in self.jobs.values())
        return AHEAD - len(self.jobs) if usable and not suspect else 0

    @property
    def due_at(self) -> float | None:
        """Return when patience with the worker is over; None when nothing is expected of it."""
        if self._signals:
            sent, at = self._signals[-1]
            return at + (GIVE_UP if sent == signal.SIGKILL else LAST_WORDS)
        if not self._open:
            return self._heard_at + LEAVE
        if not self.ready:
            return self._heard_at + self.spec.boot_timeout
        if self.jobs:
            return self._heard_at + self.spec.timeout
        return self._heard_at + LEAVE if self.leaving else None

    def waitables(self) -> list[int]:
        """Return the descriptors to wait on."""
        open_outputs = [output.fd for output in self._outputs if output.open]
        return [self.process.sentinel, *([self.process.channel.fileno()] if self._open else []), *open_outputs]

    def silent(self, now: float) -> bool:
        """Say whether it has work and has been silent for longer than it may."""
        return bool(self.jobs) and now - self._heard_at >= self.spec.timeout

    def give(self, task: Task, job: Job, now: float) -> bool:
        """Hand a photo over; False when the worker cannot take it."""
        try:
            self.process.channel.send(task)
        except OSError:
            # It is dying, its pipe is full, or the machine has no memory for the message: later, or another one.
            return False
        if not self.jobs:
            self._heard_at = now
        self.jobs[task.number] = job
        self.style = job.recipe.style
        return True

    def answer(self, number: int, *, draw: bool, now: float) -> bool:
        """Say whether a photo is to be drawn; one that is not is in this worker no longer. As `say`."""
        self._unsaid.append(Verdict(number, draw))
        if not draw:
            del self.jobs[number]
        return self.say(now)

    def say(self, now: float) -> bool:
        """Send the answers that wait; False when the machine has no room for them now."""
        while self._unsaid:
            try:
                self.process.channel.send(self._unsaid[0])
            except (BrokenPipeError, ConnectionResetError):
                self._unsaid.clear()  # it is dying: its end will tell
                return True
            except OSError:
                self._heard_at = now  # it waits for this side, which is no silence of its own
                return False
            self._unsaid.popleft()
        return True

    def retire(self, now: float) -> None:
        """Tell it to finish what it has and leave; one that is not ready yet has nothing to finish."""
        self.leaving = True
        if not self.jobs:
            self._heard_at = now
        if not self.ready:
            self.end(signal.SIGKILL, now)
            return
        try:
            self.process.channel.send(Stop())
        except OSError:
            # It is dying or hangs: its end or the limits on its silence will tell.
            return

    def end(self, number: signal.Signals, now: float) -> None:
        """End it by a signal."""
        self._signals.append((number, now))
        self.process.signal(number)

    def poll(self, ready: set[int], now: float) -> list[PoolEvent]:
        """Take in what the ready descriptors hold."""
        events: list[PoolEvent] = []
        for output in self._outputs:
            if output.fd in ready:
                events += self._said(output, output.read(now))
        if self._open and self.process.channel.fileno() in ready:
            events += self._listen(now)
        if self.process.exit_code() is not None:
            events += self._last_words(now)
        return events

    def tick(self, now: float) -> list[PoolEvent]:
        """End a worker whose time is over: SIGABRT, then SIGKILL, then it is given up."""
        if not self._overdue(now):
            return []
        events = self.poll(set(self.waitables()), now)  # what it said may lie unread: then it was not silent
        return events + self._escalate(now) if self._overdue(now) else events

    def obituary(self) -> list[PoolEvent]:
        """Say how it died, unless it left as it was told to; the photos that were in it are suspects."""
        code = self.process.exit_code()
        if not self.jobs and self.leaving and not self._cause:
            return []
        cause = self._cause or _cause(code)
        hint = self.boot_failure.title if self.boot_failure else HINTS.get(cause, "")
        if not self.ready and not hint:
            hint = "It ended before it was ready."
        return [WorkerDied(self.process.pid, cause, tuple(self.jobs.values()), hint)]

    def _overdue(self, now: float) -> bool:
        due = self.due_at
        return not self.dead and due is not None and now >= due

    def _escalate(self, now: float) -> list[PoolEvent]:
        if not self._signals:
            self._cause = "timeout" if self._open else "closed its pipe"
            silent = now - self._heard_at
            self.end(signal.SIGABRT, now)
            return [WorkerTimeout(self.process.pid, silent)]
        if self._signals[-1][0] != signal.SIGKILL:
            self.end(signal.SIGKILL, now)
            return []
        self._cause = UNKILLABLE
        self.dead = True
        return []

    def _last_words(self, now: float) -> list[PoolEvent]:
        """Take in what an ended worker left in its pipes: a result that arrived counts."""
        events = list(self._listen(now)) if self._open else []
        for output in self._outputs:
            events += self._said(output, output.read(now))
            if output.open:  # something that it started may hold the pipe: nobody waits for that
                events += self._said(output, output.finish())
        self.dead = True
        return events

    def _listen(self, now: float) -> Iterator[PoolEvent]:
        while self._open:
            try:
                received = self.process.channel.receive()
            except BlockingIOError:
                return
            self._heard_at = now
            if received is None:
                self._open = False
                return
            yield from self._understand(*received)

    def _understand(self, message: Message, fd: int | None) -> Iterator[PoolEvent]:
        if isinstance(message, Result) and message.number in self.jobs:
            yield self._finished(message, fd)
            return
        if fd is not None:
            shut(self.spec.system, fd)
        if isinstance(message, Looks) and message.number in self.jobs:
            yield PhotoLooks(self.jobs[message.number], message.number, message.fingerprint)
        elif isinstance(message, Ready):
            self.ready, self.memory = True, message.memory
            yield WorkerStarted(self.process.pid, message.precision, message.boot_s, message.refused)
        elif isinstance(message, BootFailed):
            self.boot_failure = message

    def _finished(self, message: Result, fd: int | None) -> PhotoFinished:
        self.images += 1
        self.worked = True
        self.memory = self.memory if message.memory is None else message.memory
        outcome = _whole(message.outcome, fd)
        if isinstance(outcome, Failure) and outcome.reason == Reason.OUT_OF_MEMORY:
            self.out_of_memory = True
        return PhotoFinished(self.jobs.pop(message.number), outcome, fd, self.process.pid)

    def _said(self, output: Output, lines: list[str]) -> list[PoolEvent]:
        return [WorkerOutput(self.process.pid, output.stream, line) for line in lines]


def _whole(outcome: Outcome, fd: int | None) -> Outcome:
    """Return the outcome; the kernel drops a descriptor when this process has no room for it."""
    if fd is None and isinstance(outcome, Picture) and outcome.staged.name is None:
        return PlaceFault("output", errno.EMFILE, "", "the picture's descriptor was lost: too many open files")
    return outcome


def _cause(code: int | None) -> str:
    if code is None:
        return UNKILLABLE
    if code >= 0:
        return f"exit:{code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"SIG{-code}"  # a real-time signal has no name
