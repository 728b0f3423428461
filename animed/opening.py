"""Reaching a photo below a root without ever following a link, and only when it is a regular file.

Every component is opened relative to its parent's descriptor with O_NOFOLLOW, so that a link planted in an inbox,
or swapped in while we walk, can lead nowhere. Both the inbox side and the workers read photos through here.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from animed.errors import AnimedError, PhotoError, PlaceError
from animed.records import VANISHED, FileStat, Reason, printable
from animed.system import DENIED, GONE, REAL, STARVED, Entry, System, at, shut

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

Identity = tuple[int, int]  # device, inode
Kind = Literal["symlink", "directory", "fifo", "socket", "device"]

# O_PATH needs only the right to pass through a folder, not the right to list it.
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO that was swapped in must not hold us; it means nothing for a regular file.
_PHOTO: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS: Final[dict[int, Kind]] = {
    stat.S_IFLNK: "symlink",
    stat.S_IFDIR: "directory",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "device",
    stat.S_IFCHR: "device",
}


class NotRegularError(AnimedError):
    """The path, or a folder on the way to it, is not what it must be: `kind` says what it is instead."""

    def __init__(self, kind: Kind, path: str = "") -> None:
        super().__init__(f"not a regular file but a {kind}", path=path)
        self.kind: Kind = kind

    def __reduce__(self) -> tuple[type[NotRegularError], tuple[Kind, str]]:
        """Travel through a pipe with both fields."""
        return type(self), (self.kind, self.path)


def kind_of(mode: int) -> Kind | None:
    """Return what a file of this st_mode is when it is not a regular file, else None."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "device")


def open_beneath(root: str, path: bytes, system: System = REAL) -> int:
    """Return a new read-only descriptor of the regular file `path` below `root`; the caller closes it.

    Raises FileNotFoundError (gone), NotRegularError (a link, folder, FIFO, socket or device, or a link on the way),
    PlaceError (the root itself cannot be opened), ValueError (not a path below a root), other OSError as they come.
    """
    with _parent(system, root, path) as entry:
        # A look before the open: opening a device can have effects of its own.
        _demand_regular(system.lstat(entry).st_mode, path)
        try:
            descriptor = system.open(entry, _PHOTO)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotRegularError("symlink", printable(path)) from error
            raise
    try:
        _demand_regular(system.fstat(descriptor).st_mode, path)
    except BaseException:
        shut(system, descriptor)
        raise
    return descriptor


def lstat_beneath(root: str, path: bytes, system: System = REAL) -> FileStat:
    """Return the stat of `path` below `root`, of whatever kind it is, without following a link anywhere.

    Raises FileNotFoundError (gone), NotRegularError (a link on the way), PlaceError (the root cannot be opened),
    ValueError (not a path below a root), other OSError as they come.
    """
    with _parent(system, root, path) as entry:
        return FileStat.of(system.lstat(entry))


