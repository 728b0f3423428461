"""How commands reach the configuration, the running service, and the photo that a path on the command line means."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from animed import config
from animed.limited import limited
from animed.records import PhotoKey
from animed.schedule.ledger import FILE_NAME, Ledger
from animed.service import control
from animed.service.lock import InstanceLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from animed.config import Config, InboxConfig

    # What asks the service: state folder, command, arguments → result; raises NotRunningError when there is none.
    Ask = Callable[[Path, str, dict[str, Any]], dict[str, Any]]


def open_config(config_file: Path | None) -> Config:
    """Return the configuration of this command line; raises ConfigError."""
    return config.load(config_file, environ=os.environ, cwd=Path.cwd())


def ask_service(state_dir: Path, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask the service that owns the state folder; raises NotRunningError without one, else what it refuses with."""
    return control.call(str(state_dir), command, environ=os.environ, **arguments)


def full_path(path: Path) -> bytes:
    """Return the place that a path means: real folders, and the last name as it is, for a photo may be a link."""
    folder, name = os.path.split(os.path.join(os.getcwdb(), os.fsencode(path)))
    if name in {b"", b".", b".."}:
        return real_path(os.path.join(folder, name))
    return os.path.join(real_path(folder), name)


@lru_cache(maxsize=1024)
def real_path(path: bytes) -> bytes:
    """Return where a folder really is; by its name alone when its file system does not answer."""
    try:
        real: bytes = limited(os.path.realpath, path, folder=os.fsdecode(path))
    except TimeoutError:
        return os.path.abspath(path)
    return real


def find_inbox(path: bytes, inboxes: Iterable[InboxConfig]) -> str | None:
    """Return the name of the inbox whose folder a full path is, or leads to by a link; None for any other path."""
    real = real_path(path)
    return next((inbox.name for inbox in inboxes if real_path(os.fsencode(inbox.path)) == real), None)


def find_photo(path: bytes, inboxes: Iterable[InboxConfig]) -> PhotoKey | None:
    """Return how the ledger names a full path, or None when it lies below no inbox."""
    for inbox in inboxes:
        root = os.path.join(real_path(os.fsencode(inbox.path)), b"")
        if path.startswith(root) and path != root:
            return PhotoKey(inbox.name, path[len(root) :])
    return None


@contextmanager
def ledger_to_write(config: Config) -> Iterator[Ledger]:
    """Hold the ledger while no service does; raises LockedError beside one, and LedgerError."""
    # The ledger first: where there is none, the lock would make a state folder.
    with Ledger.open(ledger_path(config.state_dir), create=False) as ledger, InstanceLock(str(config.state_dir)):
        ledger.take_on()
        yield ledger


def ledger_path(state_dir: Path) -> str:
    """Return where the ledger of a state folder is."""
    return str(state_dir / FILE_NAME)
