"""The demonstration: the real service on a throw-away folder, with the sample photos that ship with animed.

It does what a user would do: write a configuration, start the service, drop photos, and look at what comes out.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from animed.errors import EXIT_OK, EXIT_SOME_FAILED, AnimedError
from animed.service.sdnotify import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_S: Final = 600.0  # for all of it, on a slow machine with a slow disk
STOP_S: Final = 60.0  # above the service's own workers.stop_timeout
SERVICE: Final = (sys.executable, "-m", "animed", "run", "-c")
STOPPED: Final = (0, -signal.SIGTERM)  # how the service ends when it is asked to
OUTCOMES: Final = ("file.done", "file.failed", "file.skipped", "file.duplicate")
ERRORS_SHOWN: Final = 4000  # characters of what the service wrote on stderr

# Small limits and a short quiet time, because nothing else writes here and the photos are small.
CONFIG: Final = """\
version: 1
state_dir: {state}
inboxes:
  - name: demo
    path: {inbox}
    output: {outbox}
    style: cel
    max_edge: 512
    stable_for: 500ms
limits: {{min_free: 0}}
logging: {{format: json}}
"""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the demonstration takes place."""

    root: str

    @property
    def inbox(self) -> str:
        """Return where the photos are dropped."""
        return os.path.join(self.root, "inbox")

    @property
    def outbox(self) -> str:
        """Return where the pictures appear."""
        return os.path.join(self.root, "outbox")

    @property
    def config(self) -> str:
        """Return the configuration file."""
        return os.path.join(self.root, "config.yaml")

    @property
    def errors(self) -> str:
        """Return the file that holds what the service writes on stderr."""
        return os.path.join(self.root, "errors.txt")

    def make(self) -> None:
        """Make the folders, and write the configuration."""
        os.mkdir(self.inbox)
        os.mkdir(self.outbox)
        places = {"state": os.path.join(self.root, "state"), "inbox": self.inbox, "outbox": self.outbox}
        with open(self.config, "w", encoding="utf-8") as file:
            # A JSON text is a YAML text that no path can break.
            file.write(CONFIG.format(**{name: json.dumps(path) for name, path in places.items()}))


def run(*, keep: bool = True, service: Sequence[str] = SERVICE, patience_s: float = PATIENCE_S) -> int:
    """Draw the sample photos, and return 0 if every one came out, 3 if not.

    The pictures stay for the user to look at, unless `keep` is false. `service` is the command that takes the
    configuration file as its last argument. Raises AnimedError when the service dies, or when `patience_s` are over.
    """
    folders = Folders(os.path.realpath(tempfile.mkdtemp(prefix="animed-demo-")))
    console = Console(highlight=False, soft_wrap=True)
    try:
        folders.make()
        status = _show(folders, console, service, time.monotonic() + patience_s)
    except BaseException:
        shutil.rmtree(folders.root)  # The error says everything that is in there.
        raise
    if not keep:
        shutil.rmtree(folders.root)
    return status


def _show(folders: Folders, console: Console, service: Sequence[str], deadline: float) -> int:
    with _started(folders, service) as process, console.status("Starting the service …") as status:
        lines = _events(process, folders, deadline)
        _wait_ready(lines, console)
        names = _drop_samples(folders.inbox)
        begun = time.monotonic()
        status.update(f"Drawing {len(names)} photos …")
        drawn = _follow(lines, names, console)
        seconds = time.monotonic() - begun
        status.update("Stopping the service …")
    _check_end(process, folders)
    console.print(f"The pictures are in {folders.outbox}", markup=False)
    console.print(f"{len(names)} photos, {seconds:.1f} s, {len(names) / seconds:.2f} images/s", markup=False)
    return EXIT_OK if drawn == len(names) else EXIT_SOME_FAILED


@contextlib.contextmanager
def _started(folders: Folders, service: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service, and stop it at the end, whatever happened."""
    with open(folders.errors, "wb") as errors:
        process = subprocess.Popen(
            [*service, folders.config],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
            cwd=folders.root,
        )
    try:
        yield process
    finally:
        _stop(process)


def _environment() -> dict[str, str]:
    # Settings of a service that is installed here must not reach this one, and systemd is not its manager.
    foreign = {*VARIABLES, "STATE_DIRECTORY", "CONFIGURATION_DIRECTORY"}
    return {name: value for name, value in os.environ.items() if name not in foreign and not name.startswith("ANIMED_")}


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        # Its last words are read on: a full pipe would keep it from ending.
        process.communicate(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _events(process: subprocess.Popen[bytes], folders: Folders, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield the service's log lines as they come; raises AnimedError when it dies or the time is up."""
    rest = b""
    while chunk := _read(process, deadline):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from map(_parse, lines)
    raise _died(process, folders)


def _read(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    if process.stdout is None:
        return b""
    if not select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise AnimedError("the demonstration takes too long", remedy="see what else keeps this machine busy")
    return os.read(process.stdout.fileno(), 65536)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    # What is not the service's own line is shown as it is.
    return event if isinstance(event, dict) else {"level": "error", "event": line.decode("utf-8", "backslashreplace")}


def _died(process: subprocess.Popen[bytes], folders: Folders) -> AnimedError:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOP_S)
    with open(folders.errors, encoding="utf-8", errors="backslashreplace") as file:
        said = file.read()[-ERRORS_SHOWN:].strip()
    ending = f"the service ended by itself, with status {process.returncode}"
    return AnimedError(f"{ending}:\n{said}" if said else ending, remedy="what it logged stands above")


def _wait_ready(lines: Iterator[dict[str, Any]], console: Console) -> None:
    for line in lines:
        _mention(line, console)
        if line["event"] == "daemon.ready":
            return


def _mention(line: dict[str, Any], console: Console) -> None:
    if line.get("level") in {"error", "critical"}:
        console.print(" ".join(f"{key}={value}" for key, value in line.items() if key != "timestamp"), markup=False)


def _drop_samples(inbox: str) -> set[str]:
    """Copy the sample photos into the inbox, and return their names."""
    samples = [each for each in (resources.files("animed") / "samples").iterdir() if each.name.endswith(".jpg")]
    for sample in samples:
        with open(os.path.join(inbox, sample.name), "wb") as file:
            file.write(sample.read_bytes())
    return {sample.name for sample in samples}


def _follow(lines: Iterator[dict[str, Any]], names: set[str], console: Console) -> int:
    """Wait until every photo has its outcome, and return how many pictures there are."""
    waiting, drawn = set(names), 0
    while waiting:
        line = next(lines)
        name = os.path.basename(line.get("path", ""))
        if line["event"] not in OUTCOMES or name not in waiting:
            _mention(line, console)
            continue
        waiting.remove(name)
        drawn += _is_drawn(line)
        console.print(_outcome(name, line), markup=False)
    return drawn


def _is_drawn(line: dict[str, Any]) -> bool:
    return line["event"] == "file.done" and os.path.isfile(line.get("output", ""))


def _outcome(name: str, line: dict[str, Any]) -> str:
    if _is_drawn(line):
        return f"{name} → {os.path.basename(line['output'])}, {line.get('total_s', 0.0):.1f} s"
    return f"{name}: no picture, {line['event'].partition('.')[2]} {line.get('reason', '')}".rstrip()


def _check_end(process: subprocess.Popen[bytes], folders: Folders) -> None:
    if process.returncode not in STOPPED:
        raise _died(process, folders)
