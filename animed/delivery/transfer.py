"""Giving a file its name without ever replacing another, and copying it whole where it cannot be renamed.

Every function here raises plain OSErrors (FileExistsError: the name is taken); callers know whose fault they are.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat as bits
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.delivery.folders import peek, remove, tolerating
from animed.errors import PhotoError
from animed.records import FileStat, Reason
from animed.system import Entry, System, shut

if TYPE_CHECKING:
    from collections.abc import Iterator

READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_BLOCK: Final = 1 << 20  # bytes per read while copying
# How a file system says that it does not know a call (some say EPERM: then the next way down the ladder says it again).
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK})
_NO_UNNAMED: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Temp:
    """A file in the making: an open descriptor, and its name where it had to have one."""

    descriptor: int
    entry: Entry | None


def identity(found: os.stat_result) -> tuple[int, int]:
    """Return what names a file while its file system stays mounted."""
    return found.st_dev, found.st_ino


@contextmanager
def opened(system: System, entry: Entry, flags: int = READ) -> Iterator[int]:
    """Open a file for a while, never through a link and never waiting for a pipe's other end."""
    descriptor = system.open(entry, flags)
    try:
        yield descriptor
    finally:
        shut(system, descriptor)


def create_temp(system: System, spare: Entry, mode: int, *, unnamed: bool = True) -> Temp:
    """Make an empty file in `spare`'s folder: without a name where that is possible, else named `spare`.

    The name is the caller's alone; what an earlier life left under it is removed. `spare.folder` is an open folder.
    """
    if unnamed:
        try:
            return Temp(system.open(Entry(spare.folder, b"."), os.O_TMPFILE | os.O_RDWR, mode), None)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        return Temp(system.open(spare, flags, mode), spare)
    except FileExistsError:
        remove(system, spare)
        return Temp(system.open(spare, flags, mode), spare)


def drop_temp(system: System, temp: Temp) -> None:
    """Close a temporary file and remove its name, whatever became of it."""
    try:
        if temp.entry is not None and _is_still(system, temp.entry, temp.descriptor):
            remove(system, temp.entry)
    finally:
        shut(system, temp.descriptor)


def _is_still(system: System, entry: Entry, descriptor: int) -> bool:
    """Say whether a temporary name holds its file; where that cannot be seen it does, for the name is nobody else's."""
    try:
        found = peek(system, entry)
        return found is not None and identity(found) == identity(system.fstat(descriptor))
    except OSError:
        return True


def write_all(system: System, descriptor: int, data: bytes) -> None:
    """Write every byte."""
    rest = memoryview(data)
    while rest:
        rest = rest[system.write(descriptor, rest) :]


def copy_content(system: System, source: int, target: int) -> tuple[int, str]:
    """Copy from one open file to another; return (bytes, sha256 in hex) of what was copied."""
    digest, size = hashlib.sha256(), 0
    while block := system.read(source, _BLOCK):
        digest.update(block)
        size += len(block)
        write_all(system, target, block)
    return size, digest.hexdigest()


def hash_content(system: System, source: int) -> tuple[int, str]:
    """Return (bytes, sha256 in hex) of an open file from where it stands."""
    digest, size = hashlib.sha256(), 0
    while block := system.read(source, _BLOCK):
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()


def dress(system: System, descriptor: int, *, mode: int | None, mtime_ns: int | None, notes: list[str]) -> None:
    """Give an open file its mode and time, as far as its file system keeps them."""
    if mode is not None:
        with tolerating("the mode of a file", notes):
            system.chmod(descriptor, mode & 0o777)
    if mtime_ns is not None:
        with tolerating("the time of a file", notes):
            system.utime(descriptor, mtime_ns)


