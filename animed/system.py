"""Every system call between reading a photo and its outcome, one method each: tests watch and break all of them here.

Nothing is decided here: every method is one call and raises the plain OSError (`query` and `commit`: sqlite3.Error).
What stays outside, and why, stands in `tests/test_seam.py`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

# What an errno says by itself, wherever it turns up. The machine has run out of something for a while: nobody's fault.
STARVED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})
# The disk is full, for everybody or for this user.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# A disk or a share fails, or went away.
FAILING: Final = frozenset(
    {errno.EIO, errno.EREMOTEIO, errno.ENODEV, errno.ENXIO, errno.ENOMEDIUM, errno.ESTALE, errno.ENOTCONN}
    | {errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.ESHUTDOWN, errno.ETIMEDOUT}
    | {errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH}
)
GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
DENIED: Final = frozenset({errno.EACCES, errno.EPERM})

_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_FICLONE: Final = 0x40049409  # _IOW(0x94, 9, int), the same on every architecture that Python's wheels are built for


class Entry(NamedTuple):
    """A name in an open folder; with `folder` None the name is an absolute path."""

    folder: int | None  # descriptor
    name: bytes


class Listed(Protocol):
    """What a listing tells of a name without a further call."""

    @property
    def name(self) -> str:
        """The name as text; what is not UTF-8 stands as surrogates."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Say whether it is a folder."""

    def is_symlink(self) -> bool:
        """Say whether it is a link."""


class System:
    """The real system calls. Tests pass a subclass that records or fails; it travels to the workers by pickle."""

    def open(self, entry: Entry, flags: int, mode: int = 0o600) -> int:
        """Open a file or a folder and return its descriptor."""
        return os.open(entry.name, flags, mode, dir_fd=entry.folder)

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        os.close(descriptor)

    def read(self, descriptor: int, size: int) -> bytes:
        """Read at most `size` bytes."""
        return os.read(descriptor, size)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write, and return how many bytes were taken."""
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        """Make a file or a folder durable."""
        os.fsync(descriptor)

    def fstat(self, descriptor: int) -> os.stat_result:
        """Return what an open file is."""
        return os.fstat(descriptor)

    def lstat(self, entry: Entry) -> os.stat_result:
        """Return what a name holds; a link is not followed."""
        return os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)

    def stat(self, entry: Entry) -> os.stat_result:
        """Return what a name leads to; links are followed."""
        return os.stat(entry.name, dir_fd=entry.folder)

    def seek(self, descriptor: int, position: int) -> None:
        """Go to a position, in bytes from the start."""
        os.lseek(descriptor, position, os.SEEK_SET)

    def scandir(self, folder: int) -> AbstractContextManager[Iterable[Listed]]:
        """List an open folder name by name; each step may raise as well."""
        return os.scandir(folder)

    def names(self, folder: int) -> list[bytes]:
        """Return the names in an open folder."""
        return [os.fsencode(name) for name in os.listdir(folder)]

    def entries(self, folder: int) -> list[tuple[bytes, bool]]:
        """Return the names in an open folder, each with whether it is a folder; a link is none."""
        with os.scandir(folder) as found:
            return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]

    def mkdir(self, entry: Entry, mode: int) -> None:
        """Make a folder; the umask applies."""
        os.mkdir(entry.name, mode, dir_fd=entry.folder)

    def link(self, source: Entry, target: Entry) -> None:
        """Give a file a second name, never replacing one."""
        os.link(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder, follow_symlinks=False)

    def link_descriptor(self, descriptor: int, target: Entry) -> None:
        """Give an open file a name, never replacing one. The target needs a folder descriptor.

        os.link takes linkat with AT_SYMLINK_FOLLOW, which /proc needs, only when a folder descriptor is passed.
        """
        if target.folder is None:
            raise ValueError("an open file is linked into an open folder")
        os.link(b"/proc/self/fd/%d" % descriptor, target.name, dst_dir_fd=target.folder, follow_symlinks=True)

    def rename(self, source: Entry, target: Entry) -> None:
        """Rename; what holds the target's name is replaced."""
        os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)

    def rename_free(self, source: Entry, target: Entry) -> None:
        """Rename, never replacing. EINVAL or ENOSYS where the file system or the C library cannot."""
        call = _renameat2()
        if call is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if call(_at(source), source.name, _at(target), target.name, _RENAME_NOREPLACE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), source.name, None, target.name)

    def unlink(self, entry: Entry) -> None:
        """Remove a name."""
        os.unlink(entry.name, dir_fd=entry.folder)

    def chmod(self, descriptor: int, mode: int) -> None:
        """Set the permission bits of an open file or folder."""
        os.fchmod(descriptor, mode)

    def chgrp(self, descriptor: int, group: int) -> None:
        """Set the group of an open file or folder."""
        os.fchown(descriptor, -1, group)

    def utime(self, descriptor: int, mtime_ns: int) -> None:
        """Set the times of an open file."""
        os.utime(descriptor, ns=(mtime_ns, mtime_ns))

    def clone(self, target: int, source: int) -> None:
        """Make an open file share the blocks of another (FICLONE)."""
        fcntl.ioctl(target, _FICLONE, source)

    def statvfs(self, descriptor: int) -> os.statvfs_result:
        """Return the free space of the file system that holds an open folder."""
        return os.statvfs(descriptor)

    def query(self, connection: sqlite3.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Run a statement of the ledger and return all its results."""
        return connection.execute(sql, parameters).fetchall()

    def commit(self, connection: sqlite3.Connection) -> None:
        """Make a transaction of the ledger durable."""
        connection.execute("COMMIT")

    def send(self, end: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
        """Send one message, with descriptors, through the pipe between the parent and a worker."""
        socket.send_fds(end, [data], list(descriptors))

    def receive(self, end: socket.socket, size: int) -> tuple[bytes, list[int]]:
        """Take one message and its descriptor from that pipe; b"" when the other side is gone."""
        data, descriptors, _, _ = socket.recv_fds(end, size, 1, socket.MSG_CMSG_CLOEXEC)
        return data, descriptors


REAL: Final = System()


def at(path: str | bytes) -> Entry:
    """Return a full path as an entry."""
    return Entry(None, os.fsencode(path))


def shut(system: System, descriptor: int) -> None:
    """Close a descriptor. What was to last has been synced before, and Linux frees it whatever close reports."""
    with suppress(OSError):
        system.close(descriptor)


def _at(entry: Entry) -> int:
    return _AT_FDCWD if entry.folder is None else entry.folder


@cache
def _renameat2() -> Any:
    """Return the C library's renameat2, or None where it has none (os.rename always replaces)."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call
