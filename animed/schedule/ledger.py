"""What was drawn, what failed and what is under way: the memory that survives restarts.

Each method that changes something is one transaction that has reached the disk when it returns. A photo costs two:
`publish` before its picture gets its name, `finish` after. Times are wall-clock seconds, and arguments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from animed.records import PhotoKey, printable
from animed.schedule.reader import Reader
from animed.schedule.rows import UPSERT, Row, to_values
from animed.schedule.store import LedgerError, Store
from animed.system import REAL, System

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from animed.records import FileStat, Staged, Status

FILE_NAME: Final = "ledger.db"  # in the state folder

# A row in these states is in someone's hands: a picture is being placed, or an original is being put away.
_IDLE = "status <> 'publishing' AND original_pending IS NULL"


class OutputTakenError(LedgerError):
    """Another photo has claimed this output name: choose another one. `owner` is that photo."""

    def __init__(self, output: bytes, owner: PhotoKey) -> None:
        super().__init__(
            f"this output name belongs to {printable(owner.path)} of inbox {owner.inbox}",
            remedy="choose another name",
            path=printable(output),
        )
        self.output = output
        self.owner = owner


class Ledger(Reader):
    """The photos that were seen, by inbox and path; owned by the thread that opened it."""

    @classmethod
    def open(cls, path: str, *, create: bool = True, system: System = REAL) -> Ledger:
        """Open the ledger file, making it and its folder when `create`.

        Raise MissingLedgerError when it is absent and not to be made, UnusableLedgerError when it cannot be used.
        """
        store = Store.open(path, create=create, system=system)
        try:
            return cls(store)
        except LedgerError:
            store.close()
            raise

    def take_on(self) -> None:
        """Bring a ledger up to date that was opened to be read; call it, holding the lock, before writing."""
        self._store.take_on()

    def touch(self, key: PhotoKey, stat: FileStat) -> bool:
        """Remember a new stat of the same content; False when the photo is not known (any more)."""
        return self._amend(
            key, lambda row: replace(row, size=stat.size, mtime_ns=stat.mtime_ns, ctime_ns=stat.ctime_ns)
        )

    def publish(
        self,
        key: PhotoKey,
        *,
        stat: FileStat,
        sha256: str,
        recipe: str,
        style: str,
        output: bytes,
        staged: Staged,
        folder: str,
        attempts: int,
        now: float,
        taken: str | None = None,
        folds: bool = False,
        fingerprint: bytes | None = None,
    ) -> Row:
        """Claim the output name for a staged picture, before it is placed: the first of a photo's two commits.

        `output` is the full path; `attempts` counts this try; `taken` is when the photo was, as its worker said, and
        `fingerprint` what it looks like, if it was drawn itself. Raise OutputTakenError when another photo has the
        name; with `folds`, also in another spelling.
        """

        def start(old: Row | None) -> Row:
            owner = self.output_owner(output, but=key, folds=folds)
            if owner is not None:
                raise OutputTakenError(output, owner)
            row = _begin(old, key, stat, status="publishing", now=now)
            return replace(
                row,
                sha256=sha256,
                recipe=recipe,
                style=style,
                output=output,
                staged=staged,
                folder=folder,
                attempts=attempts,
                taken=taken,
                fingerprint=fingerprint,
            )

        return self._change(key, start)

    def unpublish(self, key: PhotoKey, *, now: float) -> Row:
        """Give up a placing that did not happen: the name is free again, and the try was not one.

        Raise LookupError when the photo is not being placed.
        """

        def undo(old: Row | None) -> Row:
            row = _without_claim(_publishing(old, key))
            return replace(row, status="retry", attempts=max(0, row.attempts - 1), next_try=0.0, updated=now)

        return self._change(key, undo)

    def finish(
        self, key: PhotoKey, *, status: Literal["done", "duplicate"], original_pending: str | None, now: float
    ) -> Row:
        """Record that the picture has its name and is durable: the second of a photo's two commits.

        `original_pending` says what is still to be done to the original. Raise LookupError when the photo is not
        being placed.
        """

        def end(old: Row | None) -> Row:
            return replace(_publishing(old, key), status=status, original_pending=original_pending, updated=now)

        return self._change(key, end)

    def skip(
        self, key: PhotoKey, stat: FileStat, *, sha256: str, recipe: str, style: str, cause: str, now: float
    ) -> Row:
        """Record a photo that policy leaves out."""

        def end(old: Row | None) -> Row:
            row = _begin(old, key, stat, status="skipped", now=now)
            return replace(row, sha256=sha256, recipe=recipe, style=style, reason=cause)

        return self._change(key, end)

    def fail(
        self,
        key: PhotoKey,
        stat: FileStat,
        *,
        sha256: str,
        recipe: str,
        style: str,
        reason: str,
        detail: str,
        attempts: int,
        crashes: int,
        now: float,
        original_pending: str | None = None,
    ) -> Row:
        """Record a failure for good, after `attempts` tries; it is tried again when its stat changes."""

        def end(old: Row | None) -> Row:
            row = _begin(old, key, stat, status="failed", now=now)
            row = replace(row, sha256=sha256, recipe=recipe, style=style, reason=reason, detail=detail)
            pending = original_pending or row.original_pending
            return replace(row, attempts=attempts, crashes=crashes, original_pending=pending)

        return self._change(key, end)

    def retrying(
        self,
        key: PhotoKey,
        stat: FileStat,
        *,
        sha256: str,
        recipe: str,
        style: str,
        reason: str,
        detail: str,
        attempts: int,
        crashes: int,
        next_try: float,
        now: float,
    ) -> Row:
        """Record a failure that is tried again at `next_try` (wall clock), after `attempts` tries so far."""

        def wait(old: Row | None) -> Row:
            row = _begin(old, key, stat, status="retry", now=now)
            row = replace(row, sha256=sha256, recipe=recipe, style=style, reason=reason, detail=detail)
            return replace(row, attempts=attempts, crashes=crashes, next_try=next_try)

        return self._change(key, wait)

    def original_done(self, key: PhotoKey, *, moved: bytes | None = None) -> bool:
        """Record that nothing is left to be done to the original, which lies at `moved` now (full path) if it moved.

        False when the photo is not known.
        """
        return self._amend(key, lambda row: replace(row, original_pending=None, moved=moved))

    def requeue(self, keys: Iterable[PhotoKey]) -> list[PhotoKey]:
        """Ask for a new try of these photos, with all tries ahead of them.

        Return those that will be tried; a photo that is unknown, or in someone's hands, is left as it is. A done photo
        stays done until its new picture is placed.
        """
        again = "UPDATE photos SET again = 1, attempts = 0, crashes = 0, next_try = 0 WHERE"
        with self._store.write() as db:
            return [key for key in keys if _hits(db, again, key)]

    def let_be(self, key: PhotoKey) -> bool:
        """Take back a request for a new try; False when the photo is not known."""
        return self._amend(key, lambda row: replace(row, again=False))

    def forget(self, keys: Iterable[PhotoKey]) -> list[PhotoKey]:
        """Treat these photos as never seen; return those forgotten. One that is in someone's hands is kept."""
        with self._store.write() as db:
            gone = [
                (key, row.status)
                for key in keys
                if (row := self.get(key)) and _hits(db, "DELETE FROM photos WHERE", key)
            ]
        for key, status in gone:
            self._totals.move(key.inbox, status, None)
        return [key for key, _ in gone]

    def set_meta(self, name: str, value: str) -> None:
        """Remember a setting of the service."""
        with self._store.write() as db:
            db.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
            )

    def _change(self, key: PhotoKey, edit: Callable[[Row | None], Row]) -> Row:
        """Replace a row by what `edit` makes of it, and keep the totals in step."""
        with self._store.write() as db:
            old = self.get(key)
            new = edit(old)
            db.execute(UPSERT, to_values(new))
        # Only now is it certain: a commit that failed must leave the totals as they were.
        self._totals.move(key.inbox, old.status if old else None, new.status)
        return new

    def _amend(self, key: PhotoKey, edit: Callable[[Row], Row]) -> bool:
        """Replace a row by one of the same status; False when there is none."""
        with self._store.write() as db:
            row = self.get(key)
            if row is not None:
                db.execute(UPSERT, to_values(edit(row)))
        return row is not None


