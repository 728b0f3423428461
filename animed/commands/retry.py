"""`animed retry`: asks for a new try of photos that failed, through the service or in the ledger itself."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.commands.access import ask_service, find_photo, full_path, ledger_path, open_config
from animed.commands.output import counted, note, say, shown
from animed.errors import EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, NotRunningError
from animed.schedule.ledger import Ledger
from animed.service.lock import InstanceLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from animed.commands.access import Ask
    from animed.config import Config
    from animed.records import PhotoKey

_REQUEST_CHARACTERS: Final = 32_768  # of encoded paths in one request: the service takes 64 KB


@dataclass(frozen=True, slots=True)
class Wanted:
    """A photo to try again: what was asked for, how the ledger names it, and its path as the service writes it."""

    key: PhotoKey
    path: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many photos will be tried again, which have no failure on record, and which cannot be touched now."""

    queued: int
    unknown: tuple[bytes, ...] = ()
    busy: tuple[bytes, ...] = ()


def run(config_file: Path | None, paths: Sequence[Path], *, every: bool, ask: Ask = ask_service) -> int:
    """Ask for the new tries and return the exit status: 2 when a path lies in no inbox, 1 when one has not failed."""
    config = open_config(config_file)
    wanted, strangers = _sort(config, paths)
    for path in strangers:
        note(f"{shown(path)}: lies in no inbox of this configuration")
    outcome = _retry(config, None if every else wanted, ask) if every or wanted else Outcome(0)
    for path in outcome.unknown:
        note(f"{shown(path)}: has not failed, there is nothing to try again (`animed failed` lists what has)")
    for path in outcome.busy:
        note(f"{shown(path)}: is still to be put into the failed folder; try again when the service has done that")
    say(f"{counted(outcome.queued, 'photo')} will be tried again")
    if strangers:
        return EXIT_USAGE
    return EXIT_UNEXPECTED if outcome.unknown or outcome.busy else EXIT_OK


def _sort(config: Config, paths: Sequence[Path]) -> tuple[list[Wanted], list[bytes]]:
    """Return the photos that the paths mean, and the paths that lie in no inbox."""
    roots = {inbox.name: os.fsencode(inbox.path) for inbox in config.inboxes}
    wanted: dict[PhotoKey, Wanted] = {}
    strangers = []
    for path in map(full_path, paths):
        key = find_photo(path, config.inboxes)
        if key is None:
            strangers.append(path)
        else:
            wanted[key] = Wanted(key, os.path.join(roots[key.inbox], key.path))
    return list(wanted.values()), strangers


def _retry(config: Config, wanted: list[Wanted] | None, ask: Ask) -> Outcome:
    try:
        return _through_service(config, wanted, ask)
    except NotRunningError:
        return _in_ledger(config, wanted)


def _through_service(config: Config, wanted: list[Wanted] | None, ask: Ask) -> Outcome:
    if wanted is None:
        return Outcome(ask(config.state_dir, "retry", {"paths": [], "all": True})["queued"])
    outcome = Outcome(0)
    for paths in _portions(wanted):
        answer = ask(config.state_dir, "retry", {"paths": paths, "all": False})
        outcome = Outcome(
            outcome.queued + answer["queued"],
            outcome.unknown + tuple(map(base64.b64decode, answer["unknown"])),
            outcome.busy + tuple(map(base64.b64decode, answer["busy"])),
        )
    return outcome


def _portions(wanted: list[Wanted]) -> Iterator[list[str]]:
    """Yield the paths, as base64 of their bytes, in portions that fit a request."""
    portion: list[str] = []
    length = 0
    for each in wanted:
        text = base64.b64encode(each.path).decode()
        if portion and length + len(text) > _REQUEST_CHARACTERS:
            yield portion
            portion, length = [], 0
        portion.append(text)
        length += len(text)
    yield portion


def _in_ledger(config: Config, wanted: list[Wanted] | None) -> Outcome:
    # The ledger first: where there is none, the lock would make a state folder.
    with Ledger.open(ledger_path(config.state_dir), create=False) as ledger, InstanceLock(str(config.state_dir)):
        failing = {row.key for row in ledger.failures()}
        queued = set(
            ledger.requeue(failing if wanted is None else [each.key for each in wanted if each.key in failing])
        )
        return Outcome(
            len(queued),
            unknown=tuple(each.path for each in wanted or () if each.key not in failing),
            busy=tuple(each.path for each in wanted or () if each.key in failing - queued),
        )
