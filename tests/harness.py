"""A real daemon on throw-away folders, for tests and measurements: real processes, real signals, real files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
_FOREIGN = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "STATE_DIRECTORY", "RUNTIME_DIRECTORY")
# Without these, root is refused what other users are refused; the interpreter stays readable.
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")


class Service:
    """animed on an inbox, an output and a state folder below `root`."""

    def __init__(self, root: Path, *, inbox_keys: str = "", top_keys: str = "", prefix: Sequence[str] = ()) -> None:
        self.root = root
        self.inbox, self.outbox, self.state = root / "inbox", root / "outbox", root / "state"
        for folder in (self.inbox, self.outbox, self.state):
            folder.mkdir(mode=0o755, exist_ok=True)
        self.config, self.log, self.errors = root / "config.yaml", root / "log.jsonl", root / "stderr.txt"
        self.prefix = tuple(prefix)
        self.write(inbox_keys, top_keys)
        self.process: subprocess.Popen[bytes] | None = None
        self.runs = 0

    def write(self, inbox_keys: str = "", top_keys: str = "") -> None:
        """Write the configuration."""
        keys = {"max_edge": "64", "stable_for": "0.3s"}
        lines = [f"    {key}: {value}" for key, value in keys.items() if f"{key}:" not in inbox_keys]
        lines += [f"    {line}" for line in inbox_keys.splitlines()]
        limits = "" if "limits:" in top_keys else "limits: {min_free: 0}\n"
        self.config.write_text(
            f"version: 1\nstate_dir: {self.state}\n{limits}{top_keys}\ninboxes:\n  - name: phone\n"
            f"    path: {self.inbox}\n    output: {self.outbox}\n" + "\n".join(lines) + "\n"
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return an environment that nothing of the machine leaks into."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("ANIMED_") and k not in _FOREIGN}
        return clean | {"XDG_RUNTIME_DIR": str(self.root), "XDG_STATE_HOME": str(self.root / "xdg")}

    def start(self, *, ready: bool = True) -> None:
        """Start the daemon with a fresh log, and wait until it is ready."""
        self.runs += 1
        self.log = self.root / f"log-{self.runs}.jsonl"
        with self.log.open("wb") as out, self.errors.open("ab") as err:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "animed", "run", "-c", str(self.config)],
                stdout=out, stderr=err, env=self.environment, cwd=self.root, start_new_session=True,
            )  # fmt: skip
        if ready:
            self.until(lambda: self.events("daemon.ready"), "daemon.ready")

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of animed."""
        return subprocess.run(
            [*self.prefix, sys.executable, "-m", "animed", *arguments],
            capture_output=True, text=True, timeout=100, env=self.environment, cwd=self.root, check=False,
        )  # fmt: skip

    def once(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `animed once` on the configuration."""
        return self.call("once", "-c", str(self.config), *arguments)

    def status(self) -> dict[str, Any]:
        """Return the live status."""
        return dict(json.loads(self.call("status", "-c", str(self.config), "--json").stdout))

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the whole log lines so far, of these events or of all."""
        whole = self.log.read_bytes().rpartition(b"\n")[0]
        rows = [json.loads(line) for line in whole.splitlines() if line]
        return [row for row in rows if not names or row["event"] in names]

    def until(self, test: Callable[[], T], what: str, seconds: float = 90) -> T:
        """Wait until a test gives something true, and return that; fail with the log's end when it does not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if got := test():
                return got
            if self.process is not None and self.process.poll() is not None:
                break
            time.sleep(0.05)
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:]) if self.log.exists() else ""
        raise AssertionError(f"{what} did not come.\n{tail}\n{self.errors.read_text()[-2000:]}")

    def outcomes(self) -> dict[str, str]:
        """Return each photo's outcome by its file name, as the log has it."""
        rows = self.events("file.done", "file.duplicate", "file.skipped", "file.failed")
        return {os.path.basename(row["path"]): row.get("reason") or row["event"][5:] for row in rows}

    def wait_outcomes(self, count: int, seconds: float = 90) -> dict[str, str]:
        """Wait until that many photos have an outcome."""
        self.until(lambda: len(self.outcomes()) >= count, f"{count} outcomes", seconds)
        return self.outcomes()

    def pictures(self) -> list[str]:
        """Return the names of all files below the output, hidden ones too."""
        return sorted(str(p.relative_to(self.outbox)) for p in self.outbox.rglob("*") if p.is_file())

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes."""
        assert self.process
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60) -> int:
        """Stop the daemon with a signal and return its exit status."""
        assert self.process
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        self.process = None
        return code

    def kill(self) -> None:
        """Kill the daemon as an out-of-memory kill would."""
        self.stop(signal.SIGKILL)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def photo(path: Path, seed: int = 0, size: tuple[int, int] = (96, 72), **options: Any) -> Path:
    """Write a small photo-like picture that differs for each seed."""
    width, height = size
    gradient = Image.linear_gradient("L").resize(size)
    red = gradient.point(lambda v: (v + seed * 37) % 256)
    green = gradient.rotate(90).resize(size).point(lambda v: (v * 3 + seed * 11) % 256)
    blue = Image.radial_gradient("L").resize(size).point(lambda v: (v + seed // 7) % 256)
    picture = Image.merge("RGB", (red, green, blue))
    picture.putpixel((seed % width, (seed // width) % height), (255, 0, 255))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, **options)
    return path


def whole(path: Path) -> bool:
    """Say whether a picture decodes to its end."""
    with Image.open(path) as picture:
        picture.load()
    return True


def copy(source: Path, target: Path) -> Path:
    """Copy a file as a user would."""
    return Path(shutil.copy(source, target))
