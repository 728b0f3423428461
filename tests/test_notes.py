"""Notes for people in the output: written whole, and only ever over, or instead of, our own."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest
from delivery_fakes import KINDS, PREFIX, Crash, FakeSystem, Kind
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.delivery import notes
from animed.delivery.notes import Note, failure_names
from animed.delivery.portable import PLAIN
from animed.errors import PhotoError, PlaceError
from animed.records import Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = (b"sub/a.jpg.failed.txt", b"sub/a.jpg.failed-2.txt", b"sub/a.jpg.failed-3.txt")
OLD = Note("it was bad", "animed-report inst phone 1", "1")
NEW = Note("it is worse", "animed-report inst phone 1", "2")
OTHER = Note("another", "animed-report inst phone 2", "2")


def stage(folder: Path, mode: int | None = None) -> Stage:
    return Stage(str(folder), PREFIX, mode, keep_mtime=True)


def write(folder: Path, note: Note, system: FakeSystem | None = None, names: tuple[bytes, ...] = NAMES) -> bytes | None:
    return notes.write(note, names, output=str(folder), stage=stage(folder), system=system or FakeSystem())


def files(folder: Path) -> dict[str, bytes]:
    """Return what lies below a folder, hidden files too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_is_written_renewed_and_removed(tmp_path: Path, kind: Kind) -> None:
    """On every kind of file system a note gets its name, is replaced by its next version, and goes, leaving nothing."""
    assert write(tmp_path, OLD, FakeSystem(kind)) == NAMES[0]
    assert files(tmp_path) == {"sub/a.jpg.failed.txt": b"it was bad\nanimed-report inst phone 1 1\n"}
    assert write(tmp_path, NEW, FakeSystem(kind)) == NAMES[0]
    assert files(tmp_path) == {"sub/a.jpg.failed.txt": NEW.content}
    assert notes.drop(NEW.owner, NAMES, output=str(tmp_path), system=FakeSystem(kind))
    assert files(tmp_path) == {}
    assert not notes.drop(NEW.owner, NAMES, output=str(tmp_path))
    assert not notes.drop(NEW.owner, (b"nowhere/a",), output=str(tmp_path))


def test_the_same_note_is_left_as_it_is(tmp_path: Path) -> None:
    """Writing what is there already changes no inode and no time, so that sync programs see nothing."""
    write(tmp_path, OLD)
    before = os.stat(tmp_path / os.fsdecode(NAMES[0]))
    assert write(tmp_path, OLD) == NAMES[0]
    after = os.stat(tmp_path / os.fsdecode(NAMES[0]))
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("my own notes\n"),
    "empty": lambda path: path.write_text(""),
    "another photo's": lambda path: path.write_bytes(OTHER.content),
    "quoted inside": lambda path: path.write_bytes(OLD.content + b"and my comment\n"),
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "pipe": os.mkfifo,
    "large": lambda path: path.write_bytes(b"x" * 100_000 + OLD.content),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\0"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_not_ours_is_never_touched(tmp_path: Path, what: str) -> None:
    """Whatever else has the name keeps it: the note takes the next one, and is found there when it is to go."""
    (tmp_path / "sub").mkdir()
    place = tmp_path / os.fsdecode(NAMES[0])
    FOREIGN[what](place)
    before = os.lstat(place)
    assert write(tmp_path, OLD) == NAMES[1]
    assert write(tmp_path, NEW) == NAMES[1]
    assert notes.drop(OLD.owner, NAMES, output=str(tmp_path))
    after = os.lstat(place)
    assert (before.st_ino, before.st_mtime_ns, before.st_size) == (after.st_ino, after.st_mtime_ns, after.st_size)
    assert os.listdir(tmp_path / "sub") == ["a.jpg.failed.txt"]


def test_where_every_name_is_taken_there_is_no_note(tmp_path: Path) -> None:
    """When all its names are somebody else's, the note is left out."""
    (tmp_path / "sub").mkdir()
    for name in NAMES:
        (tmp_path / os.fsdecode(name)).write_text("mine")
    assert write(tmp_path, OLD) is None
    assert set(files(tmp_path).values()) == {b"mine"}


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EROFS, None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_call_leaves_the_old_note_or_the_new_one(tmp_path: Path, kind: Kind, fault: int | None) -> None:
    """A note is there whole, in its old or its new version, whatever call fails or kills; a foreign file stays.

    A fault leaves nothing else behind, a crash at most a hidden temporary file, which the next start sweeps.
    """
    for at in range(1, 200):
        folder = tmp_path / str(at)
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "a.jpg.failed.txt").write_text("mine")
        write(folder, OLD)
        system = FakeSystem(kind, at=at, fault=fault)
        with contextlib.suppress(PlaceError, PhotoError, Crash):
            write(folder, NEW, system)
        found = files(folder)
        assert found.pop("sub/a.jpg.failed.txt") == b"mine"
        assert found.pop("sub/a.jpg.failed-2.txt") in {OLD.content, NEW.content}
        assert all(os.path.basename(name).startswith(PREFIX) for name in found)
        # Only what cannot be looked at or removed when the fault comes stays.
        assert fault is None or not found or system.calls[at - 1] in {"unlink", "lstat", "fstat"}
        if not system.fired:
            return
    raise AssertionError("the fault has no end")


def test_rights_are_those_of_pictures(tmp_path: Path) -> None:
    """A note has the mode that pictures have, and new folders theirs."""
    dressed = stage(tmp_path, 0o640)
    notes.write(OLD, NAMES, output=str(tmp_path), stage=dressed, dir_mode=0o750, group=os.getgid())
    assert stat.S_IMODE((tmp_path / "sub").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / os.fsdecode(NAMES[0])).stat().st_mode) == 0o640


def test_the_search_finds_our_notes_and_nothing_else(tmp_path: Path) -> None:
    """Notes of this inbox are found at any depth; hidden folders, links and foreign files are not looked into."""
    write(tmp_path, OLD)
    write(tmp_path, OTHER, names=(b"b.jpg.failed.txt",))
    write(tmp_path, OLD, names=(b".hidden/b.jpg.failed.txt",))
    write(tmp_path, Note("x", "animed-report inst nas 1", "1"), names=(b"c.jpg.failed.txt",))
    write(tmp_path, Note("x", "animed-report else phone 1", "1"), names=(b"d.jpg.failed.txt",))
    (tmp_path / "e.failed.txt").write_text("mine")
    (tmp_path / "picture.jpg").write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = {
        note.name: note.stamp for slice_ in notes.find(str(tmp_path), "animed-report inst phone ") for note in slice_
    }
    assert found == {NAMES[0]: "1", b"b.jpg.failed.txt": "2"}
    with pytest.raises(PlaceError):
        list(notes.find(str(tmp_path / "nowhere"), ""))


@settings(deadline=None, max_examples=80)
@given(path=st.lists(st.binary(min_size=1, max_size=251), min_size=1, max_size=3), flat=st.booleans())
def test_names_of_notes_lie_beside_the_picture(path: list[bytes], flat: bool) -> None:
    """A note lies where its picture would, under a name that fits any file system and is never a photo's."""
    clean = [part.replace(b"/", b"_").replace(b"\0", b"_").replace(b".", b"x") for part in path]
    photo = b"/".join(clean) + b".jpg"
    names = failure_names(photo, "flat" if flat else "mirror", PLAIN)
    assert len(set(names)) == len(names)
    for name in names:
        folder, base = os.path.split(name)
        assert folder == (b"" if flat else b"/".join(clean[:-1]))
        assert base.endswith(b".txt")
        assert b".failed" in base
        assert len(base) <= 255
