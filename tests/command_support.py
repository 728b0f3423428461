"""What the tests of commands share: a configuration on disk, a service that answers or is absent, a ledger."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from animed.commands.access import ledger_path
from animed.errors import NotRunningError
from animed.records import FileStat, PhotoKey
from animed.schedule.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STAT = FileStat(size=10, mtime_ns=1, ctime_ns=1, inode=1, device=1, mode=0o100644)
NOBODY = 65534
NOON = 1_750_000_000.125  # 2025-06-15T15:06:40.125Z


@dataclass(frozen=True, slots=True)
class Setup:
    """One inbox `phone` with its folders below a temporary one, and the configuration that names them."""

    root: Path

    @classmethod
    def make(cls, root: Path, **keys: object) -> Setup:
        """Make the folders and the file; `keys` are further keys of the inbox."""
        setup = cls(Path(root).resolve())
        setup.inbox.mkdir()
        setup.output.mkdir()
        setup.write(**keys)
        return setup

    @property
    def inbox(self) -> Path:
        """The folder of photos."""
        return self.root / "in"

    @property
    def output(self) -> Path:
        """The folder of pictures."""
        return self.root / "out"

    @property
    def state(self) -> Path:
        """The state folder, which is not made."""
        return self.root / "state"

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.root / "animed.yaml"

    def write(self, **keys: object) -> None:
        """Write the configuration anew; a key of another part is written as `part__key`."""
        own = "".join(f"    {key}: {value}\n" for key, value in keys.items() if "__" not in key)
        parts = "".join(
            f"{part}: {{{key}: {value}}}\n"
            for part, _, key, value in ((*name.partition("__"), value) for name, value in keys.items())
            if key
        )
        self.config.write_text(
            f"version: 1\nstate_dir: {self.state}\nstyles_dir: {self.root}/styles\n{parts}"
            f"inboxes:\n  - name: phone\n    path: {self.inbox}\n    output: {self.output}\n{own}"
        )

    def ledger(self) -> Ledger:
        """Open the ledger, and make it where there is none."""
        return Ledger.open(ledger_path(self.state))


def fail(ledger: Ledger, path: bytes, reason: str, *, pending: str | None = None, now: float = NOON) -> None:
    """Record that a photo failed for good."""
    ledger.fail(
        PhotoKey("phone", path),
        STAT,
        sha256="",
        recipe="",
        style="cel",
        reason=reason,
        detail="as it was seen",
        attempts=2,
        crashes=0,
        now=now,
        original_pending=pending,
    )


def no_service(state_dir: Path, _command: str, _arguments: dict[str, Any]) -> dict[str, Any]:
    """Stand in for the socket of a service that does not run."""
    raise NotRunningError(f"no service is running for {state_dir}")


@dataclass(slots=True)
class Service:
    """A service that answers by a function of command and arguments, and remembers what it was asked."""

    answer: Callable[[str, dict[str, Any]], dict[str, Any]]
    asked: list[tuple[Path, str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, state_dir: Path, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer one question."""
        self.asked.append((state_dir, command, arguments))
        return self.answer(command, arguments)


@contextmanager
def nobody(setup: Setup) -> Iterator[None]:
    """Own a set-up and act as a user without privileges, where the tests run as root: root may read everything."""
    if os.geteuid():
        yield
        return
    with ExitStack() as undo:
        for folder in setup.root.parents:
            mode = folder.stat().st_mode & 0o7777
            if mode & 0o011 != 0o011:  # the group stays that of root
                folder.chmod(mode | 0o011)
                undo.callback(folder.chmod, mode)
        for path in (setup.root, *setup.root.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.seteuid(NOBODY)
        undo.callback(os.seteuid, 0)
        yield


def answering(answer: dict[str, Any]) -> Service:
    """Return a service that answers every question alike."""
    return Service(lambda _command, _arguments: answer)
