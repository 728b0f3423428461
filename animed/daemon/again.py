"""Photos that are to be drawn anew because someone asked: failed ones, those of an old recipe, forgotten ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from animed.records import printable
from animed.schedule.tries import retry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from animed.daemon.backlog import Backlog
    from animed.daemon.desk import Desk
    from animed.records import PhotoKey

    Answer = dict[str, Any]
    Named = Mapping[str, PhotoKey | None]  # as the path was written in the question; None = in no inbox

_MOST_NAMED: Final = 100  # busy photos, and moved ones, that an answer names; busy ones beyond it are counted


class Again:
    """Writes what was asked for into the ledger, and lets the photos settle anew. Called from the main thread."""

    def __init__(self, desk: Desk, backlog: Backlog, clock: Callable[[], float]) -> None:
        self._desk = desk
        self._backlog = backlog
        self._clock = clock

    def retry(self, asked: Named | None) -> Answer:
        """Queue failed photos again: those that are named, or all; what lies in a failed folder cannot be tried."""
        named = {} if asked is None else asked
        tried = retry(self._desk.ledger, None if asked is None else named.values())
        self._look(tried.queued)
        return {
            "queued": len(tried.queued),
            "unknown": [text for text, key in named.items() if key not in tried.failed],
            "busy": [text for text, key in named.items() if key in tried.busy],
            "moved": [printable(place) for place in tried.moved[:_MOST_NAMED]],
        }

    def outdated(self) -> Answer:
        """Queue the finished photos whose picture another recipe made than their inbox has today.

        Of an inbox that ends after a reload, today's recipes are those of its successor, which finds what is queued.
        """
        today = {name: self._desk.leaving.get(name, inbox.recipes) for name, inbox in self._desk.inboxes.items()}
        recipes = {name: each.digests for name, each in today.items() if each is not None}
        wanted = [key for key in self._desk.ledger.outdated(recipes) if key not in self._desk.actives]
        queued = self._desk.ledger.requeue(wanted)
        self._look(queued)
        return {"queued": len(queued), "unknown": [], "busy": []}

    def forget(self, asked: Named) -> Answer:
        """Treat photos, or all below a folder, as never seen; those on their way are kept, and told."""
        forgotten: set[PhotoKey] = set()
        busy: set[PhotoKey] = set()
        unknown = []
        for text, place in asked.items():
            known = [] if place is None else self._desk.ledger.below(place)
            moving = [] if place is None else [key for key in self._desk.actives if place.holds(key)]
            if not known and not moving:
                unknown.append(text)
            gone = self._desk.ledger.forget(key for key in known if key not in self._desk.actives)
            # At once: when the state folder fills up before the next path, these are forgotten all the same.
            self._look(gone)
            forgotten.update(gone)
            for key in gone:
                self._desk.reporter.forgotten(key)
            busy.update(moving, known)
        busy -= forgotten
        named = [self._desk.reporter.path(key) for key in sorted(busy)[:_MOST_NAMED]]
        return {"forgotten": len(forgotten), "unknown": unknown, "busy": named, "busy_count": len(busy)}

    def _look(self, keys: Iterable[PhotoKey]) -> None:
        """Let photos settle as if they had just come; a back-off that they waited out, and its counters, are void."""
        now = self._clock()
        for key in keys:
            if key.inbox in self._desk.inboxes:
                self._backlog.retries.discard(key)
                self._desk.inbox_of(key).hint(key.path, now)
