"""Small text files for people, beside the pictures: written whole, and replaced or removed only where they are ours.

The last line of a note says whose it is. What does not end in such a line belongs to somebody else: it is left alone,
and the next name is tried.
"""

from __future__ import annotations

import itertools
import os
import stat as bits
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.delivery.faults import FolderGone, Place
from animed.delivery.folders import Making, open_folder, peek, remove, tolerating
from animed.delivery.naming import Layout, Subject, candidates, split
from animed.delivery.staging import temp_name
from animed.delivery.transfer import Temp, create_temp, dress, drop_temp, opened, put_temp, write_all
from animed.errors import PhotoError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from animed.delivery.portable import NameRules
    from animed.records import Stage
from animed.system import REAL, Entry, System

_LONGEST: Final = 1 << 16  # bytes; nothing longer is ours
_MOST_NAMES: Final = 20
_DEEPEST: Final = 64  # levels of folders


@dataclass(frozen=True, slots=True)
class Note:
    """A note's content. Its last line is `owner`, a space, and a stamp that tells versions apart."""

    text: str  # without the last line
    owner: str  # what names the note for ever
    stamp: str  # without a space

    @property
    def content(self) -> bytes:
        """Return the whole file."""
        return f"{self.text}\n{self.owner} {self.stamp}\n".encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class FoundNote:
    """One of our notes on the disk."""

    name: bytes  # below the output
    owner: str
    stamp: str


def failure_names(path: bytes, layout: Layout, rules: NameRules) -> tuple[bytes, ...]:
    """Return the names that the note about a photo may have, best first: `a.jpg.failed.txt`, `a.jpg.failed-2.txt`.

    When a photo was taken is not known of one that failed: where pictures lie by date its note is at the top.
    """
    # The photo keeps its own extension in the name: only a second one is taken off for it.
    subject, below = Subject(path + b".x", "", ".txt"), layout if layout == "mirror" else "flat"
    names = candidates(subject, template="{stem}.failed{ext}", layout=below, rules=rules)
    return tuple(itertools.islice(names, _MOST_NAMES))


def write(
    note: Note,
    names: Sequence[bytes],
    *,
    output: str,
    stage: Stage,
    dir_mode: int | None = None,
    group: int | None = None,
    system: System = REAL,
) -> bytes | None:
    """Write a note under the first of its names that is free or its own, and return that; None where none is.

    The names lie in one folder below `output`, which is made. A note that says the same already is left as it is, so
    that sync programs see no change. Raises PlaceError or PhotoError.
    """
    *folders, _ = split(names[0])
    at, making = Place("output", output), Making(dir_mode, group)
    with open_folder(system, at, folders, making) as folder, at.guard(b"/".join(folders)):
        for name in names:
            entry = Entry(folder, split(name)[-1])
            found = _content(system, entry)
            if found == note.content or (found is None and _put(system, note, entry, stage=stage, group=group)):
                return name
            if found is not None and _owner(found) == note.owner:
                _replace(system, note, entry, stage=stage, group=group)
                return name
    return None


def drop(owner: str, names: Sequence[bytes], *, output: str, system: System = REAL) -> bool:
    """Remove the note of this owner from among these names; say whether it was there. Raises PlaceError, PhotoError."""
    *folders, _ = split(names[0])
    at = Place("output", output)
    try:
        with open_folder(system, at, folders) as folder, at.guard(b"/".join(folders)):
            for name in names:
                entry = Entry(folder, split(name)[-1])
                if (found := _content(system, entry)) and _owner(found) == owner:
                    remove(system, entry)
                    return True
    except FolderGone:
        return False
    return False


def find(output: str, owners: str, *, system: System = REAL) -> Iterator[tuple[FoundNote, ...]]:
    """Look through an output, folder by folder, for notes about photos whose owner begins with `owners`.

    A sub-folder that denies access is passed over. Raises PlaceError.
    """
    waiting = [b""]
    while waiting:
        below = waiting.pop()
        try:
            yield tuple(_in_folder(system, Place("output", output), below, waiting=waiting, owners=owners))
        except PhotoError:
            continue


def _in_folder(system: System, at: Place, below: bytes, *, waiting: list[bytes], owners: str) -> Iterator[FoundNote]:
    parts = split(below) if below else []
    with open_folder(system, at, parts) as folder, at.guard(below):
        for name, is_folder in system.entries(folder):
            path = os.path.join(below, name)
            if is_folder and not name.startswith(b".") and len(parts) < _DEEPEST:
                waiting.append(path)
            elif not is_folder and name.endswith(b".txt") and b".failed" in name:
                owner, stamp = _last_line(_content(system, Entry(folder, name)) or b"")
                if owner.startswith(owners):
                    yield FoundNote(path, owner, stamp)


def _content(system: System, entry: Entry) -> bytes | None:
    """Return what a name holds; None for nothing, b"" for what cannot be a note."""
    found = peek(system, entry)
    if found is None:
        return None
    if not bits.S_ISREG(found.st_mode) or found.st_size > _LONGEST:
        return b""
    with opened(system, entry) as descriptor:
        return b"".join(iter(lambda: system.read(descriptor, _LONGEST), b""))


def _last_line(content: bytes) -> tuple[str, str]:
    """Return owner and stamp, or two empty texts."""
    lines = content.decode("utf-8", "replace").rstrip().rsplit("\n", 1)
    owner, _, stamp = lines[-1].rpartition(" ")
    return (owner, stamp) if owner.startswith("animed-") else ("", "")


def _owner(content: bytes) -> str:
    return _last_line(content)[0]


def _put(system: System, note: Note, entry: Entry, *, stage: Stage, group: int | None) -> bool:
    """Give a new note a free name; False when the name was taken meanwhile."""
    temp = _filled(system, note, entry, stage=stage, group=group, unnamed=True)
    try:
        put_temp(system, temp, entry)
    except FileExistsError:
        return False
    finally:
        drop_temp(system, temp)
    return True


def _replace(system: System, note: Note, entry: Entry, *, stage: Stage, group: int | None) -> None:
    temp = _filled(system, note, entry, stage=stage, group=group, unnamed=False)
    try:
        if temp.entry is not None:
            system.rename(temp.entry, entry)
    finally:
        drop_temp(system, temp)


def _filled(system: System, note: Note, entry: Entry, *, stage: Stage, group: int | None, unnamed: bool) -> Temp:
    """Return a temporary file with the note in it, durable before it gets its name."""
    mode = 0o666 if stage.mode is None else stage.mode
    temp = create_temp(system, Entry(entry.folder, temp_name(stage.temp_prefix)), mode, unnamed=unnamed)
    filled = False
    try:
        write_all(system, temp.descriptor, note.content)
        refused: list[str] = []
        dress(system, temp.descriptor, mode=stage.mode, mtime_ns=None, notes=refused)
        if group is not None:
            with tolerating("the group of a file", refused):
                system.chgrp(temp.descriptor, group)
        system.fsync(temp.descriptor)
        filled = True
    finally:
        if not filled:
            drop_temp(system, temp)
    return temp
