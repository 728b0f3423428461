"""Stage a finished picture on the output's file system, durable and out of sight, in the worker.

An unnamed file (O_TMPFILE) where that exists: nothing is left behind when the worker is killed. Else a hidden file
whose prefix tells which instance may sweep it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from typing import TYPE_CHECKING, Final

from animed.errors import PhotoError, PlaceError
from animed.records import Reason, Stage, Staged
from animed.system import REAL, Entry, System, at, shut

if TYPE_CHECKING:
    from collections.abc import Callable

# File systems and kernels without unnamed files say so in these ways. A folder that is gone says ENOENT as well: then
# the named file fails in its turn, and that error is the one to report.
NO_TMPFILE: Final = frozenset(
    {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS, errno.ENXIO, errno.EPERM, errno.EACCES}
)
# Shares that keep no modes refuse to set one; the picture is good without, and the parent notes it.
NO_MODES: Final = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
NO_FSYNC: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})  # nothing to synchronise there
CREATE_MODE: Final = 0o666  # less the umask, which the kernel takes off (or the folder's default ACL, which wins)
FLAGS: Final = os.O_RDWR | os.O_CLOEXEC
NAMES_TRIED: Final = 8
# Bytes that are written and made durable at a time: a slow share takes a large picture for minutes, and what it has
# taken so far is a sign of life.
PART: Final = 32 << 20


def write(
    data: bytes, stage: Stage, mtime_ns: int, *, system: System = REAL, beat: Callable[[], None] = lambda: None
) -> tuple[Staged, int | None]:
    """Stage `data`; return what was staged, and the open descriptor of an unnamed file (the caller closes it).

    `beat` is called whenever a part of a large picture is durable.
    Raises PlaceError("output", …) when the place is at fault, PhotoError("encode") when the picture is larger than a
    file may be. Nothing is left behind in either case.
    """
    try:
        fd, name = _create(stage, system)
    except OSError as error:
        raise _fault(error, stage) from error
    try:
        _pour(fd, data, system, beat)
        found = _dress(fd, len(data), stage, mtime_ns=mtime_ns, system=system)
        staged = Staged(found.st_dev, found.st_ino, found.st_size, hashlib.sha256(data).hexdigest(), name)
    except BaseException as error:
        _discard(fd, name, stage, system=system)
        if isinstance(error, OSError):
            raise _fault(error, stage) from error
        raise
    if name is None:
        return staged, fd
    _close(fd, name, stage, system=system)
    return staged, None


def _create(stage: Stage, system: System) -> tuple[int, str | None]:
    try:
        return system.open(at(stage.folder), FLAGS | os.O_TMPFILE, CREATE_MODE), None
    except OSError as error:
        if error.errno not in NO_TMPFILE:
            raise
    return _create_named(stage, system)


def _create_named(stage: Stage, system: System) -> tuple[int, str]:
    for left in reversed(range(NAMES_TRIED)):
        name = f"{stage.temp_prefix}{secrets.token_hex(8)}.tmp"
        try:
            return system.open(_entry(stage, name), FLAGS | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, CREATE_MODE), name
        except FileExistsError:
            if not left:
                raise
    raise AssertionError  # the last try returned or raised


def _pour(fd: int, data: bytes, system: System, beat: Callable[[], None]) -> None:
    """Write all of a picture, and make all but its last part durable."""
    for start in range(0, len(data), PART):
        if start:
            _sync(fd, system)
            beat()
        rest = memoryview(data)[start : start + PART]
        while rest:
            rest = rest[system.write(fd, rest) :]


def _dress(fd: int, size: int, stage: Stage, *, mtime_ns: int, system: System) -> os.stat_result:
    """Give a written picture of `size` bytes its mode and time, and make it durable."""
    if stage.mode is not None:
        _set_mode(fd, stage.mode, system)
    if stage.keep_mtime:
        _keep_mtime(fd, mtime_ns, system)
    _sync(fd, system)
    found = system.fstat(fd)
    if found.st_size != size:
        raise OSError(errno.EIO, f"{size} bytes were written, {found.st_size} are there")
    return found


def _set_mode(fd: int, mode: int, system: System) -> None:
    try:
        system.chmod(fd, mode)
    except OSError as error:
        if error.errno not in NO_MODES:
            raise OSError(error.errno, f"mode {mode:04o} cannot be set there: {error.strerror}") from error


def _keep_mtime(fd: int, mtime_ns: int, system: System) -> None:
    try:
        system.utime(fd, mtime_ns)
    except OSError as error:
        # A share may refuse it, or know no such time; the picture is as good without. A broken disk is another thing.
        if error.errno in {errno.EIO, errno.ENOSPC, errno.EROFS, errno.ESTALE}:
            raise


def _sync(fd: int, system: System) -> None:
    try:
        system.fsync(fd)
    except OSError as error:
        if error.errno not in NO_FSYNC:
            raise


def _close(fd: int, name: str, stage: Stage, *, system: System) -> None:
    """Close a named file: network file systems report there what they could not write."""
    try:
        system.close(fd)
    except OSError as error:
        _unlink(name, stage, system)
        raise _fault(error, stage) from error


def _discard(fd: int, name: str | None, stage: Stage, *, system: System) -> None:
    shut(system, fd)  # what led here is the error to report
    if name is not None:
        _unlink(name, stage, system)


def _unlink(name: str, stage: Stage, system: System) -> None:
    with contextlib.suppress(OSError):  # the place is failing: its instance sweeps the prefix at its next start
        system.unlink(_entry(stage, name))


def _entry(stage: Stage, name: str) -> Entry:
    return at(os.path.join(stage.folder, name))


def _fault(error: OSError, stage: Stage) -> PlaceError | PhotoError:
    code = error.errno or errno.EIO
    text = error.strerror or os.strerror(code)
    if code == errno.EFBIG:
        return PhotoError(Reason.ENCODE, f"the picture is larger than a file may be in {stage.folder}")
    return PlaceError("output", code, stage.folder, f"the picture cannot be staged: {text}")
