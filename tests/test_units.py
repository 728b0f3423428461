"""The systemd files: that systemd understands them, how closed the service is, and that its limits let it work."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from animed import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

UNITS = Path(__file__).parent.parent / "systemd"
SYSTEM, USER = UNITS / "animed.service", UNITS / "animed-user.service"
EXPOSURE: Final = 10  # tenths: 1.0 of 10.0, which systemd calls safe
ANALYZE = shutil.which("systemd-analyze")
needs_analyze = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not on this machine")
SYSTEM_UNITS = Path("/usr/lib/systemd/system")
CALLS: Final = 600  # above every system call number there is
NUMBERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def options(unit: Path) -> dict[str, list[str]]:
    """Return the options of a unit; a key may stand more than once."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        key, is_option, value = line.partition("=")
        if is_option and not key.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def analyze(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None
    return subprocess.run(
        [ANALYZE, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environ}
    )


def stand_in(path: Path) -> Path:
    """Make an executable file, for the one that installing animed would put there."""
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@needs_analyze
def test_the_system_unit_is_understood(tmp_path: Path) -> None:
    """Systemd has nothing to say against the system unit.

    It checks that the program exists. /opt/animed does not here, so that the unit is looked at in a root folder of its
    own, with the targets of this machine and a file in the program's place.
    """
    stand_in(tmp_path / options(SYSTEM)["ExecStart"][0].split()[0].lstrip("/"))
    shutil.copytree(SYSTEM_UNITS, tmp_path / "usr/lib/systemd/system", symlinks=True)
    place = tmp_path / "etc/systemd/system/animed.service"
    place.parent.mkdir(parents=True)
    shutil.copy(SYSTEM, place)
    seen = analyze("verify", f"--root={tmp_path}", "--man=no", "animed.service")
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, "", "")
    place.write_text(place.read_text().replace("KillMode=mixed", "KillMode=mxied"))
    assert "mxied" in analyze("verify", f"--root={tmp_path}", "--man=no", "animed.service").stderr


@needs_analyze
def test_the_user_unit_is_understood(tmp_path: Path) -> None:
    """Systemd has nothing to say against the user's unit, in a home folder where animed is installed."""
    stand_in(tmp_path / "home/.local/bin/animed")
    (tmp_path / "run").mkdir(mode=0o700)
    unit = tmp_path / "animed.service"
    shutil.copy(USER, unit)
    places = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    seen = analyze("verify", "--user", "--man=no", str(unit), **places)
    assert (seen.returncode, seen.stdout, seen.stderr) == (0, "", "")


@needs_analyze
def test_the_service_is_closed() -> None:
    """Systemd rates what the service is exposed to at 1.0 of 10 or less."""
    seen = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", str(SYSTEM))
    assert seen.returncode == 0, seen.stdout


@pytest.mark.parametrize("unit", [SYSTEM, USER])
def test_the_unit_agrees_with_the_program(unit: Path) -> None:
    """No restart follows where none heals; start, stop and watchdog leave the program its own time."""
    found = options(unit)
    final = {errors.EXIT_WORKERS, errors.EXIT_UNAVAILABLE, errors.EXIT_CONFIG}
    assert {int(code) for code in found["RestartPreventExitStatus"][0].split()} == final
    assert int(found["TimeoutStartSec"][0]) > 180
    assert int(found["TimeoutStopSec"][0]) > 20 + 10
    assert found["Type"] == ["notify"]
    assert found["NotifyAccess"] == ["main"]
    assert found["KillMode"] == ["mixed"]
    assert found["OOMPolicy"] == ["continue"]
    assert int(found["WatchdogSec"][0]) == 60


@pytest.mark.parametrize("unit", [SYSTEM, USER])
def test_reload_asks_the_service_that_runs(unit: Path) -> None:
    """The unit reloads by the command, which waits for the outcome, with the file that the service reads."""
    found = options(unit)
    assert found["ExecReload"] == [found["ExecStart"][0].replace(" run", " reload")]


@pytest.mark.parametrize("unit", [SYSTEM, USER])
def test_every_relaxed_limit_has_its_reason(unit: Path) -> None:
    """A limit that is switched off stands right below a comment that names it."""
    lines = unit.read_text().splitlines()
    for number, line in enumerate(lines):
        if line in {"MemoryDenyWriteExecute=no", "ProcSubset=all", "PrivateUsers=no"}:
            assert lines[number - 1].startswith(f"# Relaxed, {line.partition('=')[0]}=")


