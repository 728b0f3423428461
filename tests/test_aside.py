"""Calls in another process: answers, errors, descriptors, signs of life, silence and deaths; and when it is used."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from animed.aside import Aside, Call, aside
from animed.errors import AnimedError, ConfigError, PlaceError
from animed.intake.rules import Rules
from animed.intake.scan import Found, Scanner
from animed.limited import limited, may_hang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def other() -> Iterator[Aside]:
    with aside() as made:
        yield made


# What is asked is defined in this module, which the other process finds by its search path.


def count(beat: Callable[[], None], _descriptor: int | None) -> tuple[int, None]:
    for _ in range(3):
        beat()
    return 3, None


def turn_around(_beat: Callable[[], None], descriptor: int | None) -> tuple[bytes, int]:
    """Read what came along, and send a descriptor back."""
    assert descriptor is not None
    back = os.memfd_create("back")
    os.write(back, b"answer")
    return os.pread(descriptor, 100, 0), back


def fail(kind: str) -> None:
    errors: dict[str, Exception] = {
        "place": PlaceError("output", 28, "/out", "full"),
        "config": ConfigError("wrong", remedy="mend it", path="/c"),
        "system": FileNotFoundError(2, "gone", "/there"),
        "fault": ZeroDivisionError("a fault of the program"),
    }
    raise errors[kind]


def three() -> Iterator[int]:
    yield from range(3)


def test_answers_signs_of_life_and_descriptors(other: Aside) -> None:
    """What is asked is done in another process; descriptors travel both ways, and signs of life arrive."""
    beats: list[int] = []
    assert other.call(count, beat=lambda: beats.append(1)) == (3, None)
    assert len(beats) == 3
    assert other.call(Call(os.getpid))[0] != os.getpid()
    there = os.memfd_create("there")
    os.write(there, b"question")
    value, back = other.call(turn_around, descriptor=there)
    assert value == b"question"
    assert back is not None
    assert os.pread(back, 100, 0) == b"answer"
    for descriptor in (there, back):
        os.close(descriptor)


@pytest.mark.parametrize(("kind", "expected"), [("place", PlaceError), ("config", ConfigError), ("system", OSError)])
def test_expected_errors_arrive_as_they_were(other: Aside, kind: str, expected: type[Exception]) -> None:
    """All fields of an error survive the way, those that its constructor wants by name included."""
    with pytest.raises(expected) as caught:
        other.call(Call(fail, (kind,)))
    with pytest.raises(expected) as local:
        fail(kind)
    assert str(caught.value) == str(local.value)
    if isinstance(local.value, AnimedError):
        assert vars(caught.value) == vars(local.value)
    assert other.call(Call(abs, (-1,)))[0] == 1


def test_a_fault_of_the_program_is_told_with_its_traceback(other: Aside) -> None:
    """It is no answer, and not swallowed; the next call starts another process."""
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a fault of the program"):
        other.call(Call(fail, ("fault",)))
    with pytest.raises(ConnectionResetError):
        other.call(Call(os.getpid))
    assert other.call(Call(abs, (-1,)))[0] == 1


def test_a_killed_process_is_an_error_once(other: Aside) -> None:
    """Whoever asked it hears that it was killed, and a new one answers the next call."""
    pid = other.call(Call(os.getpid))[0]
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ConnectionResetError, match="was killed"):
        other.call(Call(os.getpid))
    assert other.call(Call(os.getpid))[0] != pid


def test_answers_come_bit_by_bit_between_other_calls(other: Aside) -> None:
    """A long answer is fetched piece by piece; what is asked meanwhile is answered meanwhile."""
    pieces = other.iterate(three)
    assert next(pieces) == 0
    assert other.call(Call(abs, (-7,)))[0] == 7
    assert list(pieces) == [1, 2]
    assert list(other.iterate(three)) == [0, 1, 2]


def test_a_long_answer_of_a_killed_process_ends(other: Aside) -> None:
    """The rest of it is lost, which is an error and no end."""
    pieces = other.iterate(three)
    next(pieces)
    os.kill(other.call(Call(os.getpid))[0], signal.SIGKILL)
    with pytest.raises(ConnectionResetError):
        other.call(Call(os.getpid))
    assert other.call(Call(abs, (-1,)))[0] == 1
    with pytest.raises(ConnectionResetError):
        list(pieces)


def test_silence_ends_in_a_timeout_and_nothing_is_left() -> None:
    """A call that takes too long is given up, its process killed, and the next call goes to another."""
    other = Aside()
    pid = other.call(Call(os.getpid))[0]
    with pytest.raises(TimeoutError, match="does not answer"):
        other.call(Call(time.sleep, (600,)), limit=0.2)
    other.close()
    assert other.call(Call(os.getpid))[0] != pid
    other.close()
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_it_holds_no_stream_of_its_parent(other: Aside) -> None:
    """Whoever reads our output waits until all who hold it have gone: one that hangs must not be among them."""
    pid = other.call(Call(os.getpid))[0]
    held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert {name for name in held if not name.startswith("socket:")} <= {os.devnull}


def grandchild() -> int:
    """Start another process from this one, for as long as this one lives."""
    inner = Aside()
    pid: int = inner.call(Call(os.getpid))[0]
    threading.Thread(target=inner.call, args=(Call(time.sleep, (600,)),), daemon=True).start()
    return pid


def test_it_goes_with_its_parent(other: Aside) -> None:
    """A parent that is killed takes it along, even in the middle of a call: nothing is done after its death."""
    inner = psutil.Process(other.call(Call(grandchild))[0])
    os.kill(other.call(Call(os.getpid))[0], signal.SIGKILL)
    inner.wait(30)
    assert not inner.is_running()


def test_what_intake_asks_for_travels(tmp_path: Path, other: Aside) -> None:
    """A scanner with its rules pickles, without what it judged so far, and finds the same there as here."""
    rules = Rules(extensions=["jpg"], ignore=["private/"])
    for name in ("a.jpg", "private/b.jpg", "sub/c.jpg", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    scanner = Scanner(str(tmp_path), rules)
    here = list(scanner.scan())
    assert list(other.iterate(scanner.scan)) == here
    assert {entry.path for entry in here if isinstance(entry, Found)} == {b"a.jpg", b"sub/c.jpg"}
    assert rules.__getstate__()["_folders"] == {b"": None}


# When it is used.

_TABLE = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:5 / /proc rw - proc proc rw
22 20 0:40 / /mnt/nas rw - nfs4 nas:/photos rw
23 20 0:41 / /mnt/with\\040space rw - fuse.sshfs host: rw
24 22 8:2 / /mnt/nas/local rw - xfs /dev/sdb1 rw
25 20 0:42 / /auto rw - autofs systemd-1 rw
26 20 0:43 / /over rw - nfs4 nas:/x rw
27 26 8:3 / /over rw - ext4 /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/user", False),
        ("/mnt/nas", True),
        ("/mnt/nas/photos/new", True),
        ("/mnt/nas/local/x", True),
        ("/mnt/nasty", False),
        ("/mnt/with space/x", True),
        ("/auto/x", True),
        ("/over/x", False),
        ("/mnt/nas/../local", False),
    ],
)
def test_a_path_through_a_share_may_hang(tmp_path: Path, path: str, expected: bool) -> None:
    """A share, a file system of a program, and what lies behind one; a name that only begins alike is another."""
    table = tmp_path / "mountinfo"
    table.write_text(_TABLE)
    assert may_hang(path, table=str(table)) == expected


def test_links_are_followed_as_far_as_they_are_local(tmp_path: Path) -> None:
    """A link from a local disk to a share is seen, and a circle of links ends."""
    table = tmp_path / "mountinfo"
    table.write_text(f"{_TABLE}30 20 0:50 / {tmp_path / 'share'} rw - cifs //nas/x rw\n")
    (tmp_path / "share").mkdir()
    (tmp_path / "to").symlink_to("share/deep")
    (tmp_path / "far").symlink_to(tmp_path / "to")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for name, expected in (("to", True), ("far/x", True), ("one", False), ("absent/x", False)):
        assert may_hang(str(tmp_path / name), table=str(table)) == expected
    assert may_hang("/anything", table=str(tmp_path / "absent"))


def test_a_local_look_is_simply_done() -> None:
    """No process is started where a look will surely end."""
    assert limited(os.getpid, folder="/proc") == os.getpid()
