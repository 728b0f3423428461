"""What the output's file system makes of names is found out by trying, and kept to."""

from __future__ import annotations

import errno
import os
import unicodedata
from typing import TYPE_CHECKING

import pytest
from delivery_fakes import PREFIX, FakeSystem, stage_of, stage_picture
from windows_fs import WindowsSystem

from animed.delivery.examine import examine
from animed.delivery.faults import NameRefused
from animed.delivery.portable import PLAIN, NameRules
from animed.delivery.publish import Placed, Taken, place, resolve
from animed.delivery.staging import sweep
from animed.errors import PlaceError
from animed.system import REAL, Entry, System

if TYPE_CHECKING:
    from pathlib import Path


def lower(name: bytes) -> bytes:
    return name.lower()


def composed(name: bytes) -> bytes:
    return unicodedata.normalize("NFC", os.fsdecode(name)).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("system", "kind", "rules"),
    [
        (REAL, "ext4", PLAIN),
        (REAL, "cifs", NameRules(charset="portable")),
        (REAL, "fuseblk", NameRules(charset="portable")),
        (WindowsSystem(), "vfat", NameRules(charset="portable", folds=True)),
        (WindowsSystem(), "fuse.unheard-of", NameRules(charset="portable", folds=True)),
        (WindowsSystem(refusal=errno.ENOENT), "fuse.exfat-of-old", NameRules(charset="portable", folds=True)),
        (WindowsSystem(ascii_only=True), "vfat", NameRules(charset="ascii", folds=True)),
        (WindowsSystem(fold=lower), "x", NameRules(charset="portable", folds=True)),
        (WindowsSystem(fold=composed), "x", NameRules(charset="portable", folds=True)),
        (WindowsSystem(limit=143), "ecryptfs", NameRules(143, "portable", folds=True)),
        (WindowsSystem(said=1530), "vfat", NameRules(charset="portable", folds=True)),
        (WindowsSystem(said=0), "x", NameRules(charset="portable", folds=True)),
        (WindowsSystem(said=14), "x", NameRules(128, "portable", folds=True)),
    ],
)
def test_an_output_says_what_names_it_takes(tmp_path: Path, system: System, kind: str, rules: NameRules) -> None:
    """Limits, characters and spellings are those of the file system, and nothing is left behind."""
    assert examine(stage_of(tmp_path), kind, system=system) == rules
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EROFS])
def test_a_disk_that_fails_is_not_taken_for_one_that_refuses_names(tmp_path: Path, code: int) -> None:
    """Faults of the disk during the trial are the output's, whenever they come."""

    def fail(name: str, args: tuple[object, ...]) -> None:
        entry = args[0]
        if name == "open" and isinstance(entry, Entry) and b":" in entry.name:
            raise OSError(code, os.strerror(code))

    with pytest.raises(PlaceError) as caught:
        examine(stage_of(tmp_path), "ext4", system=FakeSystem(hook=fail))
    assert caught.value.code == code


@pytest.mark.parametrize("sign", ["", ":", "\u00e9", "e\u0301"])
def test_what_a_crash_leaves_of_a_trial_is_swept(tmp_path: Path, sign: str) -> None:
    """Each name that is tried out is one that the next start removes."""
    (tmp_path / f"{PREFIX}0123456789abcdef{sign}.tmp").write_bytes(b"")
    assert sweep([str(tmp_path)], PREFIX) == 1


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("target", "code"),
    [(b"a:b.jpg", errno.EINVAL), (b"a./b.jpg", errno.EINVAL), (b"n" * 200, errno.ENAMETOOLONG)],
)
def test_a_name_that_cannot_be_is_told_from_other_faults(
    tmp_path: Path, target: bytes, code: int, named: bool, overwrite: bool
) -> None:
    """A refused name says so, leaves the stage for the next one, and holds nothing."""
    system = WindowsSystem(limit=143)
    staged, fd = stage_picture(tmp_path, b"picture", named=named)
    stage, output = stage_of(tmp_path), str(tmp_path)
    with pytest.raises(NameRefused) as caught:
        place(staged, fd, stage=stage, output=output, target=target, overwrite=overwrite, system=system)
    assert caught.value.code == code
    assert not resolve(staged, output=output, target=target, system=system)
    placed = place(staged, fd, stage=stage, output=output, target=b"b.jpg", overwrite=overwrite, system=system)
    assert placed == Placed(b"b.jpg")
    assert (tmp_path / "b.jpg").read_bytes() == b"picture"
    if fd is not None:
        os.close(fd)


@pytest.mark.parametrize("spelling", ["A.CEL.JPG", "a.cel.jpg"])
@pytest.mark.parametrize("named", [True, False])
def test_another_spelling_of_a_name_is_that_name(tmp_path: Path, spelling: str, named: bool) -> None:
    """A picture is never placed over one whose name differs in the case of letters only."""
    system = WindowsSystem()
    (tmp_path / "a.cel.jpg").write_bytes(b"first")
    staged, fd = stage_picture(tmp_path, b"second", named=named)
    target = spelling.encode()
    answer = place(staged, fd, stage=stage_of(tmp_path), output=str(tmp_path), target=target, system=system)
    assert answer == Taken(target)
    assert (tmp_path / "a.cel.jpg").read_bytes() == b"first"
    if fd is not None:
        os.close(fd)


def test_a_refused_name_travels_through_a_pipe() -> None:
    """The fault that an inbox's process hands over is the same on the other side."""
    import pickle  # noqa: PLC0415 -- for this test alone

    found = pickle.loads(pickle.dumps(NameRefused("too long", errno.ENAMETOOLONG)))  # noqa: S301 -- our own bytes
    assert (type(found), found.detail, found.code, found.reason) == (NameRefused, "too long", 36, "output_denied")
