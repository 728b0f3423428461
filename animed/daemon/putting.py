"""What an inbox's I/O thread can be asked about the output and the originals. `run` says what each request answers.

Every request may raise PlaceError or PhotoError besides; the thread hands those over as answers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from animed.delivery import faults, publish, staging
from animed.delivery.examine import examine
from animed.delivery.originals import Disposed, Kept
from animed.delivery.portable import PLAIN
from animed.errors import PhotoError, PlaceError
from animed.intake.filesystem import fs_type
from animed.opening import NotRegularError, demand_root, lstat_beneath, reading_fault
from animed.records import Reason
from animed.system import GONE, STARVED, System, at

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.owed import Owed
    from animed.delivery.portable import NameRules
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
    names: NameRules = PLAIN  # what its file system makes of names


@dataclass(frozen=True, slots=True)
class OpenOutput:
    """Make the output where its parent exists, prove that it takes writes, look at it, sweep; answers OutputFound."""

    delivery: Delivery
    sweep: tuple[str, ...]  # folders that earlier runs may have left temporary files in; () = sweep nothing
    prefix: str  # how the names of all runs begin; those of this run are in use
    make: bool  # make the output folder when only its last component is missing

    def run(self, beat: Callable[[], None], system: System) -> OutputFound:
        """Do all of it."""
        output = self.delivery.output
        if self.make:
            to = self.delivery
            publish.prepare_output(output, dir_mode=to.dir_mode, group=to.group, system=system)
        beat()
        staging.probe(self.delivery.stage, system=system)
        beat()
        names = examine(self.delivery.stage, fs_type(output), system=system)
        beat()
        self._sweep(system)
        with faults.Place("output", output).guard():
            found = system.stat(at(output))
        return OutputFound(staging.free_bytes(output, system=system).bytes, (found.st_dev, found.st_ino), names)

    def _sweep(self, system: System) -> None:
        """Remove leftovers; a sub-folder that cannot be looked into keeps its own, and holds up nothing."""
        keep = self.delivery.stage.temp_prefix
        for folder in self.sweep:
            try:
                staging.sweep([folder], self.prefix, keep=keep, system=system)
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

    def run(self, beat: Callable[[], None], system: System) -> publish.Placed | publish.Taken:
        """Place it. A sub-folder that fails while the output itself takes writes is the photo's bad luck alone."""
        beat()
        try:
            return self._place(system)
        except PlaceError as error:
            if b"/" not in self.target or error.code in STARVED:
                raise
            staging.probe(self.delivery.stage, system=system)
            raise PhotoError(Reason.OUTPUT_DENIED, error.detail) from error

    def _place(self, system: System) -> publish.Placed | publish.Taken:
        to = self.delivery
        return publish.place(
            self.staged, self.fd, stage=to.stage, output=to.output, target=self.target,
            dir_mode=to.dir_mode, group=to.group, overwrite=self.overwrite, system=system,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove a named stage that is not needed any more; answers None."""

    staged: Staged
    stage: Stage

    def run(self, beat: Callable[[], None], system: System) -> None:
        """Remove it."""
        beat()
        publish.discard(self.staged, None, stage=self.stage, system=system)


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

    def run(self, beat: Callable[[], None], system: System) -> Resolved:
        """Find out."""
        beat()
        placed = self._is_placed(system)
        beat()
        path = self.row.key.path
        try:
            return Resolved(placed, lstat_beneath(self.root, path, system))
        except NotRegularError:
            demand_root(self.root, self.known, system)
            return Resolved(placed, None)
        except OSError as error:
            if error.errno in GONE:
                demand_root(self.root, self.known, system)
                return Resolved(placed, None)
            # What is owed to the original depends on it, so a passing fault is waited for.
            raise reading_fault(error, root=self.root, path=path, system=system) from error

    def _is_placed(self, system: System) -> bool:
        """Look. A name outside the output, as after a change of the configuration, is looked at where it is."""
        if self.row.staged is None or self.row.output is None:
            return False
        folder = os.fsencode(self.output)
        inside = self.row.output.startswith(folder + b"/")
        output = self.output if inside else os.fsdecode(os.path.dirname(self.row.output))
        target = os.path.relpath(self.row.output, os.fsencode(output))
        return publish.resolve(self.row.staged, output=output, target=target, system=system)


@dataclass(frozen=True, slots=True)
class StageCopy:
    """Stage a finished picture once more, for an equal photo; answers (Staged, descriptor or None)."""

    key: PhotoKey
    source: bytes
    expected: Staged
    stage: Stage
    mtime_ns: int

    def run(self, beat: Callable[[], None], system: System) -> tuple[Staged, int | None]:
        """Stage it."""
        beat()
        return staging.stage_copy(
            self.source, self.expected, stage=self.stage, link=True, mtime_ns=self.mtime_ns, system=system
        )


@dataclass(frozen=True, slots=True)
class PutAway:
    """Do what is owed to an original; answers Disposed, Quarantined or Kept."""

    key: PhotoKey
    root: str
    owed: Owed
    private: bytes
    known: Identity | None = None  # the root that the original is below

    def run(self, beat: Callable[[], None], system: System) -> Disposed | Quarantined | Kept:
        """Do it, or go on where a crash stopped it."""
        beat()
        result = self.owed.pay(self.root, self.key.path, self.private, system)
        if isinstance(result, Kept) or (isinstance(result, Disposed) and result.kind == "gone"):
            demand_root(self.root, self.known, system)
        if not isinstance(result, Kept):
            return result
        try:
            return replace(result, stat=lstat_beneath(self.root, self.key.path, system))
        except (NotRegularError, PlaceError, OSError):
            return result
