"""Walking below a root without ever following a link, and making the folders that are missing.

The root itself is the user's word and may be a link; every component below it is opened O_NOFOLLOW, one by one.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from animed.delivery.faults import FolderGone, Place
from animed.errors import PlaceError
from animed.records import Reason, printable
from animed.system import Entry, System, shut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY
# Some file systems cannot sync a folder: what they promise without it is all there is.
_CANNOT_SYNC: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})
# Shares that keep no owners or modes refuse these; the picture is good without them.
_CANNOT_DRESS: Final = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


@dataclass(slots=True)
class Making:
    """How missing folders are made; what the file system would not do is collected in `notes`."""

    mode: int | None = None  # permission bits; None = 0777 less the umask
    group: int | None = None  # numeric group
    notes: list[str] = field(default_factory=list)


@contextmanager
def open_folder(system: System, place: Place, parts: Sequence[bytes], making: Making | None = None) -> Iterator[int]:
    """Open the folder `parts` below a place's root and give its descriptor, making what is missing if asked to.

    Raises PlaceError for a root that is not there, FolderGone for a missing folder that is not to be made, PhotoError
    for a component that is a link, not a folder, or out of bounds.
    """
    with place.guard():
        folder = system.open(Entry(None, os.fsencode(place.root)), _FOLDER)
    try:
        for depth in range(1, len(parts) + 1):
            above = folder
            folder = _enter(system, place, parts[:depth], above=above, making=making)
            shut(system, above)
        yield folder
    finally:
        shut(system, folder)


def prepare_root(system: System, place: Place, making: Making) -> bool:
    """Make a root where only its last component is missing; say whether it was made. Raises PlaceError."""
    root = os.path.normpath(os.fsencode(place.root))
    with place.guard():
        try:
            system.mkdir(Entry(None, root), making.mode or 0o777)
        except FileExistsError:
            _refuse_file(system, place)
            return False
        folder = system.open(Entry(None, root), _FOLDER)
        try:
            _dress_folder(system, folder, making)
        finally:
            shut(system, folder)
        _sync_parent(system, root)
    return True


def sync_folder(system: System, folder: int) -> None:
    """Make the names in an open folder durable, as far as its file system can."""
    try:
        system.fsync(folder)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


@contextmanager
def tolerating(what: str, notes: list[str]) -> Iterator[None]:
    """Let a file system refuse an owner, a mode or a time, and note it."""
    try:
        yield
    except OSError as error:
        if error.errno not in _CANNOT_DRESS:
            raise
        notes.append(f"{what} could not be set: {os.strerror(error.errno)}")


def peek(system: System, entry: Entry) -> os.stat_result | None:
    """Return what a name holds, or None for nothing."""
    try:
        return system.lstat(entry)
    except FileNotFoundError:
        return None


def remove(system: System, entry: Entry) -> None:
    """Remove a name that may be gone already."""
    with suppress(FileNotFoundError):
        system.unlink(entry)


def _enter(system: System, place: Place, parts: Sequence[bytes], *, above: int, making: Making | None) -> int:
    below, entry = b"/".join(parts), Entry(above, parts[-1])
    with place.guard(below):
        try:
            return system.open(entry, _FOLDER | os.O_NOFOLLOW)
        except FileNotFoundError:
            if making is None:
                raise FolderGone(Reason.OUTPUT_DENIED, f"no such folder: {printable(below)}") from None
    with place.guard(b"/".join(parts[:-1])):
        with suppress(FileExistsError):
            system.mkdir(entry, making.mode or 0o777)
        sync_folder(system, above)
    with place.guard(below):
        folder = system.open(entry, _FOLDER | os.O_NOFOLLOW)
        try:
            _dress_folder(system, folder, making)
        except OSError:
            shut(system, folder)
            raise
    return folder


def _dress_folder(system: System, folder: int, making: Making) -> None:
    """Give a new folder its group and mode. A folder without its search bit could not be entered: it is added."""
    if making.group is not None:
        with tolerating("the group of a folder", making.notes):
            system.chgrp(folder, making.group)
    found = system.fstat(folder).st_mode & 0o7777
    bits = found & 0o777 if making.mode is None else making.mode & 0o777
    wanted = (found & 0o7000) | bits | 0o700 | (bits & 0o444) >> 2
    if wanted != found:
        with tolerating("the mode of a folder", making.notes):
            system.chmod(folder, wanted)


def _refuse_file(system: System, place: Place) -> None:
    """Raise PlaceError when a root's name is held by something that is not a folder."""
    try:
        shut(system, system.open(Entry(None, os.fsencode(place.root)), _FOLDER))
    except NotADirectoryError as error:
        raise PlaceError(place.role, errno.ENOTDIR, place.root, f"not a folder: {printable(place.root)}") from error


def _sync_parent(system: System, root: bytes) -> None:
    parent = system.open(Entry(None, os.path.dirname(root) or b"."), _FOLDER)
    try:
        sync_folder(system, parent)
    finally:
        shut(system, parent)
