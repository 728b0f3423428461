"""Placing a finished picture: whole or not at all, durable, and never over another unless asked to.

Order: the picture's bytes are durable (the worker synced them), its name is taken, the folder is synced. A `publishing`
record written before `place` lets `resolve` say after any fault or crash whether the picture got its name.
"""

from __future__ import annotations

import errno
import os
import stat as bits
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.delivery.faults import FolderGone, NameRefused, Place, SourceGone
from animed.delivery.folders import Making, open_folder, peek, prepare_root, remove, sync_folder, tolerating
from animed.delivery.naming import split
from animed.delivery.staging import temp_name
from animed.delivery.transfer import (
    Temp,
    copy_content,
    create_temp,
    dress,
    drop_temp,
    hash_content,
    identity,
    link_unnamed,
    move_free,
    opened,
)
from animed.records import Stage, Staged, printable
from animed.system import REAL, Entry, System, shut

if TYPE_CHECKING:
    from collections.abc import Iterator

# The picture cannot get its name by linking or renaming from here, but a copy beside that name can.
_COPY_INSTEAD: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOENT, errno.ENOSYS, errno.EINVAL}
)


@dataclass(frozen=True, slots=True)
class Placed:
    """The picture has its name, and the name is durable."""

    path: bytes  # below the output
    notes: tuple[str, ...] = ()  # what the file system would not do (group, mode, time): worth one line in the log


@dataclass(frozen=True, slots=True)
class Taken:
    """Something else holds that name; nothing was changed."""

    path: bytes


def prepare_output(
    output: str, *, dir_mode: int | None = None, group: int | None = None, system: System = REAL
) -> bool:
    """Make the output folder where only its last component is missing; say whether it was made. Raises PlaceError."""
    return prepare_root(system, Place("output", output), Making(dir_mode, group))


def place(
    staged: Staged,
    fd: int | None,
    *,
    stage: Stage,
    output: str,
    target: bytes,
    dir_mode: int | None = None,
    group: int | None = None,
    overwrite: bool = False,
    system: System = REAL,
) -> Placed | Taken:
    """Give a staged picture the name `target` below `output`, making the folders between.

    `fd` is the descriptor of an unnamed stage (`staged.name` is None); it stays the caller's, who ends with `discard`.
    `group` is numeric. Raises PlaceError("output"), PhotoError("output_denied"; NameRefused where another name may be
    taken), or SourceGone when the stage is not there. After any of them ask `resolve` before trying again: the name may
    have been taken before the fault.
    """
    *folders, name = split(target)
    below, at, making = b"/".join(folders), Place("output", output), Making(dir_mode, group)
    with open_folder(system, at, folders, making) as folder, at.guard(below):
        goal = _Goal(system, staged, stage, Entry(folder, name), overwrite)
        with _held(system, staged, fd, stage) as held:
            _regroup(system, held, making)
            _note_mode(system, held, stage, making)
            try:
                goal.take(held)
            except FileExistsError:
                if overwrite:
                    raise  # no name is taken for one that replaces: a hidden name was, and to ask again is no remedy
                return Taken(target)
        sync_folder(system, folder)
    return Placed(target, tuple(making.notes))


def resolve(staged: Staged, *, output: str, target: bytes, system: System = REAL) -> bool:
    """Say whether the picture of a `publishing` record holds its final name, and make that durable when it does.

    It does when the name holds that (device, inode) at that size, or, where inodes are not stable or the picture was
    copied to another file system, that size and SHA-256. An empty file at that name is a reservation that a crash left
    behind: it is removed. Raises PlaceError (the output is not there), PhotoError (a folder denies access).
    """
    *folders, name = split(target)
    at = Place("output", output)
    try:
        with open_folder(system, at, folders) as folder, at.guard(b"/".join(folders)):
            return _settle_name(system, staged, folder, name)
    except (FolderGone, NameRefused):
        return False  # a name that cannot be there holds nothing


def discard(staged: Staged, fd: int | None, *, stage: Stage, system: System = REAL) -> None:
    """End with a stage, placed or not: close the descriptor, remove the named file if it is the staged one.

    What cannot be removed now is swept at the next start.
    """
    if fd is not None:
        shut(system, fd)
    if staged.name is None:
        return
    entry = _named(stage, staged.name)
    with suppress(OSError):
        found = peek(system, entry)
        if found is not None and identity(found) == (staged.device, staged.inode):
            remove(system, entry)