# ---- The users and folders -----------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders to the service's user")
@pytest.mark.skipif(
    not (shutil.which("systemd-sysusers") and shutil.which("systemd-tmpfiles")),
    reason="systemd-sysusers and systemd-tmpfiles are not on this machine",
)
def test_user_and_folders_are_made(tmp_path: Path) -> None:
    """On an empty system the two files make the user, and folders that are the group's and no one else's."""
    (tmp_path / "etc").mkdir()
    for program, file in (("systemd-sysusers", "sysusers.d"), ("systemd-tmpfiles", "tmpfiles.d")):
        create = ["--create"] if program == "systemd-tmpfiles" else []
        subprocess.run([program, *create, f"--root={tmp_path}", str(UNITS / file / "animed.conf")], check=True)
    row = next(line for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("animed:"))
    user, group, home, shell = (row.split(":")[field] for field in (2, 3, 5, 6))
    assert (home, shell) == ("/var/lib/animed", "/usr/sbin/nologin")
    for name in ("srv/animed", "srv/animed/inbox", "srv/animed/outbox"):
        made = (tmp_path / name).stat()
        assert (stat.S_IMODE(made.st_mode), str(made.st_uid), str(made.st_gid)) == (0o2770, user, group)


# ---- What the call filter leaves possible --------------------------------------------------------------------------

PROBE: Final = """
import ctypes, os, socket, struct, sys, tempfile
denied = struct.unpack(f"{len(sys.argv[1]) // 8}I", bytes.fromhex(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)

def refuse(numbers):
    # One classic BPF program a hundred numbers: load the number; if it is one of them EPERM, else allow.
    code = [(0x20, 0, 0, 0)]
    code += [(0x15, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    code += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
    program = b"".join(struct.pack("HBBI", *line) for line in code)
    memory = ctypes.create_string_buffer(program)
    head = struct.pack("HxxxxxxP", len(code), ctypes.addressof(memory))
    assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
    assert libc.prctl(22, 2, ctypes.create_string_buffer(head), 0, 0) == 0, os.strerror(ctypes.get_errno())

for start in range(0, len(denied), 100):
    refuse(denied[start:start + 100])
try:
    os.chroot("/")
    sys.exit("the filter is not in force")
except PermissionError:
    pass

import torch
torch.set_num_threads(2)
torch.set_num_interop_threads(1)
with torch.inference_mode():
    drawn = torch.nn.Conv2d(3, 32, 3).eval()(torch.zeros(1, 3, 64, 64))
assert torch.isfinite(drawn).all()
os.nice(1)
import psutil
psutil.Process().ionice(psutil.IOPRIO_CLASS_BE, 7)
os.sched_setaffinity(0, os.sched_getaffinity(0))
folder = tempfile.mkdtemp()
unnamed = os.open(folder, os.O_TMPFILE | os.O_RDWR)
os.write(unnamed, b"picture")
os.fsync(unnamed)
os.link(f"/proc/self/fd/{unnamed}", "picture", dst_dir_fd=os.open(folder, os.O_RDONLY), follow_symlinks=True)
os.chown(os.path.join(folder, "picture"), -1, os.getgid())
one, two = socket.socketpair()
socket.send_fds(one, [b"x"], [unnamed])
socket.recv_fds(two, 1, 1)
import multiprocessing
worker = multiprocessing.get_context("spawn").Process(target=os.getpid)
worker.start()
worker.join()
assert worker.exitcode == 0
print("worked")
"""


def members(name: str) -> Iterator[str]:
    """Yield the calls of one of systemd's sets, and of the sets that it holds."""
    for line in analyze("syscall-filter", "--no-pager", name).stdout.splitlines()[1:]:
        entry = line.strip()
        if entry.startswith("@"):
            yield from members(entry)
        elif entry and not entry.startswith("#"):
            yield entry


def allowed(unit: Path) -> set[str]:
    """Return the calls that the unit's SystemCallFilter lines leave, as systemd adds them up."""
    left = set(members("@default"))
    for value in options(unit)["SystemCallFilter"]:
        calls = set(members(value.lstrip("~")))
        left = left - calls if value.startswith("~") else left | calls
    return left


@needs_analyze
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not NUMBERS.exists(), reason="the kernel's header with the numbers of the system calls is missing")
def test_the_call_filter_lets_a_worker_work() -> None:
    """Under the units' call filter a process draws with torch, places a file, and starts and tunes a worker."""
    assert options(USER)["SystemCallFilter"] == options(SYSTEM)["SystemCallFilter"]
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text()))
    left = {int(numbers[name]) for name in allowed(SYSTEM) if name in numbers}
    denied = sorted(set(range(CALLS)) - left)
    assert int(numbers["chroot"]) in denied
    seen = subprocess.run(
        [sys.executable, "-c", PROBE, b"".join(number.to_bytes(4, sys.byteorder) for number in denied).hex()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (seen.returncode, seen.stdout) == (0, "worked\n"), seen.stderr
