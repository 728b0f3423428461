"""What an inbox's I/O thread can be asked about the inbox. Each request is a value; `run` says what it answers.

Every request may raise PlaceError or PhotoError besides; the thread hands those over as answers.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.delivery import staging
from animed.errors import PhotoError, PlaceError
from animed.intake.filesystem import fs_type, wants_polling
from animed.intake.scan import Entry, root_identity
from animed.opening import Identity, NotRegularError, demand_root, leads_to, lstat_beneath, open_beneath
from animed.records import VANISHED, FileStat, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet
    from io import FileIO

    from animed.intake.scan import Scanner
    from animed.intake.watch import Watch
    from animed.records import Job

_CHUNK: Final = 1 << 20  # bytes read at a time, with a sign of life after each
_SLICE: Final = 500  # entries of a scan that are handed over at a time
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


@dataclass(frozen=True, slots=True)
class RootFound:
    """The inbox's root as it is now."""

    identity: tuple[int, int]  # device, inode
    fs: str
    polled: bool  # on this kind of file system changes can go unreported


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """Look at the inbox's root; answers RootFound."""

    root: str
    require_marker: bool

    def run(self, beat: Callable[[], None]) -> RootFound:
        """Look."""
        identity = root_identity(self.root, require_marker=self.require_marker)
        beat()
        kind = fs_type(self.root)
        return RootFound(identity, kind, wants_polling(kind))


@dataclass(frozen=True, slots=True)
class StartWatch:
    """Start a watch; answers None, or WatchLimitError when the kernel has no room for it."""

    watch: Watch

    def run(self, beat: Callable[[], None]) -> None:
        """Start it."""
        beat()
        self.watch.start()


@dataclass(frozen=True, slots=True)
class StopWatch:
    """Stop a watch; answers None."""

    watch: Watch

    def run(self, beat: Callable[[], None]) -> None:
        """Stop it."""
        beat()
        self.watch.stop()


@dataclass(frozen=True, slots=True)
class ScanEnded:
    """A scan is over. `cpu_s` is what it cost."""

    cpu_s: float
    identity: Identity | None = None  # of the root that was scanned
    wall_s: float = 0.0  # how long its file system took for it; waiting for the next slice does not count


@dataclass(frozen=True, slots=True)
class Scan:
    """List the inbox, or one folder of it; answers tuples of entries, and ScanEnded at last."""

    scanner: Scanner
    below: bytes = b""
    clock: Callable[[], float] = time.monotonic

    def slices(self) -> Iterator[tuple[Entry, ...] | ScanEnded]:
        """Yield a few hundred entries at a time."""
        cpu_s, wall_s = time.thread_time(), 0.0
        entries = self.scanner.scan(self.below)
        while True:
            began = self.clock()
            part = tuple(itertools.islice(entries, _SLICE))
            wall_s += self.clock() - began
            if not part:
                break
            yield part
        yield ScanEnded(time.thread_time() - cpu_s, root_identity(self.scanner.root), wall_s)


Look = FileStat | str | None  # a stat, the rule that leaves a path out, or None for what is gone


@dataclass(frozen=True, slots=True)
class StatPaths:
    """Look at paths; answers (path, Look) for each."""

    root: str
    paths: tuple[bytes, ...]
    outputs: AbstractSet[Identity]  # folders that pictures are written to, by whatever path they are reached
    known: Identity | None = None  # the root that the paths are below

    def run(self, beat: Callable[[], None]) -> tuple[tuple[bytes, Look], ...]:
        """Look at each. One that cannot be looked at is told apart from an inbox that cannot."""
        folders: dict[bytes, bool] = {}
        seen = []
        for path in self.paths:
            beat()
            seen.append((path, self._look(path, folders)))
        return tuple(seen)

    def _look(self, path: bytes, folders: dict[bytes, bool]) -> Look:
        folder = os.path.dirname(path)
        try:
            if folder not in folders:
                folders[folder] = leads_to(self.root, folder, self.outputs)
            return "output" if folders[folder] else lstat_beneath(self.root, path)
        except NotRegularError as error:
            return error.kind
        except OSError as error:
            if error.errno in _GONE:
                demand_root(self.root, self.known)
                return None
            fault = place_or_photo(self.root, error.errno or errno.EIO)
            if isinstance(fault, PlaceError):
                raise fault from error
            return f"unreadable:{errno.errorcode.get(error.errno or 0, error.errno)}"


@dataclass(frozen=True, slots=True)
class Digested:
    """A photo's content was read."""

    sha256: str
    free_bytes: int  # at the output
    name_taken: bool  # something holds the name that the picture would most likely get


@dataclass(frozen=True, slots=True)
class Digest:
    """Read a photo and digest it; answers Digested."""

    job: Job
    root: str
    output: str
    early_name: bytes  # the picture's likely full path; b"" = do not look
    known: Identity | None = None  # the root that the photo is below

    def run(self, beat: Callable[[], None]) -> Digested:
        """Read it, and make sure that it is the file that settled, before and after."""
        try:
            descriptor = open_beneath(self.root, self.job.key.path)
        except OSError as error:
            raise self._translate(error) from error
        with open(descriptor, "rb", buffering=0) as file:
            sha256 = self._read(file, beat)
        taken = bool(self.early_name) and os.path.lexists(self.early_name)
        return Digested(sha256, staging.free_bytes(self.output).bytes, taken)

    def _read(self, file: FileIO, beat: Callable[[], None]) -> str:
        digest = hashlib.sha256()
        try:
            self._demand_same(file)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                beat()
            self._demand_same(file)
        except OSError as error:
            raise self._translate(error) from error
        return digest.hexdigest()

    def _demand_same(self, file: FileIO) -> None:
        if not FileStat.of(os.fstat(file.fileno())).same_file(self.job.stat):
            raise PhotoError(Reason.CHANGED, "it was written to while it was read")

    def _translate(self, error: OSError) -> PhotoError | PlaceError:
        """Tell what one photo is to blame for from what its place is."""
        code = error.errno or errno.EIO
        if code in _GONE:
            demand_root(self.root, self.known)
            return PhotoError(VANISHED)
        if code in _DENIED:
            stat = self.job.stat
            reader = f"read as uid {os.geteuid()}, gid {os.getegid()}"
            return PhotoError(Reason.UNREADABLE, f"{os.strerror(code)}: mode {stat.mode & 0o7777:04o}, {reader}")
        return place_or_photo(self.root, code)


def place_or_photo(root: str, code: int) -> PhotoError | PlaceError:
    """Return whose fault an error is that a photo's reading met: the photo's, where its inbox can still be listed.

    One bad sector, or one stale handle, must not suspend the inbox again and again.
    """
    try:
        with os.scandir(root) as entries:
            next(entries, None)
    except OSError as error:
        code = error.errno or code
        return PlaceError("inbox", code, root, f"a photo cannot be read: {os.strerror(code)}")
    return PhotoError(Reason.UNREADABLE, os.strerror(code))
