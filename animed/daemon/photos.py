"""A photo's way from its settling to a worker: who is new, whose turn it is, who shares a picture."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from animed.daemon.active import UNBEGUN, Active, BatchTally, Phase
from animed.daemon.iothread import SLOW_S
from animed.daemon.looking import Digest, Digested
from animed.daemon.recipes import early_name, task_of
from animed.daemon.sharing import Sharing
from animed.daemon.similar import Finished, Similar, UnderWay
from animed.daemon.turns import Turns
from animed.errors import AnimedError, PhotoError, PlaceError
from animed.opening import NotRegularError
from animed.records import VANISHED, Failure, Picture, PlaceFault, Reason, Skip
from animed.schedule.identity import SameContent, after_content
from animed.schedule.twins import Twins

if TYPE_CHECKING:
    from animed.daemon.backlog import Backlog
    from animed.daemon.desk import Desk
    from animed.daemon.faults import Faults
    from animed.daemon.gate import Gate
    from animed.daemon.placing import Placing
    from animed.daemon.putting import StageCopy
    from animed.engine.events import PhotoFinished, PhotoLooks
    from animed.engine.pool import Pool
    from animed.records import Batch, Job, PhotoKey, Staged, Task


class Photos:
    """Decides what is drawn, and when. Every method takes the loop's `now`."""

    def __init__(
        self, desk: Desk, backlog: Backlog, pool: Pool, placing: Placing, faults: Faults, *, gate: Gate
    ) -> None:
        self._desk = desk
        self._backlog = backlog
        self._pool = pool
        self._placing = placing
        self._faults = faults
        self._gate = gate
        self._ready = Turns()
        self._suspects: deque[Active] = deque()  # each is drawn alone in its worker
        self._reading: set[PhotoKey] = set()  # asked of the I/O threads
        self._twins: defaultdict[str, Twins] = defaultdict(Twins)  # by inbox
        self._similar = Similar(desk)
        self._sharing = Sharing(desk, placing, faults)

    # Whose turn it is.

    def dispatch(self, now: float) -> None:
        """Give the workers what they can take; while the service is paused, that is nothing."""
        self._return_held(now)
        while self._desk.left:
            self._free_twins()
            self._return_held(now)
        if self._desk.journal.blocked or self._desk.draining or self._gate.closed:
            return
        self._send(now)  # Before more is read: what is sent makes room.
        while self._wants_more(now) and (batch := self._backlog.take(now)) is not None:
            self._open(batch, now)
        self._catch_up(now)
        self._send(now)

    def _return_held(self, now: float) -> None:
        """Let photos wait in the backlog again that may not be drawn now.

        That is where their inbox cannot draw, for no worker is to hang on its share, and while the service is paused:
        that may last for hours, and what was read would be old.
        """
        for line in (self._suspects, self._ready):
            for active in [one for one in line if self._is_held(one)]:
                line.remove(active)
                self._backlog.put_back(active, now)

    def _is_held(self, active: Active) -> bool:
        return self._gate.closed or not self._desk.inbox_of(active.job.key).health.draws

    def _catch_up(self, now: float) -> None:
        """Read photos of an inbox that has none in hand, too: they must not wait for all that others have in hand."""
        reading = {key.inbox for key in self._reading}
        if reading or self._ready:
            for name in self._desk.inboxes:
                if name not in reading and not self._ready.waits(name):
                    batch = self._backlog.take(now, only=name)
                    if batch is not None:
                        self._open(batch, now)

    def _free_twins(self) -> None:
        """Decide anew about the photos that waited for one which has ended."""
        while self._desk.left:
            key = self._desk.left.popleft()
            twins = tuple(job.key for job in self._twins[key.inbox].leave(key))
            for follower in (*twins, *self._similar.left(key)):
                if (active := self._desk.actives.get(follower)) is not None:
                    self._share_or_draw(active)

    def _wants_more(self, now: float) -> bool:
        # What a share that is slow or hangs does not give back must not keep the workers from the other inboxes.
        reading = sum(self._desk.inbox_of(key).thread.silent_for(now) <= SLOW_S for key in self._reading)
        return self._gate.ahead(self._pool.free) > len(self._ready) + len(self._suspects) + reading

    def _open(self, batch: Batch, now: float) -> None:
        """Read the photos of a batch ahead of their turn: one that is known, or equal to another, needs no worker."""
        self._desk.batches[batch.number] = BatchTally.of(batch, now)
        for job in batch.jobs:
            active = self._desk.actives[job.key]
            active.batch, active.batch_size = batch.number, len(batch.jobs)
            self._read(active)

    def _read(self, active: Active) -> None:
        active.phase = Phase.READING
        self._reading.add(active.job.key)
        inbox = self._desk.inbox_of(active.job.key)
        early = early_name(inbox.config, active.job, inbox.names)
        inbox.ask(Digest(active.job, inbox.root, inbox.output, early, inbox.identity))

    def _send(self, now: float) -> None:
        """Send what was read; a suspect goes to an empty worker, which the pool keeps free for it."""
        while self._suspects and self._submit(self._suspects[0], now):
            self._suspects.popleft()
        while self._ready and self._submit(self._ready.head(), now):
            self._ready.pop()

    def _submit(self, active: Active, now: float) -> bool:
        waiting = len(self._ready) + len(self._suspects) + len(self._reading) + len(self._backlog.batcher)
        if not self._gate.may_start(now):
            return False
        if not self._pool.submit(active.job, partial(self._task, active), now, queued=waiting > 1):
            return False
        self._gate.started(now)
        active.phase, active.sent_at = Phase.RUNNING, now
        return True

    def _task(self, active: Active, number: int, threads: int) -> Task:
        inbox, compare = self._desk.inbox_of(active.job.key), self._similar.asks(active)
        stage = inbox.delivery.stage
        return task_of(active.job, inbox.config, stage, number=number, threads=threads, compare=compare)

    # What was read.

    def digested(self, request: Digest, result: Digested | AnimedError, now: float) -> None:
        """Go on with a photo whose content was read."""
        self._reading.discard(request.job.key)
        active = self._desk.actives.get(request.job.key)
        if active is None or active.phase is not Phase.READING:
            return
        if isinstance(result, AnimedError):
            self._unread(active, result, now)
            return
        active.job = replace(active.job, sha256=result.sha256)
        if active.check is not None and isinstance(after_content(active.check, result.sha256), SameContent):
            key, stat = active.job.key, active.job.stat
            self._desk.journal.commit(partial(self._desk.ledger.touch, key, stat), lambda: None, now)
            self._desk.leave(active, "known", now)
        elif self._desk.inbox_of(active.job.key).is_short(result.free_bytes, now):
            self._backlog.put_back(active, now)
        elif result.name_taken and (policy := self._desk.inbox_of(active.job.key).config.on_conflict) != "suffix":
            self._conflict(active, policy, now)
        else:
            self._share_or_draw(active)

    def _unread(self, active: Active, error: AnimedError, now: float) -> None:
        """Sort out why a photo could not be read."""
        if isinstance(error, PlaceError):
            self._desk.inbox_of(active.job.key).suspend(error, now)
            self._backlog.put_back(active, now)
        elif isinstance(error, NotRegularError):
            self._desk.reporter.ignored(active.job.key, error.kind)
            self._desk.leave(active, "ignored", now)
        elif isinstance(error, PhotoError) and active.check is not None and error.reason != VANISHED:
            # It has its outcome, and nothing says yet that it is another photo: the record stays, a scan looks again.
            self._desk.reporter.note("file.retry", active.job.key, reason=error.reason, detail=error.detail)
            self._desk.leave(active, "known", now)
        elif isinstance(error, PhotoError):
            self._faults.failed(active, Failure(error.reason, error.detail), now)
        else:
            raise error

    def _conflict(self, active: Active, policy: str, now: float) -> None:
        if policy == "skip":
            self._placing.skip(active, "the picture's name is taken", now)
        elif policy == "fail":
            self._faults.failed(active, Failure(Reason.CONFLICT, "the picture's name is taken"), now)
        else:
            self._share_or_draw(active)

    def _share_or_draw(self, active: Active) -> None:
        """Let equal content under an equal recipe share a picture; else queue the photo for a worker."""
        job = active.job
        if self._desk.inbox_of(job.key).config.dedupe != "path":
            if not self._twins[job.key.inbox].join(job):
                active.phase = Phase.WAITING
                return
            found = self._desk.ledger.find_picture(job.sha256, job.recipe.digest)
            if found is not None and self._may_share(found.key, job.key) and self._sharing.share(active, found):
                return
        self._follow_or_draw(active, self._similar.match(active))

    def _follow_or_draw(self, active: Active, match: Finished | UnderWay | None) -> None:
        """Let a photo share with the one that it looks like, or wait for that; else queue it for a worker."""
        if isinstance(match, UnderWay):
            active.phase = Phase.WAITING
            self._similar.wait(active, match.key)
        elif match is None or not self._sharing.share(active, match.row, match.distance):
            self._similar.begin(active)
            self.draw(active)

    def _may_share(self, one: PhotoKey, other: PhotoKey) -> bool:
        """Say whether a photo may copy from another one: a share that hangs must not reach other inboxes."""
        return one != other and one.inbox == other.inbox

    def draw(self, active: Active) -> None:
        """Queue a photo for a worker."""
        active.phase = Phase.READY
        line: Turns | deque[Active] = self._suspects if active.job.alone else self._ready
        line.append(active)

    # What workers bring.

    def loaded(self, event: PhotoLooks, now: float) -> None:
        """Answer a worker that has loaded a photo: draw it, or leave it, for it shares what another one gets."""
        active = self._desk.actives[event.job.key]
        active.fingerprint = event.fingerprint
        match = self._similar.match(active)
        if not self._pool.answer(event.number, draw=match is None, now=now):
            return  # That worker is dead: what becomes of its photos is decided there.
        if match is None:
            self._similar.begin(active)
        elif not self._desk.takes(active.job.key.inbox):
            self._desk.leave(active, "dropped", now)
        else:
            self._follow_or_draw(active, match)

    def finished(self, event: PhotoFinished, now: float) -> None:
        """Go on with what a worker made of a photo."""
        active = self._desk.actives[event.job.key]
        active.worker, active.fd = event.pid, event.fd
        match event.outcome:
            case Picture() as picture:
                self._placing.place(active, picture, now)
            case Skip(cause=cause):
                self._placing.skip(active, cause, now)
            case Failure() as failure:
                self._faults.failed(active, failure, now)
            case PlaceFault() as fault:
                self._faults.place_fault(active, fault, now)

    def shared(self, request: StageCopy, result: tuple[Staged, int | None] | AnimedError, now: float) -> None:
        """Go on with a photo that is to share a picture; draw it when that picture is gone."""
        if self._sharing.shared(request, result, now):
            return
        self._similar.gone(request.source)
        active = self._desk.actives[request.key]
        if self._desk.takes(request.key.inbox):
            self._follow_or_draw(active, self._similar.match(active))
        else:
            self._desk.leave(active, "dropped", now)

    def returned(self, jobs: tuple[Job, ...], now: float) -> None:
        """Take back photos that no worker has finished."""
        for job in jobs:
            self._backlog.put_back(self._desk.actives[job.key], now)

    def clear(self, now: float) -> None:
        """Drop what no worker has begun: the inbox is the durable queue."""
        for name in self._desk.inboxes:
            self.drop(name, now)

    def drop(self, inbox: str, now: float) -> None:
        """Drop what no worker has begun of one inbox."""
        self._similar.drop(inbox)
        for active in [each for key, each in self._desk.actives.items() if key.inbox == inbox]:
            if active.phase in UNBEGUN:
                self._backlog.batcher.discard(active.job.key)
                self._reading.discard(active.job.key)
                self._desk.leave(active, "dropped", now)
        for line in (self._ready, self._suspects):
            for active in [each for each in line if each.job.key.inbox == inbox]:
                line.remove(active)
