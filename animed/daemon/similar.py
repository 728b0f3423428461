"""Which photos look like one that has its picture, or that is being drawn: `dedupe: similar`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from animed.records import Fingerprint, PhotoKey
from animed.schedule.likeness import Looks, Waiting, same_details

if TYPE_CHECKING:
    from animed.daemon.active import Active
    from animed.daemon.desk import Desk
    from animed.schedule.rows import Row


@dataclass(frozen=True, slots=True)
class Finished:
    """A photo looks like one whose picture can be shared."""

    row: Row
    distance: int  # bits


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A photo looks like one that is being drawn."""

    key: PhotoKey


class Similar:
    """Compares photos of one inbox and recipe with each other.

    What is finished stands in the ledger, and in memory from the first question on; each match is looked up in the
    ledger before it counts, so that whatever was forgotten or drawn anew meanwhile is no match. Photos under way are
    known here only: after a restart the scan brings them again.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._done: dict[str, Looks] = {}  # by inbox
        self._under_way: dict[str, Looks] = {}
        self._waiting = Waiting()

    def __len__(self) -> int:
        """Return how many photos are being drawn that others may wait for, or wait."""
        return sum(map(len, self._under_way.values())) + len(self._waiting)

    def asks(self, active: Active) -> bool:
        """Say whether a worker is to tell what a photo looks like, and to wait for the word to draw it."""
        return active.fingerprint is None and self._desk.inbox_of(active.job.key).config.dedupe == "similar"

    def match(self, active: Active) -> Finished | UnderWay | None:
        """Return what a photo whose looks are known can share or wait for; None means that it is to be drawn."""
        looks, key, recipe = active.fingerprint, active.job.key, active.job.recipe.digest
        if looks is None:
            return None
        most = self._desk.inbox_of(key).config.similar_distance
        for distance, row in self._near(key, recipe, looks, most=most):
            if same_details(looks.detail, Fingerprint.from_bytes(row.fingerprint or b"").detail):
                return Finished(row, distance)
        for _, path in self._under_way.get(key.inbox, Looks()).nearest(key.path, recipe, looks, most):
            leader = PhotoKey(key.inbox, path)
            drawn = self._desk.actives.get(leader)
            # One that has just left says so within this turn: then whoever waits for it is decided anew.
            if drawn is None or drawn.fingerprint is None or same_details(looks.detail, drawn.fingerprint.detail):
                return UnderWay(leader)
        return None

    def _near(self, key: PhotoKey, recipe: str, looks: Fingerprint, *, most: int) -> list[tuple[int, Row]]:
        """Return the nearest photos whose picture can be shared, each with its distance."""
        done = self._finished(key.inbox)
        while True:
            found = done.nearest(key.path, recipe, looks, most)
            rows = [(bits, self._desk.ledger.get(PhotoKey(key.inbox, path))) for bits, path in found]
            good = [(bits, row) for bits, row in rows if row is not None and _counts(row, recipe)]
            if len(good) == len(found):
                return good
            for path in {path for _, path in found} - {row.key.path for _, row in good}:
                done.discard(path)

    def begin(self, active: Active) -> None:
        """Note that a photo is drawn: from now on others may wait for it."""
        if active.fingerprint is not None:
            key = active.job.key
            self._under_way.setdefault(key.inbox, Looks()).add(key.path, active.job.recipe.digest, active.fingerprint)

    def wait(self, active: Active, leader: PhotoKey) -> None:
        """Let a photo wait for the end of one that looks like it."""
        self._waiting.wait(active.job.key, leader)

    def gone(self, output: bytes) -> None:
        """Forget a photo whose picture is not there any more: nobody can share it."""
        owner = self._desk.ledger.output_owner(output)
        if owner is not None and owner.inbox in self._done:
            self._done[owner.inbox].discard(owner.path)

    def left(self, key: PhotoKey) -> tuple[PhotoKey, ...]:
        """Take a photo that has ended; return those that waited for it, in order: each is decided anew."""
        if key.inbox in self._under_way:
            self._under_way[key.inbox].discard(key.path)
        done = self._done.get(key.inbox)
        if done is not None:
            row = self._desk.ledger.get(key)
            if row is not None and row.status == "done" and row.fingerprint is not None:
                done.add(key.path, row.recipe, Fingerprint.from_bytes(row.fingerprint))
        return self._waiting.leave(key)

    def drop(self, inbox: str) -> None:
        """Forget what is finished in an inbox; its next question reads it again."""
        self._done.pop(inbox, None)

    def _finished(self, inbox: str) -> Looks:
        if inbox not in self._done:
            found = self._desk.ledger.fingerprints(inbox)
            self._done[inbox] = Looks((path, recipe, Fingerprint.from_bytes(data)) for path, recipe, data in found)
        return self._done[inbox]


def _counts(row: Row, recipe: str) -> bool:
    """Say whether the ledger still has a photo as one that was drawn and can be compared."""
    return row.status == "done" and row.recipe == recipe and row.fingerprint is not None