def _begin(old: Row | None, key: PhotoKey, stat: FileStat, *, status: Status, now: float) -> Row:
    """Start a row afresh, keeping of the old one what must outlive it.

    That is: when the same file was first seen, what is still owed to an original, and the claim of a picture that
    was placed (so that no other photo ever gets that name).
    """
    row = Row(key, stat.size, stat.mtime_ns, stat.ctime_ns, status, first_seen=now, updated=now)
    if old is None:
        return row
    placed = _without_claim(old) if old.status == "publishing" else old
    return replace(
        row,
        first_seen=old.first_seen if old.same_stat(stat) else now,
        original_pending=old.original_pending,
        output=placed.output,
        staged=placed.staged,
        folder=placed.folder,
    )


def _without_claim(row: Row) -> Row:
    return replace(row, output=None, staged=None, folder=None)


def _publishing(row: Row | None, key: PhotoKey) -> Row:
    """Return the row when its picture is being placed."""
    if row is None or row.status != "publishing":
        raise LookupError(f"{key} is not being published but {row.status if row else 'unknown'}")
    return row


def _hits(db: sqlite3.Connection, statement: str, key: PhotoKey) -> bool:
    """Run a statement on one row unless it is in someone's hands; say whether it was there."""
    parameters: tuple[Any, ...] = key
    return db.execute(f"{statement} inbox = ? AND path = ? AND {_IDLE}", parameters).rowcount == 1
