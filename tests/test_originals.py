"""The laws of originals: only the file that was read is ever removed, and nothing is ever lost."""

from __future__ import annotations

import errno
import os
import stat as bits
from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from delivery_fakes import KINDS, Crash, FakeSystem, Kind, tree

from animed.delivery.originals import Action, Disposed, Kept, dispose, private_name
from animed.errors import PlaceError
from animed.records import FileStat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PHOTO = b"photo" * 400
PATH = b"trip/a.jpg"
PRIVATE = private_name("test", PATH)
ACTIONS: tuple[Action, ...] = ("delete", "move")
CASES = list(product(KINDS, ACTIONS))


class Desk:
    """An inbox with one photo that was read, and a folder for processed ones."""

    def __init__(self, folder: Path) -> None:
        self.inbox = folder / "inbox"
        self.done = folder / "inbox-processed"
        self.photo = self.inbox / "trip/a.jpg"
        self.photo.parent.mkdir(parents=True)
        self.photo.write_bytes(PHOTO)
        self.photo.chmod(0o640)
        self.stat = FileStat.of(self.photo.lstat())

    def dispose(self, action: Action, system: FakeSystem) -> Disposed | Kept:
        """Dispose of the photo as it was read."""
        return dispose(
            str(self.inbox), PATH, self.stat, action=action, private=PRIVATE, target_dir=str(self.done), system=system
        )

    def copies(self) -> list[str]:
        """Return where the photo's whole content is, its private name included."""
        found = {**{f"in/{k}": v for k, v in tree(self.inbox).items()}, **{f"out/{k}": v for k, v in self.moved()}}
        return [name for name, content in found.items() if content == PHOTO]

    def moved(self) -> list[tuple[str, bytes]]:
        """Return what is in the processed folder."""
        return list(tree(self.done).items())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_delete(desk: Desk, kind: Kind) -> None:
    """A deleted original is gone, its folder stays."""
    assert desk.dispose("delete", FakeSystem(kind)) == Disposed("deleted")
    assert tree(desk.inbox) == {}
    assert desk.photo.parent.is_dir()


@pytest.mark.parametrize("kind", KINDS)
def test_move(desk: Desk, kind: Kind) -> None:
    """A moved original keeps its path, content, mode and time; on another file system as well."""
    to = desk.done / "trip/a.jpg"
    assert desk.dispose("move", FakeSystem(kind)) == Disposed("moved", os.fsencode(to))
    assert tree(desk.inbox) == {}
    assert tree(desk.done) == {"trip/a.jpg": PHOTO}
    assert (bits.S_IMODE(to.stat().st_mode), to.stat().st_mtime_ns) == (0o640, desk.stat.mtime_ns)


@pytest.mark.parametrize(("kind", "action"), CASES)
def test_what_belongs_to_a_photo_is_not_touched(desk: Desk, kind: Kind, action: Action) -> None:
    """The video of a Live Photo, sidecars and raw files beside an original stay: they were never given to animed."""
    beside = {f"trip/{name}": name.encode() for name in ("a.MOV", "a.xmp", "a.jpg.xmp", "a.AAE", "a.CR2", "a.jpg.json")}
    for name, content in beside.items():
        (desk.inbox / name).write_bytes(content)
    desk.dispose(action, FakeSystem(kind))
    assert tree(desk.inbox) == beside


@pytest.mark.parametrize("kind", KINDS)
def test_a_move_never_replaces(desk: Desk, kind: Kind) -> None:
    """A name that another photo holds gets a counter."""
    (desk.done / "trip").mkdir(parents=True)
    (desk.done / "trip/a.jpg").write_bytes(b"other")
    (desk.done / "trip/a-2.jpg").write_bytes(b"x" * len(PHOTO))
    desk.dispose("move", FakeSystem(kind))
    assert tree(desk.done) == {"trip/a.jpg": b"other", "trip/a-2.jpg": b"x" * len(PHOTO), "trip/a-3.jpg": PHOTO}


@pytest.mark.parametrize(("kind", "action"), CASES)
def test_a_crash_at_any_call_loses_nothing(tmp_path: Path, kind: Kind, action: Action) -> None:
    """Killed at any call, the photo is somewhere, whole; the same call afterwards finishes, once and cleanly."""
    for at in count(1):
        desk = Desk(tmp_path / str(at))
        system = FakeSystem(kind, at=at)
        crashed = False
        try:
            desk.dispose(action, system)
        except Crash:
            crashed = True
        assert desk.copies() or (action == "delete" and ("unlink" in system.calls or not crashed))
        again = desk.dispose(action, FakeSystem(kind))
        assert isinstance(again, Disposed)
        assert tree(desk.inbox) == {}
        # Only where there are neither links nor exclusive renames, an empty reservation can stay.
        moved = [(name, content) for name, content in desk.moved() if content or kind != "no_links"]
        assert [content for _, content in moved] == ([PHOTO] if action == "move" else [])
        assert kind == "no_links" or [name for name, _ in moved] == (["trip/a.jpg"] if action == "move" else [])
        if not system.fired:
            break
    assert at > 8