def same_content(system: System, one: Entry, other: Entry) -> bool:
    """Say whether two names hold equal regular files; a link or a missing file is equal to nothing."""
    first, second = peek(system, one), peek(system, other)
    if first is None or second is None or not (bits.S_ISREG(first.st_mode) and bits.S_ISREG(second.st_mode)):
        return False
    if identity(first) == identity(second):
        return True
    if first.st_size != second.st_size:
        return False
    with opened(system, one) as left, opened(system, other) as right:
        return hash_content(system, left) == hash_content(system, right)


def put_temp(system: System, temp: Temp, target: Entry) -> None:
    """Give a finished temporary file its name. FileExistsError when that is taken."""
    if temp.entry is None:
        link_unnamed(system, temp.descriptor, target)
    else:
        move_free(system, temp.entry, target)


def link_unnamed(system: System, descriptor: int, target: Entry) -> None:
    """Give an unnamed file its first name. FileExistsError when that is taken by another file.

    Called again after it worked (the fault came later), it finds its own file there and is content.
    """
    try:
        system.link_descriptor(descriptor, target)
    except FileExistsError:
        if identity(system.lstat(target)) != identity(system.fstat(descriptor)):
            raise


def move_free(system: System, source: Entry, target: Entry) -> None:
    """Rename without ever replacing. FileExistsError when the target's name is taken.

    Where the file system has no such rename (NFS) a second name is linked and the first removed; where it has no links
    either (old FAT and SMB drivers) the name is reserved by an empty file, which the rename then replaces; a crash
    between the two leaves that empty file, and whoever comes back takes another name or, if it knows, removes it.
    """
    try:
        system.rename_free(source, target)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if _linked(system, source, target):
            system.unlink(source)
        else:
            _reserve_and_rename(system, source, target)


def _linked(system: System, source: Entry, target: Entry) -> bool:
    """Link; False where there are no links. A share may lose the answer and report its own link as taken."""
    before = system.lstat(source)
    try:
        system.link(source, target)
    except FileExistsError:
        found = system.lstat(target)
        if identity(found) != identity(before) or found.st_nlink != before.st_nlink + 1:
            raise
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    return True


def _reserve_and_rename(system: System, source: Entry, target: Entry) -> None:
    shut(system, system.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW))
    try:
        system.rename(source, target)
    except OSError:
        with suppress(OSError):
            _drop_reservation(system, source, target)
        raise


def _drop_reservation(system: System, source: Entry, target: Entry) -> None:
    """Remove the empty file, but only while the source shows that the rename did not happen."""
    system.lstat(source)
    if system.lstat(target).st_size == 0:
        system.unlink(target)


def unchanged(found: os.stat_result, expected: FileStat) -> bool:
    """Say whether a file is still the regular file that was read.

    Its device is left out: device numbers change when a share is mounted again or the machine restarts, and the inbox
    folder that was opened says which file system this is. An inode of 0 means that none was remembered.
    """
    if not bits.S_ISREG(found.st_mode) or expected.inode not in {0, found.st_ino}:
        return False
    return (found.st_size, found.st_mtime_ns) == (expected.size, expected.mtime_ns)


def copy_across(system: System, source: Entry, target: Entry, *, spare: bytes, expected: FileStat) -> None:
    """Copy a file to a free name on any file system, whole and durable, with its mode and time.

    `spare` names the temporary file where it needs a name. Raises FileExistsError, and PhotoError (changed) when the
    source is not, or does not stay, the file that `expected` describes.
    """
    with opened(system, source) as reading:
        temp = create_temp(system, Entry(target.folder, spare), 0o600)
        try:
            size, _ = copy_content(system, reading, temp.descriptor)
            dress(system, temp.descriptor, mode=expected.mode, mtime_ns=expected.mtime_ns, notes=[])
            system.fsync(temp.descriptor)
            kept = size == expected.size == system.fstat(temp.descriptor).st_size
            if not kept or not unchanged(system.fstat(reading), expected):
                raise PhotoError(Reason.CHANGED, "it changed while it was copied")
            put_temp(system, temp, target)
        finally:
            drop_temp(system, temp)
