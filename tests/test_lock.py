"""One instance for a state folder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from animed.errors import LockedError
from animed.service.lock import InstanceLock, StateFolderError, is_held

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = (
    "import sys, time; from animed.service.lock import InstanceLock\n"
    "lock = InstanceLock(sys.argv[1]); lock.acquire(); print('held', flush=True); time.sleep(600)"
)
NOBODY = 65534


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield another process that holds the state folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_instance_is_refused_by_name(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """While one process holds the folder, another gets an error that names it, with exit status 69."""
    assert is_held(str(tmp_path / "state"))
    with pytest.raises(LockedError, match=rf"process {holder.pid}\b") as caught:
        InstanceLock(str(tmp_path / "state")).acquire()
    assert caught.value.exit_status == 69
    assert caught.value.remedy


def test_a_killed_holder_holds_no_more(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """After kill -9 the folder is free at once, though the lock file is still there."""
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "state" / "lock").exists()
    assert not is_held(str(tmp_path / "state"))
    with InstanceLock(str(tmp_path / "state")):
        assert is_held(str(tmp_path / "state"))


def test_the_lock_is_free_after_the_block(tmp_path: Path) -> None:
    """Leaving the block frees the folder, a second release does nothing, and the next one gets in."""
    with InstanceLock(str(tmp_path)) as lock:
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    lock.release()
    assert not is_held(str(tmp_path))
    with InstanceLock(str(tmp_path)):
        pass


def test_the_lock_does_not_pass_to_a_child(tmp_path: Path) -> None:
    """A child that outlives its parent keeps nobody out: the descriptor is closed on exec."""
    lock = InstanceLock(str(tmp_path))
    lock.acquire()
    program = [sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        lock.release()
        assert not is_held(str(tmp_path))
        child.communicate(b"\n")


def test_missing_folders_are_made_private(tmp_path: Path) -> None:
    """The state folder and every missing folder above it get mode 0700; what was there keeps its own."""
    tmp_path.chmod(0o755)
    with InstanceLock(str(tmp_path / "a" / "b" / "state")):
        pass
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "state"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a/b/state/lock").stat().st_mode) == 0o600


def test_a_file_in_the_way_is_a_clear_error(tmp_path: Path) -> None:
    """Where a folder cannot be made because a file has its place, the error says so; a later start may go well."""
    (tmp_path / "file").touch()
    with pytest.raises(StateFolderError, match="cannot be used: Not a directory") as caught:
        InstanceLock(str(tmp_path / "file" / "state")).acquire()
    assert caught.value.exit_status == 1
    with pytest.raises(StateFolderError, match="Not a directory"):
        InstanceLock(str(tmp_path / "file")).acquire()


@pytest.fixture
def as_nobody(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that this test's user may only read, whoever runs the tests."""
    closed = tmp_path / "closed"
    closed.mkdir(0o555)
    if os.geteuid() != 0:
        yield closed
        return
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        yield closed
    finally:
        os.seteuid(0)


def test_a_folder_without_rights_is_a_clear_error(as_nobody: Path) -> None:
    """Where rights are missing, making the folder and making the lock in it both give a clear error."""
    for state_dir in (as_nobody / "state", as_nobody):
        with pytest.raises(StateFolderError, match="Permission denied"):
            InstanceLock(str(state_dir)).acquire()


def test_nothing_is_held_where_nothing_is(tmp_path: Path) -> None:
    """A folder without a lock file, or no folder at all, is held by no one; asking makes nothing."""
    assert not is_held(str(tmp_path))
    assert not is_held(str(tmp_path / "none"))
    assert list(tmp_path.iterdir()) == []
