"""What the steps of a photo's way share: where photos stand, the ledger, the journal, the log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from animed.daemon.active import Active, BatchTally
    from animed.daemon.inbox import Inbox
    from animed.daemon.journal import Journal
    from animed.daemon.recipes import Recipes
    from animed.daemon.report import Reporter
    from animed.records import PhotoKey
    from animed.schedule.ledger import Ledger
    from animed.schedule.retry import RetryPolicy


@dataclass(slots=True)
class Desk:
    """Shared by the steps; only the main thread touches it."""

    ledger: Ledger
    journal: Journal
    reporter: Reporter
    inboxes: dict[str, Inbox]  # those that end after a reload included
    policies: Mapping[str, RetryPolicy]  # by inbox, those that end after a reload included
    wall: Callable[[], float]  # wall-clock seconds, for the ledger
    actives: dict[PhotoKey, Active] = field(default_factory=dict)
    batches: dict[int, BatchTally] = field(default_factory=dict)
    left: deque[PhotoKey] = field(default_factory=deque)  # photos that have ended since the last turn of the loop
    system: System = REAL
    draining: bool = False  # the service is stopping: nothing new is begun
    # Inboxes that end: nothing new of theirs is begun. With each the recipes of its successor, if it has one.
    leaving: dict[str, Recipes | None] = field(default_factory=dict)
    going: set[PhotoKey] = field(default_factory=set)  # to be forgotten when the state folder takes it
    relook: set[PhotoKey] = field(default_factory=set)  # changed while on their way: to be looked at again afterwards

    def inbox_of(self, key: PhotoKey) -> Inbox:
        """Return the inbox that a photo lies in."""
        return self.inboxes[key.inbox]

    @property
    def open_inboxes(self) -> list[Inbox]:
        """Return the inboxes that take photos."""
        return [] if self.draining else [box for name, box in self.inboxes.items() if name not in self.leaving]

    def takes(self, inbox: str) -> bool:
        """Say whether photos of an inbox may be begun."""
        return not self.draining and inbox in self.inboxes and inbox not in self.leaving

    def leave(self, active: Active, how: str, now: float) -> None:
        """Let a photo go: count it in its batch, and look at it again if it changed meanwhile."""
        key = active.job.key
        active.drop_stage(self.system)
        self.actives.pop(key, None)
        self.left.append(key)
        tally = self.batches.get(active.batch)
        if tally is not None and tally.count(how):
            del self.batches[active.batch]
            self.reporter.batch(tally, now)
        self.look_again(key, now)

    def look_again(self, key: PhotoKey, now: float) -> None:
        """Send a photo that changed while it was in someone's hands through the settling again."""
        if key in self.relook:
            self.relook.discard(key)
            self.inbox_of(key).hint(key.path, now)

    def rescan(self) -> None:
        """Scan every inbox now, or as soon as it is there again."""
        for inbox in self.inboxes.values():
            inbox.scans.wanted = True

    def vanished(self, key: PhotoKey, now: float) -> None:
        """Log a photo that was gone before it was read, and forget that it failed, or was to be tried again."""
        if key in self.going:
            return
        self.reporter.note("file.vanished", key)
        row = self.ledger.get(key)
        if row is not None and row.status in {"retry", "failed"}:
            self.going.add(key)
            self.journal.commit(partial(self.ledger.forget, [key]), partial(self._gone, key), now)

    def _gone(self, key: PhotoKey) -> None:
        self.going.discard(key)
        self.reporter.forgotten(key)