@dataclass(frozen=True, slots=True)
class _Goal:
    """The name that a picture is to have."""

    system: System
    staged: Staged
    stage: Stage
    target: Entry
    overwrite: bool

    def take(self, held: Temp) -> None:
        """Take the name, by a copy in the target's own folder where linking from the stage cannot do it."""
        try:
            self._take(held)
        except OSError as error:
            if error.errno not in _COPY_INSTEAD:
                raise
            if self._is_taken_by(held):
                return  # it was done, and the share lost the answer
            # What replaces another needs a name first, and one that was not linked for another reason as well.
            self._take_by_copy(held, unnamed=error.errno == errno.EXDEV and not self.overwrite)

    def _is_taken_by(self, held: Temp) -> bool:
        found = peek(self.system, self.target)
        return found is not None and identity(found) == identity(self.system.fstat(held.descriptor))

    def _take(self, held: Temp) -> None:
        if held.entry is None and not self.overwrite:
            link_unnamed(self.system, held.descriptor, self.target)
        elif held.entry is None:
            self._replace_by_unnamed(held.descriptor)
        elif self.overwrite:
            self.system.rename(held.entry, self.target)
        else:
            move_free(self.system, held.entry, self.target)

    def _replace_by_unnamed(self, descriptor: int) -> None:
        """Replace by way of a hidden name in the stage's folder, where the next start sweeps what a crash left."""
        with open_folder(self.system, Place("output", self.stage.folder), ()) as folder:
            spare = Entry(folder, temp_name(self.stage.temp_prefix))
            try:
                self.system.link_descriptor(descriptor, spare)
                self.system.rename(spare, self.target)
            except OSError:
                with suppress(OSError):
                    remove(self.system, spare)
                raise

    def _take_by_copy(self, held: Temp, *, unnamed: bool) -> None:
        """Copy the picture into the target's folder, as durable as it was, and give the copy the name."""
        if not self.overwrite and peek(self.system, self.target) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        found = self.system.fstat(held.descriptor)
        spare = Entry(self.target.folder, temp_name(self.stage.temp_prefix))
        copy = create_temp(self.system, spare, found.st_mode & 0o777, unnamed=unnamed)
        try:
            self._fill(copy.descriptor, held.descriptor, found)
            self._take(copy)
        finally:
            drop_temp(self.system, copy)

    def _fill(self, copy: int, source: int, found: os.stat_result) -> None:
        # The worker shares the descriptor's position, so the file is opened once more to read it from its start.
        with opened(self.system, Entry(None, b"/proc/self/fd/%d" % source), os.O_RDONLY) as reading:
            copied = copy_content(self.system, reading, copy)
        if copied != (self.staged.size, self.staged.sha256):
            raise SourceGone("the staged picture is not what the worker staged")
        notes: list[str] = []
        dress(self.system, copy, mode=found.st_mode, mtime_ns=found.st_mtime_ns, notes=notes)
        with tolerating("the group of a file", notes):
            self.system.chgrp(copy, found.st_gid)
        self.system.fsync(copy)


@contextmanager
def _held(system: System, staged: Staged, fd: int | None, stage: Stage) -> Iterator[Temp]:
    """Yield the stage in hand, after making sure that it is the one that was recorded."""
    if staged.name is None:
        if fd is None:
            raise ValueError("an unnamed stage needs its descriptor")
        _check(system, staged, fd)
        yield Temp(fd, None)
        return
    entry = _named(stage, staged.name)
    if peek(system, entry) is None:
        raise SourceGone("the staged picture is gone", path=printable(entry.name))
    with opened(system, entry) as descriptor:
        _check(system, staged, descriptor)
        yield Temp(descriptor, entry)


def _check(system: System, staged: Staged, descriptor: int) -> None:
    """Raise SourceGone unless this is the staged picture; its content decides where inodes are not stable."""
    found = system.fstat(descriptor)
    if found.st_size == staged.size:
        if identity(found) == (staged.device, staged.inode):
            return
        if hash_content(system, descriptor) == (staged.size, staged.sha256):
            return
    raise SourceGone("the staged picture is not what the worker staged")


def _regroup(system: System, held: Temp, making: Making) -> None:
    if making.group is not None and system.fstat(held.descriptor).st_gid != making.group:
        with tolerating("the group of a file", making.notes):
            system.chgrp(held.descriptor, making.group)
        system.fsync(held.descriptor)


def _note_mode(system: System, held: Temp, stage: Stage, making: Making) -> None:
    """Note a mode that was wanted and that the file system would not set."""
    found = system.fstat(held.descriptor).st_mode & 0o777
    if stage.mode is not None and found != stage.mode & 0o777:
        making.notes.append(f"the mode of a file could not be set: it is {found:04o}")


def _settle_name(system: System, staged: Staged, folder: int, name: bytes) -> bool:
    target = Entry(folder, name)
    found = peek(system, target)
    if found is None or not bits.S_ISREG(found.st_mode):
        return False
    if found.st_size == 0:
        remove(system, target)
        return False
    if found.st_size != staged.size:
        return False
    with opened(system, target) as descriptor:
        known = identity(found) == (staged.device, staged.inode)
        if not known and hash_content(system, descriptor) != (staged.size, staged.sha256):
            return False
        system.fsync(descriptor)
    sync_folder(system, folder)
    return True


def _named(stage: Stage, name: str) -> Entry:
    return Entry(None, os.path.join(os.fsencode(stage.folder), os.fsencode(name)))
