"""The part of `animed check` that looks at folders: inboxes, outputs, where originals go, the state folder.

It makes nothing: what is missing is only judged by whether it could be made. The one file that it writes, into an
output that is there, is removed again.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from animed.commands.findings import Finding, failure, good, warning
from animed.commands.output import shown, size
from animed.daemon.setup import group_of
from animed.delivery.staging import free_bytes, probe
from animed.errors import (
    EXIT_CANNOT_CREATE,
    EXIT_CONFIG,
    EXIT_TEMPORARY,
    AnimedError,
    ConfigError,
    PhotoError,
    PlaceError,
)
from animed.intake.filesystem import UNKNOWN, fs_type, wants_polling
from animed.intake.scan import root_identity
from animed.limited import PATIENCE_S, limited
from animed.records import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from animed.config import Config, InboxConfig

_CONNECTED: Final = "make the folder, or mount the share that it lies on"
SILENT: Final = "the file system does not answer"
_RIGHTS: Final = "give this user the right, or run animed as another user"
# A prefix of its own: a running service sweeps only what carries its own instance's.
_PREFIX: Final = ".syncthing.animed-check-"


def look_at_inbox(inbox: InboxConfig) -> Iterator[Finding]:
    """Look at an inbox and at every folder that its photos can come to."""
    first = _looked("inbox", inbox, inbox.path, _inbox, inbox)
    yield first
    if first.level != "fail" or SILENT not in first.text:
        yield _looked("watch", inbox, inbox.path, _watching, inbox)
    yield _looked("output", inbox, inbox.output, _output, inbox)
    if inbox.originals == "move":
        yield _looked("processed", inbox, inbox.processed_dir, _target, "processed", inbox.name, inbox.processed_dir)
    if inbox.failed != "leave":
        yield _looked("failed", inbox, inbox.failed_dir, _target, "failed", inbox.name, inbox.failed_dir)
    try:
        group_of(inbox)
    except ConfigError as error:
        yield failure("group", inbox.name, error.title, error.remedy, status=error.exit_status)


def _looked(check: str, inbox: InboxConfig, folder: Path, look: Callable[..., Finding], *arguments: object) -> Finding:
    """Return what a look finds, or that the folder's file system does not answer."""
    try:
        return limited(look, *arguments, folder=folder)
    except TimeoutError:
        status = EXIT_TEMPORARY if check == "inbox" else EXIT_CANNOT_CREATE
        text = f"{shown(str(folder))}: {SILENT} within {PATIENCE_S:g} s"
        return failure(check, inbox.name, text, "look after the share that it lies on", status=status)


def look_at_space(config: Config) -> Iterator[Finding]:
    """Look at the free space of every output that is there."""
    for inbox in config.inboxes:
        try:
            free = limited(free_bytes, str(inbox.output), folder=inbox.output).bytes
        except (PlaceError, PhotoError, TimeoutError):
            continue  # Told as a finding of the output itself.
        least = config.limits.min_free
        text = f"{size(free)} free, {size(least)} wanted (limits.min_free)"
        if free < least:
            yield failure("space", inbox.name, text, "free some space, or lower the limit", status=EXIT_CANNOT_CREATE)
        else:
            yield good("space", inbox.name, text)


def look_at_state(state_dir: Path) -> Finding:
    """Look at the state folder: a local disk, and there or to be made."""
    kind, text = fs_type(str(state_dir)), shown(str(state_dir))
    if wants_polling(kind):
        remedy = "set state_dir to a local disk: the ledger is not safe on this kind"
        return failure("state", "", f"{text} lies on {kind}", remedy, status=EXIT_CONFIG)
    trouble = _trouble(state_dir, parents=True)
    if trouble:
        return failure("state", "", f"{text} {trouble}", _RIGHTS, status=EXIT_CANNOT_CREATE)
    return good("state", "", f"{text} on {kind}" + ("" if os.path.isdir(state_dir) else ", to be made"))


