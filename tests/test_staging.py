"""A staged picture is whole, durable and out of sight, or it is not there at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING

import pytest
from fault_system import Fault, FaultySystem

from animed.engine.staging import NO_MODES, NO_TMPFILE, write
from animed.errors import PhotoError, PlaceError
from animed.records import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from animed.system import Entry

PREFIX = ".syncthing.animed-0a1b-"
DATA = b"picture" * 1000
MTIME = 1_500_000_000_123_456_789
PLACE_ERRORS = [
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.ESTALE,
    errno.ENOTCONN,
    errno.ENOENT,
    errno.EACCES,
    errno.EPERM,
]


def stage(folder: Path, *, mode: int | None = None, keep_mtime: bool = True) -> Stage:
    return Stage(str(folder), PREFIX, mode, keep_mtime)


class Disk(FaultySystem):
    """The output's file system; with `named` it has no unnamed files, which it says by that errno."""

    def __init__(self, named: int = 0) -> None:
        super().__init__()
        self.named = named
        self.taken = 0  # names that are taken, as others would have made them a moment ago
        self.most = 1 << 30  # bytes of one write
        self.order: list[str] = []

    def met(self, call: str, subject: object) -> Fault | None:
        """Keep the order of the calls."""
        self.order.append(call)
        return super().met(call, subject)

    def open(self, entry: Entry, flags: int, mode: int = 0o600) -> int:
        """Open, unless that kind of file is not to be had."""
        if self.named and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(self.named, os.strerror(self.named))
        if flags & os.O_CREAT and self.taken:
            self.taken -= 1
            raise FileExistsError(errno.EEXIST, "exists")
        return super().open(entry, flags, mode)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write a part."""
        return super().write(descriptor, data[: self.most])


def disk(call: str = "", code: int = 0, *, named: bool = False) -> Disk:
    """Return a disk where a call fails until the end."""
    made = Disk(errno.EOPNOTSUPP if named else 0)
    if call:
        made.arm(call, code, times=None)
    return made


def link(fd: int, folder: Path, name: str) -> None:
    """Give an unnamed file a name; only with a folder's descriptor does `os.link` follow the link in /proc."""
    where = os.open(folder, os.O_RDONLY)
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=where, follow_symlinks=True)
    os.close(where)


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Give every test the same umask."""
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def leaks() -> Iterator[None]:
    """Fail a test after which more descriptors are open than before."""
    before = set(os.listdir("/proc/self/fd"))
    yield
    assert set(os.listdir("/proc/self/fd")) == before


def test_an_unnamed_file_holds_the_picture_and_can_be_linked(tmp_path: Path) -> None:
    """The descriptor is the whole picture with mode and mtime, nothing is to be seen, and a name can be given."""
    staged, fd = write(DATA, stage(tmp_path), MTIME)
    assert fd is not None
    assert os.listdir(tmp_path) == []
    assert staged.name is None
    link(fd, tmp_path, "a.jpg")
    os.close(fd)
    found = (tmp_path / "a.jpg").stat()
    assert (found.st_dev, found.st_ino, found.st_size) == (staged.device, staged.inode, staged.size)
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o640, MTIME)
    assert (tmp_path / "a.jpg").read_bytes() == DATA
    assert staged.sha256 == hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize("code", sorted(NO_TMPFILE))
def test_a_named_file_does_where_unnamed_ones_do_not_exist(tmp_path: Path, code: int) -> None:
    """Each way of saying "no unnamed files here" leads to a hidden file with the instance's prefix."""
    staged, fd = write(DATA, stage(tmp_path, mode=0o604), MTIME, system=Disk(code))
    assert fd is None
    assert staged.name is not None
    assert staged.name.startswith(PREFIX)
    assert staged.name.endswith(".tmp")
    found = (tmp_path / staged.name).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns, found.st_ino) == (0o604, MTIME, staged.inode)
    assert os.listdir(tmp_path) == [staged.name]


def test_a_name_that_is_taken_is_not_touched(tmp_path: Path) -> None:
    """A hidden name that exists already is passed over for another."""
    crowded = disk(named=True)
    crowded.taken = 3
    staged, _ = write(DATA, stage(tmp_path), MTIME, system=crowded)
    assert not crowded.taken
    assert os.listdir(tmp_path) == [staged.name]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    """A write that takes a part is followed by another for the rest."""
    short = disk()
    short.most = 999
    staged, fd = write(DATA, stage(tmp_path), MTIME, system=short)
    assert fd is not None
    assert os.pread(fd, len(DATA) + 1, 0) == DATA
    assert staged.size == len(DATA)
    os.close(fd)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (call, code)
        for call in ("write", "fsync", "chmod", "fstat")
        for code in PLACE_ERRORS
        if not (call == "chmod" and code in NO_MODES)  # a refusal, not a fault
    ],
)
def test_a_fault_of_the_place_leaves_nothing(tmp_path: Path, call: str, code: int, named: bool) -> None:
    """Whichever step fails, the output is at fault, the error number is told, and no file is left."""
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path, mode=0o644), MTIME, system=disk(call, code, named=named))
    assert (raised.value.role, raised.value.code, raised.value.path) == ("output", code, str(tmp_path))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", PLACE_ERRORS)
