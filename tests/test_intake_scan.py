"""Listing an inbox: everything once, cheaply, never through a link, and never an absent inbox as an empty one."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.errors import PlaceError
from animed.intake.rules import Rules
from animed.intake.scan import Found, Ignored, Scanner, Unreadable, root_identity
from animed.system import Entry, Listed, System

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

RULES = Rules(extensions=["jpg"])


class Share(System):
    """A share that counts its calls, and fails to list the folders (by inode) that are told."""

    def __init__(self, faults: dict[int, int] | None = None) -> None:
        self.calls: Counter[str] = Counter()
        self.faults = faults if faults is not None else {}

    def scandir(self, folder: int) -> AbstractContextManager[Iterable[Listed]]:
        """Count, and list or fail."""
        self.calls["scandir"] += 1
        code = self.faults.get(os.fstat(folder).st_ino, 0)
        if code:
            raise OSError(code, os.strerror(code))
        return super().scandir(folder)

    def lstat(self, entry: Entry) -> os.stat_result:
        """Count, and look."""
        self.calls["stat"] += 1
        return super().lstat(entry)


def tree(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"photo")


def test_everything_is_listed_once(tmp_path: Path) -> None:
    """Photos at any depth are found with their stat, the rest is ignored with a rule, junk folders are not entered."""
    tree(tmp_path, "a.jpg", "x/y/b.JPG", "x/notes.txt", "x/@eaDir/b.JPG/SYNOPHOTO_THUMB_M.jpg", ".hidden/c.jpg")
    found = list(Scanner(str(tmp_path), RULES).scan())
    assert sorted(entry.path for entry in found if isinstance(entry, Found)) == [b"a.jpg", b"x/y/b.JPG"]
    assert {entry.path: entry.rule for entry in found if isinstance(entry, Ignored)} == {
        b"x/notes.txt": "extension",
        b"x/@eaDir": "builtin:synology:@eadir",
        b".hidden": "hidden",
    }
    stat = next(entry.stat for entry in found if isinstance(entry, Found) and entry.path == b"a.jpg")
    assert (stat.size, stat.inode) == (5, (tmp_path / "a.jpg").stat().st_ino)


def test_a_pass_costs_one_listing_per_folder_and_one_stat_per_photo(tmp_path: Path) -> None:
    """What is not a candidate is never looked at."""
    tree(tmp_path, *(f"d{n % 10}/{n}.jpg" for n in range(200)), *(f"d{n % 10}/{n}.txt" for n in range(200)))
    share = Share()
    assert sum(isinstance(entry, Found) for entry in Scanner(str(tmp_path), RULES).scan(system=share)) == 200
    assert share.calls == {"scandir": 11, "stat": 200}


def test_links_and_special_files_are_named(tmp_path: Path) -> None:
    """A link, to a file or a folder, a FIFO and a socket are ignored by what they are; links are not followed."""
    tree(tmp_path, "inbox/a.jpg", "secret/s.jpg")
    root = tmp_path / "inbox"
    (root / "l.jpg").symlink_to("a.jpg")
    (root / "dir").symlink_to("../secret")
    os.mkfifo(root / "f.jpg")
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.chdir(root):  # A socket's path may have 108 bytes only.
            listener.bind("s.jpg")
        found = list(Scanner(str(root), RULES).scan())
    assert [entry.path for entry in found if isinstance(entry, Found)] == [b"a.jpg"]
    assert {entry.path: entry.rule for entry in found if isinstance(entry, Ignored)} == {
        b"l.jpg": "symlink",
        b"dir": "symlink",
        b"f.jpg": "fifo",
        b"s.jpg": "socket",
    }


def test_a_folder_that_may_not_be_read_is_told_once(tmp_path: Path) -> None:
    """A locked folder is Unreadable, and the others go on."""
    tree(tmp_path, "locked/a.jpg", "open/b.jpg")
    share = Share({(tmp_path / "locked").stat().st_ino: errno.EACCES})
    found = list(Scanner(str(tmp_path), RULES).scan(system=share))
    assert [entry for entry in found if not isinstance(entry, Found)] == [Unreadable(b"locked", errno.EACCES)]
    assert [entry.path for entry in found if isinstance(entry, Found)] == [b"open/b.jpg"]


def test_a_locked_folder_of_the_real_kernel(tmp_path: Path) -> None:
    """The same with real rights, as a user without privileges."""
    tree(tmp_path, "inbox/locked/a.jpg", "inbox/b.jpg")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o111)
    (tmp_path / "inbox").chmod(0o755)
    (tmp_path / "inbox" / "locked").chmod(0)
    unprivileged = os.geteuid() == 0
    if unprivileged:
        os.seteuid(65534)
    try:
        found = list(Scanner(str(tmp_path / "inbox"), RULES).scan())
    finally:
        if unprivileged:
            os.seteuid(0)
        (tmp_path / "inbox" / "locked").chmod(0o755)
    assert sorted(entry.path for entry in found) == [b"b.jpg", b"locked"]
    assert Unreadable(b"locked", errno.EACCES) in found


def test_one_bad_folder_is_no_bad_share(tmp_path: Path) -> None:
    """An input error in one folder, with the root still answering, stops nothing else."""
    tree(tmp_path, "bad/a.jpg", "good/b.jpg")
    share = Share({(tmp_path / "bad").stat().st_ino: errno.EIO})
    found = list(Scanner(str(tmp_path), RULES).scan(system=share))
    assert sorted(entry.path for entry in found) == [b"bad", b"good/b.jpg"]


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO, errno.EHOSTDOWN, errno.ENOTCONN, errno.EACCES, errno.ENOENT])
def test_a_share_that_is_down_is_a_state(tmp_path: Path, code: int) -> None:
    """When the root does not answer the scan says so, and works again as soon as the share is back."""
    tree(tmp_path, "a.jpg", "x/b.jpg")
    share = Share({tmp_path.stat().st_ino: code})
    scanner = Scanner(str(tmp_path), RULES)
    for _ in range(3):
        with pytest.raises(PlaceError) as caught:
            list(scanner.scan(system=share))
        assert (caught.value.role, caught.value.code, caught.value.path) == ("inbox", code, str(tmp_path))
    share.faults.clear()
    assert sorted(entry.path for entry in scanner.scan(system=share)) == [b"a.jpg", b"x/b.jpg"]


def test_a_share_that_goes_down_meanwhile_is_noticed(tmp_path: Path) -> None:
    """A fault below the root is put down to the root when the root fails too."""
    tree(tmp_path, "a.jpg", "x/b.jpg")
    share = Share()
    entries = Scanner(str(tmp_path), RULES).scan(system=share)
    assert isinstance(next(entries), Found)
    share.faults.update({(tmp_path / "x").stat().st_ino: errno.EIO, tmp_path.stat().st_ino: errno.EHOSTDOWN})
    with pytest.raises(PlaceError) as caught:
        list(entries)
    assert caught.value.code == errno.EHOSTDOWN


def test_an_absent_inbox_is_not_an_empty_one(tmp_path: Path) -> None:
    """A root that is missing, or is a file, raises; an empty one does not."""
    tree(tmp_path, "file")
    for name, code in (("away", errno.ENOENT), ("file", errno.ENOTDIR)):
        with pytest.raises(PlaceError) as caught:
            list(Scanner(str(tmp_path / name), RULES).scan())
        assert caught.value.code == code
        with pytest.raises(PlaceError) as caught:
            root_identity(str(tmp_path / name))
        assert caught.value.code == code
    (tmp_path / "empty").mkdir()
    assert list(Scanner(str(tmp_path / "empty"), RULES).scan()) == []


def test_the_marker_is_demanded(tmp_path: Path) -> None:
    """With `require_marker` an inbox without the marker file is not there; with it the marker itself is ignored."""
    tree(tmp_path, "a.jpg")
    scanner = Scanner(str(tmp_path), RULES, require_marker=True)
    with pytest.raises(PlaceError, match=r"\.animed-inbox is not in the inbox"):
        list(scanner.scan())
    with pytest.raises(PlaceError, match="require_marker"):
        root_identity(str(tmp_path), require_marker=True)
    (tmp_path / ".animed-inbox").touch()
    assert [entry.path for entry in scanner.scan() if isinstance(entry, Found)] == [b"a.jpg"]
    assert root_identity(str(tmp_path), require_marker=True) == (tmp_path.stat().st_dev, tmp_path.stat().st_ino)


def test_another_folder_has_another_identity(tmp_path: Path) -> None:
    """A root that was replaced is noticed by its identity."""
    (tmp_path / "inbox").mkdir()
    before = root_identity(str(tmp_path / "inbox"))
    (tmp_path / "inbox").rename(tmp_path / "old")
    (tmp_path / "inbox").mkdir()
    assert root_identity(str(tmp_path / "inbox")) != before
    assert root_identity(str(tmp_path / "old")) == before


def test_what_goes_away_meanwhile_is_skipped(tmp_path: Path) -> None:
    """Folders and files that vanish, or turn into links, between two steps do no harm."""
    tree(tmp_path, "inbox/x/a.jpg", "inbox/y/b.jpg", "inbox/z/c.jpg", "inbox/d.jpg", "secret/s.jpg")
    root = tmp_path / "inbox"
    entries = Scanner(str(root), RULES).scan()
    assert next(entries) == Found(b"d.jpg", next(iter(Scanner(str(root), RULES).scan())).stat)  # type: ignore[union-attr]  # The only file there.
    (root / "x" / "a.jpg").unlink()
    (root / "x").rmdir()
    (root / "y").rename(tmp_path / "moved")
    (root / "y").symlink_to("../secret")
    assert [entry.path for entry in entries] == [b"z/c.jpg"]


def test_one_folder_can_be_listed_alone(tmp_path: Path) -> None:
    """A scan below a folder finds what is in it, with paths from the root; gone, ignored or a link finds nothing."""
    tree(tmp_path, "a.jpg", "x/b.jpg", "x/y/c.jpg", ".h/d.jpg")
    (tmp_path / "link").symlink_to("x")
    scanner = Scanner(str(tmp_path), RULES)
    assert sorted(entry.path for entry in scanner.scan(b"x")) == [b"x/b.jpg", b"x/y/c.jpg"]
    for below in (b"gone", b"x/gone", b".h", b"link", b"a.jpg"):
        assert list(scanner.scan(below)) == []


def test_a_scan_lets_go_when_it_is_closed(tmp_path: Path) -> None:
    """A scan is taken in slices, and one that is given up keeps no descriptor open."""
    tree(tmp_path, *(f"x/{n}.jpg" for n in range(50)))
    before = len(os.listdir("/proc/self/fd"))
    entries = Scanner(str(tmp_path), RULES).scan()
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(list(islice(entries, 10))) == 10
    entries.close()  # type: ignore[attr-defined]  # It is a generator.
    assert len(os.listdir("/proc/self/fd")) == before


NAMES = st.binary(min_size=1, max_size=20).filter(lambda name: not set(name) & {0, 47} and name[:1] not in b".#~")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(NAMES, NAMES), max_size=8))
def test_any_name_is_found(tmp_path_factory: pytest.TempPathFactory, names: list[tuple[bytes, bytes]]) -> None:
    """Names of any bytes, newlines and broken UTF-8 included, come out as they are on the disk."""
    root = os.fsencode(tmp_path_factory.mktemp("inbox"))
    wanted = set()
    for folder, name in names:
        path = b"d" + folder + b"/" + name + b".jpg"
        os.makedirs(os.path.join(root, b"d" + folder), exist_ok=True)
        os.close(os.open(os.path.join(root, path), os.O_CREAT | os.O_WRONLY))
        if RULES.judge(path, is_dir=False) is None:
            wanted.add(path)
    found = list(Scanner(os.fsdecode(root), RULES).scan())
    assert {entry.path for entry in found if isinstance(entry, Found)} == wanted


def test_an_output_is_not_entered_by_whatever_path(tmp_path: Path) -> None:
    """A folder that is an output, brought into the inbox by a mount, is told and not listed; the inbox itself is."""
    (tmp_path / "in" / "mounted" / "deep").mkdir(parents=True)
    for name in ("a.jpg", "mounted/b.jpg", "mounted/deep/c.jpg"):
        (tmp_path / "in" / name).touch()
    found = os.stat(tmp_path / "in" / "mounted")
    root = os.stat(tmp_path / "in")
    outputs = {(found.st_dev, found.st_ino), (root.st_dev, root.st_ino)}
    scanner = Scanner(str(tmp_path / "in"), RULES, outputs=outputs)
    entries = {entry.path: entry for entry in scanner.scan()}
    assert entries.keys() == {b"a.jpg", b"mounted"}
    assert entries[b"mounted"] == Ignored(b"mounted", "output")
