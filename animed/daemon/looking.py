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
from animed.opening import (
    Identity,
    NotRegularError,
    demand_root,
    leads_to,
    lstat_beneath,
    open_beneath,
    reading_fault,
)
from animed.records import FileStat, Reason
from animed.system import GONE, System, at, shut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from animed.intake.scan import Scanner
    from animed.intake.watch import Watch
    from animed.records import Job

_CHUNK: Final = 1 << 20  # bytes read at a time, with a sign of life after each
_SLICE: Final = 500  # entries of a scan that are handed over at a time


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

    def run(self, beat: Callable[[], None], system: System) -> RootFound:
        """Look."""
        identity = root_identity(self.root, require_marker=self.require_marker, system=system)
        beat()
        kind = fs_type(self.root)
        return RootFound(identity, kind, wants_polling(kind))


@dataclass(frozen=True, slots=True)
class StartWatch:
    """Start a watch; answers None, or WatchLimitError when the kernel has no room for it."""

    watch: Watch

    def run(self, beat: Callable[[], None], system: System) -> None:
        """Start it. The watch lives by the kernel's events: its calls are no photo's."""
        del system
        beat()
        self.watch.start()


@dataclass(frozen=True, slots=True)
class StopWatch:
    """Stop a watch; answers None."""

    watch: Watch

    def run(self, beat: Callable[[], None], system: System) -> None:
        """Stop it."""
        del system
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

    def slices(self, system: System) -> Iterator[tuple[Entry, ...] | ScanEnded]:
        """Yield a few hundred entries at a time."""
        cpu_s, wall_s = time.thread_time(), 0.0
        entries = self.scanner.scan(self.below, system)
        while True:
            began = self.clock()
            part = tuple(itertools.islice(entries, _SLICE))
            wall_s += self.clock() - began
            if not part:
                break
            yield part
        yield ScanEnded(time.thread_time() - cpu_s, root_identity(self.scanner.root, system=system), wall_s)


Look = FileStat | str | None  # a stat, the rule that leaves a path out, or None for what is gone


@dataclass(frozen=True, slots=True)
class StatPaths:
    """Look at paths; answers (path, Look) for each."""

    root: str
    paths: tuple[bytes, ...]
    outputs: AbstractSet[Identity]  # folders that pictures are written to, by whatever path they are reached
    known: Identity | None = None  # the root that the paths are below

    def run(self, beat: Callable[[], None], system: System) -> tuple[tuple[bytes, Look], ...]:
        """Look at each. One that cannot be looked at is told apart from an inbox that cannot."""
        folders: dict[bytes, bool] = {}
        seen = []
        for path in self.paths:
            beat()
            seen.append((path, self._look(path, folders, system)))
        return tuple(seen)

    def _look(self, path: bytes, folders: dict[bytes, bool], system: System) -> Look:
        folder = os.path.dirname(path)
        try:
            if folder not in folders:
                folders[folder] = leads_to(self.root, folder, self.outputs, system)
            return "output" if folders[folder] else lstat_beneath(self.root, path, system)
        except NotRegularError as error:
            return error.kind
        except OSError as error:
            if error.errno in GONE:
                demand_root(self.root, self.known, system)
                return None
            fault = reading_fault(error, root=self.root, path=path, system=system)
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

    def run(self, beat: Callable[[], None], system: System) -> Digested:
        """Read it, and make sure that it is the file that settled, before and after."""
        try:
            descriptor = open_beneath(self.root, self.job.key.path, system)
            try:
                sha256 = self._read(descriptor, beat, system)
            finally:
                shut(system, descriptor)
        except OSError as error:
            if error.errno in GONE:
                demand_root(self.root, self.known, system)
            key, mode = self.job.key, self.job.stat.mode
            raise reading_fault(error, root=self.root, path=key.path, mode=mode, system=system) from error
        taken = bool(self.early_name) and _is_there(self.early_name, system)
        return Digested(sha256, staging.free_bytes(self.output, system=system).bytes, taken)

    def _read(self, descriptor: int, beat: Callable[[], None], system: System) -> str:
        digest = hashlib.sha256()
        self._demand_same(descriptor, system)
        while chunk := system.read(descriptor, _CHUNK):
            digest.update(chunk)
            beat()
        self._demand_same(descriptor, system)
        return digest.hexdigest()

    def _demand_same(self, descriptor: int, system: System) -> None:
        if not FileStat.of(system.fstat(descriptor)).same_file(self.job.stat):
            raise PhotoError(Reason.CHANGED, "it was written to while it was read")


def _is_there(name: bytes, system: System) -> bool:
    """Say whether something holds a name. Only a hint: whoever places the picture finds out for certain."""
    try:
        system.lstat(at(name))
    except OSError:
        return False
    return True
