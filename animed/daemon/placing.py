"""From a finished picture to its outcome: the two commits, and what a crash left open."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Literal

from animed.daemon.active import Phase
from animed.daemon.putting import Discard, Place, Resolve, Resolved
from animed.daemon.titles import Titles
from animed.delivery.faults import SourceGone
from animed.delivery.publish import Placed, Taken
from animed.errors import AnimedError, PhotoError, PlaceError
from animed.records import Failure, Reason
from animed.schedule.ledger import OutputTakenError
from animed.schedule.rows import ALIKE

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.active import Active
    from animed.daemon.desk import Desk
    from animed.daemon.faults import Faults
    from animed.daemon.inbox import Inbox
    from animed.daemon.originals import Originals
    from animed.records import FileStat, PhotoKey, Picture, Staged
    from animed.schedule.rows import Row


class Placing:
    """Gives pictures their final names. Two commits make one outcome: the claim of the name, and the outcome."""

    def __init__(self, desk: Desk, faults: Faults, originals: Originals) -> None:
        self._desk = desk
        self._faults = faults
        self._originals = originals
        self._titles = Titles(desk)
        self._resolving: set[PhotoKey] = set()  # asked of an I/O thread
        self._held: set[PhotoKey] = set()  # in the hands of a thread that was left behind

    @property
    def busy(self) -> bool:
        """Say whether claimed names are being looked at; where an inbox does not answer, nobody waits for that."""
        return any(self._desk.inbox_of(key).state != "unavailable" for key in self._resolving)

    # A new picture.

    def place(self, active: Active, picture: Picture, now: float) -> None:
        """Give a picture that a worker has staged its name."""
        active.picture, active.staged, active.ext, active.taken = picture, picture.staged, picture.ext, picture.taken
        self.claim(active, picture.staged, now)

    def skip(self, active: Active, cause: str, now: float) -> None:
        """Record a photo that a policy leaves out."""
        job = active.job
        active.phase = Phase.PLACING
        write = partial(
            self._desk.ledger.skip, job.key, job.stat, sha256=job.sha256, recipe=job.recipe.digest,
            style=job.recipe.style, cause=cause, now=self._desk.wall(),
        )  # fmt: skip

        def then() -> None:
            self._desk.reporter.skipped(active, cause, now)
            self._desk.leave(active, "skipped", now)

        self._desk.journal.commit(write, then, now)

    def claim(self, active: Active, staged: Staged, now: float) -> None:
        """Make the first commit: the name and what the staged file is, before the name is taken."""
        job, inbox = active.job, self._desk.inbox_of(active.job.key)
        active.phase, active.name = Phase.PLACING, self._titles.next(active)
        active.output = os.path.join(os.fsencode(inbox.output), active.name)
        claim = partial(
            self._desk.ledger.publish, job.key, stat=job.stat, sha256=job.sha256, recipe=job.recipe.digest,
            style=job.recipe.style, output=active.output, staged=staged, folder=inbox.delivery.stage.folder,
            attempts=job.attempt, now=self._desk.wall(), taken=active.taken, folds=inbox.names.folds,
            fingerprint=_drawn_as(active),
        )  # fmt: skip
        self._desk.journal.commit(partial(_claimed, active, claim), partial(self._ask, active, staged, now), now)

    def _ask(self, active: Active, staged: Staged, now: float) -> None:
        if not active.claimed:
            self._taken(active, staged, now)
            return
        inbox = self._desk.inbox_of(active.job.key)
        overwrite = inbox.config.on_conflict == "overwrite"
        inbox.ask(Place(active.job.key, staged, active.fd, active.name, inbox.delivery, overwrite=overwrite))

    def placed(self, request: Place, result: Placed | Taken | AnimedError, now: float) -> None:
        """Go on with a picture that has its name, or has not."""
        active = self._desk.actives[request.key]
        match result:
            case Placed(notes=notes):
                self._finish(active, notes, now)
            case Taken():
                self._taken(active, request.staged, now)
            case PlaceError():
                # Whether the name was taken before the fault is found out when the place answers again.
                self._desk.inbox_of(request.key).suspend(result, now)
                self._desk.leave(active, "returned", now)
            case _:
                self._refused(active, result)

    def _finish(self, active: Active, notes: tuple[str, ...], now: float) -> None:
        """Make the second commit, then say so, then see to the original."""
        key = active.job.key
        status: Literal["done", "duplicate"] = "duplicate" if active.of else "done"
        pending = self._originals.after_success(key, active.job.stat, alike=active.alike)
        write = partial(self._desk.ledger.finish, key, status=status, original_pending=pending, now=self._desk.wall())

        def then() -> None:
            report = self._desk.reporter
            (report.duplicate if active.of else report.done)(active, now)
            report.place_notes(key.inbox, notes)
            self._drop_stage(active)
            self._desk.leave(active, status, now)
            self._originals.settle(key, pending, alike=active.alike)

        self._desk.journal.commit(write, then, now)

    def _taken(self, active: Active, staged: Staged, now: float) -> None:
        policy = self._desk.inbox_of(active.job.key).config.on_conflict
        if policy in {"suffix", "overwrite"}:
            self.claim(active, staged, now)
            return
        self._drop_stage(active)

        def then() -> None:
            if policy == "skip":
                self.skip(active, "the picture's name is taken", now)
            else:
                self._faults.failed(active, Failure(Reason.CONFLICT, "the picture's name is taken"), now)

        self._unclaim(active, then, now) if active.claimed else then()

    def _refused(self, active: Active, error: AnimedError) -> None:
        """Find out whether the name was taken before the fault came; only then is the photo to blame, or not."""
        active.refusal = error
        inbox = self._desk.inbox_of(active.job.key)
        row = self._desk.ledger.get(active.job.key)
        if row is not None:
            inbox.ask(Resolve(row, inbox.root, inbox.output, inbox.identity))

    def _refusal_resolved(self, active: Active, error: AnimedError, placed: bool, now: float) -> None:
        if placed:
            self._finish(active, (), now)
            return
        if active.staged is not None and self._titles.again(active, error):
            active.refusal = None
            self.claim(active, active.staged, now)
            return
        self._drop_stage(active)
        if isinstance(error, SourceGone):
            self._unclaim(active, lambda: self._faults.lost(active, now), now)
        else:
            reason = error.reason if isinstance(error, PhotoError) else Reason.OUTPUT_DENIED
            self._unclaim(active, lambda: self._faults.failed(active, Failure(reason, error.title), now), now)

    def _unclaim(self, active: Active, then: Callable[[], None], now: float) -> None:
        write = partial(self._desk.ledger.unpublish, active.job.key, now=self._desk.wall())
        self._desk.journal.commit(write, then, now)

    def _drop_stage(self, active: Active) -> None:
        if active.staged is not None and active.staged.name is not None:
            inbox = self._desk.inbox_of(active.job.key)
            inbox.ask(Discard(active.staged, inbox.delivery.stage))
        active.staged = None
        active.drop_stage(self._desk.system)

    # What a crash, or a place that failed, left open.

    def resolve(self, inbox: Inbox) -> None:
        """Find out for each claimed name of an inbox whether its picture is there."""
        for row in self._desk.ledger.publishing(inbox.name):
            if row.key not in self._desk.actives and row.key not in self._resolving | self._held:
                self._resolving.add(row.key)
                inbox.ask(Resolve(row, inbox.root, inbox.output, inbox.identity))

    def prepare(self, inbox: Inbox) -> None:
        """Tell an inbox, before it starts, where leftovers of earlier runs may lie.

        They lie where pictures are staged, and beside the names of pictures that were being placed.
        """
        rows = self._desk.ledger.publishing(inbox.name)
        beside = {os.fsdecode(os.path.dirname(row.output)) for row in rows if row.output is not None}
        inbox.sweep = tuple({inbox.output, *beside})

    def serves(self, inbox: str) -> bool:
        """Say whether claimed names of an inbox are being looked at."""
        return any(key.inbox == inbox for key in self._resolving)

    def forget(self, inbox: str) -> None:
        """Forget what was asked of a thread that is left behind; its successor asks again."""
        self._resolving -= {key for key in self._resolving if key.inbox == inbox}

    def hold(self, key: PhotoKey) -> None:
        """Leave a claimed name alone while a thread that was left behind may still take it."""
        self._held.add(key)

    def release(self, key: PhotoKey) -> None:
        """Note that such a thread has come to an end with a photo."""
        self._held.discard(key)

    def resolved(self, request: Resolve, result: Resolved | AnimedError, now: float) -> None:
        """Record the outcome of a photo whose picture is there; look again at one whose picture is not."""
        row = request.row
        inbox = self._desk.inbox_of(row.key)
        active = self._desk.actives.get(row.key)
        if isinstance(result, PlaceError):
            self._resolving.discard(row.key)
            inbox.suspend(result, now)
            if active is not None:
                self._desk.leave(active, "returned", now)
        elif not isinstance(result, Resolved):
            # It could not be looked at: the name stays claimed, and is looked at again after the next scan.
            self._resolving.discard(row.key)
            self._desk.reporter.place_notes(inbox.name, (str(result),))
            if active is not None:
                self._desk.leave(active, "returned", now)
        elif active is not None and active.refusal is not None:
            self._refusal_resolved(active, active.refusal, result.placed, now)
        elif result.placed:
            self._recover(row, result.original, now)
        else:
            self._release(row, now)

    def _release(self, row: Row, now: float) -> None:
        """Give up a name that does not hold its picture, and look at the photo again."""
        inbox = self._desk.inbox_of(row.key)

        def then() -> None:
            self._resolving.discard(row.key)
            if row.staged is not None and row.staged.name is not None:
                inbox.ask(Discard(row.staged, inbox.delivery.stage))
            self._desk.relook.add(row.key)
            self._desk.look_again(row.key, now)

        self._desk.journal.commit(partial(self._desk.ledger.unpublish, row.key, now=self._desk.wall()), then, now)

    def _recover(self, row: Row, original: FileStat | None, now: float) -> None:
        """Make the second commit of a photo whose picture got its name before the crash."""
        same = original is not None and row.same_stat(original)
        pending = self._originals.after_success(row.key, original, alike=row.is_alike) if same and original else None
        # Of equal photos it does not matter which one counts as drawn; one that is only alike must not.
        status: Literal["done", "duplicate"] = "duplicate" if row.is_alike else "done"
        write = partial(
            self._desk.ledger.finish, row.key, status=status, original_pending=pending, now=self._desk.wall()
        )

        def then() -> None:
            # Only now does the ledger say so: until then the name must not be looked at, and recorded, a second time.
            self._resolving.discard(row.key)
            self._desk.reporter.recovered(row.key, status, row.output or b"", row.style)
            self._desk.left.append(row.key)
            self._desk.look_again(row.key, now)
            if same:
                self._originals.settle(row.key, pending, alike=row.is_alike)

        self._desk.journal.commit(write, then, now)


def _claimed(active: Active, claim: Callable[[], object]) -> None:
    """Claim a name, and note whether that went well: another photo may have been quicker."""
    try:
        claim()
    except OutputTakenError:
        active.claimed = False
    else:
        active.claimed = True


def _drawn_as(active: Active) -> bytes | None:
    """Return what others may be compared with: only a photo that was drawn itself, so that likeness makes no chains."""
    if active.alike:
        return ALIKE
    return None if active.of or active.fingerprint is None else active.fingerprint.to_bytes()
