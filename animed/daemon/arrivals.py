"""What intake brings: who is new, who is known, who has to wait for the end of a back-off."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from animed.daemon.active import Active
from animed.records import Failure, Job, PhotoKey, Reason
from animed.schedule.identity import Busy, CheckContent, Known, New, decide

if TYPE_CHECKING:
    from animed.daemon.backlog import Backlog
    from animed.daemon.desk import Desk
    from animed.daemon.faults import Faults
    from animed.daemon.inbox import Inbox
    from animed.daemon.originals import Originals
    from animed.daemon.placing import Placing
    from animed.intake.scan import Found
    from animed.records import FileStat, Recipe, Sighting
    from animed.schedule.rows import Row


class Arrivals:
    """Takes what the inboxes find, and admits what is to be drawn. It is the sink of every inbox."""

    def __init__(self, desk: Desk, backlog: Backlog, faults: Faults, placing: Placing, originals: Originals) -> None:
        self._desk = desk
        self._backlog = backlog
        self._faults = faults
        self._placing = placing
        self._originals = originals
        self._met: dict[str, set[PhotoKey]] = {}  # failed photos that the scan under way has met, by inbox

    def up(self, inbox: Inbox, now: float) -> None:
        """Resolve what was left open, now that this inbox's places answer."""
        del now
        self._placing.resolve(inbox)
        self._originals.resume(inbox)

    def ignored(self, key: PhotoKey, rule: str) -> None:
        """Log a path that is never taken."""
        self._desk.reporter.ignored(key, rule)

    def waiting(self, key: PhotoKey) -> None:
        """Log a path that is not complete yet."""
        self._desk.reporter.note("file.waiting", key)

    def vanished(self, key: PhotoKey, now: float, *, seen: bool) -> None:
        """Log a photo that was gone before it was read; one that has its outcome may go as it likes.

        A failure goes with its file, unless the file was moved to where failed photos go; asking for a new try of
        such a one ends here, because it would have to be put back first.
        """
        if key in self._desk.actives:
            return  # Whoever opens it finds out, unless it was read already.
        self._backlog.retries.discard(key)
        row = self._desk.ledger.get(key)
        if (row is None and seen) or (row is not None and self._goes_with_its_file(row)):
            self._desk.vanished(key, now)
        elif row is not None and row.again:
            # Someone asked for a new picture of a finished photo whose original has gone since.
            self._desk.journal.commit(partial(self._desk.ledger.let_be, key), lambda: None, now)

    def _goes_with_its_file(self, row: Row) -> bool:
        if row.original_pending is not None or row.status not in {"retry", "failed"}:
            return False
        moved = row.status == "failed" and self._desk.inbox_of(row.key).config.failed == "move"
        return row.again or not moved

    def scanned(self, inbox: Inbox, now: float) -> None:
        """Look again at what is open: names that could not be resolved, and failed photos that the scan has not met."""
        self._placing.resolve(inbox)
        met = self._met.pop(inbox.name, set())
        for row in self._desk.ledger.failures(inbox.name):
            if row.key not in met and self._goes_with_its_file(row):
                inbox.hint(row.key.path, now)

    def forget(self, inbox: str) -> None:
        """Forget the scan of an inbox that has ended."""
        self._met.pop(inbox, None)

    def found(self, inbox: Inbox, entries: list[Found], now: float) -> None:
        """Let settle what a scan has found, but for what is known: that costs no further look."""
        rows = self._desk.ledger.get_many(PhotoKey(inbox.name, entry.path) for entry in entries)
        met = self._met.setdefault(inbox.name, set())
        met.update(key for key, row in rows.items() if row.status in {"retry", "failed"})
        for entry in entries:
            key = PhotoKey(inbox.name, entry.path)
            if not self._is_known(key, entry.stat, rows.get(key)) and self._recipe_of(key) is not None:
                inbox.hint(entry.path, now, entry.stat)

    def _is_known(self, key: PhotoKey, stat: FileStat, row: Row | None) -> bool:
        active = self._desk.actives.get(key)
        if active is not None:
            return active.job.stat.same_file(stat)
        waiting = self._backlog.retries.get(key)
        if waiting is not None:
            return waiting.stat.same_file(stat)
        return isinstance(decide(row, stat), Known)

    def settled(self, sighting: Sighting, now: float) -> None:
        """Take a photo that has settled, unless it is known or on its way already."""
        key, stat = sighting.key, sighting.stat
        active = self._desk.actives.get(key)
        if active is not None:
            if not active.job.stat.same_file(stat):
                self._desk.relook.add(key)
            return
        match decide(self._desk.ledger.get(key), stat):
            case Known():
                return
            case Busy():
                self._desk.relook.add(key)
            case CheckContent() | New() as identity:
                self._take(sighting, identity, now)

    def _take(self, sighting: Sighting, identity: CheckContent | New, now: float) -> None:
        job = self._job(sighting, identity if isinstance(identity, New) else New())
        if job is None:
            return
        if isinstance(identity, New):
            self._wait_or_admit(job, identity.next_try, now)
        else:
            self._admit(job, now, identity)

    def empty(self, sighting: Sighting, now: float) -> None:
        """Give up a file that has stayed empty."""
        key = sighting.key
        identity = decide(self._desk.ledger.get(key), sighting.stat)
        if key in self._desk.actives or isinstance(identity, Busy):
            self._desk.relook.add(key)
            return
        job = None if isinstance(identity, Known) else self._job(sighting, New())
        if job is None:
            return
        self._backlog.retries.discard(key)
        active = self._desk.actives[key] = Active(job)
        self._faults.failed(active, Failure(Reason.EMPTY, "the file has no content"), now)

    def _recipe_of(self, key: PhotoKey) -> Recipe | None:
        """Return the recipe of a photo; one whose folder names no style is told of, and not taken."""
        recipes = self._desk.inbox_of(key).recipes
        if (recipe := recipes.of(key.path)) is None:
            self._desk.reporter.ignored(key, "style-folder", detail=recipes.astray())
        return recipe

    def _job(self, sighting: Sighting, new: New) -> Job | None:
        if (recipe := self._recipe_of(sighting.key)) is None:
            return None
        attempt, alone = new.attempts + 1, new.crashes > 0
        return Job(sighting.key, sighting.stat, recipe, sighting.settled_at, attempt, new.crashes, alone=alone)

    def _wait_or_admit(self, job: Job, next_try: float, now: float) -> None:
        """Let a back-off that a restart cut short run to its end; a new file under the name starts afresh."""
        waiting = self._backlog.retries.discard(job.key)
        # Bounded, because the wall clock may have been set back.
        left = min(next_try - self._desk.wall(), self._desk.policies[job.key.inbox].backoff.max_delay)
        if waiting is not None and waiting.stat.same_file(job.stat) and left > 0:
            self._backlog.retries.add(waiting, now + left)
        elif left > 0:
            self._backlog.retries.add(job, now + left)
        else:
            self._admit(job, now)

    def _admit(self, job: Job, now: float, check: CheckContent | None = None) -> None:
        if self._backlog.admit(job, now, check):
            self._desk.reporter.note("file.seen", job.key, size=job.stat.size)
