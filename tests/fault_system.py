"""The real system calls, each of which fails when a test says so: once, for some calls, or until it is healed."""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from animed.daemon.looking import Digest
from animed.errors import PhotoError
from animed.records import FileStat
from animed.system import Entry, Listed, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

SHARE: Final = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.ENOTCONN)
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
SQLITE: Final = {
    sqlite3.SQLITE_FULL: "database or disk is full",
    sqlite3.SQLITE_IOERR: "disk I/O error",
    sqlite3.SQLITE_BUSY: "database is locked",
    sqlite3.SQLITE_READONLY: "attempt to write a readonly database",
    sqlite3.SQLITE_NOMEM: "out of memory",
}

# Each errno that each call may have, as manual pages and network file systems say it; for the ledger SQLite's codes.
ERRNOS: Final[dict[str, tuple[int, ...]]] = {
    "open": (
        *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
        *(errno.EROFS, *NO_ROOM, *SHARE),
    ),
    "close": (errno.EIO, *NO_ROOM),
    "read": (errno.EACCES, errno.ENOMEM, errno.EAGAIN, *SHARE),
    "write": (errno.EFBIG, errno.EPERM, errno.ENOMEM, *NO_ROOM, *SHARE),
    "fsync": (errno.EROFS, *NO_ROOM, *SHARE),
    "fstat": (errno.EACCES, errno.ENOMEM, *SHARE),
    "lstat": (errno.EACCES, errno.ENOMEM, errno.ENOENT, *SHARE),
    "stat": (errno.EACCES, errno.ENOMEM, errno.ENOENT, *SHARE),
    "scandir": (errno.EACCES, errno.EMFILE, errno.ENFILE, errno.ENOMEM, *SHARE),
    "readdir": (errno.EIO, errno.ESTALE, errno.ENOENT),
    "names": (errno.EACCES, errno.EMFILE, errno.ENOMEM, *SHARE),
    "entries": (errno.EACCES, errno.EMFILE, errno.ENOMEM, *SHARE),
    "seek": (errno.EIO,),
    "mkdir": (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EMLINK, errno.EROFS, *NO_ROOM, *SHARE),
    "link": (
        *(errno.EEXIST, errno.EACCES, errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOENT, errno.EROFS),
        *(errno.EOPNOTSUPP, *NO_ROOM, *SHARE),
    ),
    "link_descriptor": (
        *(errno.EEXIST, errno.EACCES, errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOENT, errno.EROFS),
        *(errno.EOPNOTSUPP, *NO_ROOM, *SHARE),
    ),
    "rename": (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS, *NO_ROOM, *SHARE),
    "rename_free": (
        *(errno.EEXIST, errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS, errno.EINVAL),
        *(errno.ENOSYS, *NO_ROOM, *SHARE),
    ),
    "unlink": (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, *SHARE),
    "chmod": (errno.EPERM, errno.EROFS, errno.EOPNOTSUPP, *SHARE),
    "chgrp": (errno.EPERM, errno.EROFS, errno.EOPNOTSUPP, errno.EDQUOT, *SHARE),
    "utime": (errno.EPERM, errno.EACCES, errno.EROFS, errno.EOPNOTSUPP, *SHARE),
    "clone": (errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM, errno.EIO, *NO_ROOM),
    "statvfs": (errno.EACCES, errno.ENOMEM, errno.ENOSYS, *SHARE),
    "query": tuple(SQLITE),
    "commit": tuple(SQLITE),
    "send": (errno.EPIPE, errno.ECONNRESET, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN, errno.ETOOMANYREFS),
    "receive": (errno.ECONNRESET, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN),
}
# A share may do what it was asked and lose the answer; a server that is asked again says what it then finds.
LATE: Final = {
    "mkdir": (errno.EEXIST, *SHARE),
    "link": (errno.EEXIST, *SHARE),
    "link_descriptor": (errno.EEXIST, *SHARE),
    "rename": (errno.ENOENT, *SHARE),
    "rename_free": (errno.EEXIST, errno.ENOENT, *SHARE),
    "unlink": (errno.ENOENT, *SHARE),
}


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong: with `late` the call is made, and only its answer is an error."""

    call: str
    code: int
    skip: int = 0  # calls that go well before
    times: int | None = 1  # None = until it is healed
    under: bytes = b""  # only for paths that begin like this
    late: bool = False
    hits: int = 0

    def meets(self, where: bytes) -> bool:
        """Say whether this call fails, and count."""
        if not where.startswith(self.under):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.hits += 1
        return True


class FaultySystem(System):
    """The real calls, with faults. It counts its calls by name, and travels to a worker with the faults it has."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.calls: Counter[str] = Counter()

    def arm(self, call: str, code: int, **how: Any) -> Fault:
        """Let a call fail from now on, as the fields of `Fault` say."""
        assert call in ERRNOS
        fault = Fault(call, code, **how)
        self.faults.append(fault)
        return fault

    def heal(self) -> None:
        """End all faults."""
        self.faults.clear()

    def met(self, call: str, subject: object) -> Fault | None:
        """Count a call, and return the fault that it meets."""
        self.calls[call] += 1
        armed = [fault for fault in self.faults if fault.call == call]
        where = where_of(subject) if any(fault.under for fault in armed) else b""
        return next((fault for fault in armed if fault.meets(where)), None)

    @contextmanager
    def scandir(self, folder: int) -> Iterator[Iterable[Listed]]:
        """List, with faults at the opening and at each step."""
        if (fault := self.met("scandir", folder)) is not None:
            raise error_of(fault)
        with super().scandir(folder) as entries:
            yield self._steps(folder, entries)

    def _steps(self, folder: int, entries: Iterable[Listed]) -> Iterator[Listed]:
        for entry in entries:
            if (fault := self.met("readdir", folder)) is not None:
                raise error_of(fault)
            yield entry