def _inbox(inbox: InboxConfig) -> Finding:
    text = shown(str(inbox.path))
    try:
        root_identity(str(inbox.path), require_marker=inbox.require_marker)
    except PlaceError as error:
        return failure("inbox", inbox.name, f"{text}: {error.detail}", _CONNECTED, status=EXIT_TEMPORARY)
    if not _may(inbox.path, os.R_OK | os.X_OK):
        return failure("inbox", inbox.name, f"{text} may not be read", _RIGHTS, status=EXIT_TEMPORARY)
    if (inbox.originals != "keep" or inbox.failed == "move") and not _may(inbox.path, os.W_OK):
        why = f"photos may not be taken out of {text} (originals: {inbox.originals}, failed: {inbox.failed})"
        return failure("inbox", inbox.name, why, _RIGHTS, status=EXIT_TEMPORARY)
    return good("inbox", inbox.name, f"{text} can be read")


def _watching(inbox: InboxConfig) -> Finding:
    kind = fs_type(str(inbox.path))
    if inbox.watch == "off" and not inbox.rescan_interval:
        remedy = "set watch: auto, or a rescan_interval"
        return warning("watch", inbox.name, "new photos are never noticed: neither watched nor scanned", remedy)
    if wants_polling(kind) and inbox.watch == "native":
        return warning("watch", inbox.name, f"{kind} does not report what other machines change", "set watch: auto")
    if wants_polling(kind) or kind == UNKNOWN:
        return good("watch", inbox.name, f"{inbox.watch} on {kind}: looked at every {inbox.poll_interval:g} s")
    return good("watch", inbox.name, f"{inbox.watch} on {kind}: the kernel reports changes")


def _output(inbox: InboxConfig) -> Finding:
    text = shown(str(inbox.output))
    if not os.path.lexists(inbox.output):
        return _target("output", inbox.name, inbox.output)
    try:
        probe(Stage(str(inbox.output), _PREFIX, inbox.mode.file, inbox.preserve.mtime))
    except PlaceError as error:
        return failure("output", inbox.name, error.detail, _remedy(error), status=EXIT_CANNOT_CREATE)
    except PhotoError as error:
        return failure("output", inbox.name, error.detail, _RIGHTS, status=EXIT_CANNOT_CREATE)
    return good("output", inbox.name, f"{text} takes pictures")


def _target(role: str, name: str, folder: Path) -> Finding:
    """Judge a folder that may have to be made; the service makes its last part only."""
    trouble = _trouble(folder, parents=False)
    text = shown(str(folder))
    if trouble:
        return failure(role, name, f"{text} {trouble}", _CONNECTED, status=EXIT_CANNOT_CREATE)
    return good(role, name, text if os.path.isdir(folder) else f"{text} is to be made")


def _trouble(folder: Path, *, parents: bool) -> str:
    """Say what keeps this user from writing a folder, or from making it; nothing when all is well."""
    if os.path.lexists(folder):
        if not os.path.isdir(folder):
            return "is not a folder"
        return "" if _may(folder, os.W_OK | os.X_OK) else "may not be written"
    above = folder.parent
    while parents and not os.path.lexists(above) and above != above.parent:
        above = above.parent
    if not os.path.isdir(above):
        return f"cannot be made: there is no folder {shown(str(above))}"
    return "" if _may(above, os.W_OK | os.X_OK) else f"cannot be made: {shown(str(above))} may not be written"


def _may(folder: Path, rights: int) -> bool:
    return os.access(folder, rights, effective_ids=True)


def _remedy(error: PlaceError) -> str:
    remedies = {
        errno.ENOSPC: "free some space",
        errno.EDQUOT: "free some space, or raise this user's quota",
        errno.EROFS: "mount it for writing",
        errno.ENOTDIR: "name a folder",
    }
    return remedies.get(error.code, _RIGHTS if error.code in {errno.EACCES, errno.EPERM} else _CONNECTED)


def describe(error: AnimedError) -> str:
    """Return an error's text and place without its remedy, which a finding keeps apart."""
    return f"{shown(error.path)}: {error.title}" if error.path else error.title
