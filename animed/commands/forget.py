"""`animed forget`: treats photos as never seen, through the service or in the ledger itself."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.commands.access import ask_service, ledger_to_write, open_config
from animed.commands.output import counted, note, say, shown
from animed.commands.wanted import portions, sort_out
from animed.errors import EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, NotRunningError
from animed.records import absolute

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from animed.commands.access import Ask
    from animed.commands.wanted import Wanted
    from animed.config import Config

_MOST_NAMED: Final = 20  # busy photos that are named one by one


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many photos were forgotten, which paths nothing is known of, and which photos are on their way."""

    forgotten: int = 0
    unknown: tuple[bytes, ...] = ()
    busy: tuple[str, ...] = ()  # to be shown; perhaps not all
    busy_count: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.forgotten + other.forgotten,
            self.unknown + other.unknown,
            self.busy + other.busy,
            self.busy_count + other.busy_count,
        )


def run(config_file: Path | None, paths: Sequence[Path], *, ask: Ask = ask_service) -> int:
    """Forget and return the exit status: 2 when a path lies in no inbox, 1 when one is not known or busy.

    Raises ConfigError, LockedError, LedgerError, or what the service refuses with.
    """
    config = open_config(config_file)
    wanted, strangers = sort_out(config, paths)
    outcome = _forget(config, wanted, ask) if wanted else Outcome()
    for path in outcome.unknown:
        note(f"{shown(path)}: nothing is on record of it, there is nothing to forget")
    for text in outcome.busy[:_MOST_NAMED]:
        note(f"{shown(text)}: is on its way, and was not forgotten; try again when it has ended")
    if outcome.busy_count > _MOST_NAMED:
        note(f"{outcome.busy_count - _MOST_NAMED} more are on their way, and were not forgotten")
    say(f"{counted(outcome.forgotten, 'photo')} forgotten")
    if strangers:
        return EXIT_USAGE
    return EXIT_UNEXPECTED if outcome.unknown or outcome.busy_count else EXIT_OK


def _forget(config: Config, wanted: list[Wanted], ask: Ask) -> Outcome:
    try:
        return sum((_through_service(config, paths, ask) for paths in portions(wanted)), Outcome())
    except NotRunningError:
        return _in_ledger(config, wanted)


def _through_service(config: Config, paths: list[str], ask: Ask) -> Outcome:
    answer = ask(config.state_dir, "forget", {"paths": paths})
    return Outcome(
        answer["forgotten"],
        tuple(map(base64.b64decode, answer["unknown"])),
        tuple(each["path"] for each in answer["busy"]),
        answer["busy_count"],
    )


def _in_ledger(config: Config, wanted: list[Wanted]) -> Outcome:
    roots = {inbox.name: str(inbox.path) for inbox in config.inboxes}
    with ledger_to_write(config) as ledger:
        known = {each: ledger.below(each.key) for each in wanted}
        keys = dict.fromkeys(key for found in known.values() for key in found)
        forgotten = frozenset(ledger.forget(keys))
    busy = tuple(shown(absolute(roots[key.inbox], key.path)) for key in keys if key not in forgotten)
    unknown = tuple(each.path for each, found in known.items() if not found)
    return Outcome(len(forgotten), unknown, busy, len(busy))
