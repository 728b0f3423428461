"""`report: file`: notes in the output for people who see only the synced folder. The main thread decides what is asked.

NAME.failed.txt stands beside the place of a failed photo's picture until the photo ends well or is gone;
animed-status.txt at the top of each output tells how all is, for all inboxes that share it. What notes there are is
known from the disk: each start looks once, so that nothing has to be remembered. A note that cannot be written is told
once in the log, and has no effect on photos.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from animed.daemon import reporttext
from animed.daemon.noting import FindNotes, RemoveNote, SearchEnded, WriteNote
from animed.daemon.reporttext import InboxLine
from animed.delivery.notes import failure_names
from animed.errors import AnimedError

if TYPE_CHECKING:
    from animed.daemon.desk import Desk
    from animed.daemon.inbox import Inbox
    from animed.daemon.outcomes import BatchEnded, PhotoEnded
    from animed.delivery.notes import FoundNote, Note
    from animed.records import PhotoKey
    from animed.schedule.rows import Row

    NoteRequest = WriteNote | RemoveNote | FindNotes

EVERY_S: Final = 60.0  # between two versions of the status
_COUNTED: Final = ("done", "duplicate", "skipped", "failed", "retry")
_LOOKED_AT: Final = 200  # last failures of all inboxes, among which those of one output are sought


@dataclass(slots=True)
class _Shelf:
    """The notes about the photos of one inbox in one output."""

    search: Literal["due", "asked", "done"] = "due"
    names: dict[str, tuple[bytes, str]] = field(default_factory=dict)  # by owner: name and stamp
    writing: Counter[str] = field(default_factory=Counter)  # owners whose note an I/O thread is writing
    checked: tuple[int, int] | None = None  # failures and notes when they were last compared one by one
    due: float = 0.0  # the earliest time of the next comparison


@dataclass(slots=True)
class _Sign:
    """The status of one output."""

    told: object = None  # what the last version was made of
    due: float = 0.0  # the earliest time of the next version
    asked: str | None = None  # the inbox whose I/O thread is writing


class Reports:
    """Keeps the notes. It follows the inboxes of the desk as they are: a new configuration needs no word to it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._instance = desk.ledger.instance
        self._shelves: dict[tuple[str, str], _Shelf] = {}  # by inbox and output
        self._signs: dict[str, _Sign] = {}  # by output
        self._asked: Counter[str] = Counter()  # requests on their way, by inbox
        self._due: float | None = None

    @property
    def busy(self) -> bool:
        """Say whether notes are being written; where an inbox does not answer, nobody waits for them."""
        return any(count and not self._is_lost(name) for name, count in self._asked.items())

    # What is heard of.

    def photo_ended(self, ended: PhotoEnded) -> None:
        """Write the note about a failed photo, remove that about one that ended otherwise."""
        inbox = self._desk.inboxes.get(ended.key.inbox)
        if inbox is None or inbox.config.report == "off":
            return
        row = self._desk.ledger.get(ended.key) if ended.status == "failed" else None
        self._write(inbox, row) if row is not None else self._remove(inbox, ended.key)

    def photo_forgotten(self, key: PhotoKey) -> None:
        """Remove the note about a photo that is gone."""
        inbox = self._desk.inboxes.get(key.inbox)
        if inbox is not None and inbox.config.report == "file":
            self._remove(inbox, key)

    def batch_ended(self, ended: BatchEnded) -> None:
        """Do nothing: the counts are in the status."""

    # What the loop does.

    def next_due(self) -> float | None:
        """Return when `tick` is to be called next for the sake of a status."""
        return self._due

    def tick(self, state: str, now: float) -> None:
        """Look through outputs that were not looked through yet, and renew each status that has changed."""
        self._due = None
        if state in {"starting", "draining"}:
            return
        for output, inboxes in self._groups().items():
            writer = next((inbox for inbox in inboxes if _takes_notes(inbox)), None)
            if writer is None:
                continue
            for inbox in inboxes:
                self._search(inbox)
                self._compare(inbox, now)
            self._renew(self._signs.setdefault(output, _Sign()), state, inboxes, writer=writer, now=now)

    def close(self, *, finished: bool) -> None:
        """Write the last status of each output: the service stops, or its single pass has finished."""
        self._due = None
        for inboxes in self._groups().values():
            writer = next((inbox for inbox in inboxes if _takes_notes(inbox)), None)
            if writer is not None:
                self._ask_status("finished" if finished else "stopped", inboxes, writer=writer)

    def part(self, inbox: Inbox, *, stays: bool) -> None:
        """Leave the output of an inbox that ends: with a last status, where no other inbox reports on it.

        `stays`: a successor reports there, and keeps the notes about photos; without one nobody would ever remove them.
        """
        if inbox.config.report == "off" or not _takes_notes(inbox):
            return
        for owner, (name, _) in () if stays else self._shelf(inbox).names.items():
            self._ask(inbox, RemoveNote(owner, (name,), inbox.delivery))
        if inbox.output not in self._groups():
            self._ask_status("stopped", [inbox], writer=inbox)

    def forget(self, inbox: Inbox) -> None:
        """Forget what an inbox that has ended was asked for; its successor looks through its output anew."""
        self._asked.pop(inbox.name, None)
        self._shelves.pop((inbox.name, inbox.output), None)
        self._signs.pop(inbox.output, None)

    def answered(self, name: str, request: NoteRequest, result: Any) -> None:
        """Take the answer of an I/O thread."""
        sliced = isinstance(request, FindNotes) and isinstance(result, tuple)
        if not sliced and self._asked[name]:
            self._asked[name] -= 1
        if isinstance(result, AnimedError):
            self._desk.reporter.place_notes(name, (f"a report cannot be written: {result}",))
        shelf = self._shelves.setdefault((name, request.delivery.output), _Shelf())
        match request:
            case WriteNote(names=reporttext.STATUS_NAMES):
                self._status_written(name, request, result)
            case WriteNote():
                self._written(shelf, request.note, result)
            case RemoveNote() if not isinstance(result, AnimedError):
                shelf.names.pop(request.owner, None)
            case FindNotes():
                self._found(name, shelf, result)

    # Notes about photos.

    def _search(self, inbox: Inbox) -> None:
        shelf = self._shelf(inbox)
        if shelf.search == "due" and _takes_notes(inbox):
            shelf.search = "asked"
            self._ask(inbox, FindNotes(reporttext.owners(self._instance, inbox.name), inbox.delivery))

    def _found(self, name: str, shelf: _Shelf, result: tuple[FoundNote, ...] | SearchEnded | AnimedError) -> None:
        if isinstance(result, tuple):
            for note in result:
                shelf.names.setdefault(note.owner, (note.name, note.stamp))
            return
        shelf.search = "done"
        inbox = self._desk.inboxes.get(name)
        if inbox is not None and isinstance(result, SearchEnded):
            self._reconcile(inbox)

    def _compare(self, inbox: Inbox, now: float) -> None:
        """Put the notes right where their number is not that of the failures: someone changed the ledger unheard."""
        shelf = self._shelf(inbox)
        failed = self._desk.ledger.totals().get(inbox.name, {}).get("failed", 0)
        counts = (failed, len(shelf.names))
        if shelf.search != "done" or shelf.writing or failed == len(shelf.names) or counts == shelf.checked:
            return
        if now < shelf.due:
            self._wake(shelf.due)
            return
        shelf.due, shelf.checked = now + EVERY_S, counts
        self._reconcile(inbox)

    def _reconcile(self, inbox: Inbox) -> None:
        """Write what is missing or old; remove what is about no failure any more. A note that waits for a try stays."""
        rows = {reporttext.owner(self._instance, row.key): row for row in self._desk.ledger.failures(inbox.name)}
        shelf = self._shelf(inbox)
        for owner, row in rows.items():
            is_new = shelf.names.get(owner, (b"", ""))[1] != reporttext.stamp(row)
            if row.status == "failed" and owner not in shelf.writing and is_new:
                self._write(inbox, row)
        for owner in shelf.names.keys() - rows.keys():
            self._ask(inbox, RemoveNote(owner, (shelf.names[owner][0],), inbox.delivery))

    def _write(self, inbox: Inbox, row: Row) -> None:
        note = reporttext.failure(self._instance, row)
        self._shelf(inbox).writing[note.owner] += 1
        self._ask(inbox, WriteNote(note, self._names(inbox, row.key.path), inbox.delivery))

    def _written(self, shelf: _Shelf, note: Note, result: bytes | AnimedError | None) -> None:
        shelf.writing -= Counter([note.owner])
        if isinstance(result, bytes):
            shelf.names[note.owner] = (result, note.stamp)
        elif result is not None:
            shelf.checked = None  # It was refused: it is tried again when its time has come.

    def _remove(self, inbox: Inbox, key: PhotoKey) -> None:
        """Remove a photo's note if there is one, or is about to be."""
        shelf, owner = self._shelf(inbox), reporttext.owner(self._instance, key)
        if owner in shelf.names:
            self._ask(inbox, RemoveNote(owner, (shelf.names[owner][0],), inbox.delivery))
        elif owner in shelf.writing:
            self._ask(inbox, RemoveNote(owner, self._names(inbox, key.path), inbox.delivery))

    def _names(self, inbox: Inbox, path: bytes) -> tuple[bytes, ...]:
        return failure_names(path, inbox.config.layout, inbox.names)

    # The status of an output.

    def _renew(self, sign: _Sign, state: str, inboxes: list[Inbox], *, writer: Inbox, now: float) -> None:
        told = (state, *map(self._line_of, inboxes))
        if told == sign.told or (sign.asked is not None and not self._is_lost(sign.asked)):
            return
        if now < sign.due:
            self._wake(sign.due)
            return
        sign.told, sign.due, sign.asked = told, now + EVERY_S, writer.name
        self._ask_status(state, inboxes, writer=writer)

    def _ask_status(self, state: str, inboxes: list[Inbox], *, writer: Inbox) -> None:
        names = {inbox.name for inbox in inboxes}
        rows = [row for row in self._desk.ledger.last_failures(_LOOKED_AT) if row.key.inbox in names]
        lines = [self._line_of(inbox) for inbox in inboxes]
        note = reporttext.status(self._instance, state, lines, rows, now=self._desk.wall())
        self._ask(writer, WriteNote(note, reporttext.STATUS_NAMES, writer.delivery))

    def _status_written(self, name: str, request: WriteNote, result: bytes | AnimedError | None) -> None:
        sign = self._signs.get(request.delivery.output)
        if sign is not None and sign.asked == name:
            sign.asked = None
            # What was refused is tried again when its time has come.
            sign.told = None if isinstance(result, AnimedError) else sign.told

    def _line_of(self, inbox: Inbox) -> InboxLine:
        counts = self._desk.ledger.totals().get(inbox.name, {})
        shown = {status: counts.get(status, 0) for status in _COUNTED}
        return InboxLine(inbox.name, inbox.state, shown, tuple(inbox.health.troubles))

    # What both need.

    def _groups(self) -> dict[str, list[Inbox]]:
        """Return the inboxes that report, by the output that they share."""
        groups: dict[str, list[Inbox]] = {}
        for inbox in self._desk.inboxes.values():
            if inbox.config.report == "file" and inbox.name not in self._desk.leaving:
                groups.setdefault(inbox.output, []).append(inbox)
        return groups

    def _shelf(self, inbox: Inbox) -> _Shelf:
        return self._shelves.setdefault((inbox.name, inbox.output), _Shelf())

    def _ask(self, inbox: Inbox, request: NoteRequest) -> None:
        self._asked[inbox.name] += 1
        inbox.ask(request)

    def _wake(self, due: float) -> None:
        self._due = due if self._due is None else min(self._due, due)

    def _is_lost(self, name: str) -> bool:
        inbox = self._desk.inboxes.get(name)
        return inbox is None or inbox.state == "unavailable"


def _takes_notes(inbox: Inbox) -> bool:
    """Say whether the output was found to take writes, and the inbox's thread answers."""
    return inbox.output_opened and inbox.health.draws
