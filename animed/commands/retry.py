"""`animed retry`: asks for a new try of photos that failed, through the service or in the ledger itself."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from animed.commands.access import ask_service, ledger_to_write, open_config
from animed.commands.output import counted, note, say, shown
from animed.commands.wanted import portions, sort_out
from animed.daemon.styles import recipes_in_use
from animed.errors import EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, NotRunningError
from animed.records import printable
from animed.schedule import tries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from animed.commands.access import Ask
    from animed.commands.wanted import Wanted
    from animed.config import Config

    Which = Literal["named", "failed", "outdated"]  # those of the paths, all that failed, all of another recipe


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many photos will be tried again, and which not: no failure on record, not to be touched now, elsewhere."""

    queued: int
    unknown: tuple[bytes, ...] = ()
    busy: tuple[bytes, ...] = ()
    moved: tuple[str, ...] = ()  # where photos lie that `failed: move` took away


def run(config_file: Path | None, paths: Sequence[Path], *, which: Which = "named", ask: Ask = ask_service) -> int:
    """Ask for the new tries and return the exit status: 2 when a path lies in no inbox, 1 when one has not failed.

    Raises ConfigError, LockedError, LedgerError, or what the service refuses with.
    """
    config = open_config(config_file)
    wanted, strangers = sort_out(config, paths)
    outcome = _retry(config, wanted, which, ask) if which != "named" or wanted else Outcome(0)
    for path in outcome.unknown:
        note(f"{shown(path)}: has not failed, there is nothing to try again (`animed failed` lists what has)")
    for path in outcome.busy:
        note(f"{shown(path)}: is still to be put into the failed folder; try again when the service has done that")
    for place in outcome.moved:
        note(f"{shown(place)}: put it back into the inbox, and it is tried again")
    if which == "outdated":
        # Whether an original is still there only a look at the inbox can tell, and that is the service's.
        say(f"{counted(outcome.queued, 'photo')} will be drawn again, where the original is still in its inbox")
    else:
        say(f"{counted(outcome.queued, 'photo')} will be tried again")
    if strangers:
        return EXIT_USAGE
    return EXIT_UNEXPECTED if outcome.unknown or outcome.busy or (wanted and outcome.moved) else EXIT_OK


def _retry(config: Config, wanted: list[Wanted], which: Which, ask: Ask) -> Outcome:
    try:
        return _through_service(config, wanted, which, ask)
    except NotRunningError:
        return _in_ledger(config, wanted, which)


def _through_service(config: Config, wanted: list[Wanted], which: Which, ask: Ask) -> Outcome:
    if which == "failed":
        answer = ask(config.state_dir, "retry", {"paths": [], "all": True})
        return Outcome(answer["queued"], moved=tuple(answer["moved"]))
    if which == "outdated":
        return Outcome(ask(config.state_dir, "retry", {"paths": [], "all": False, "outdated": True})["queued"])
    outcome = Outcome(0)
    for paths in portions(wanted):
        answer = ask(config.state_dir, "retry", {"paths": paths, "all": False})
        outcome = Outcome(
            outcome.queued + answer["queued"],
            outcome.unknown + tuple(map(base64.b64decode, answer["unknown"])),
            outcome.busy + tuple(map(base64.b64decode, answer["busy"])),
            outcome.moved + tuple(answer["moved"]),
        )
    return outcome


def _in_ledger(config: Config, wanted: list[Wanted], which: Which) -> Outcome:
    with ledger_to_write(config) as ledger:
        if which == "outdated":
            return Outcome(len(ledger.requeue(ledger.outdated(recipes_in_use(config)))))
        tried = tries.retry(ledger, None if which == "failed" else [each.key for each in wanted])
    return Outcome(
        len(tried.queued),
        unknown=tuple(each.path for each in wanted if each.key not in tried.failed),
        busy=tuple(each.path for each in wanted if each.key in tried.busy),
        moved=tuple(map(printable, tried.moved)),
    )
