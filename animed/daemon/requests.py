"""What an inbox's I/O thread can be asked to do. Each request is a value; what it answers stands in its `run`.

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

from animed.delivery import publish, staging
from animed.errors import PhotoError, PlaceError
from animed.intake.filesystem import fs_type, wants_polling
from animed.intake.scan import Entry, root_identity
from animed.opening import NotRegularError, lstat_beneath, open_beneath
from animed.records import FileStat, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO

    from animed.daemon.owed import Owed
    from animed.delivery.originals import Disposed, Kept
    from animed.delivery.quarantine import Quarantined
    from animed.intake.scan import Scanner
    from animed.intake.watch import Watch
    from animed.records import Job, PhotoKey, Stage, Staged
    from animed.schedule.rows import Row

VANISHED: Final = "vanished"  # the internal reason of a photo that was gone when it was opened; never an outcome
_CHUNK: Final = 1 << 20  # bytes read at a time, with a sign of life after each
_SLICE: Final = 500  # entries of a scan that are handed over at a time
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where the pictures of an inbox go, and with which rights."""

    output: str
    stage: Stage
    dir_mode: int | None
    group: int | None  # numeric


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
class OpenOutput:
    """Make the output where its parent exists, prove that it takes writes, sweep leftovers; answers its free bytes."""

    delivery: Delivery
    sweep: tuple[str, ...]  # folders that this instance may have left temporary files in; () = sweep nothing

    def run(self, beat: Callable[[], None]) -> int:
        """Do all of it."""
        output = self.delivery.output
        publish.prepare_output(output, dir_mode=self.delivery.dir_mode, group=self.delivery.group)
        beat()
        staging.probe(self.delivery.stage)
        beat()
        staging.sweep(self.sweep, self.delivery.stage.temp_prefix)
        return staging.free_bytes(output).bytes


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


@dataclass(frozen=True, slots=True)
class Scan:
    """List the inbox, or one folder of it; answers tuples of entries, and ScanEnded at last."""

    scanner: Scanner
    below: bytes = b""

    def slices(self) -> Iterator[tuple[Entry, ...] | ScanEnded]:
        """Yield a few hundred entries at a time."""
        began = time.thread_time()
        entries = self.scanner.scan(self.below)
        while part := tuple(itertools.islice(entries, _SLICE)):
            yield part
        yield ScanEnded(time.thread_time() - began)


@dataclass(frozen=True, slots=True)
class StatPaths:
    """Look at paths; answers (path, FileStat, None for what is gone, or the error) for each."""

    root: str
    paths: tuple[bytes, ...]

    def run(self, beat: Callable[[], None]) -> tuple[tuple[bytes, FileStat | NotRegularError | int | None], ...]:
        """Look at each."""
        seen = []
        for path in self.paths:
            beat()
            seen.append((path, self._look(path)))
        return tuple(seen)

    def _look(self, path: bytes) -> FileStat | NotRegularError | int | None:
        try:
            return lstat_beneath(self.root, path)
        except NotRegularError as error:
            return error
        except OSError as error:
            if error.errno in _GONE:
                return None
            if error.errno in _DENIED:
                return error.errno
            raise


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
            return PhotoError(VANISHED)
        if code in _DENIED:
            stat = self.job.stat
            return PhotoError(
                Reason.UNREADABLE, f"{os.strerror(code)}: mode {stat.mode & 0o7777:04o}, uid {os.geteuid()}"
            )
        return PlaceError("inbox", code, self.root, f"a photo cannot be read: {os.strerror(code)}")


@dataclass(frozen=True, slots=True)
class Place:
    """Give a staged picture its final name; answers Placed or Taken."""

    key: PhotoKey
    staged: Staged
    fd: int | None
    target: bytes  # below the output
    delivery: Delivery
    overwrite: bool

    def run(self, beat: Callable[[], None]) -> publish.Placed | publish.Taken:
        """Place it."""
        beat()
        to = self.delivery
        return publish.place(
            self.staged, self.fd, stage=to.stage, output=to.output, target=self.target,
            dir_mode=to.dir_mode, group=to.group, overwrite=self.overwrite,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove a named stage that is not needed any more; answers None."""

    staged: Staged
    stage: Stage

    def run(self, beat: Callable[[], None]) -> None:
        """Remove it."""
        beat()
        publish.discard(self.staged, None, stage=self.stage)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of a picture whose name was claimed."""

    placed: bool
    original: FileStat | None  # the photo as it is now; None when it is gone


@dataclass(frozen=True, slots=True)
class Resolve:
    """Find out whether a claimed name holds its picture; answers Resolved."""

    row: Row
    root: str
    output: str

    def run(self, beat: Callable[[], None]) -> Resolved:
        """Find out."""
        beat()
        placed = self._is_placed()
        beat()
        try:
            return Resolved(placed, lstat_beneath(self.root, self.row.key.path))
        except (NotRegularError, OSError):
            return Resolved(placed, None)

    def _is_placed(self) -> bool:
        """Look. A name outside the output, as after a change of the configuration, is looked at where it is."""
        if self.row.staged is None or self.row.output is None:
            return False
        folder = os.fsencode(self.output)
        inside = self.row.output.startswith(folder + b"/")
        output = self.output if inside else os.fsdecode(os.path.dirname(self.row.output))
        target = os.path.relpath(self.row.output, os.fsencode(output))
        return publish.resolve(self.row.staged, output=output, target=target)


@dataclass(frozen=True, slots=True)
class StageCopy:
    """Stage a finished picture once more, for an equal photo; answers (Staged, descriptor or None)."""

    key: PhotoKey
    source: bytes
    expected: Staged
    stage: Stage
    mtime_ns: int

    def run(self, beat: Callable[[], None]) -> tuple[Staged, int | None]:
        """Stage it."""
        beat()
        return staging.stage_copy(self.source, self.expected, stage=self.stage, link=True, mtime_ns=self.mtime_ns)


@dataclass(frozen=True, slots=True)
class PutAway:
    """Do what is owed to an original; answers Disposed, Quarantined or Kept."""

    key: PhotoKey
    root: str
    owed: Owed
    private: bytes

    def run(self, beat: Callable[[], None]) -> Disposed | Quarantined | Kept:
        """Do it, or go on where a crash stopped it."""
        beat()
        return self.owed.pay(self.root, self.key.path, self.private)
