"""The laws of failed photos: each lies beside its reason, once, and nothing is lost or replaced."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
from dataclasses import replace
from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from delivery_fakes import KINDS, Crash, FakeSystem, Kind, tree

from animed.delivery.originals import Kept, private_name
from animed.delivery.quarantine import Action, FailureRecord, Quarantined, quarantine
from animed.errors import PlaceError
from animed.records import FileStat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from animed.system import System

PHOTO = b"broken" * 300
PATH = b"trip/a.jpg"
RECORD = FailureRecord("truncated", "it ends too early", "phone", 5, "2026-01-02T03:04:05.000Z", "0.1.0")
ACTIONS: tuple[Action, ...] = ("move", "copy")
CASES = list(product(KINDS, ACTIONS))


class Desk:
    """An inbox with one photo that failed, and a folder for failed ones."""

    def __init__(self, folder: Path, path: bytes = PATH) -> None:
        self.inbox = folder / "inbox"
        self.failed = folder / "inbox-failed"
        self.path = path
        self.photo = self.inbox / os.fsdecode(path)
        self.photo.parent.mkdir(parents=True)
        self.photo.write_bytes(PHOTO)
        self.stat = FileStat.of(self.photo.lstat())

    def quarantine(self, action: Action, system: System, record: FailureRecord = RECORD) -> Quarantined | Kept:
        """Quarantine the photo as it was judged."""
        return quarantine(
            str(self.inbox),
            self.path,
            self.stat,
            action=action,
            private=private_name("test", self.path),
            target_dir=str(self.failed),
            record=record,
            system=system,
        )

    def card(self, name: str = "trip/a.jpg.error.json") -> dict[str, Any]:
        """Return what a reason file says."""
        found = json.loads((self.failed / name).read_text())
        assert isinstance(found, dict)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_leave_writes_nothing(desk: Desk) -> None:
    """A photo that is to be left is not looked at, and no folder is made."""
    system = FakeSystem()
    assert desk.quarantine("leave", system) == Quarantined(None)
    assert system.calls == []
    assert not desk.failed.exists()


@pytest.mark.parametrize(("kind", "action"), CASES)
def test_a_failed_photo_lies_beside_its_reason(desk: Desk, kind: Kind, action: Action) -> None:
    """Moved or copied, on every kind of file system, with all that a person needs to know."""
    system = FakeSystem(kind)
    assert desk.quarantine(action, system) == Quarantined(os.fsencode(desk.failed / "trip/a.jpg"))
    assert sorted(tree(desk.failed)) == ["trip/a.jpg", "trip/a.jpg.error.json"]
    assert (desk.failed / "trip/a.jpg").read_bytes() == PHOTO
    assert (desk.failed / "trip/a.jpg").stat().st_mtime_ns == desk.stat.mtime_ns
    assert tree(desk.inbox) == ({} if action == "move" else {"trip/a.jpg": PHOTO})
    assert desk.card() == {
        "reason": "truncated",
        "message": "it ends too early",
        "inbox": "phone",
        "path": str(desk.photo),
        "attempts": 5,
        "size": len(PHOTO),
        "mtime_ns": desk.stat.mtime_ns,
        "time": "2026-01-02T03:04:05.000Z",
        "version": "0.1.0",
    }


def test_a_path_that_is_not_utf8_is_there_in_base64(tmp_path: Path) -> None:
    """The reason file is valid JSON and keeps the exact path."""
    desk = Desk(tmp_path, b"bad\xff.jpg")
    desk.quarantine("copy", FakeSystem())
    card = json.loads((desk.failed / "bad\udcff.jpg.error.json").read_text())
    assert card["path"].endswith("bad\\xff.jpg")
    assert base64.b64decode(card["path_b64"]) == os.fsencode(desk.photo)


def test_a_name_of_full_length_still_gets_its_reason(tmp_path: Path) -> None:
    """The photo's name is cut so that the reason's name fits as well."""
    desk = Desk(tmp_path, b"n" * 251 + b".jpg")
    desk.quarantine("move", FakeSystem())
    photo, note = sorted(tree(desk.failed))
    assert note == f"{photo}.error.json"
    assert len(note) <= 255


@pytest.mark.parametrize(("kind", "action"), CASES)
def test_nothing_is_replaced(desk: Desk, kind: Kind, action: Action) -> None:
    """Another photo or another reason at a place makes it taken: the two files stay together under the next name."""
    (desk.failed / "trip").mkdir(parents=True)
    others = {"trip/a.jpg": b"other", "trip/a-2.jpg.error.json": b"{}", "trip/a-3.jpg.error.json": b"\xff"}
    for name, content in others.items():
        (desk.failed / name).write_bytes(content)
    assert desk.quarantine(action, FakeSystem(kind)) == Quarantined(os.fsencode(desk.failed / "trip/a-4.jpg"))
    found = tree(desk.failed)
    assert {name: found[name] for name in others} == others
    assert set(found) - set(others) == {"trip/a-4.jpg", "trip/a-4.jpg.error.json"}


@pytest.mark.parametrize(("kind", "action"), CASES)
def test_a_crash_at_any_call_ends_in_one_photo_and_one_reason(tmp_path: Path, kind: Kind, action: Action) -> None:
    """Killed at any call, the photo is somewhere, whole; the same call finishes, even with a later time."""
    for at in count(1):
        desk = Desk(tmp_path / str(at))
        system = FakeSystem(kind, at=at)
        with contextlib.suppress(Crash):
            desk.quarantine(action, system)
        assert PHOTO in [*tree(desk.inbox).values(), *tree(desk.failed).values()]
        again = desk.quarantine(action, FakeSystem(kind), replace(RECORD, time="later"))
        assert isinstance(again, Quarantined)
        check(desk, kind, action)
        if not system.fired:
            break
    assert at > 12


@pytest.mark.parametrize(("kind", "action"), CASES)
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EACCES])
def test_a_fault_at_any_call_loses_nothing(tmp_path: Path, kind: Kind, action: Action, code: int) -> None:
    """A fault keeps the photo or finishes, and the same call afterwards ends in one photo and one reason."""
    for at in count(1):
        desk = Desk(tmp_path / str(at))
        system = FakeSystem(kind, at=at, fault=code)
        with contextlib.suppress(PlaceError):
            desk.quarantine(action, system)
        assert PHOTO in [*tree(desk.inbox).values(), *tree(desk.failed).values()]
        assert isinstance(desk.quarantine(action, FakeSystem(kind)), Quarantined)
        check(desk, kind, action)
        if not system.fired:
            break
    assert at > 12


def check(desk: Desk, kind: Kind, action: Action) -> None:
    """Find one photo, one reason beside it, and nothing else (but an empty reservation where it cannot be helped)."""
    assert tree(desk.inbox) == ({} if action == "move" else {"trip/a.jpg": PHOTO})
    found = {name: content for name, content in tree(desk.failed).items() if content or kind != "no_links"}
    photos = [name for name, content in found.items() if content == PHOTO]
    assert len(photos) == 1
    assert sorted(found) == [photos[0], f"{photos[0]}.error.json"]
    assert kind == "no_links" or photos == ["trip/a.jpg"]
    assert desk.card(f"{photos[0]}.error.json")["reason"] == "truncated"


@pytest.mark.parametrize("action", ACTIONS)
def test_only_the_file_that_was_judged_is_taken(desk: Desk, action: Action) -> None:
    """A photo that changed since, or is gone, leaves no reason behind."""
    desk.photo.write_bytes(b"new bytes")
    found = desk.quarantine(action, FakeSystem())
    assert isinstance(found, Kept)
    desk.photo.unlink()
    assert desk.quarantine(action, FakeSystem()) == Kept("it is gone")
    assert tree(desk.failed) == {}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_photo_that_changes_at_the_last_moment_leaves_no_reason(desk: Desk, action: Action) -> None:
    """What is written for a photo that then is not taken, goes again."""

    def racing(name: str, args: tuple[Any, ...]) -> None:
        if name in {"rename_free", "read"} and desk.photo.exists():
            desk.photo.write_bytes(b"newer")

    assert isinstance(desk.quarantine(action, FakeSystem(hook=racing)), Kept)
    assert tree(desk.failed) == {}
    assert tree(desk.inbox) == {"trip/a.jpg": b"newer"}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_folder_that_is_away_is_its_own_fault(desk: Desk, tmp_path: Path, action: Action) -> None:
    """A missing inbox and a failed folder that cannot be made are faults of those places."""
    desk.failed = tmp_path / "no" / "failed"
    with pytest.raises(PlaceError) as caught:
        desk.quarantine(action, FakeSystem())
    assert caught.value.role == "failed"
    desk.inbox.rename(tmp_path / "away")
    with pytest.raises(PlaceError) as caught:
        desk.quarantine(action, FakeSystem())
    assert caught.value.role == "inbox"


def test_a_target_is_needed(desk: Desk) -> None:
    """Moving without a folder is a mistake of the caller."""
    with pytest.raises(ValueError, match="target"):
        quarantine(str(desk.inbox), PATH, desk.stat, action="move", private=b".p", target_dir=None, record=RECORD)


@pytest.fixture
def unreadable(desk: Desk, tmp_path: Path) -> Iterator[Desk]:
    """Yield a photo that nobody may read, in folders that a user without root's rights may change."""
    desk.photo.chmod(0)
    desk.stat = FileStat.of(desk.photo.lstat())
    if os.geteuid() != 0:
        yield desk
        return
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(above.stat().st_mode | 0o055)
    for one in (tmp_path, desk.inbox, desk.photo.parent, desk.photo):
        os.chown(one, 65534, -1)
    os.seteuid(65534)
    yield desk
    os.seteuid(0)


def test_an_unreadable_photo_can_be_moved_but_not_copied(unreadable: Desk) -> None:
    """A copy needs to read: Kept with the reason, no reason file; a move only renames."""
    found = unreadable.quarantine("copy", FakeSystem())
    assert isinstance(found, Kept)
    assert "Permission denied" in found.why
    assert "a.jpg" in found.why
    assert list(unreadable.failed.rglob("*.json")) == []
    assert isinstance(unreadable.quarantine("move", FakeSystem()), Quarantined)
    assert sorted(path.name for path in (unreadable.failed / "trip").iterdir()) == ["a.jpg", "a.jpg.error.json"]
