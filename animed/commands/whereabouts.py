"""Where one photo stands: the service knows what is under way, the ledger what has an outcome."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any, Final

from animed.commands.access import ledger_path
from animed.commands.output import note, shown
from animed.daemon.failures import stamp
from animed.daemon.styles import recipes_in_use
from animed.errors import AnimedError, NotRunningError
from animed.limited import limited
from animed.logs import path_fields
from animed.records import absolute
from animed.schedule.identity import CheckContent, New, decide
from animed.schedule.ledger import Ledger
from animed.schedule.store import LedgerError, MissingLedgerError

if TYPE_CHECKING:
    from animed.commands.access import Ask
    from animed.config import Config
    from animed.records import FileStat, PhotoKey
    from animed.schedule.rows import Row

    Standing = dict[str, Any]

# Ours is what the ledger calls a photo whose picture is just getting its name.
_STAGES: Final = {"publishing": "running"}


def standing(config: Config, key: PhotoKey, stat: FileStat | None, ask: Ask) -> Standing:
    """Return where a photo stands, `stat` being what its file is now (None: it is not there).

    `where` is a word, `service` says whether one runs; the other keys are there where they say something.
    """
    live = _live(config, key, ask)
    recorded = {"where": "unknown", **_recorded(config, key, stat)}
    if live is None:
        return {**recorded, "service": False}
    return {**recorded, **{name: value for name, value in live.items() if value not in (None, [])}, "service": True}


def _live(config: Config, key: PhotoKey, ask: Ask) -> Standing | None:
    """Return what the service knows; None without one."""
    root = next(str(inbox.path) for inbox in config.inboxes if inbox.name == key.inbox)
    path = base64.b64encode(absolute(root, key.path)).decode()
    try:
        return ask(config.state_dir, "where", {"path": path})
    except NotRunningError:
        return None
    except AnimedError as error:
        # The verdict on the path stands whatever the service thinks of the one who asks.
        note(str(error))
        return {}


def _recorded(config: Config, key: PhotoKey, stat: FileStat | None) -> Standing:
    try:
        with Ledger.open(ledger_path(config.state_dir), create=False) as ledger:
            row = ledger.get(key)
            return {} if row is None else {**_fields(row, stat), **_picture(config, ledger, row)}
    except MissingLedgerError:
        return {}
    except LedgerError as error:
        note(str(error))
        return {}


def _fields(row: Row, stat: FileStat | None) -> Standing:
    """Return what the record says of the photo itself."""
    asked = row.again and row.status in {"failed", "retry"}
    fields: Standing = {"where": "retry" if asked else _STAGES.get(row.status, row.status), "since": stamp(row.updated)}
    if row.reason:
        fields |= {"reason": row.reason, "detail": row.detail, "attempts": row.attempts}
    if row.status in {"failed", "retry"}:
        fields["will_retry"] = row.status == "retry" or row.again
    if row.status == "retry" and row.next_try and not row.again:
        fields["next_try"] = stamp(row.next_try)
    if row.again:
        fields["again"] = True
    if row.original_pending is not None:
        fields["original"] = "to be put away"
    if (
        stat is not None
        and row.status != "retry"
        and isinstance(decide(row, stat), New | CheckContent)
        and not row.again
    ):
        fields["changed"] = True
    if stat is None and row.moved is not None:
        fields |= path_fields(row.moved, "moved_to")
    return fields


def _picture(config: Config, ledger: Ledger, row: Row) -> Standing:
    """Return what is to be said of the picture: where it is, and whether today's recipe would make the same."""
    if row.output is None:
        return {}
    fields: Standing = dict(path_fields(row.output, "output"))
    if row.status not in {"done", "duplicate"}:
        return fields
    fields |= {"style": row.style}
    try:
        fields["picture_there"] = limited(os.path.lexists, row.output, folder=os.fsdecode(os.path.dirname(row.output)))
    except TimeoutError:
        note(f"{shown(row.output)}: the file system does not answer")
    if row.status == "duplicate":
        first = ledger.find_picture(row.sha256, row.recipe)
        fields |= path_fields(first.output, "of") if first is not None and first.output is not None else {}
    try:
        recipes = recipes_in_use(config)
    except AnimedError as error:
        note(str(error))
        return fields
    return {**fields, "outdated": row.recipe not in recipes.get(row.key.inbox, {row.recipe})}