@pytest.mark.parametrize(("kind", "action"), CASES)
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_fault_at_any_call_loses_nothing(tmp_path: Path, kind: Kind, action: Action, code: int) -> None:
    """A fault at any call keeps the photo or finishes; a refusal is Kept, a fault of a place can be repeated."""
    for at in count(1):
        desk = Desk(tmp_path / str(at))
        system = FakeSystem(kind, at=at, fault=code)
        try:
            found = desk.dispose(action, system)
        except PlaceError:
            found = None
        assert desk.copies() or (action == "delete" and "unlink" in system.calls)
        if isinstance(found, Kept):
            assert desk.photo.exists() or (desk.photo.parent / os.fsdecode(PRIVATE)).exists()
        assert isinstance(desk.dispose(action, FakeSystem(kind)), Disposed)
        assert tree(desk.inbox) == {}
        assert desk.moved() == ([("trip/a.jpg", PHOTO)] if action == "move" else [])
        if not system.fired:
            break
    assert at > 8


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_that_refuses_keeps_the_original(desk: Desk, action: Action, code: int) -> None:
    """An original that may not be renamed stays where it is, with a word why; no error, no loop."""

    def refusing(name: str, args: tuple[Any, ...]) -> None:
        if name in {"rename", "rename_free", "link", "unlink"}:
            raise OSError(code, "no")

    found = desk.dispose(action, FakeSystem(hook=refusing))
    assert isinstance(found, Kept)
    assert os.strerror(code) in found.why
    assert desk.copies() == ["in/trip/a.jpg"]


def test_a_disk_that_turns_read_only_is_waited_for(desk: Desk) -> None:
    """What the disk of the processed folder, read-only for now, cannot take stays owed: the place is told."""

    def refusing(name: str, _args: tuple[Any, ...]) -> None:
        if name == "mkdir":
            raise OSError(errno.EROFS, "no")

    with pytest.raises(PlaceError) as raised:
        desk.dispose("move", FakeSystem(hook=refusing))
    assert (raised.value.role, raised.value.code) == ("processed", errno.EROFS)
    assert isinstance(desk.dispose("move", FakeSystem()), Disposed)
    assert desk.moved() == [("trip/a.jpg", PHOTO)]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["content", "time", "replaced", "link"])
