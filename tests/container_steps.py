"""Builds and runs the container without a container engine: its steps in a plain Debian tree, as root.

    python tests/container_steps.py FOLDER [--suite trixie] [--pip-option=…]

FOLDER gets a Debian tree (by debootstrap, unless there is one), a copy-on-write layer for each stage of the
Containerfile, and the two volumes of the compose example. The service then runs as the example says: its user, no
network, a root that is read-only.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pathspec
import yaml
from dockerfile_parse import DockerfileParser  # type: ignore[import-untyped]  # it ships no types

if TYPE_CHECKING:
    from collections.abc import Callable

TOP: Final = Path(__file__).parent.parent
CONTAINERFILE: Final = TOP / "container" / "Containerfile"
COMPOSE: Final = TOP / "container" / "compose.yaml"
PATIENCE_S: Final = 300.0  # for the service to get ready, or a picture to appear
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Stage:
    """One FROM … of the Containerfile: its root, and what its last instructions say of the container."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)


def steps() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile, in order."""
    parser = DockerfileParser(fileobj=io.BytesIO(CONTAINERFILE.read_bytes()))
    return [(one["instruction"], one["value"]) for one in parser.structure if one["instruction"] != "COMMENT"]


def context() -> list[Path]:
    """Return the files that a build sees: those that the ignore file leaves."""
    ignored = pathspec.GitIgnoreSpec.from_lines((TOP / ".containerignore").read_text().splitlines())
    return [path for path in sorted(TOP.rglob("*")) if path.is_file() and not ignored.match_file(path.relative_to(TOP))]


def run(command: list[Any], environment: dict[str, str] | None = None) -> None:
    """Run a command that must not fail."""
    subprocess.run([os.fspath(word) for word in command], check=True, env=environment)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Builder:
    """Runs the build in trees below a folder."""

    def __init__(self, folder: Path, suite: str, pip_environment: dict[str, str], shared: list[str]) -> None:
        self.folder = folder
        self._suite = suite
        self._pip = pip_environment
        self._shared = shared  # folders of this machine that pip needs
        self._mounts: list[Path] = []
        self.stages: dict[str, Stage] = {}

    def build(self) -> Stage:
        """Run all stages and return the last."""
        base, stage, arguments = self._base(), None, dict[str, str]()
        for instruction, value in steps():
            say(f"{instruction} {value[:100]}")
            if instruction == "FROM":
                _, _, name = value.partition(" AS ")
                stage = self.stages[name or "final"] = self._stage(base, name or "final")
            elif instruction == "ARG":
                name, _, default = value.partition("=")
                arguments[name] = default.strip('"')
            else:
                assert stage is not None
                self._step(stage, instruction, value, arguments)
        assert stage is not None
        return stage

    def close(self) -> None:
        """Take the mounts away again."""
        for mount in reversed(self._mounts):
            run(["umount", "-l", mount])
        self._mounts.clear()

    def _base(self) -> Path:
        tree = self.folder / f"debian-{self._suite}"
        if not (tree / "etc").is_dir():
            run(["debootstrap", "--variant=minbase", "--include=ca-certificates", self._suite, tree])
        return tree

    def _stage(self, base: Path, name: str) -> Stage:
        root, upper, work = (self.folder / f"{name}-{what}" for what in ("root", "upper", "work"))
        for each in (upper, work):
            shutil.rmtree(each, ignore_errors=True)
        for each in (root, upper, work):
            each.mkdir(exist_ok=True)
        self._mount(["-t", "overlay", "-o", f"lowerdir={base},upperdir={upper},workdir={work}", "overlay", root], root)
        for kind, where in (("proc", "proc"), ("tmpfs", "tmp")):
            self._mount(["-t", kind, kind, root / where], root / where)
        self._mount(["--rbind", "/dev", root / "dev"], root / "dev")
        for folder in self._shared:
            (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
            self._mount(["--bind", "-o", "ro", folder, root / folder.lstrip("/")], root / folder.lstrip("/"))
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        return Stage(root)

    def _mount(self, arguments: list[str | Path], where: Path) -> None:
        run(["mount", *arguments])
        self._mounts.append(where)

    def _step(self, stage: Stage, instruction: str, value: str, arguments: dict[str, str]) -> None:
        match instruction:
            case "RUN":
                self._run(stage, value, arguments)
            case "COPY":
                self._copy(stage, value)
            case "ENV":
                name, _, text = value.partition("=")
                stage.environment[name] = text
            case "ENTRYPOINT":
                stage.entrypoint = ast.literal_eval(value)
            case "CMD":
                stage.command = ast.literal_eval(value)
            case "HEALTHCHECK":
                stage.health = ast.literal_eval(value.partition(" CMD ")[2])
            case "USER" | "STOPSIGNAL":
                pass  # The compose example says which user; the signal is the one that a stop sends anyway.
            case _:
                raise ValueError(f"no way to do {instruction}")

    def _run(self, stage: Stage, command: str, arguments: dict[str, str]) -> None:
        variables = {"PATH": PATH, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", **arguments, **self._pip}
        run(["chroot", stage.root, "/bin/sh", "-c", command], variables)

    def _copy(self, stage: Stage, value: str) -> None:
        words = value.split()
        if words[0].startswith("--from="):
            source = self.stages[words[0].removeprefix("--from=")].root
            run(["cp", "-a", source / words[1].lstrip("/"), stage.root / words[2].lstrip("/")])
            return
        source, target = TOP / words[0], stage.root / words[1].lstrip("/")
        for path in context():
            if path.is_relative_to(source):
                inside = target / path.relative_to(source) if source.is_dir() else target
                inside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, inside)


class Container:
    """The service in the built tree, as the compose example runs it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self._stage = stage
        self._service = yaml.safe_load(COMPOSE.read_text())["services"]["animed"]
        self.volumes = folder / "volumes"
        shutil.rmtree(self.volumes, ignore_errors=True)

    def prepare(self) -> None:
        """Make the volumes, as the comment at the head of the example says."""
        owner = int(self._service["user"].split(":")[0])
        for name in ("state", "photos/inbox", "photos/outbox"):
            (self.volumes / name).mkdir(parents=True)
        for name in ("state", "photos/outbox"):
            os.chown(self.volumes / name, owner, owner)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it: private mounts, no network, no capability, nothing new to gain, a read-only root."""
        words = self._stage.entrypoint + self._stage.command
        return subprocess.Popen(self._inside(words), env=self._environment())

    def healthy(self, service: subprocess.Popen[bytes]) -> bool:
        """Say what the health check of the Containerfile says, inside the service's own world."""
        pid = self.first(service)
        enter = ["nsenter", "-t", str(pid), "-m", "-n", "-p", "-r", "-w", "--", *self._dropped(), *self._stage.health]
        return pid != 0 and subprocess.run(enter, env=self._environment(), check=False).returncode == 0

    def first(self, service: subprocess.Popen[bytes]) -> int:
        """Return the process that is 1 inside; 0 while there is none."""
        children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def _inside(self, words: list[str]) -> list[str]:
        root = self._stage.root
        mounts = [f"mount --bind {root} {root}"]
        for volume in self._service["volumes"]:
            outside, inside = volume.split(":")[:2]
            mounts += [f"mkdir -p {root}{inside}", f"mount --bind {self.volumes}/{outside} {root}{inside}"]
        mounts += [f"mount -t tmpfs tmpfs {root}{folder}" for folder in self._service["tmpfs"]]
        mounts += [f"mount -t proc proc {root}/proc", f"mount -o remount,bind,ro {root}"]
        script = " && ".join([*mounts, f'exec chroot {root} "$@"'])
        # Process 1 of its own world, as in a container.
        unshare = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", script, "sh"]
        return [*unshare, *self._dropped(), *words]

    def _dropped(self) -> list[str]:
        user, group = self._service["user"].split(":")
        rights = ["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        return ["setpriv", f"--reuid={user}", f"--regid={group}", *rights, "--"]

    def _environment(self) -> dict[str, str]:
        return {"PATH": PATH, **self._stage.environment, **self._service["environment"]}


def wait_for(what: str, service: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; the service must live meanwhile."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if service.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"FAILED: {what} (exit status {service.poll()})")
        time.sleep(1)
    say(f"ok: {what}")


def use(container: Container) -> None:
    """Drop a photo, wait for its picture, ask for the health, stop."""
    container.prepare()
    service = container.start()
    try:
        wait_for("the health check says that it is well", service, lambda: container.healthy(service))
        shutil.copy(next((TOP / "animed" / "samples").glob("*.jpg")), container.volumes / "photos/inbox/one.jpg")
        wait_for("the picture is there", service, (container.volumes / "photos/outbox/one.cel.jpg").exists)
        picture = container.volumes / "photos/outbox/one.cel.jpg"
        say(f"ok: owner {picture.stat().st_uid}:{picture.stat().st_gid}, {picture.stat().st_size} bytes")
        os.kill(container.first(service), signal.SIGTERM)
        status = service.wait(PATIENCE_S)
        say(f"ok: TERM ended it with status {status}")
    finally:
        service.kill()
        service.wait()


def main() -> int:
    """Build, run, use, clean up."""
    parser = argparse.ArgumentParser(description="Run the steps of the Containerfile in a plain Debian tree.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--pip-variable", action="append", default=[], metavar="PIP_NAME=VALUE")
    parser.add_argument("--share", action="append", default=[], metavar="FOLDER", help="seen by the build's steps")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    variables = dict(each.split("=", 1) for each in options.pip_variable)
    builder = Builder(options.folder.resolve(), options.suite, variables, options.share)
    try:
        use(Container(builder.build(), options.folder.resolve()))
    finally:
        builder.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
