"""What is owed to an original is written with the outcome, done by the I/O thread, then crossed off.

A crash in between loses nothing: what is owed stands in the ledger, and doing it again goes on where it stopped.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from animed import __version__
from animed.daemon.owed import Owed, What
from animed.daemon.putting import PutAway
from animed.delivery.originals import Disposed, Kept, private_name
from animed.delivery.quarantine import FailureRecord, Quarantined
from animed.errors import AnimedError, PlaceError

if TYPE_CHECKING:
    from animed.daemon.active import Active
    from animed.daemon.desk import Desk
    from animed.daemon.inbox import Inbox
    from animed.errors import PlaceRole
    from animed.records import Failure, FileStat, PhotoKey
    from animed.schedule.rows import Row

ONLY_ALIKE: Final = "its picture is that of a photo that looks like it: only photos of the same content are deleted"


class Originals:
    """Moves, deletes and sets aside originals, when and where the configuration asks for it."""

    def __init__(self, desk: Desk, instance: str) -> None:
        self._desk = desk
        self._instance = instance
        self._busy: set[PhotoKey] = set()  # asked of an I/O thread
        self._held: set[PhotoKey] = set()  # in the hands of a thread that was left behind

    @property
    def busy(self) -> bool:
        """Say whether originals are being put away; where an inbox does not answer, nobody waits for that."""
        return any(self._desk.inbox_of(key).state != "unavailable" for key in self._busy)

    def serves(self, inbox: str) -> bool:
        """Say whether originals of an inbox are being put away."""
        return any(key.inbox == inbox for key in self._busy)

    def hold(self, inbox: str) -> None:
        """Leave the originals alone that a thread which is left behind was asked for."""
        held = {key for key in self._busy if key.inbox == inbox}
        self._busy -= held
        self._held |= held

    def release(self, key: PhotoKey) -> None:
        """Note that such a thread has come to an end with an original."""
        self._held.discard(key)

    def after_success(self, key: PhotoKey, stat: FileStat, *, alike: bool) -> str | None:
        """Return what is owed to the original of a finished picture, as the ledger keeps it; None for nothing.

        `alike`: it is the picture of a photo that only looks like this one, which may show something else. Then
        nothing but the original shows what is on this photo.
        """
        config = self._desk.inbox_of(key).config
        if config.originals == "keep" or self._is_spared(key, alike=alike):
            return None
        return Owed(config.originals, stat, os.fspath(config.processed_dir)).text()

    def after_failure(self, active: Active, failure: Failure, attempts: int) -> str | None:
        """Return what is owed to a photo that failed; None for nothing."""
        config = self._desk.inbox_of(active.job.key).config
        if config.failed == "leave":
            return None
        time = datetime.fromtimestamp(self._desk.wall(), UTC).isoformat(timespec="seconds")
        record = FailureRecord(failure.reason, failure.detail, config.name, attempts, time, __version__)
        what: What = "failed-move" if config.failed == "move" else "failed-copy"
        return Owed(what, active.job.stat, os.fspath(config.failed_dir), record).text()

    def _is_spared(self, key: PhotoKey, *, alike: bool) -> bool:
        return alike and self._desk.inbox_of(key).config.originals == "delete"

    def settle(self, key: PhotoKey, pending: str | None, *, alike: bool) -> None:
        """Begin what `after_success` said, or say why the original is not deleted."""
        if pending is not None:
            self.put_away(key)
        elif self._is_spared(key, alike=alike):
            self._desk.reporter.original_kept(key, ONLY_ALIKE)

    def put_away(self, key: PhotoKey) -> None:
        """Begin what is owed to an original."""
        row = self._desk.ledger.get(key)
        if row is None or row.original_pending is None:
            return
        if Owed.of(row.original_pending).role not in self._desk.inbox_of(key).health.shelves:
            self._begin(row)

    def resume(self, inbox: Inbox) -> None:
        """Begin all that is owed to the originals of an inbox; where their new place fails, one of them probes it."""
        probed: set[PlaceRole] = set()
        for row in self._desk.ledger.original_waiting(inbox.name):
            role = Owed.of(row.original_pending or "").role
            if row.key in self._desk.actives or role in probed:
                continue
            if role is not None and role in inbox.health.shelves:
                probed.add(role)
            self._begin(row)

    def _begin(self, row: Row) -> None:
        if row.key in self._busy | self._held:
            return
        self._busy.add(row.key)
        inbox = self._desk.inbox_of(row.key)
        owed = Owed.of(row.original_pending or "")
        private = private_name(self._instance, row.key.path)
        inbox.ask(PutAway(row.key, inbox.root, owed, private, inbox.identity))

    def _cross_off(self, key: PhotoKey, stat: FileStat | None, moved: bytes | None = None) -> None:
        """Record that nothing is owed any more, where the original is, and its times if it was hidden and put back."""
        self._desk.ledger.original_done(key, moved=moved)
        row = self._desk.ledger.get(key)
        if row is not None and stat is not None and row.same_stat(stat):
            self._desk.ledger.touch(key, stat)

    def put_away_ended(self, request: PutAway, result: Disposed | Quarantined | Kept | AnimedError, now: float) -> None:
        """Cross off what was done, or what cannot be; a place that fails is asked again when it is well."""
        inbox, role = self._desk.inbox_of(request.key), request.owed.role
        if isinstance(result, PlaceError):
            self._busy.discard(request.key)
            inbox.suspend(result, now)
            return
        if isinstance(result, Kept | AnimedError):
            why = result.why if isinstance(result, Kept) else str(result)
            self._desk.reporter.original_kept(request.key, why)
        # A copy lies there as well, but the original is still in the inbox.
        moved = result.to if isinstance(result, Disposed | Quarantined) and request.owed.what != "failed-copy" else None
        write = partial(self._cross_off, request.key, result.stat if isinstance(result, Kept) else None, moved)

        def then() -> None:
            self._busy.discard(request.key)
            self._desk.look_again(request.key, now)
            if role is not None and role in inbox.health.shelves:
                inbox.restored(role)
                self.resume(inbox)

        self._desk.journal.commit(write, then, now)
