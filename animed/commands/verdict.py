"""Whether a path is a photo that is taken, and the first rule that says no, from the outside in."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from animed.catalog import Catalog
from animed.commands.access import find_inbox, find_photo, full_path, real_path
from animed.commands.output import shown
from animed.daemon.recipes import style_named_by
from animed.errors import PlaceError
from animed.intake.rules import Rules
from animed.intake.scan import MARKER
from animed.limited import limited
from animed.opening import NotRegularError, kind_of, leads_to, lstat_beneath
from animed.records import PhotoKey, absolute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from animed.config import Config, InboxConfig
    from animed.opening import Identity
    from animed.records import FileStat

    Look = FileStat | NotRegularError | PlaceError | OSError


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file is taken; `rule` is the stable name of what decides, `why` says it to people."""

    taken: bool
    rule: str | None
    why: str
    stat: FileStat | None = None  # of the file, where it is there


def rules_of(inbox: InboxConfig) -> Rules:
    """Return what counts as a photo in an inbox."""
    return Rules(
        extensions=inbox.extensions,
        ignore=inbox.ignore,
        ignore_conflict_copies=inbox.ignore_conflict_copies,
        recursive=inbox.recursive,
        max_depth=inbox.max_depth,
    )


def locate(config: Config, path: Path) -> tuple[bytes, PhotoKey | None]:
    """Return the full path that is meant, and how the ledger names it; None when it lies below no inbox.

    The words of the path come first: a link on the way below an inbox must be seen as one, not followed.
    """
    written = os.path.normpath(os.path.join(os.getcwdb(), os.fsencode(path)))
    for inbox in config.inboxes:
        root = os.path.join(os.path.normpath(os.fsencode(inbox.path)), b"")
        real = os.path.join(real_path(os.fsencode(inbox.path)), b"")
        for each in (root, real):
            if written.startswith(each) and written != each:
                return written, PhotoKey(inbox.name, written[len(each) :])
    full = full_path(path)
    return full, find_photo(full, config.inboxes)


def judge(config: Config, full: bytes, key: PhotoKey | None) -> Verdict:
    """Return the first thing that keeps a file from being taken."""
    if key is None:
        return _outside(config, full)
    inbox = next(inbox for inbox in config.inboxes if inbox.name == key.inbox)
    outputs = frozenset(identity for each in config.inboxes if (identity := _identity_of(each.output)))
    astray = _astray(config, key.path) if inbox.style_from_folder else None
    try:
        return limited(_judged, inbox, key.path, outputs, astray, folder=inbox.path)
    except TimeoutError:
        why = "the inbox cannot be looked at: its file system does not answer"
        return Verdict(taken=False, rule="unavailable", why=why)


def _judged(inbox: InboxConfig, path: bytes, outputs: frozenset[Identity], astray: str | None) -> Verdict:
    """Look at the file and judge it."""
    look = _look(inbox, path)
    found = None if isinstance(look, Exception) else look
    obstacle = next(_obstacles(inbox, path, look, outputs=outputs, astray=astray), None)
    rule, why = obstacle or (None, "nothing stands against it")
    return Verdict(obstacle is None, rule, why, found)


def _astray(config: Config, path: bytes) -> str | None:
    """Say why no folder names a photo's style; nothing where one does."""
    names = [style.name for style in Catalog.read(styles_dir=config.styles_dir).styles]
    if style_named_by(path, names) is not None:
        return None
    return f"its first folder names no style (style: from-folder); there are: {', '.join(names) or 'none'}"


def _outside(config: Config, full: bytes) -> Verdict:
    """Say what a path is that lies below no inbox."""
    name = find_inbox(full, config.inboxes)
    if name is not None:
        return Verdict(taken=False, rule="inbox", why=f"it is the inbox {name} itself; name a photo in it")
    for inbox in config.inboxes:
        for role, folder in _others(inbox):
            root = real_path(os.fsencode(folder))
            if os.path.join(full, b"").startswith(os.path.join(root, b"")):
                why = f"it lies in {_roles(role)} of inbox {inbox.name}, which is never read for photos"
                return Verdict(taken=False, rule=role, why=why)
    return Verdict(taken=False, rule="outside", why="it lies in no inbox of this configuration")


def _others(inbox: InboxConfig) -> Iterator[tuple[str, Path]]:
    yield "output", inbox.output
    if inbox.originals == "move":
        yield "processed", inbox.processed_dir
    if inbox.failed != "leave":
        yield "failed", inbox.failed_dir