def error_of(fault: Fault) -> OSError | sqlite3.Error:
    """Return what the call raises."""
    if fault.call not in {"commit", "query"}:
        return OSError(fault.code, os.strerror(fault.code))
    error = sqlite3.OperationalError(SQLITE[fault.code])
    error.sqlite_errorcode = fault.code
    return error


def where_of(subject: object) -> bytes:
    """Return the full path that a call is about; a pipe and the ledger have none."""
    if isinstance(subject, Entry):
        return subject.name if subject.folder is None else os.path.join(where_of(subject.folder), subject.name)
    if isinstance(subject, int) and not isinstance(subject, socket.socket):
        return os.readlink(b"/proc/self/fd/%d" % subject)
    return b""


def _guarded(name: str) -> Callable[..., Any]:
    real = getattr(System, name)

    def call(self: FaultySystem, *args: Any) -> Any:
        fault = self.met(name, args[0])
        if fault is None:
            return real(self, *args)
        if fault.late or name == "close":  # Linux frees the descriptor, whatever close reports
            real(self, *args)
        raise error_of(fault)

    return call


for _name in ERRNOS.keys() - {"scandir", "readdir"}:
    setattr(FaultySystem, _name, _guarded(_name))


def reading_refused(inbox: Path, code: int, mode: int) -> PhotoError:
    """Return the fault of a photo of this mode that cannot be opened, while its inbox can be listed."""
    (inbox / "a.jpg").touch()
    system = FaultySystem()
    system.arm("open", code, under=bytes(inbox / "a.jpg"))
    key = type("Key", (), {"path": b"a.jpg"})
    job: Any = type("Job", (), {"key": key, "stat": FileStat(1, 1, 1, 1, 1, mode)})
    with pytest.raises(PhotoError) as caught:
        Digest(job, str(inbox), str(inbox), b"").run(lambda: None, system)
    return caught.value
