"""`animed check --explain PATH`: why a file is or is not taken, and where it stands."""

from __future__ import annotations

import base64
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from animed.commands.access import ask_service, find_photo, full_path, ledger_path, open_config
from animed.commands.failed import what_to_do
from animed.commands.output import counted, note, say, say_json, shown
from animed.errors import EXIT_OK, AnimedError, NotRunningError, PlaceError
from animed.intake.rules import Rules
from animed.intake.scan import MARKER
from animed.logs import path_fields
from animed.opening import NotRegularError, kind_of, lstat_beneath
from animed.records import absolute
from animed.schedule.ledger import Ledger
from animed.schedule.store import LedgerError, MissingLedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from animed.commands.access import Ask
    from animed.config import Config, InboxConfig
    from animed.records import FileStat, PhotoKey
    from animed.schedule.rows import Row

# Ours is what the ledger calls a photo whose picture is just getting its name.
_STAGES: Final = {"publishing": "running"}
_TEXTS: Final = {
    "waiting": "it is watched until it has stopped changing",
    "queued": "it waits for a worker",
    "running": "it is being drawn",
    "retry": "a try failed; it is to be tried again",
    "done": "its picture is finished",
    "duplicate": "the same photo was drawn before, and its picture was shared",
    "skipped": "it was left out",
    "failed": "it failed",
    "unknown": "there is no record of it",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file is taken; `rule` is the stable name of what decides, `why` says it to people."""

    taken: bool
    rule: str | None
    why: str


def run(config_file: Path | None, path: Path, *, as_json: bool, ask: Ask = ask_service) -> int:
    """Print why the file is or is not taken, and where it stands; raises ConfigError and LedgerError."""
    config = open_config(config_file)
    place = full_path(path)
    key = find_photo(place, config.inboxes)
    verdict = judge(config, key)
    standing = _standing(config, key, ask) if key else {"where": "unknown"}
    if as_json:
        fields = {"taken": verdict.taken, "rule": verdict.rule, "why": verdict.why}
        say_json({**path_fields(place), "inbox": key.inbox if key else None, **fields, **standing})
    else:
        _describe(place, key, verdict, standing)
    return EXIT_OK


def judge(config: Config, key: PhotoKey | None) -> Verdict:
    """Return the first thing that keeps a file from being taken, from the outside in."""
    if key is None:
        return Verdict(taken=False, rule="outside", why="it lies in no inbox of this configuration")
    inbox = next(inbox for inbox in config.inboxes if inbox.name == key.inbox)
    return next(_obstacles(inbox, key.path), Verdict(taken=True, rule=None, why="nothing stands against it"))


def rules_of(inbox: InboxConfig) -> Rules:
    """Return what counts as a photo in an inbox."""
    return Rules(
        extensions=inbox.extensions,
        ignore=inbox.ignore,
        ignore_conflict_copies=inbox.ignore_conflict_copies,
        recursive=inbox.recursive,
        max_depth=inbox.max_depth,
    )


def _obstacles(inbox: InboxConfig, path: bytes) -> Iterator[Verdict]:
    if inbox.watch == "off" and not inbox.rescan_interval:
        yield _against("off", "this inbox is neither watched nor scanned (watch: off, rescan_interval: 0)")
    if inbox.require_marker and not os.path.exists(inbox.path / MARKER):
        yield _against("marker", f"the inbox has no file {MARKER} (require_marker: true)")
    yield from _by_rules(inbox, path)
    yield from _by_kind(inbox, path)


def _by_rules(inbox: InboxConfig, path: bytes) -> Iterator[Verdict]:
    """Judge each folder on the way and then the name, so that the part that decides can be named."""
    rules = rules_of(inbox)
    parts = path.split(b"/")
    for end in range(1, len(parts)):
        rule = rules.judge(b"/".join(parts[:end]), is_dir=True)
        if rule:
            yield _against(rule, f"the folder {shown(parts[end - 1])}: {_meaning(rule, inbox)}")
    rule = rules.judge(path, is_dir=False)
    if rule:
        yield _against(rule, f"its name: {_meaning(rule, inbox)}")


def _by_kind(inbox: InboxConfig, path: bytes) -> Iterator[Verdict]:
    """Look at what is there, without following a link."""
    try:
        found = lstat_beneath(str(inbox.path), path)
    except NotRegularError as error:
        yield _against(error.kind, f"{shown(error.path)} on the way to it is a {error.kind}, which is never followed")
    except FileNotFoundError:
        yield _against("absent", "there is no such file")
    except PlaceError as error:
        yield _against("unavailable", f"the inbox cannot be read: {error.detail}")
    except OSError as error:
        yield _against("unreadable", f"it cannot be looked at: {error.strerror}")
    else:
        yield from _by_stat(inbox, path, found)


def _by_stat(inbox: InboxConfig, path: bytes, found: FileStat) -> Iterator[Verdict]:
    kind = kind_of(found.mode)
    if kind:
        yield _against(kind, f"it is not a regular file but a {kind}")
    elif not found.size:
        yield _against("empty", "it has no content yet; after stable_max it counts as failed")
    elif not os.access(absolute(str(inbox.path), path), os.R_OK, effective_ids=True):
        yield _against("unreadable", f"this user may not read it (its mode is {stat.filemode(found.mode)})")


def _against(rule: str, why: str) -> Verdict:
    return Verdict(taken=False, rule=rule, why=why)


def _meaning(rule: str, inbox: InboxConfig) -> str:
    """Say a rule to people; a rule is a word, `user:PATTERN`, or its kind with a producer and a glob."""
    kind, _, rest = rule.partition(":")
    producer, _, glob = rest.partition(":")
    texts = {
        "hidden": "names that begin with a dot are left alone",
        "too-deep": "it lies deeper than "
        + (f"max_depth: {inbox.max_depth}" if inbox.recursive else "recursive: false"),
        "extension": f"its ending is none of extensions ({', '.join(inbox.extensions)})",
        "user": f"the pattern {shown(rest)} of ignore matches",
        "builtin": f"it looks like a file that {producer} makes for itself ({shown(glob)})",
        "conflict-copy": f"it looks like a conflict copy of {producer} ({shown(glob)}; see ignore_conflict_copies)",
    }
    return texts.get(kind, f"rule {shown(rule)}")


def _standing(config: Config, key: PhotoKey, ask: Ask) -> dict[str, Any]:
    """Return where a photo stands: the service knows what is under way, the ledger what has an outcome."""
    root = next(str(inbox.path) for inbox in config.inboxes if inbox.name == key.inbox)
    path = base64.b64encode(absolute(root, key.path)).decode()
    try:
        live = ask(config.state_dir, "where", {"path": path})["where"]
    except NotRunningError:
        live = None
    except AnimedError as error:
        # The verdict on the path stands whatever the service thinks of the one who asks.
        note(str(error))
        live = None
    recorded = _recorded(config, key)
    return {**recorded, "where": live} if live else recorded


def _recorded(config: Config, key: PhotoKey) -> dict[str, Any]:
    try:
        with Ledger.open(ledger_path(config.state_dir), create=False) as ledger:
            row = ledger.get(key)
    except MissingLedgerError:
        row = None
    except LedgerError as error:
        note(str(error))
        row = None
    return {"where": "unknown"} if row is None else _fields(row)


def _fields(row: Row) -> dict[str, Any]:
    output = path_fields(row.output, "output") if row.output else {}
    reason = {"reason": row.reason, "detail": row.detail, "attempts": row.attempts} if row.reason else {}
    return {"where": "retry" if row.again else _STAGES.get(row.status, row.status), **output, **reason}


def _describe(place: bytes, key: PhotoKey | None, verdict: Verdict, standing: dict[str, Any]) -> None:
    say(f"{shown(place)} ({f'inbox {key.inbox}' if key else 'no inbox'})")
    decided = f" [{shown(verdict.rule)}]" if verdict.rule else ""
    say(f"  {'taken' if verdict.taken else 'not taken'}: {verdict.why}{decided}")
    say(f"  {standing['where']}: {_TEXTS.get(standing['where'], 'see the log')}")
    if "output" in standing:
        say(f"  picture: {shown(standing['output'])}")
    if standing.get("reason"):
        advice = f"; {what_to_do(standing['reason'])}" if standing["where"] in {"failed", "retry"} else ""
        say(f"  reason: {shown(standing['reason'])} after {counted(standing['attempts'], 'try', 'tries')}{advice}")
        say(f"  detail: {shown(standing['detail'] or '-')}")
