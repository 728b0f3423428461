"""Opening photos below a root: never through a link, never anything but a regular file."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import socket
from pathlib import Path

import pytest

from animed.errors import PlaceError
from animed.opening import NotRegularError, leads_to, lstat_beneath, open_beneath


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make an inbox beside a folder that is none of its business."""
    (tmp_path / "inbox" / "a" / "b").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.jpg").write_bytes(b"secret")
    return tmp_path / "inbox"


@pytest.mark.parametrize("name", [b"p.jpg", b"a/b/p.jpg", b"a/\xff\n.jpg"])
def test_a_regular_file_opens(root: Path, name: bytes) -> None:
    """A regular file at any depth opens for reading, is not inherited, and its stat can be had; nothing leaks."""
    full = os.path.join(os.fsencode(root), name)
    Path(os.fsdecode(full)).write_bytes(b"photo")
    before = descriptors()
    descriptor = open_beneath(str(root), name)
    try:
        assert os.read(descriptor, 99) == b"photo"
        assert not os.get_inheritable(descriptor)
    finally:
        os.close(descriptor)
    assert lstat_beneath(str(root), name).inode == os.stat(full).st_ino
    assert descriptors() == before


def test_a_root_that_is_a_link_is_followed(root: Path, tmp_path: Path) -> None:
    """The root is the user's own word: it may be a link."""
    (root / "p.jpg").write_bytes(b"photo")
    (tmp_path / "link").symlink_to(root)
    os.close(open_beneath(str(tmp_path / "link"), b"p.jpg"))


def test_links_are_refused(root: Path) -> None:
    """A link is refused as the photo and as a folder on the way, even when it stays inside."""
    (root / "p.jpg").write_bytes(b"photo")
    (root / "l.jpg").symlink_to("p.jpg")
    (root / "out").symlink_to("../secret")
    (root / "in").symlink_to("a")
    (root / "a" / "q.jpg").write_bytes(b"photo")
    before = descriptors()
    for path in (b"l.jpg", b"out/x.jpg", b"in/q.jpg"):
        with pytest.raises(NotRegularError) as caught:
            open_beneath(str(root), path)
        assert caught.value.kind == "symlink"
    with pytest.raises(NotRegularError):
        lstat_beneath(str(root), b"out/x.jpg")
    assert lstat_beneath(str(root), b"l.jpg").mode & 0o170000 == 0o120000
    assert descriptors() == before


def test_what_is_not_a_file_is_refused_without_waiting(root: Path) -> None:
    """A FIFO, a socket and a folder are refused at once, by their names."""
    os.mkfifo(root / "fifo.jpg")
    (root / "dir.jpg").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.chdir(root):  # A socket's path may have 108 bytes only.
            listener.bind("socket.jpg")
        for name, kind in ((b"fifo.jpg", "fifo"), (b"dir.jpg", "directory"), (b"socket.jpg", "socket")):
            with pytest.raises(NotRegularError) as caught:
                open_beneath(str(root), name)
            assert caught.value.kind == kind


@pytest.mark.parametrize("path", [b"gone.jpg", b"gone/p.jpg", b"a/b/gone/p.jpg", b"file/p.jpg"])
def test_gone_is_gone(root: Path, path: bytes) -> None:
    """A missing photo, a missing folder, and a file in a folder's place all mean that the photo is gone."""
    (root / "file").write_bytes(b"")
    for reach in (open_beneath, lstat_beneath):
        with pytest.raises(FileNotFoundError):
            reach(str(root), path)


def test_a_missing_root_is_no_missing_photo(root: Path) -> None:
    """When the inbox itself is away, that is said, and not that the photo is gone."""
    for reach in (open_beneath, lstat_beneath):
        with pytest.raises(PlaceError) as caught:
            reach(str(root / "away"), b"p.jpg")
        assert (caught.value.role, caught.value.code) == ("inbox", errno.ENOENT)


@pytest.mark.parametrize(
    "path", [b"", b"/etc/passwd", b"../secret/x.jpg", b"a/../../secret/x.jpg", b"./p.jpg", b"a//b"]
)
def test_a_path_cannot_climb(root: Path, path: bytes) -> None:
    """A path that is not plainly below the root is an error of the caller."""
    with pytest.raises(ValueError, match="not a path below a root"):
        open_beneath(str(root), path)


def test_a_folder_need_not_be_listable(root: Path) -> None:
    """A folder that one may only pass through is passed through, also by a user without privileges."""
    photo = root / "a" / "p.jpg"
    photo.write_bytes(b"photo")
    photo.chmod(0o644)
    for folder in (root.parent, *root.parent.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o111)
    root.chmod(0o755)
    (root / "a").chmod(0o711)
    unprivileged = os.geteuid() == 0
    if unprivileged:
        os.seteuid(65534)
    try:
        os.close(open_beneath(str(root), b"a/p.jpg"))
    finally:
        if unprivileged:
            os.seteuid(0)


def test_the_error_travels() -> None:
    """The error keeps its kind through a pipe."""
    again = pickle.loads(pickle.dumps(NotRegularError("fifo", "a.jpg")))  # noqa: S301  # Our own bytes.
    assert (again.kind, again.path) == ("fifo", "a.jpg")


def test_a_way_through_one_of_some_folders_is_seen(tmp_path: Path) -> None:
    """A folder is known by its identity wherever it stands on the way; the root does not count."""
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    one, root = (os.stat(path) for path in (tmp_path / "a" / "b", tmp_path))
    folders = {(one.st_dev, one.st_ino), (root.st_dev, root.st_ino)}
    ways = {way: leads_to(str(tmp_path), way, folders) for way in (b"", b"a", b"a/b", b"a/b/c")}
    assert ways == {b"": False, b"a": False, b"a/b": True, b"a/b/c": True}
