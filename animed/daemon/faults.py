"""What becomes of a fault: a photo's costs a try, a place's suspends the place, a dead worker's makes suspects."""

from __future__ import annotations

import errno
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from animed.daemon.active import Active, Phase
from animed.daemon.iothread import SLOW_S
from animed.engine.events import UNKILLABLE
from animed.records import VANISHED, Failure, PlaceFault, Reason
from animed.schedule.retry import GiveUp, Retry, decide

if TYPE_CHECKING:
    from animed.daemon.backlog import Backlog
    from animed.daemon.desk import Desk
    from animed.daemon.inbox import Inbox
    from animed.daemon.originals import Originals
    from animed.engine.events import WorkerDied
    from animed.errors import PlaceError


class Faults:
    """Decides between another try, patience and giving up."""

    def __init__(self, desk: Desk, backlog: Backlog, originals: Originals) -> None:
        self._desk = desk
        self._backlog = backlog
        self._originals = originals

    def failed(self, active: Active, failure: Failure, now: float) -> None:
        """Sort out a fault of one photo."""
        job = active.job
        if failure.reason == VANISHED:
            self._desk.vanished(job.key, now)
            self._desk.leave(active, VANISHED, now)
            # A share that was away for a moment brings its photos back, and no event tells of that.
            self._desk.inbox_of(job.key).hint(job.key.path, now)
            return
        policy = self._desk.policies[job.key.inbox]
        verdict = decide(failure.reason, policy, attempt=job.attempt, crashes=job.crashes, alone=job.alone)
        if isinstance(verdict, Retry):
            self._retry(active, failure, verdict, now)
        else:
            self._give_up(active, failure, verdict, now)

    def place_fault(self, active: Active, fault: PlaceFault | PlaceError, now: float) -> None:
        """Suspend the place, and let the photo wait without costing it a try."""
        self._desk.inbox_of(active.job.key).suspend(fault, now)
        self._backlog.put_back(active, now)

    def lost(self, active: Active, now: float) -> None:
        """Draw a photo again whose staged picture was taken away, which is nobody's fault that is known."""
        self._desk.reporter.note("file.retry", active.job.key, reason="stage_lost", attempt=active.job.attempt)
        self._backlog.put_back(active, now)

    def died(self, event: WorkerDied, now: float) -> None:
        """Rerun each photo of a dead worker alone; one that kills a worker alone uses up its crash attempts."""
        reason = crash_reason(event.cause)
        for job in event.suspects:
            active, inbox = self._desk.actives[job.key], self._desk.inbox_of(job.key)
            if job.key.inbox in self._desk.leaving:
                # Nobody knows whether an inbox that ends hangs: its photos are left to its successor.
                self._backlog.put_back(active, now)
            elif event.cause == UNKILLABLE and not job.alone:
                self._stuck(active, inbox, now)
            elif inbox.state == "unavailable" or inbox.thread.silent_for(now) > SLOW_S:
                # The share hung, and the worker with it: no photo is to blame for that.
                self._backlog.put_back(active, now)
            else:
                self.failed(active, Failure(reason, event.hint), now)

    def _stuck(self, active: Active, inbox: Inbox, now: float) -> None:
        """Find out whether a photo's places hang; one that keeps a worker for ever although they answer is to blame.

        It is read again before it gets another worker, and its output is probed by writing.
        """
        active.job = replace(active.job, alone=True)
        detail = "a worker hangs in a call that nothing can end; perhaps this file system does not answer"
        inbox.suspend(PlaceFault("output", errno.ETIMEDOUT, inbox.output, detail), now)
        self._backlog.put_back(active, now)

    def _retry(self, active: Active, failure: Failure, verdict: Retry, now: float) -> None:
        job = active.job
        active.phase = Phase.PLACING
        due = now + verdict.after_s
        write = partial(
            self._desk.ledger.retrying, job.key, job.stat, sha256=job.sha256, recipe=job.recipe.digest,
            style=job.recipe.style, reason=failure.reason, detail=failure.detail, attempts=verdict.attempt - 1,
            crashes=verdict.crashes, next_try=self._desk.wall() + verdict.after_s, now=self._desk.wall(),
        )  # fmt: skip

        def then() -> None:
            self._desk.reporter.note(
                "file.retry", job.key, reason=failure.reason, detail=failure.detail, attempt=job.attempt,
                after_s=round(verdict.after_s, 1), alone=verdict.alone,
            )  # fmt: skip
            self._backlog.retries.add(verdict.job(job), due)
            self._desk.leave(active, "retry", now)

        # The photo stays on its way until its counters are safe: a newer version of it must not overtake them.
        self._desk.journal.commit(write, then, now)

    def _give_up(self, active: Active, failure: Failure, verdict: GiveUp, now: float) -> None:
        """Record the photo as failed, and put it where failed photos go."""
        job = active.job
        active.phase = Phase.PLACING
        pending = self._originals.after_failure(active, failure, verdict.attempts)
        write = partial(
            self._desk.ledger.fail, job.key, job.stat, sha256=job.sha256, recipe=job.recipe.digest,
            style=job.recipe.style, reason=failure.reason, detail=failure.detail, attempts=verdict.attempts,
            crashes=verdict.crashes, now=self._desk.wall(), original_pending=pending,
        )  # fmt: skip

        def then() -> None:
            self._desk.reporter.failed(active, failure.reason, failure.detail, now)
            self._desk.leave(active, "failed", now)
            if pending is not None:
                self._originals.put_away(job.key)

        self._desk.journal.commit(write, then, now)


def crash_reason(cause: str) -> str:
    """Return the reason of a photo whose worker ended like this."""
    return Reason.TIMEOUT if cause in {"timeout", UNKILLABLE} else f"{Reason.WORKER_CRASHED}:{cause}"
