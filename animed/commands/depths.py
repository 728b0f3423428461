"""The part of `animed check` that looks below an inbox, for what the service would not get to see."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Final

from animed.commands.findings import Finding, warning
from animed.commands.output import counted, shown
from animed.commands.verdict import rules_of
from animed.errors import PlaceError
from animed.intake.scan import Found, Scanner, Unreadable
from animed.limited import limited
from animed.records import absolute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.config import InboxConfig
    from animed.intake.scan import Entry

_MOST_ENTRIES: Final = 100_000  # looking stops here: a check should not walk for minutes
_LOOKING_S: Final = 20.0  # and then, on a share that may not answer
_NAMED: Final = 3  # of the paths that may not be read
_REMEDY: Final = "give the service's user the right to read them (and to list folders), or name them in ignore"


def look_below(inbox: InboxConfig) -> Iterator[Finding]:
    """Warn of folders that cannot be listed, and of photos that may not be read, as this user sees them."""
    try:
        closed, locked = limited(_out_of_reach, inbox, folder=inbox.path, limit=_LOOKING_S)
    except TimeoutError:
        text = f"{shown(str(inbox.path))} was not looked through: its file system does not answer, or is slow"
        yield warning("folders", inbox.name, text, "try again when the share answers")
        return
    if closed:
        yield warning("folders", inbox.name, f"{_some(closed)} cannot be looked into: no photo there is found", _REMEDY)
    if locked:
        yield warning("photos", inbox.name, f"{_some(locked)} may not be read: each would fail as unreadable", _REMEDY)


def _out_of_reach(inbox: InboxConfig) -> tuple[list[bytes], list[bytes]]:
    """Return the folders that cannot be listed, and the photos that may not be read."""
    closed: list[bytes] = []
    locked: list[bytes] = []
    try:
        for entry in itertools.islice(Scanner(str(inbox.path), rules_of(inbox)).scan(), _MOST_ENTRIES):
            if isinstance(entry, Unreadable):
                closed.append(entry.path)
            elif _is_locked(inbox, entry):
                locked.append(entry.path)
    except PlaceError:
        pass  # Told as a finding of the inbox itself.
    return closed, locked


def _is_locked(inbox: InboxConfig, entry: Entry) -> bool:
    full = absolute(str(inbox.path), entry.path)
    return isinstance(entry, Found) and not os.access(full, os.R_OK, effective_ids=True)


def _some(paths: list[bytes]) -> str:
    """Name the first of many paths."""
    named = ", ".join(shown(path) for path in sorted(paths)[:_NAMED])
    return named + (f" and {counted(len(paths) - _NAMED, 'more', 'more')}" if len(paths) > _NAMED else "")
