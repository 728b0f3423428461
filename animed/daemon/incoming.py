"""What comes in to the main loop from other threads and processes, handed to whoever asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed.daemon.iothread import Answer, Ended
from animed.daemon.looking import Digest
from animed.daemon.noting import FindNotes, RemoveNote, WriteNote
from animed.daemon.putting import Discard, Place, PutAway, Resolve, StageCopy
from animed.daemon.validation import Validated
from animed.engine import events
from animed.errors import WorkersError

if TYPE_CHECKING:
    from animed.daemon.parts import Parts
    from animed.engine.events import PoolEvent

MOST_BOOTS: Final = 3  # deaths of starting workers that end a single pass; a service tries for ever


class Incoming:
    """Routes answers, hints and pool events. Only the main thread calls it."""

    def __init__(self, parts: Parts, *, once: bool) -> None:
        self._parts = parts
        self._once = once
        self._boots = 0  # workers that died in a row while none was ready

    def posts(self, now: float) -> None:
        """Take what the I/O threads and the watches have posted."""
        for post in self._parts.mailbox.drain():
            if isinstance(post, Answer):
                self.answered(post, now)
            elif isinstance(post, Validated):
                self.pool_events(self._parts.reloader.validated(post, now), now)
            elif isinstance(post, Ended):
                if not post.asked:
                    raise RuntimeError(f"the I/O thread of inbox {post.inbox} has died")
                self._parts.reloader.turnover.ended(post.origin)
            else:
                name, hint = post
                if self._parts.desk.takes(name):
                    self._parts.desk.inboxes[name].hinted(hint, self._parts.arrivals, now)

    def answered(self, answer: Answer, now: float) -> None:
        """Hand an answer to whoever asked."""
        parts, result = self._parts, answer.result
        if self._is_about_inbox(answer, now):
            return
        match answer.request:
            case Digest() as request:
                parts.photos.digested(request, result, now)
            case Place() as request:
                parts.placing.placed(request, result, now)
            case StageCopy() as request:
                parts.photos.shared(request, result, now)
            case Resolve() as request:
                parts.placing.resolved(request, result, now)
            case PutAway() as request:
                parts.originals.put_away_ended(request, result, now)
            case WriteNote() | RemoveNote() | FindNotes() as request:
                parts.reports.answered(answer.inbox, request, result)
            case Discard() | _:
                pass

    def _is_about_inbox(self, answer: Answer, now: float) -> bool:
        """Hand over an answer that is about an inbox itself, or that an inbox which is gone has left behind."""
        parts = self._parts
        if parts.reloader.turnover.is_late(answer):
            parts.reloader.turnover.late(answer, now)
            return True
        inbox = parts.desk.inboxes[answer.inbox]
        return parts.desk.takes(answer.inbox) and inbox.answered(answer, parts.arrivals, now)

    def pool_events(self, pool_events: list[PoolEvent], now: float) -> None:
        """Take what the pool reports; raises WorkersError when no worker will ever start."""
        for event in pool_events:
            self._pool_event(event, now)

    def _pool_event(self, event: PoolEvent, now: float) -> None:
        parts = self._parts
        match event:
            case events.PhotoFinished():
                parts.photos.finished(event, now)
            case events.PhotoLooks():
                parts.photos.loaded(event, now)
            case events.PhotosReturned():
                parts.photos.returned(event.jobs, now)
            case events.WorkersCannotStart():
                raise WorkersError(event.title, remedy=event.remedy)
            case _:
                self._tell_worker(event)
        if isinstance(event, events.WorkerStarted):
            self._boots = 0
        elif isinstance(event, events.WorkerDied):
            parts.faults.died(event, now)
            self._boots += not parts.pool.ready
            if self._once and self._boots >= MOST_BOOTS:
                raise WorkersError(f"workers die while they start: {event.cause}", remedy="see the log")

    def _tell_worker(self, event: PoolEvent) -> None:
        """Log what happened to a worker."""
        log = self._parts.log
        match event:
            case events.WorkerOutput():
                log.info("worker.output", worker=event.pid, stream=event.stream, line=event.line)
            case events.WorkerStarted():
                log.info("worker.started", worker=event.pid, precision=event.precision, boot_s=round(event.boot_s, 2))
                self._parts.desk.reporter.worker_notes(event.pid, event.refused)
            case events.WorkerDied():
                log.warning("worker.died", worker=event.pid, cause=event.cause, detail=event.hint)
            case events.WorkerTimeout():
                log.warning("worker.timeout", worker=event.pid, silent_s=round(event.silent_s, 1))
            case events.WorkerRecycled():
                log.info("worker.recycled", worker=event.pid, why=event.why)
