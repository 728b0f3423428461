"""The workers together: who gets the next photo, who is replaced, who is started again and when.

Reads no clock and blocks nowhere but in `kill`: the daemon waits on `waitables` until `next_deadline`, then calls
`poll` and `tick`. Nothing is shared between workers, so the death of one touches no other.
"""

from __future__ import annotations

import errno
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from animed.engine.child import HINTS, Child, Why
from animed.engine.events import (
    UNKILLABLE,
    PhotosReturned,
    PoolEvent,
    WorkerDied,
    WorkerRecycled,
    WorkersCannotStart,
    WorkerStatus,
)
from animed.engine.slots import Slot, backoff, delay, status
from animed.engine.spawn import Process, Start, await_ends, spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from animed.engine.plan import Plan
    from animed.engine.protocol import WorkerSpec
    from animed.records import Job, Task

AGAIN_S: Final = 0.5  # after a worker's pipe took no photo: nothing else may happen that would let the loop turn


class Pool:
    """N worker processes that draw photos."""

    def __init__(self, plan: Plan, spec: WorkerSpec, *, start: Start = spawn) -> None:
        self._plan = plan
        self._spec = replace(spec, limits=replace(spec.limits, data=plan.data_limit))
        self._start = start
        self._slots = [Slot() for _ in range(plan.count)]
        self._lost: list[Process] = []  # given up, yet not ended
        self._again_at: float | None = None  # when a photo is offered again that could not be sent
        self._reserved: Child | None = None  # being emptied for a suspect
        self._number = 0
        self._stopping = False

    def start(self, now: float) -> list[PoolEvent]:
        """Start all workers."""
        for slot in self._slots:
            slot.start_at = now
        return self._start_due(now)

    def waitables(self) -> list[int]:
        """Return every descriptor to wait on: pipes, ends and outputs."""
        return [fd for child in self._children() for fd in child.waitables()]

    def poll(self, ready: Iterable[int], now: float) -> list[PoolEvent]:
        """Take in what the ready descriptors hold."""
        held = set(ready)
        return self._settle([event for child in self._children() for event in child.poll(held, now)], now)

    def tick(self, now: float) -> list[PoolEvent]:
        """Do what is due: end the silent, start the missing."""
        if self._again_at is not None and self._again_at <= now:
            self._again_at = None
            self._say(now)
        self._lost = [process for process in self._lost if process.exit_code() is None]
        return self._settle([event for child in self._children() for event in child.tick(now)], now)

    def next_deadline(self, now: float) -> float | None:
        """Return when `tick` is to be called next, not before `now`; None when nothing is due by itself."""
        dues = [child.due_at for child in self._children()] + [slot.start_at for slot in self._slots] + [self._again_at]
        return max(now, min(known)) if (known := [due for due in dues if due is not None]) else None

    @property
    def free(self) -> int:
        """Return how many photos could be submitted now."""
        return sum(child.room for child in self._children() if not self._held_back(child))

    @property
    def empty(self) -> int:
        """Return how many workers are ready and have nothing: a suspect needs one."""
        return sum(1 for child in self._children() if child.room and not child.jobs)

    @property
    def idle(self) -> bool:
        """Say that no worker has a photo."""
        return not self.in_flight

    @property
    def in_flight(self) -> tuple[Job, ...]:
        """Return the photos that are in workers."""
        return tuple(job for child in self._children() for job in child.jobs.values())

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        """Return every worker as `status` shows it."""
        return tuple(status(slot) for slot in self._slots)

    @property
    def ready(self) -> bool:
        """Say that at least one worker has been built and lives."""
        return any(child.ready for child in self._children())

    @property
    def rolled(self) -> bool:
        """Say that no worker takes photos that was made to an earlier specification."""
        return all(child.leaving or child.spec is self._spec for child in self._children())

    @property
    def degraded(self) -> bool:
        """Say that a worker could not be started and is being tried again, later each time."""
        return any(slot.boot_strikes for slot in self._slots)

    @property
    def stopped(self) -> bool:
        """Say that no worker process is left, and none will be started."""
        return self._stopping and not any(self._children())

    def silent(self, now: float) -> bool:
        """Say that a busy worker is past the limit of its silence."""
        return any(child.silent(now) for child in self._children())

    def submit(self, job: Job, make_task: Callable[[int, int], Task], now: float, *, queued: bool) -> bool:
        """Give a photo to the emptiest worker; False when none can take it now.

        `make_task(number, threads)` builds the task. A photo that is the only one there is (`queued` says that more
        wait) gets all the threads. A suspect goes to an empty worker only; while there is none, one is emptied for it.
        """
        child = self._choose(job)
        if child is None:
            return False
        threads = self._plan.threads if queued or self.in_flight else self._plan.total_threads
        task = make_task(self._number + 1, threads)
        if not child.give(task, job, now):
            self._again_at = now + AGAIN_S
            return False
        self._number = task.number
        if child is self._reserved:
            self._reserved = None
        return True

    def answer(self, number: int, *, draw: bool, now: float) -> bool:
        """Answer a PhotoLooks: the worker draws the photo, or forgets it, and then it is the caller's.

        False when no living worker has it any more: another event says, or has said, what became of it.
        """
        child = next((child for child in self._children() if number in child.jobs), None)
        if child is None:
            return False
        if not child.answer(number, draw=draw, now=now):
            self._again_at = now + AGAIN_S
        return True

    def roll(self, plan: Plan, spec: WorkerSpec, now: float) -> list[PoolEvent]:
        """Take a new plan and specification: workers are replaced one by one as they come to it."""
        self._plan = plan
        self._spec = replace(spec, limits=replace(spec.limits, data=plan.data_limit))
        self._slots += [Slot(start_at=now) for _ in range(plan.count - len(self._slots))]
        for slot in self._slots[plan.count :]:
            slot.surplus, slot.start_at = True, None
            if slot.child and not slot.child.leaving:
                slot.child.retire(now)
        return self._settle([], now)

    def stop(self, now: float) -> None:
        """Tell all workers to finish what they have and leave; none is started any more."""
        self._stopping = True
        for slot in self._slots:
            slot.start_at = None
            if slot.child and not slot.child.leaving:
                slot.child.retire(now)

    def kill(self, now: float, *, patience: float = 5.0) -> list[PoolEvent]:
        """End all workers now and wait for that, at most `patience` seconds; photos in them are handed back."""
        self.stop(now)
        children = list(self._children())
        for child in children:
            child.end(signal.SIGKILL, now)
        left = await_ends([child.process for child in children], patience)
        events = [event for child in children for event in child.poll(set(child.waitables()), now)]
        returned = tuple(job for child in children for job in child.jobs.values())
        for child in children:
            child.jobs.clear()
            child.dead = True
        self._settle([], now)
        events += [WorkerDied(process.pid, UNKILLABLE, (), HINTS[UNKILLABLE]) for process in left]
        return [*events, PhotosReturned(returned)] if returned else events

    def _say(self, now: float) -> None:
        if [child for child in self._children() if not child.say(now)]:
            self._again_at = now + AGAIN_S

    def _children(self) -> list[Child]:
        return [slot.child for slot in self._slots if slot.child]

    def _choose(self, job: Job) -> Child | None:
        """Return the emptiest worker, and of equals the one that drew this style last."""
        able = [child for child in self._children() if child.room]
        able.sort(key=lambda child: (len(child.jobs), child.style != job.recipe.style))
        if not job.alone:
            return next((child for child in able if not self._held_back(child)), None)
        if able and able[0].jobs:
            self._reserved = able[0]
        return able[0] if able and not able[0].jobs else None

    def _held_back(self, child: Child) -> bool:
        """Say whether a worker takes nothing but the suspect that it is being emptied for.

        Once it is empty it takes whatever comes first: the suspect may be gone.
        """
        return child is self._reserved and bool(child.jobs)

    def _settle(self, events: list[PoolEvent], now: float) -> list[PoolEvent]:
        """Follow up what happened: bury the dead, start the missing, replace the worn."""
        for slot in self._slots:
            if slot.child and slot.child.worked:
                slot.child.worked, slot.crash_strikes = False, 0
            if slot.child and slot.child.ready:
                slot.boot_strikes = 0
            if slot.child and slot.child.dead:
                events += self._bury(slot, slot.child, now)
        self._slots = [slot for slot in self._slots if slot.child or not slot.surplus]
        return [*events, *self._recycle(now), *self._start_due(now)]

    def _bury(self, slot: Slot, child: Child, now: float) -> list[PoolEvent]:
        events = child.obituary()
        if child.boot_failure and child.boot_failure.final:
            events.append(WorkersCannotStart(child.boot_failure.title, child.boot_failure.remedy))
        slot.child, slot.last = None, replace(child.status, memory_mb=0)
        if child.process.exit_code() is None:
            self._lost.append(child.process)
        child.process.close()
        if child is self._reserved:
            self._reserved = None
        if not (self._stopping or slot.surplus):
            slot.start_at = now + delay(slot, child)
        return events

    def _recycle(self, now: float) -> list[PoolEvent]:
        """Retire one worn worker, and only while all others are ready: they never go all at once."""
        children = self._children()
        able = [child for child in children if child.ready and not child.leaving and not child.dead]
        if self._stopping or len(able) < max(self._plan.count, len(self._slots)):
            return []
        for child in able:
            why = self._worn(child)
            if why:
                child.retire(now)
                return [WorkerRecycled(child.process.pid, why)]
        return []

    def _worn(self, child: Child) -> Why | None:
        if child.spec is not self._spec:
            return "reload"
        if child.out_of_memory:
            return "out_of_memory"
        if child.memory > self._plan.max_memory:
            return "memory"
        return "images" if 0 < child.spec.max_images <= child.images else None

    def _start_due(self, now: float) -> list[PoolEvent]:
        events: list[PoolEvent] = []
        for slot in self._slots:
            if slot.start_at is not None and slot.start_at <= now and slot.child is None:
                events += self._start_one(slot, now)
        return events

    def _start_one(self, slot: Slot, now: float) -> list[PoolEvent]:
        try:
            slot.child = Child(self._start(self._spec, self._plan.threads), self._spec, now)
        except OSError as error:
            slot.boot_strikes += 1
            slot.start_at = now + backoff(slot.boot_strikes - 1)
            name = errno.errorcode.get(error.errno or 0, "OSError")
            return [WorkerDied(0, f"start:{name}", (), f"A worker process cannot be started: {error.strerror}.")]
        slot.start_at = None
        return []
