"""`animed failed`: which photos failed, why, and what a person can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from animed.commands.access import ask_service, ledger_path, open_config
from animed.commands.output import note, say, say_json, say_table, shown
from animed.daemon.failures import entry
from animed.errors import EXIT_OK, NotRunningError
from animed.records import Reason
from animed.schedule.ledger import Ledger
from animed.schedule.store import MissingLedgerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from animed.commands.access import Ask
    from animed.config import Config

    Entry = Mapping[str, Any]

_AGAIN: Final = "then `animed retry`"
HELP: Final = {
    Reason.EMPTY: "the file has no content: copy it again",
    Reason.NOT_AN_IMAGE: "this is no picture, or a damaged one: copy it again, take it out, or add it to `ignore`",
    Reason.TRUNCATED: "the end of the file is missing: copy it again",
    Reason.UNSUPPORTED: "this kind of picture cannot be read: convert it to JPEG or PNG",
    Reason.TOO_LARGE: f"it is beyond `max_pixels` or another limit (the log says which): make it smaller, {_AGAIN}",
    Reason.UNREADABLE: f"let the service's user read it, and look after its disk, {_AGAIN}",
    Reason.TIMEOUT: f"it took longer than `workers.timeout`: raise that or lower `max_edge`, {_AGAIN}",
    Reason.WORKER_CRASHED: f"it killed its worker: free memory or lower `max_edge`, {_AGAIN}",
    Reason.OUT_OF_MEMORY: f"free memory, or lower `max_edge` or `workers.count`, {_AGAIN}",
    Reason.NOT_FINITE: f"run `animed styles verify`, or set `workers.precision: float32`, {_AGAIN}",
    Reason.CHANGED: f"it changed while it was read: wait until it is complete, {_AGAIN}",
    Reason.CONFLICT: f"its name is taken in the output: rename one, or change `on_conflict`, {_AGAIN}",
    Reason.OUTPUT_DENIED: f"let the service's user write the folder of its picture, {_AGAIN}",
    Reason.ENCODE: f"it does not fit this format: set `output_format: png` or `output_size: styled`, {_AGAIN}",
}


def run(config_file: Path | None, *, as_json: bool, ask: Ask = ask_service) -> int:
    """Print what failed, from the service or else from the ledger; raises ConfigError and LedgerError."""
    entries = _collect(open_config(config_file), ask)
    if as_json:
        say_json(entries)
    elif entries:
        _describe(entries)
    else:
        say("nothing has failed")
    return EXIT_OK


def what_to_do(reason: str) -> str:
    """Return the advice for a reason, with or without its suffix."""
    return HELP.get(reason.partition(":")[0], "look into the log")


def _collect(config: Config, ask: Ask) -> list[dict[str, Any]]:
    try:
        entries: list[dict[str, Any]] = ask(config.state_dir, "failed", {})["failed"]
    except NotRunningError:
        return _read(config)
    return entries


def _read(config: Config) -> list[dict[str, Any]]:
    roots = {inbox.name: str(inbox.path) for inbox in config.inboxes}
    try:
        with Ledger.open(ledger_path(config.state_dir), create=False) as ledger:
            return [entry(row, roots.get(row.key.inbox)) for row in ledger.failures()]
    except MissingLedgerError as error:
        note(str(error))
        return []


def _describe(entries: list[dict[str, Any]]) -> None:
    rows = [(each["reason"], str(each["attempts"]), _when(each), _where(each)) for each in entries]
    say_table(("REASON", "TRIES", "SINCE", "PATH"), rows, right=("TRIES",))
    say("")
    # One photo or a thousand: each kind of failure is explained once.
    reasons = sorted({each["reason"] for each in entries})
    say_table(("REASON", "WHAT TO DO"), [(reason, what_to_do(reason)) for reason in reasons])


def _where(failure: Entry) -> str:
    """Return where the photo lies; one that was moved away is named by its new place, which has the old name in it."""
    return shown(failure["path"]) + (f" (now {shown(failure['moved_to'])})" if "moved_to" in failure else "")


def _when(failure: Entry) -> str:
    return str(failure["since"]) + (", to be tried again" if failure["will_retry"] else "")
