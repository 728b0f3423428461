"""The hidden side of an output: stages made of finished pictures, leftovers of a crash, proof that it takes writes."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat as bits
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from animed.delivery.faults import Place, SourceGone
from animed.delivery.folders import open_folder, peek, remove
from animed.delivery.transfer import (
    Temp,
    copy_content,
    create_temp,
    dress,
    drop_temp,
    hash_content,
    write_all,
)
from animed.records import Stage, Staged, printable
from animed.system import REAL, Entry, System, shut

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROBE: Final = b"animed" * 683  # a little more than one block of 4096 bytes
# FICLONE: no such call here, another file system, not aligned, files of unlike kinds.
_CANNOT_CLONE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM})
_CANNOT_LINK: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.ENOENT, errno.EINVAL}
)


TRIED: Final = (b":", b"\xc3\xa9", b"e\xcc\x81")  # signs that are tried out in a name: a colon, and é in both forms


class Free(NamedTuple):
    """What an output's file system has left for this user."""

    bytes: int
    inodes: int | None  # None: the file system has no fixed number of them


def temp_name(prefix: str, sign: bytes = b"") -> bytes:
    """Return a fresh name for a hidden temporary file of this instance, perhaps with one of `TRIED` in it."""
    return os.fsencode(prefix + secrets.token_hex(8)) + sign + b".tmp"


def stage_copy(
    source: bytes,
    expected: Staged,
    *,
    stage: Stage,
    link: bool,
    mtime_ns: int | None = None,
    system: System = REAL,
) -> tuple[Staged, int | None]:
    """Stage a finished picture once more: by reflink, else (if `link`) by hard link, else by copy; durable.

    `source` is the finished picture's full path, `expected` what it must be (size and sha256). `mtime_ns` is given to
    the copy when the stage keeps times; a hard link shares its time with the first picture and is left alone. Returns
    the stage and, for an unnamed one, its descriptor. Raises SourceGone (the picture is not that any more), PlaceError.
    """
    at = Place("output", stage.folder)
    reading = _open_source(system, source, expected, at)
    try:
        with open_folder(system, at, ()) as folder, at.guard():
            return _Copying(system, reading, expected, folder=folder, stage=stage, mtime_ns=mtime_ns).stage(link=link)
    finally:
        shut(system, reading)


def sweep(folders: Iterable[str], prefix: str, *, keep: str = "", system: System = REAL) -> int:
    """Remove this instance's leftover temporary files from the given folders; return how many.

    Pass the output and the parent folders of unresolved `publishing` records (a picture can be staged beside its name),
    before photos are drawn. Only regular files named `prefix` + letters and digits + `.tmp` are touched (there may be a
    sign that was tried out in a name): another instance's prefix, even one that begins alike, never matches. Names that
    begin with `keep` are those of this run: they are in use. A folder that is gone holds none. Raises PlaceError.
    """
    other_run = b"(?!" + re.escape(os.fsencode(keep)) + b")" if keep else b""
    ours = re.compile(
        other_run + re.escape(os.fsencode(prefix)) + rb"[0-9A-Za-z_]+(?:" + b"|".join(TRIED) + rb")?\.tmp"
    )
    return sum(_sweep_folder(folder, ours, system) for folder in folders)


def probe(stage: Stage, *, system: System = REAL) -> None:
    """Prove that the output takes writes: write, sync and remove a hidden file. Raises PlaceError or PhotoError."""
    at = Place("output", stage.folder)
    with open_folder(system, at, ()) as folder, at.guard():
        temp = create_temp(system, Entry(folder, temp_name(stage.temp_prefix)), 0o600, unnamed=False)
        try:
            write_all(system, temp.descriptor, _PROBE)
            system.fsync(temp.descriptor)
        finally:
            drop_temp(system, temp)


