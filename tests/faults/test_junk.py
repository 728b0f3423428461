"""What lies where a picture should go: links, pipes and folders are never written through."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from animed.delivery.publish import Placed, Taken, discard, place
from animed.engine.staging import write
from animed.errors import PhotoError
from animed.records import Stage

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("what", ["link", "dangling", "fifo", "folder"])
def test_a_picture_is_never_written_through_what_holds_its_name(tmp_path: Path, what: str, overwrite: bool) -> None:
    """A link's target, a pipe and a folder stay as they are: the name is taken, or the link itself is replaced."""
    output, victim = tmp_path / "out", tmp_path / "victim.jpg"
    output.mkdir()
    victim.write_bytes(b"somebody's")
    target = output / "a.jpg"
    if what == "fifo":
        os.mkfifo(target)
    elif what == "folder":
        target.mkdir()
    else:
        target.symlink_to(victim if what == "link" else tmp_path / "nowhere.jpg")
    stage = Stage(str(output), ".syncthing.animed-test-", None, keep_mtime=False)
    staged, fd = write(b"picture", stage, 1)
    try:
        found: object = place(staged, fd, stage=stage, output=str(output), target=b"a.jpg", overwrite=overwrite)
    except PhotoError as error:
        found = error.reason
    discard(staged, fd, stage=stage)
    if not overwrite:
        assert found == Taken(b"a.jpg")
    elif what == "folder":
        assert found == "output_denied"
    else:
        assert found == Placed(b"a.jpg")
        assert target.is_file()
        assert not target.is_symlink()
    assert victim.read_bytes() == b"somebody's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "victim.jpg"]
    assert os.listdir(output) == ["a.jpg"]