def test_a_named_file_that_fails_at_close_is_removed(tmp_path: Path, code: int) -> None:
    """Network file systems report lost data when a file is closed: then it is not a picture."""
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path), MTIME, system=disk("close", code, named=True))
    assert raised.value.code == code
    assert os.listdir(tmp_path) == []


def test_the_first_error_is_the_one_told(tmp_path: Path) -> None:
    """When cleaning up fails as well, what went wrong first is what is told."""
    sick = disk("fsync", errno.EIO, named=True)
    sick.arm("close", errno.ENOSPC)
    sick.arm("unlink", errno.EROFS)
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path), MTIME, system=sick)
    assert raised.value.code == errno.EIO


def test_a_truncated_file_is_noticed(tmp_path: Path) -> None:
    """A file that is shorter than what was written is an input/output error, not a picture."""

    class Liar(Disk):
        """Takes every byte and keeps none."""

        def write(self, descriptor: int, data: bytes | memoryview) -> int:
            """Claim that all was written."""
            return len(data)

    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path), MTIME, system=Liar())
    assert raised.value.code == errno.EIO


@pytest.mark.parametrize("code", [errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP])
def test_the_mtime_is_best_effort(tmp_path: Path, code: int) -> None:
    """A share that refuses to set times still gets the picture."""
    _, fd = write(DATA, stage(tmp_path), MTIME, system=disk("utime", code))
    assert fd is not None
    os.close(fd)


def test_the_mtime_is_left_alone_when_not_wanted(tmp_path: Path) -> None:
    """Without keep_mtime the picture's time is the time it was made."""
    _, fd = write(DATA, stage(tmp_path, keep_mtime=False), MTIME, system=disk("utime", errno.EIO))
    assert fd is not None
    assert os.fstat(fd).st_mtime_ns != MTIME
    os.close(fd)


def test_a_file_system_that_cannot_synchronise_is_accepted(tmp_path: Path) -> None:
    """EINVAL from fsync says that there is nothing to synchronise, not that data is lost."""
    _, fd = write(DATA, stage(tmp_path), MTIME, system=disk("fsync", errno.EINVAL))
    assert fd is not None
    os.close(fd)


@pytest.mark.parametrize("named", [False, True])
def test_a_folder_that_is_gone_is_a_fault_of_the_place(tmp_path: Path, named: bool) -> None:
    """An output that was unmounted or removed says ENOENT; no folder is made in its stead."""
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path / "gone"), MTIME, system=disk(named=named))
    assert raised.value.code == errno.ENOENT
    assert os.listdir(tmp_path) == []


def test_a_picture_that_is_too_large_is_a_fault_of_the_photo(tmp_path: Path) -> None:
    """A file size limit concerns this picture alone: the place stays in use."""
    with pytest.raises(PhotoError) as raised:
        write(DATA, stage(tmp_path), MTIME, system=disk("write", errno.EFBIG))
    assert raised.value.reason == "encode"


def test_everything_is_durable_before_it_is_told(tmp_path: Path) -> None:
    """Content, mode and mtime are set before the one fsync, and the file is described after it."""
    healthy = disk()
    _, fd = write(DATA, stage(tmp_path, mode=0o600), MTIME, system=healthy)
    assert healthy.order == ["open", "write", "chmod", "utime", "fsync", "fstat"]
    assert fd is not None
    os.close(fd)


def test_a_large_picture_is_made_durable_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a slow share has taken is a sign of life; the picture is whole, and small ones take no part of this."""
    monkeypatch.setattr("animed.engine.staging.PART", 4)
    beats: list[int] = []
    _, fd = write(b"0123456789", stage(tmp_path), MTIME, beat=lambda: beats.append(1))
    assert fd is not None
    assert os.pread(fd, 99, 0) == b"0123456789"
    os.close(fd)
    assert len(beats) == 2
    _, fd = write(b"0123", stage(tmp_path), MTIME, beat=lambda: beats.append(1))
    assert fd is not None
    os.close(fd)
    assert len(beats) == 2