def open_root(root: str, system: System = REAL) -> int:
    """Return a new descriptor of the root folder; a link that the configuration itself names is followed.

    Raises PlaceError when it is not there, not a folder, or not reachable.
    """
    try:
        return system.open(at(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PlaceError("inbox", error.errno or errno.EIO, root, _root_fault(error)) from error


def open_folder(root: int, path: bytes, *, listing: bool = True, system: System = REAL) -> int:
    """Return a new descriptor of the folder `path` below the descriptor `root` (b"" = the root itself).

    With `listing` it can be listed, else only passed through. Raises FileNotFoundError when a component is gone or
    is no longer a folder, NotRegularError when one is a link, other OSError as they come.
    """
    parts = _parts(path) if path else []
    last = (_FOLDER & ~os.O_PATH) if listing else _FOLDER
    current = system.open(Entry(root, b"."), _FOLDER if parts else last)
    for index, name in enumerate(parts, 1):
        try:
            descriptor = _enter(system, Entry(current, name), flags=last if index == len(parts) else _FOLDER)
        finally:
            shut(system, current)
        current = descriptor
    return current


def leads_to(root: str, path: bytes, folders: AbstractSet[Identity], system: System = REAL) -> bool:
    """Say whether the folder `path` below `root` (b"" = the root), or one on the way to it, is one of `folders`.

    A mount can bring a folder into another one where no name shows it. Raises as `lstat_beneath` does.
    """
    current = _pass_root(system, root)
    try:
        for name in _parts(path) if path else ():
            descriptor = _enter(system, Entry(current, name), flags=_FOLDER)
            shut(system, current)
            current = descriptor
            if identity(current, system) in folders:
                return True
    finally:
        shut(system, current)
    return False


def demand_root(root: str, known: Identity | None, system: System = REAL) -> None:
    """Demand that the root is the known folder (None: any), before what it does not hold is taken for gone.

    The bare folder that a share is mounted on holds nothing. Raises PlaceError.
    """
    try:
        found = system.stat(at(root))
    except OSError as error:
        raise PlaceError("inbox", error.errno or errno.EIO, root, _root_fault(error)) from error
    if known not in {None, (found.st_dev, found.st_ino)}:
        raise PlaceError("inbox", errno.ESTALE, root, "another folder stands in the inbox's place: was it unmounted?")


def identity(descriptor: int, system: System = REAL) -> Identity:
    """Return what names an open folder, however it was reached."""
    found = system.fstat(descriptor)
    return found.st_dev, found.st_ino


def reading_fault(
    error: OSError, *, root: str, path: bytes, mode: int | None = None, system: System = REAL
) -> PhotoError | PlaceError:
    """Return whose fault an error is that the look at a photo, or its reading, met.

    The photo's: `vanished`, or `unreadable` where access is denied, or where its inbox can still be listed: one bad
    sector, or one stale handle, must not suspend the inbox again and again. Else the inbox's; and so it is when the
    machine has run out of descriptors or memory, for which no photo is to pay. `mode` is the photo's, where known.
    """
    code = error.errno or errno.EIO
    text = f"{printable(path)}: {os.strerror(code)}"
    if code in GONE:
        return PhotoError(VANISHED, "the file is gone")
    if code in DENIED:
        rights = "" if mode is None else f": mode {mode & 0o7777:04o}, read as uid {os.geteuid()}, gid {os.getegid()}"
        return PhotoError(Reason.UNREADABLE, os.strerror(code) + rights)
    if code in STARVED:
        return PlaceError("inbox", code, root, text)
    try:
        _list_one(system, root)
    except PlaceError as fault:
        return PlaceError("inbox", fault.code, root, text)
    except OSError as fault:
        return PlaceError("inbox", fault.errno or code, root, text)
    return PhotoError(Reason.UNREADABLE, os.strerror(code))


def _list_one(system: System, root: str) -> None:
    """Prove that the root can be listed."""
    folder = open_root(root, system)
    try:
        with system.scandir(folder) as entries:
            next(iter(entries), None)
    finally:
        shut(system, folder)


@contextmanager
def _parent(system: System, root: str, path: bytes) -> Iterator[Entry]:
    """Give the last component of `path` in the open folder that holds it."""
    folder, _, name = path.rpartition(b"/")
    _parts(path)
    top = _pass_root(system, root)
    try:
        current = open_folder(top, folder, listing=False, system=system)
    finally:
        shut(system, top)
    try:
        yield Entry(current, name)
    finally:
        shut(system, current)


def _pass_root(system: System, root: str) -> int:
    """Open the root only to pass through it: it need not be listable."""
    try:
        return system.open(at(root), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PlaceError("inbox", error.errno or errno.EIO, root, _root_fault(error)) from error


def _root_fault(error: OSError) -> str:
    return f"the inbox cannot be opened: {error.strerror}"


def _enter(system: System, entry: Entry, *, flags: int) -> int:
    try:
        return system.open(entry, flags)
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        mode = system.lstat(entry).st_mode
        if stat.S_ISLNK(mode):
            raise NotRegularError("symlink", printable(entry.name)) from error
        raise FileNotFoundError(errno.ENOENT, "a folder on the way is gone", entry.name) from error


def _parts(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} for part in parts):
        raise ValueError(f"not a path below a root: {printable(path)!r}")
    return parts


def _demand_regular(mode: int, path: bytes) -> None:
    kind = kind_of(mode)
    if kind is not None:
        raise NotRegularError(kind, printable(path))
