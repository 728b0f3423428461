"""The service under test, over all its lives: real processes, real signals, the log of every life."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ground import Ground

TOP: Final = Path(__file__).resolve().parent.parent.parent
STOP_S: Final = 90.0  # far more than any stop takes on a machine that is only slow
ORPHANS_S: Final = 20.0  # the same for the end of workers whose parent is dead
_FOREIGN: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "STATE_DIRECTORY", "RUNTIME_DIRECTORY")


@dataclass(slots=True)
class Life:
    """One life of the service: what it wrote, what was asked of it, how it ended."""

    number: int
    log: Path
    errors: Path
    asked: list[str] = field(default_factory=list)  # the signals that should end it
    status: int | None = None  # negative for the signal that ended it
    state_full: bool = False  # the state folder's disk was full during it
    hung: bool = False  # a stop did not come to an end
    orphans: list[str] = field(default_factory=list)  # processes that outlived it

    def lines(self) -> list[str]:
        """Return the whole lines of its log."""
        return self.log.read_text(errors="backslashreplace").split("\n")[:-1]

    def count(self, *events: str) -> int:
        """Return how many of these events its log holds so far."""
        text = self.log.read_bytes()
        return sum(text.count(f'"event": "{event}"'.encode()) for event in events)


class Service:
    """Starts, signals and kills it; asks it through its commands."""

    def __init__(self, ground: Ground, *, dead: Callable[[], None]) -> None:
        self._ground = ground
        self._dead = dead  # called after each life, while nobody touches anything
        self.lives: list[Life] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def life(self) -> Life:
        """Return the present life, or the last one."""
        return self.lives[-1]

    @property
    def pid(self) -> int:
        """Return the process number of the present life."""
        assert self._process is not None
        return self._process.pid

    def _environment(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("ANIMED_") and k not in _FOREIGN}
        root = self._ground.root
        return clean | {
            "XDG_RUNTIME_DIR": str(root), "XDG_STATE_HOME": str(root / "xdg"), "TMPDIR": str(self._ground.temporary),
        }  # fmt: skip

    def start(self) -> None:
        """Begin a new life. The main thread must do this: the service dies with the thread that started it."""
        number = len(self.lives) + 1
        logs = self._ground.logs
        life = Life(number, logs / f"{number:04}.jsonl", logs / f"{number:04}.stderr")
        life.state_full = "state" in self._ground.ballast
        command = [sys.executable, "-m", "tests.crash.daemon", str(self._ground.clock)]
        with life.log.open("wb") as out, life.errors.open("wb") as err:
            self._process = subprocess.Popen(
                [*command, "run", "-c", str(self._ground.config)],
                stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=self._environment(), cwd=TOP,
                start_new_session=True,
            )  # fmt: skip
        self.lives.append(life)

    def runs(self) -> bool:
        """Say whether it lives; a life that has ended is entered as such."""
        if self._process is None:
            return False
        if self._process.poll() is None:
            self.life.state_full |= "state" in self._ground.ballast
            return True
        self._ended()
        return False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal that does not end it."""
        if self.runs():
            os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop its clockwork, not its workers'."""
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the service as an out-of-memory kill would, and see that its workers go too."""
        if self.runs() and self._process is not None:
            self.life.asked.append("KILL")
            self._process.kill()
            self._process.wait()
            self._ended()

    def stop(self, *, again_after: float | None = None) -> None:
        """Ask it to end, and wait for that; ask a second time after so many seconds."""
        if not self.runs() or self._process is None:
            return
        self.life.asked.append("TERM")
        self._process.terminate()
        if again_after is not None:
            time.sleep(again_after)
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.life.hung = True
            self._process.kill()
            self._process.wait()
        self._ended()

    def _ended(self) -> None:
        assert self._process is not None
        group, self.life.status = self._process.pid, self._process.returncode
        self._process = None
        end = time.monotonic() + ORPHANS_S
        while (left := members(group)) and time.monotonic() < end:
            time.sleep(0.02)
        self.life.orphans = left
        if left:
            os.killpg(group, signal.SIGKILL)
        self._dead()

    def workers(self) -> list[int]:
        """Return the process numbers of its workers."""
        if not self.runs():
            return []
        return [int(text.split()[0]) for text in members(self.pid) if "spawn_main" in text]

    def close(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    # Its commands.

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of animed."""
        return subprocess.run(
            [sys.executable, "-m", "animed", *arguments, "-c", str(self._ground.config)],
            capture_output=True, text=True, timeout=120, env=self._environment(), cwd=TOP, check=False,
        )  # fmt: skip

    def status(self) -> dict[str, Any] | None:
        """Return the live state, or None while nobody answers."""
        found = self.call("status", "--json")
        return dict(json.loads(found.stdout)) if found.returncode == 0 else None

    def failed(self) -> list[dict[str, Any]]:
        """Return what failed."""
        return list(json.loads(self.call("failed", "--json").stdout))


def members(group: int) -> list[str]:
    """Return the living processes of a process group, each as its number and its command."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # It ended while we looked.
            continue
        if int(fields[2]) == group and fields[0] not in {"Z", "X"}:
            found.append(f"{name} {command}")
    return found
