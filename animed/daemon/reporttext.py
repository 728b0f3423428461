"""What the notes in the output say, for people who see nothing else of animed. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from animed.delivery.notes import Note
from animed.records import Reason, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from animed.records import PhotoKey
    from animed.schedule.rows import Row

STATUS_NAMES: Final = (b"animed-status.txt", *(b"animed-status-%d.txt" % number for number in range(2, 10)))
_OVER: Final = frozenset({"stopped", "finished"})
SHOWN: Final = 10  # failures in the status
_AGAIN: Final = "put it into the inbox again"
_ADMIN: Final = "ask whoever looks after animed"

# What was wrong, and what to do about it, without a word that only those know who run the service.
WORDS: Final[Mapping[str, tuple[str, str]]] = {
    Reason.EMPTY: ("The file has nothing in it.", f"Copy it once more: {_AGAIN}."),
    Reason.NOT_AN_IMAGE: (
        "This is not a picture, whatever its name says, or a damaged one.",
        "Copy it again, or take it out of the inbox.",
    ),
    Reason.TRUNCATED: ("The end of the file is missing.", f"Copy it once more: {_AGAIN}."),
    Reason.UNSUPPORTED: ("This kind of picture cannot be read.", f"Save it as JPEG or PNG, and {_AGAIN}."),
    Reason.TOO_LARGE: ("The picture has too many pixels.", f"Make it smaller, and {_AGAIN}."),
    Reason.UNREADABLE: ("The file could not be read.", f"It may be protected, or its disk faulty: {_ADMIN}."),
    Reason.TIMEOUT: ("Drawing it took too long.", f"Make it smaller and {_AGAIN}, or {_ADMIN}."),
    Reason.WORKER_CRASHED: (
        "The program that draws broke down over it.",
        f"Make it smaller and {_AGAIN}, or {_ADMIN}.",
    ),
    Reason.OUT_OF_MEMORY: ("There was not enough memory to draw it.", f"Make it smaller and {_AGAIN}, or {_ADMIN}."),
    Reason.NOT_FINITE: ("The drawing came out wrong.", f"The photo is not to blame: {_ADMIN}."),
    Reason.CHANGED: ("It was still changing while it was read.", f"When it is complete, {_AGAIN}."),
    Reason.CONFLICT: ("Another file has the name of its picture.", f"Give the photo another name, and {_AGAIN}."),
    Reason.OUTPUT_DENIED: ("Its picture could not be written.", f"A folder of the pictures is protected: {_ADMIN}."),
    Reason.ENCODE: ("Its picture could not be saved.", f"Its shape may not fit the format of pictures: {_ADMIN}."),
}
_UNKNOWN: Final = ("Something went wrong.", f"Look into the log, or {_ADMIN}.")


@dataclass(frozen=True, slots=True)
class InboxLine:
    """What the status says of one inbox."""

    name: str
    state: str
    counts: Mapping[str, int]  # by status of the ledger
    troubles: tuple[str, ...]  # the places that do not do what they should


def owners(instance: str, inbox: str) -> str:
    """Return how the owner of each note about a photo of this inbox begins."""
    return f"animed-report {instance} {inbox} "


def owner(instance: str, key: PhotoKey) -> str:
    """Return what names the note about a photo for ever."""
    return owners(instance, key.inbox) + hashlib.sha256(key.path).hexdigest()[:32]


def stamp(row: Row) -> str:
    """Return what tells this failure of a photo from a later one."""
    return str(round(row.updated * 1000))


def failure(instance: str, row: Row) -> Note:
    """Return the note about a failed photo."""
    what, to_do = WORDS.get(row.reason.partition(":")[0], _UNKNOWN)
    tries = "one try" if row.attempts <= 1 else f"{row.attempts} tries"
    lines = [
        f"animed could not make a picture of {clean(printable(row.key.path))}",
        "",
        f"What was wrong:  {what}",
        f"                 ({clean(row.reason)}{f': {clean(row.detail)}' if row.detail else ''})",
        f"What to do:      {to_do}",
        f"When:            {_time(row.updated)}, after {tries}",
        f"Inbox:           {row.key.inbox}",
        "",
        "The photo itself is unharmed. This file goes by itself when its picture has been made, or when the photo is",
        "taken out of the inbox. It was written by animed, which knows it by the line below.",
        "",
    ]
    return Note("\n".join(lines), owner(instance, row.key), stamp(row))


def status(instance: str, state: str, inboxes: Sequence[InboxLine], failures: Sequence[Row], *, now: float) -> Note:
    """Return the note about the whole: the state, the counts, the last failures. `now` is wall-clock seconds."""
    over = state in _OVER
    lines = [f"animed: {state} at {_time(now)}" if over else f"animed: {state}", ""]
    for inbox in inboxes:
        lines += [f"Inbox {inbox.name}: {'' if over else inbox.state}{_troubles(inbox.troubles)}".rstrip(": ")]
        lines += [f"  {_counted(inbox.counts)}"]
    if failures:
        lines += ["", "The last photos that could not be drawn:"]
        lines += [f"  {clean(printable(row.key.path))}: {_what(row)}" for row in failures[:SHOWN]]
        lines += ["Beside the place of each one's picture, NAME.failed.txt says what to do."]
    again = "when it is started again" if over else "when something changes, at most once a minute"
    lines += ["", f"Written at {_time(now)}, and next {again}.", ""]
    return Note("\n".join(lines), f"animed-status {instance}", str(round(now * 1000)))


def clean(text: str) -> str:
    """Return text without characters that would break a line or do something to a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _what(row: Row) -> str:
    return WORDS.get(row.reason.partition(":")[0], _UNKNOWN)[0].rstrip(".").lower()


def _troubles(troubles: Sequence[str]) -> str:
    return f" (trouble with: {', '.join(troubles)})" if troubles else ""


def _counted(counts: Mapping[str, int]) -> str:
    pictures = counts.get("done", 0) + counts.get("duplicate", 0)
    told = [f"{pictures} picture{'' if pictures == 1 else 's'}"]
    told += [f"{count} {word}" for word, count in (
        ("failed", counts.get("failed", 0)), ("to be tried again", counts.get("retry", 0)),
        ("skipped", counts.get("skipped", 0)),
    ) if count]  # fmt: skip
    return ", ".join(told)


def _time(seconds: float) -> str:
    """Write a time as the clock on the wall shows it."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S (UTC%z)")