def _roles(role: str) -> str:
    return {"output": "the output", "processed": "the folder of finished originals"}.get(role, "the failed folder")


def _look(inbox: InboxConfig, path: bytes) -> Look:
    """Look at what is there, without following a link."""
    try:
        return lstat_beneath(str(inbox.path), path)
    except (NotRegularError, PlaceError, OSError) as error:
        return error


def _obstacles(
    inbox: InboxConfig, path: bytes, look: Look, *, outputs: frozenset[Identity], astray: str | None
) -> Iterator[tuple[str, str]]:
    """Yield each rule that stands against a file, and its meaning."""
    if inbox.watch == "off" and not inbox.rescan_interval:
        yield "off", "this inbox is neither watched nor scanned (watch: off, rescan_interval: 0)"
    if isinstance(look, PlaceError):
        yield "unavailable", f"the inbox cannot be read: {look.detail}"
    if inbox.require_marker and not os.path.exists(inbox.path / MARKER):
        yield "marker", f"the inbox has no file {MARKER} (require_marker: true)"
    yield from _by_rules(inbox, path, is_dir=not isinstance(look, Exception) and stat.S_ISDIR(look.mode))
    if astray is not None:
        yield "style-folder", astray
    yield from _by_folders(inbox, path, outputs)
    yield from _by_kind(inbox, path, look)


def _by_rules(inbox: InboxConfig, path: bytes, *, is_dir: bool) -> Iterator[tuple[str, str]]:
    """Judge each folder on the way and then the name, so that the part that decides can be named."""
    rules = rules_of(inbox)
    parts = path.split(b"/")
    for end in range(1, len(parts)):
        rule = rules.judge(b"/".join(parts[:end]), is_dir=True)
        if rule:
            yield rule, f"the folder {shown(parts[end - 1])}: {_meaning(rule, inbox)}"
    rule = rules.judge(path, is_dir=is_dir)
    if rule:
        yield rule, f"its name: {_meaning(rule, inbox)}"


def _by_folders(inbox: InboxConfig, path: bytes, outputs: frozenset[Identity]) -> Iterator[tuple[str, str]]:
    """Look at the folders on the way: each must let itself be listed, and none may be where pictures go."""
    parts = path.split(b"/")
    for end in range(len(parts)):
        below = b"/".join(parts[:end])
        folder = absolute(str(inbox.path), below) if below else os.fsencode(inbox.path)
        if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
            yield "unreadable", f"this user may not list the folder {shown(below or folder)}, so nothing in it is found"
    try:
        inside = leads_to(str(inbox.path), os.path.dirname(path), outputs)
    except (NotRegularError, PlaceError, OSError):
        return  # What is wrong with the way is told by what follows.
    if inside:
        yield "output", "a folder on the way to it is one that pictures are written to, mounted here"


def _identity_of(folder: Path) -> Identity | None:
    """Return what names a folder; nothing where it is not there, or does not answer."""
    try:
        return limited(_identity, folder, folder=folder)
    except TimeoutError:
        return None


def _identity(folder: Path) -> Identity | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None  # It is not there, so nothing else can be it.
    return found.st_dev, found.st_ino


def _by_kind(inbox: InboxConfig, path: bytes, look: Look) -> Iterator[tuple[str, str]]:
    """Judge what was found under the name."""
    if isinstance(look, NotRegularError):
        yield look.kind, f"{shown(look.path)} on the way to it is a {look.kind}, which is never followed"
    elif isinstance(look, FileNotFoundError):
        yield "absent", "there is no such file"
    elif isinstance(look, OSError):
        yield "unreadable", f"it cannot be looked at: {look.strerror}"
    elif not isinstance(look, PlaceError):
        yield from _by_stat(inbox, path, look)


def _by_stat(inbox: InboxConfig, path: bytes, found: FileStat) -> Iterator[tuple[str, str]]:
    kind = kind_of(found.mode)
    if kind == "directory":
        yield kind, "it is a folder, which is looked into; name a photo in it"
    elif kind:
        yield kind, f"it is not a regular file but a {kind}"
    elif not found.size:
        yield "empty", "it has no content yet; after stable_max it counts as failed"
    elif not os.access(absolute(str(inbox.path), path), os.R_OK, effective_ids=True):
        yield "unreadable", f"this user may not read it (its mode is {stat.filemode(found.mode)})"


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