def test_a_changed_original_is_never_touched(desk: Desk, kind: Kind, action: Action, change: str) -> None:
    """Other bytes, another time, another file or a link under the name: it stays."""
    if change == "content":
        desk.photo.write_bytes(b"new")
    elif change == "time":
        os.utime(desk.photo, ns=(1, 1))
    else:
        desk.photo.rename(desk.photo.with_name("b.jpg"))
        if change == "link":
            desk.photo.symlink_to("b.jpg")
        else:
            desk.photo.write_bytes(PHOTO)
            os.utime(desk.photo, ns=(desk.stat.mtime_ns, desk.stat.mtime_ns))
    before = tree(desk.inbox)
    assert desk.dispose(action, FakeSystem(kind)) == Kept("it is no longer the file that was read")
    assert tree(desk.inbox) == before
    assert desk.moved() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_photo_that_changes_at_the_last_moment_is_put_back(desk: Desk, kind: Kind) -> None:
    """A file that was replaced between the look and the rename gets its name back."""

    def racing(name: str, args: tuple[Any, ...]) -> None:
        if name == "rename_free" and args[1].name == PRIVATE:
            desk.photo.write_bytes(b"newer")

    assert isinstance(desk.dispose("delete", FakeSystem(kind, hook=racing)), Kept)
    assert tree(desk.inbox) == {"trip/a.jpg": b"newer"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_under_the_name_meanwhile_is_not_replaced(desk: Desk, kind: Kind) -> None:
    """When the name is taken while a changed original is put back, it gets a counter, and the caller is told."""
    state = {"raced": False}

    def racing(name: str, args: tuple[Any, ...]) -> None:
        if name == "rename_free" and args[1].name == PRIVATE:
            desk.photo.write_bytes(b"newer")
        elif name == "lstat" and args[0].name == PRIVATE and not desk.photo.exists() and not state["raced"]:
            state["raced"] = True
            desk.photo.write_bytes(b"newest")

    found = desk.dispose("delete", FakeSystem(kind, hook=racing))
    assert found == Kept("it is no longer the file that was read", at=b"trip/a-2.jpg")
    assert tree(desk.inbox) == {"trip/a.jpg": b"newest", "trip/a-2.jpg": b"newer"}


def test_resume_leaves_a_new_file_alone(desk: Desk) -> None:
    """The hidden original goes; a new photo that took its name meanwhile stays."""
    desk.photo.rename(desk.photo.with_name(os.fsdecode(PRIVATE)))
    desk.photo.write_bytes(b"new")
    assert desk.dispose("delete", FakeSystem()) == Disposed("deleted")
    assert tree(desk.inbox) == {"trip/a.jpg": b"new"}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_original_that_is_gone_is_fine(desk: Desk, action: Action) -> None:
    """A photo or a folder that a person removed needs no work."""
    desk.photo.unlink()
    assert desk.dispose(action, FakeSystem()) == Disposed("gone")
    desk.photo.parent.rmdir()
    assert desk.dispose(action, FakeSystem()) == Disposed("gone")


def test_an_inbox_that_is_away_is_a_fault_of_the_place(desk: Desk, tmp_path: Path) -> None:
    """A missing inbox is not a missing photo."""
    desk.inbox.rename(tmp_path / "away")
    with pytest.raises(PlaceError) as caught:
        desk.dispose("delete", FakeSystem())
    assert caught.value.role == "inbox"


def test_a_processed_folder_without_a_parent_is_a_fault_of_that_place(desk: Desk, tmp_path: Path) -> None:
    """The original is back under its name while the processed folder cannot be made."""
    desk.done = tmp_path / "no" / "done"
    with pytest.raises(PlaceError) as caught:
        desk.dispose("move", FakeSystem())
    assert caught.value.role == "processed"
    assert tree(desk.inbox) == {"trip/a.jpg": PHOTO}


def test_a_full_processed_folder_gives_the_original_back(desk: Desk) -> None:
    """ENOSPC while copying to another file system leaves the photo in the inbox, and nothing half over there."""

    def full(name: str, args: tuple[Any, ...]) -> None:
        if name == "write":
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(PlaceError) as caught:
        desk.dispose("move", FakeSystem("cross", hook=full))
    assert (caught.value.role, caught.value.code) == ("processed", errno.ENOSPC)
    assert desk.copies() == ["in/trip/a.jpg"]
    assert desk.moved() == []


def test_links_are_never_followed(desk: Desk, tmp_path: Path) -> None:
    """A folder of the inbox that became a link to another place keeps what is there."""
    desk.photo.parent.rename(tmp_path / "elsewhere")
    (desk.inbox / "trip").symlink_to(tmp_path / "elsewhere")
    assert isinstance(desk.dispose("delete", FakeSystem()), Kept)
    assert tree(tmp_path / "elsewhere") == {"a.jpg": PHOTO}


def test_a_move_needs_a_target(desk: Desk) -> None:
    """Moving without a folder is a mistake of the caller."""
    with pytest.raises(ValueError, match="target"):
        dispose(str(desk.inbox), PATH, desk.stat, action="move", private=PRIVATE)


def test_the_private_name_is_hidden_and_no_sync_temp() -> None:
    """Sync clients skip hidden names, and Syncthing does not delete this one as a stale temporary."""
    assert PRIVATE.startswith(b".animed-test-")
    assert PRIVATE.endswith(b".original")
    assert private_name("test", b"x") != PRIVATE


@pytest.fixture
def other_user(desk: Desk, tmp_path: Path) -> Iterator[Desk]:
    """Act as another user than root, in an inbox that this user may read but not change."""
    if os.geteuid() == 0:
        for above in (tmp_path, *tmp_path.parents[:2]):
            above.chmod(above.stat().st_mode | 0o055)
        os.seteuid(65534)
        yield desk
        os.seteuid(0)
    else:
        desk.photo.parent.chmod(0o555)
        yield desk
        desk.photo.parent.chmod(0o755)


def test_a_read_only_inbox_keeps_its_originals(other_user: Desk) -> None:
    """Without the right to change the folder the photo stays, for one warning."""
    found = other_user.dispose("delete", FakeSystem())
    assert isinstance(found, Kept)
    assert "Permission denied" in found.why
    assert other_user.photo.exists()
