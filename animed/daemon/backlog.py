"""The photos that wait: for their turn, or for their next try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animed.daemon.active import Active
from animed.schedule.retry import RetryQueue

if TYPE_CHECKING:
    from animed.config import Config
    from animed.daemon.desk import Desk
    from animed.records import Batch, Job
    from animed.schedule.batcher import Batcher
    from animed.schedule.identity import CheckContent


class Backlog:
    """The bounded line of photos, and those that wait out a back-off."""

    def __init__(self, desk: Desk, batcher: Batcher) -> None:
        self._desk = desk
        self.batcher = batcher
        self.retries = RetryQueue()

    def configure(self, config: Config) -> None:
        """Take the sizes of batches and of the line; what waits beyond a smaller one keeps its place."""
        self.batcher.max_size, self.batcher.max_wait = config.batch.max_size, config.batch.max_wait
        self.batcher.backlog = config.limits.backlog

    def admit(self, job: Job, now: float, check: CheckContent | None = None) -> bool:
        """Let a photo wait for its turn; when the line is full, its inbox is scanned again later."""
        if not self._desk.takes(job.key.inbox) or not self.batcher.add(job, now):
            self._desk.inbox_of(job.key).dirty = True
            return False
        self._desk.actives[job.key] = Active(job, check=check)
        return True

    def put_back(self, active: Active, now: float) -> None:
        """Return a photo to the line as it was; it leaves the batch it was in."""
        self._desk.leave(active, "returned", now)
        self.admit(active.job, now, active.check)

    def tick(self, now: float) -> None:
        """Bring back what has waited long enough, and let only inboxes that can draw have their turn."""
        for job in self.retries.due(now):
            self.admit(job, now)
        for inbox in self._desk.inboxes.values():
            (self.batcher.release if inbox.health.draws else self.batcher.hold)(inbox.name)
            if inbox.dirty and inbox.health.draws and self.batcher.below_half:
                inbox.dirty, inbox.scans.wanted = False, True

    def next_due(self) -> float | None:
        """Return when a back-off ends."""
        return self.retries.next_due()

    def take(self, now: float, only: str | None = None) -> Batch | None:
        """Return the next batch for a free worker, `only` of that inbox."""
        return self.batcher.take(now, idle=True, only=only)
