"""What an inbox's I/O thread can be asked about the output and the originals. `run` says what each request answers.

Every request may raise PlaceError or PhotoError besides; the thread hands those over as answers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from animed.delivery import publish, staging
from animed.delivery.originals import Disposed, Kept
from animed.errors import PhotoError, PlaceError
from animed.opening import NotRegularError, demand_root, lstat_beneath
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.owed import Owed
    from animed.delivery.quarantine import Quarantined
    from animed.opening import Identity
    from animed.records import FileStat, PhotoKey, Stage, Staged
    from animed.schedule.rows import Row


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where the pictures of an inbox go, and with which rights."""

    output: str
    stage: Stage
    dir_mode: int | None
    group: int | None  # numeric


@dataclass(frozen=True, slots=True)
class OutputFound:
    """The output as it is now."""

    free_bytes: int
    identity: Identity


@dataclass(frozen=True, slots=True)
class OpenOutput:
    """Make the output where its parent exists, prove that it takes writes, sweep leftovers; answers OutputFound."""

    delivery: Delivery
    sweep: tuple[str, ...]  # folders that earlier runs may have left temporary files in; () = sweep nothing
    prefix: str  # how the names of all runs begin; those of this run are in use
    make: bool  # make the output folder when only its last component is missing

    def run(self, beat: Callable[[], None]) -> OutputFound:
        """Do all of it."""
        output = self.delivery.output
        if self.make:
            publish.prepare_output(output, dir_mode=self.delivery.dir_mode, group=self.delivery.group)
        beat()
        staging.probe(self.delivery.stage)
        beat()
        self._sweep()
        found = os.stat(output)
        return OutputFound(staging.free_bytes(output).bytes, (found.st_dev, found.st_ino))

    def _sweep(self) -> None:
        """Remove leftovers; a sub-folder that cannot be looked into keeps its own, and holds up nothing."""
        keep = self.delivery.stage.temp_prefix
        for folder in self.sweep:
            try:
                staging.sweep([folder], self.prefix, keep=keep)
            except (PlaceError, PhotoError):
                if folder == self.delivery.output:
                    raise


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
        """Place it. A sub-folder that fails while the output itself takes writes is the photo's bad luck alone."""
        beat()
        try:
            return self._place()
        except PlaceError as error:
            if b"/" not in self.target:
                raise
            staging.probe(self.delivery.stage)
            raise PhotoError(Reason.OUTPUT_DENIED, error.detail) from error

    def _place(self) -> publish.Placed | publish.Taken:
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
    known: Identity | None = None  # the root that the photo is below

    def run(self, beat: Callable[[], None]) -> Resolved:
        """Find out."""
        beat()
        placed = self._is_placed()
        beat()
        try:
            return Resolved(placed, lstat_beneath(self.root, self.row.key.path))
        except (NotRegularError, OSError):
            demand_root(self.root, self.known)
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
    known: Identity | None = None  # the root that the original is below

    def run(self, beat: Callable[[], None]) -> Disposed | Quarantined | Kept:
        """Do it, or go on where a crash stopped it."""
        beat()
        result = self.owed.pay(self.root, self.key.path, self.private)
        if isinstance(result, Kept) or (isinstance(result, Disposed) and result.kind == "gone"):
            demand_root(self.root, self.known)
        if not isinstance(result, Kept):
            return result
        try:
            return replace(result, stat=lstat_beneath(self.root, self.key.path))
        except (NotRegularError, PlaceError, OSError):
            return result