def free_bytes(output: str, *, system: System = REAL) -> Free:
    """Return what the output's file system has left for this user. Raises PlaceError."""
    at = Place("output", output)
    with open_folder(system, at, ()) as folder, at.guard():
        found = system.statvfs(folder)
    return Free(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


class _Copying:
    """One finished picture that is staged again; `reading` is open at its start."""

    def __init__(
        self, system: System, reading: int, expected: Staged, *, folder: int, stage: Stage, mtime_ns: int | None
    ) -> None:
        self._system = system
        self._reading = reading
        self._expected = expected
        self._folder = folder
        self._stage = stage
        self._mtime_ns = mtime_ns if stage.keep_mtime else None

    def stage(self, *, link: bool) -> tuple[Staged, int | None]:
        """Take the cheapest way that this file system has."""
        temp = self._create()
        staged = None
        try:
            if not self._clone(temp):
                if link and (linked := self._link()):
                    return linked, None
                # Read as a whole first: what the picture's own disk does is not to be blamed on this output.
                self._verify(self._read(self._reading))
                self._verify(copy_content(self._system, self._reading, temp.descriptor))
            staged = self._finish(temp)
        finally:
            if staged is None:
                drop_temp(self._system, temp)
        if temp.entry is None:
            return staged, temp.descriptor
        shut(self._system, temp.descriptor)
        return staged, None

    def _spare(self) -> Entry:
        return Entry(self._folder, temp_name(self._stage.temp_prefix))

    def _create(self) -> Temp:
        mode = 0o666 if self._stage.mode is None else self._stage.mode
        return create_temp(self._system, self._spare(), mode)

    def _clone(self, temp: Temp) -> bool:
        try:
            self._system.clone(temp.descriptor, self._reading)
        except OSError as error:
            if error.errno not in _CANNOT_CLONE:
                raise
            return False
        self._verify(hash_content(self._system, temp.descriptor))
        return True

    def _link(self) -> Staged | None:
        """Link the very file that was opened, after reading all of it; None where that cannot be."""
        spare = self._spare()
        try:
            self._system.link_descriptor(self._reading, spare)
        except OSError as error:
            # A share may have made the link, and lost the answer. The name is nobody else's; a start sweeps it as well.
            with suppress(OSError):
                remove(self._system, spare)
            if error.errno not in _CANNOT_LINK:
                raise
            return None
        staged = None
        try:
            self._verify(self._read(self._reading))
            self._system.fsync(self._reading)
            staged = self._staged(self._reading, spare)
        finally:
            if staged is None:
                remove(self._system, spare)
        return staged

    def _read(self, descriptor: int) -> tuple[int, str]:
        try:
            found = hash_content(self._system, descriptor)
            self._system.seek(descriptor, 0)
        except OSError as error:
            raise SourceGone("the finished picture cannot be read") from error
        return found

    def _verify(self, found: tuple[int, str]) -> None:
        if found != (self._expected.size, self._expected.sha256):
            raise SourceGone("the finished picture is not what it was")

    def _finish(self, temp: Temp) -> Staged:
        dress(self._system, temp.descriptor, mode=self._stage.mode, mtime_ns=self._mtime_ns, notes=[])
        self._system.fsync(temp.descriptor)
        return self._staged(temp.descriptor, temp.entry)

    def _staged(self, descriptor: int, entry: Entry | None) -> Staged:
        found = self._system.fstat(descriptor)
        name = None if entry is None else os.fsdecode(entry.name)
        return Staged(found.st_dev, found.st_ino, self._expected.size, self._expected.sha256, name)


def _open_source(system: System, source: bytes, expected: Staged, at: Place) -> int:
    """Open the finished picture, or raise SourceGone when it is missing, unreadable, or obviously another."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with at.guard():
        try:
            reading = system.open(Entry(None, source), flags)
        except OSError as error:
            raise SourceGone("the finished picture cannot be read", path=printable(source)) from error
        try:
            found = system.fstat(reading)
        except OSError as error:
            shut(system, reading)
            raise SourceGone("the finished picture cannot be read", path=printable(source)) from error
    if bits.S_ISREG(found.st_mode) and found.st_size == expected.size:
        return reading
    shut(system, reading)
    raise SourceGone("the finished picture is not what it was", path=printable(source))


def _sweep_folder(path: str, ours: re.Pattern[bytes], system: System) -> int:
    at = Place("output", path)
    removed = 0
    with at.guard():
        if peek(system, Entry(None, os.fsencode(path))) is None:
            return 0
    with open_folder(system, at, ()) as folder, at.guard():
        for name in filter(ours.fullmatch, system.names(folder)):
            entry = Entry(folder, name)
            found = peek(system, entry)
            if found is not None and bits.S_ISREG(found.st_mode):
                remove(system, entry)
                removed += 1
    return removed
