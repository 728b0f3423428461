"""A staged picture is whole, durable and out of sight, or it is not there at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from animed.engine.staging import KERNEL, NO_MODES, NO_TMPFILE, Kernel, write
from animed.errors import PhotoError, PlaceError
from animed.records import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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


def failing(code: int, *, after: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a system call that fails with an error, perhaps after it did its work."""

    def call(*arguments: Any) -> Any:
        if after is not None:
            after(*arguments)
        raise OSError(code, os.strerror(code))

    return call


def no_tmpfile(code: int = errno.EOPNOTSUPP) -> Callable[[str, int, int], int]:
    """Return `open` of a file system without unnamed files."""

    def call(path: str, flags: int, mode: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(code, os.strerror(code))
        return os.open(path, flags, mode)

    return call


def link(fd: int, folder: Path, name: str) -> None:
    """Give an unnamed file a name; only with a folder's descriptor does `os.link` follow the link in /proc."""
    where = os.open(folder, os.O_RDONLY)
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=where, follow_symlinks=True)
    os.close(where)


NAMED = replace(KERNEL, open=no_tmpfile())


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
    staged, fd = write(DATA, stage(tmp_path, mode=0o604), MTIME, kernel=replace(KERNEL, open=no_tmpfile(code)))
    assert fd is None
    assert staged.name is not None
    assert staged.name.startswith(PREFIX)
    assert staged.name.endswith(".tmp")
    found = (tmp_path / staged.name).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns, found.st_ino) == (0o604, MTIME, staged.inode)
    assert os.listdir(tmp_path) == [staged.name]


def test_a_name_that_is_taken_is_not_touched(tmp_path: Path) -> None:
    """A hidden name that exists already is passed over for another."""
    taken = [FileExistsError(errno.EEXIST, "exists")] * 3

    def crowded(path: str, flags: int, mode: int) -> int:
        if flags & os.O_CREAT and taken:
            raise taken.pop()
        return no_tmpfile()(path, flags, mode)

    staged, _ = write(DATA, stage(tmp_path), MTIME, kernel=replace(KERNEL, open=crowded))
    assert os.listdir(tmp_path) == [staged.name]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    """A write that takes a part is followed by another for the rest."""
    kernel = replace(KERNEL, write=lambda fd, data: os.write(fd, data[:999]))
    staged, fd = write(DATA, stage(tmp_path), MTIME, kernel=kernel)
    assert fd is not None
    assert os.pread(fd, len(DATA) + 1, 0) == DATA
    assert staged.size == len(DATA)
    os.close(fd)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (call, code)
        for call in ("write", "fsync", "fchmod", "fstat")
        for code in PLACE_ERRORS
        if not (call == "fchmod" and code in NO_MODES)  # a refusal, not a fault
    ],
)
def test_a_fault_of_the_place_leaves_nothing(tmp_path: Path, call: str, code: int, named: bool) -> None:
    """Whichever step fails, the output is at fault, the error number is told, and no file is left."""
    kernel = replace(NAMED if named else KERNEL, **{call: failing(code)})
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path, mode=0o644), MTIME, kernel=kernel)
    assert (raised.value.role, raised.value.code, raised.value.path) == ("output", code, str(tmp_path))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", PLACE_ERRORS)
def test_a_named_file_that_fails_at_close_is_removed(tmp_path: Path, code: int) -> None:
    """Network file systems report lost data when a file is closed: then it is not a picture."""
    kernel = replace(NAMED, close=failing(code, after=os.close))
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path), MTIME, kernel=kernel)
    assert raised.value.code == code
    assert os.listdir(tmp_path) == []


def test_the_first_error_is_the_one_told(tmp_path: Path) -> None:
    """When cleaning up fails as well, what went wrong first is what is told."""
    kernel = replace(
        NAMED, fsync=failing(errno.EIO), close=failing(errno.ENOSPC, after=os.close), unlink=failing(errno.EROFS)
    )
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path), MTIME, kernel=kernel)
    assert raised.value.code == errno.EIO


def test_a_truncated_file_is_noticed(tmp_path: Path) -> None:
    """A file that is shorter than what was written is an input/output error, not a picture."""
    kernel = replace(KERNEL, write=lambda fd, data: len(data))
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path), MTIME, kernel=kernel)
    assert raised.value.code == errno.EIO


@pytest.mark.parametrize("code", [errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP])
def test_the_mtime_is_best_effort(tmp_path: Path, code: int) -> None:
    """A share that refuses to set times still gets the picture."""
    _, fd = write(DATA, stage(tmp_path), MTIME, kernel=replace(KERNEL, set_mtime=failing(code)))
    assert fd is not None
    os.close(fd)


def test_the_mtime_is_left_alone_when_not_wanted(tmp_path: Path) -> None:
    """Without keep_mtime the picture's time is the time it was made."""
    _, fd = write(DATA, stage(tmp_path, keep_mtime=False), MTIME, kernel=replace(KERNEL, set_mtime=failing(errno.EIO)))
    assert fd is not None
    assert os.fstat(fd).st_mtime_ns != MTIME
    os.close(fd)


def test_a_file_system_that_cannot_synchronise_is_accepted(tmp_path: Path) -> None:
    """EINVAL from fsync says that there is nothing to synchronise, not that data is lost."""
    _, fd = write(DATA, stage(tmp_path), MTIME, kernel=replace(KERNEL, fsync=failing(errno.EINVAL)))
    assert fd is not None
    os.close(fd)


@pytest.mark.parametrize("kernel", [KERNEL, NAMED])
def test_a_folder_that_is_gone_is_a_fault_of_the_place(tmp_path: Path, kernel: Kernel) -> None:
    """An output that was unmounted or removed says ENOENT; no folder is made in its stead."""
    with pytest.raises(PlaceError) as raised:
        write(DATA, stage(tmp_path / "gone"), MTIME, kernel=kernel)
    assert raised.value.code == errno.ENOENT
    assert os.listdir(tmp_path) == []


def test_a_picture_that_is_too_large_is_a_fault_of_the_photo(tmp_path: Path) -> None:
    """A file size limit concerns this picture alone: the place stays in use."""
    with pytest.raises(PhotoError) as raised:
        write(DATA, stage(tmp_path), MTIME, kernel=replace(KERNEL, write=failing(errno.EFBIG)))
    assert raised.value.reason == "encode"


def test_everything_is_durable_before_it_is_told(tmp_path: Path) -> None:
    """Content, mode and mtime are set before the one fsync, and the file is described after it."""
    order: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        real = getattr(KERNEL, name)

        def call(*arguments: Any) -> Any:
            order.append(name)
            return real(*arguments)

        return call

    calls = ("open", "write", "fchmod", "set_mtime", "fsync", "fstat", "close", "unlink")
    _, fd = write(DATA, stage(tmp_path, mode=0o600), MTIME, kernel=Kernel(**{name: noted(name) for name in calls}))
    assert order == ["open", "write", "fchmod", "set_mtime", "fsync", "fstat"]
    assert fd is not None
    os.close(fd)
