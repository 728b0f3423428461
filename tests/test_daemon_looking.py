"""What the I/O thread's requests make of real folders."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from daemon_bench import RECIPE

from animed.daemon.looking import Digest, StatPaths
from animed.daemon.owed import Owed
from animed.daemon.putting import Delivery, OpenOutput, OutputFound, PutAway, Resolve, Resolved
from animed.delivery.originals import Disposed
from animed.errors import PhotoError, PlaceError
from animed.opening import reading_fault
from animed.records import FileStat, Job, PhotoKey, Stage
from animed.schedule.rows import Row
from animed.system import REAL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PREFIX = ".syncthing.animed-12345678-"


def nothing() -> None:
    """Take a sign of life."""


def test_each_path_has_its_own_answer(tmp_path: Path) -> None:
    """A stat, a link on the way, what is gone, and what lies in an output are told apart in one request."""
    (tmp_path / "out").mkdir()
    for name in ("a.jpg", "out/b.jpg"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("out")
    out = os.stat(tmp_path / "out")
    paths = (b"a.jpg", b"gone.jpg", b"link/b.jpg", b"out/b.jpg")
    seen = dict(StatPaths(str(tmp_path), paths, {(out.st_dev, out.st_ino)}).run(nothing, REAL))
    assert isinstance(seen.pop(b"a.jpg"), FileStat)
    assert seen == {b"gone.jpg": None, b"link/b.jpg": "symlink", b"out/b.jpg": "output"}


def test_one_bad_name_does_not_suspend_the_inbox(tmp_path: Path) -> None:
    """A path that the file system refuses to look at is that path's fault, while the inbox can be listed."""
    paths = (b"x" * 300 + b".jpg", b"gone.jpg")
    seen = dict(StatPaths(str(tmp_path), paths, frozenset()).run(nothing, REAL))
    assert seen == {paths[0]: "unreadable:ENAMETOOLONG", b"gone.jpg": None}


def test_whose_fault_an_error_is(tmp_path: Path) -> None:
    """While the inbox can be listed an error is the photo's, unless the machine has run out; else the inbox's."""
    broken, starved = OSError(errno.EIO, "broken"), OSError(errno.EMFILE, "too many")
    assert isinstance(reading_fault(broken, root=str(tmp_path), path=b"a.jpg"), PhotoError)
    for error, root, code in ((broken, tmp_path / "away", errno.ENOENT), (starved, tmp_path, errno.EMFILE)):
        fault = reading_fault(error, root=str(root), path=b"a.jpg")
        assert isinstance(fault, PlaceError)
        assert (fault.role, fault.code) == ("inbox", code)


def test_a_sub_folder_that_cannot_be_swept_holds_up_nothing(tmp_path: Path) -> None:
    """The output is opened and its own leftovers go, though another folder to sweep is none."""
    output = tmp_path / "out"
    output.mkdir()
    (output / f"{PREFIX}run1aa.tmp").touch()
    (output / "sub").touch()
    delivery = Delivery(str(output), Stage(str(output), f"{PREFIX}run2", None, keep_mtime=True), None, None)
    request = OpenOutput(delivery, (str(output / "sub"), str(output)), PREFIX, make=True)
    assert isinstance(request.run(nothing, REAL), OutputFound)
    assert sorted(os.listdir(output)) == ["sub"]


def test_what_a_bare_mount_point_does_not_hold_is_not_gone(tmp_path: Path) -> None:
    """While another folder stands in the inbox's place, nothing is told to be gone, and nothing owed is crossed off."""
    root, known = str(tmp_path), os.stat(tmp_path.parent)
    stat = FileStat(1, 1, 1, 1, 1, 0o100644)
    key = PhotoKey("phone", b"a.jpg")
    job = Job(key, stat, RECIPE, 0.0)
    row = Row(key, 1, 1, 1, "publishing")
    owed = [Owed("delete", stat, ""), Owed("move", stat, str(tmp_path.parent / "processed"))]
    requests: list[Callable[..., Any]] = [
        partial(StatPaths, root, (b"a.jpg",), frozenset()), partial(Digest, job, root, root, b""),
        partial(Resolve, row, root, root), *(partial(PutAway, key, root, each, b".private") for each in owed),
    ]  # fmt: skip
    for request in requests:
        with pytest.raises(PlaceError) as caught:
            request(known=(known.st_dev, known.st_ino)).run(nothing, REAL)
        assert (caught.value.role, caught.value.code) == ("inbox", errno.ESTALE)
    here = os.stat(root)
    gone = [requests[n](known=(here.st_dev, here.st_ino)).run(nothing, REAL) for n in (0, 2, 3, 4)]
    assert gone == [((b"a.jpg", None),), Resolved(placed=False, original=None), Disposed("gone"), Disposed("gone")]


@pytest.mark.parametrize("make", [True, False])
def test_an_output_is_made_only_when_asked(tmp_path: Path, make: bool) -> None:
    """An output that was there once and is gone is a fault, not a folder to be made."""
    output = str(tmp_path / "out")
    request = OpenOutput(Delivery(output, Stage(output, PREFIX, None, keep_mtime=True), None, None), (), PREFIX, make)
    if make:
        request.run(nothing, REAL)
    else:
        with pytest.raises(PlaceError) as caught:
            request.run(nothing, REAL)
        assert caught.value.code == errno.ENOENT
    assert os.path.isdir(output) == make
