"""What becomes of a photo that failed: left, moved or copied aside, with `NAME.error.json` beside it saying why.

Order: the reason is written first, whole and durable, then the photo takes the place beside it. A crash between the two
leaves a reason without a photo; the next call knows it as its own, uses the same place, and finishes.
"""

from __future__ import annotations

import base64
import json
import os
import stat as bits
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from animed.delivery.faults import FolderGone, Place
from animed.delivery.folders import Making, open_folder, peek, prepare_root, remove, sync_folder
from animed.delivery.naming import numbered, split
from animed.delivery.originals import CHANGED, Disposed, Kept, Original, open_original
from animed.delivery.portable import COMPONENT_BYTES
from animed.delivery.transfer import create_temp, drop_temp, opened, put_temp, write_all
from animed.errors import PhotoError
from animed.records import Reason, absolute, printable
from animed.system import REAL, Entry, System

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.records import FileStat

Action = Literal["leave", "move", "copy"]

_ERROR_FILE: Final = b".error.json"
_LONGEST_ERROR_FILE: Final = 1 << 20  # bytes; nothing longer is ours
_MOST_NAMES: Final = 9999
_GONE: Final = "it is gone"


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """Why a photo failed, as its reason file tells it."""

    reason: str  # one of Reason, with its suffix
    message: str  # one line for people
    inbox: str  # name
    attempts: int
    time: str  # RFC 3339 UTC
    version: str  # of animed


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The photo is where failed photos go: `to` is its full path there, None where it was to be left."""

    to: bytes | None


def quarantine(
    root: str,
    path: bytes,
    stat: FileStat,
    *,
    action: Action,
    private: bytes,
    target_dir: str | None,
    record: FailureRecord,
    system: System = REAL,
) -> Quarantined | Kept:
    """Leave a failed photo, or move or copy it to the same relative path below `target_dir`, with its reason beside it.

    Only the file that `stat` describes is taken; nothing is replaced (`NAME-2.EXT` …). `private` is what
    `originals.private_name` gives. `target_dir` is made where only its last component is missing. Repeatable: after a
    crash the same call finishes. Kept: it changed, is gone, or cannot be read (a copy) or renamed (a move). Raises
    PlaceError ("inbox" or "failed") when the place fails: to be called again later.
    """
    if action == "leave":
        return Quarantined(None)
    if target_dir is None:
        raise ValueError(f"to {action} a failed photo takes a target folder")
    failed = Place("failed", target_dir)
    card = _card(absolute(root, path), stat, record)
    try:
        with open_original(system, root, path, stat, private=private) as original:
            return _Shelving(system, original, failed, card=card, parents=split(path)[:-1]).shelve(action)
    except FolderGone:
        return Kept(_GONE)
    except PhotoError as denied:
        return Kept(denied.detail)


def _card(full: bytes, stat: FileStat, record: FailureRecord) -> dict[str, Any]:
    """Return the reason file's content; a path that is not UTF-8 is there in base64 as well."""
    card = {**asdict(record), "path": printable(full), "size": stat.size, "mtime_ns": stat.mtime_ns}
    if os.fsencode(card["path"]) != full:
        card["path_b64"] = base64.b64encode(full).decode()
    return card


class _Shelving:
    """One failed photo on its way to its mirrored folder."""

    def __init__(
        self, system: System, original: Original, failed: Place, *, card: dict[str, Any], parents: list[bytes]
    ) -> None:
        self._system = system
        self._original = original
        self._failed = failed
        self._card = card
        self._parents = parents

    def shelve(self, action: Literal["move", "copy"]) -> Quarantined | Kept:
        """Find the place, write the reason, bring the photo. Raises PlaceError, PhotoError."""
        state = self._original.state()
        if state == "changed":
            return Kept(CHANGED)
        making = Making() if state == "here" else None
        if making is not None:
            prepare_root(self._system, self._failed, making)
        elif not self._root_is_there():
            return Kept(_GONE)
        below = b"/".join(self._parents)
        with open_folder(self._system, self._failed, self._parents, making) as folder, self._failed.guard(below):
            name = self._finished(folder) if state == "gone" else self._take(folder, action)
        if isinstance(name, Kept):
            return name
        return Quarantined(os.path.join(os.fsencode(self._failed.root), below, name))

    def _root_is_there(self) -> bool:
        with self._failed.guard():
            return peek(self._system, Entry(None, os.fsencode(self._failed.root))) is not None

    def _finished(self, folder: int) -> bytes | Kept:
        """Find the photo that an earlier call moved before a crash."""
        for name in self._names():
            mine, held = self._mine(folder, name), self._held(folder, name)
            if mine and held:
                return name
            if mine is None and not held:
                break
        return Kept(_GONE)

    def _take(self, folder: int, action: Literal["move", "copy"]) -> bytes | Kept:
        """Take the first place where both names are free, or the one that an earlier call had begun with."""
        for name in self._names():
            mine = self._mine(folder, name)
            held = self._held(folder, name) and not (mine and self._cleared(folder, name))
            if mine is False or (held and not (mine and self._original.equals(folder, name))):
                continue
            if not held and not self._write_reason(folder, name, renew=bool(mine)):
                continue
            done = self._carry(folder, name, action)
            if done:
                return done if isinstance(done, Kept) else name
        raise PhotoError(Reason.CONFLICT, "no free name among the failed photos")

    def _carry(self, folder: int, name: bytes, action: Literal["move", "copy"]) -> Kept | bool:
        """Bring the photo to its place: True, Kept, or False when something else took the name meanwhile.

        The reason goes again where no photo came. A PlaceError leaves it: the next call goes on from there.
        """
        try:
            done = self._copy(folder, name) if action == "copy" else self._move(name)
        except PhotoError as error:
            self._drop_reason(folder, name)
            if error.reason != Reason.CONFLICT:
                raise
            return False
        if done is not True:
            self._drop_reason(folder, name)
        return done

    def _copy(self, folder: int, name: bytes) -> bool:
        try:
            self._original.copy(folder, name)
        except FileExistsError:
            return self._original.equals(folder, name)
        return True

    def _move(self, name: bytes) -> Kept | bool:
        ended = self._original.withdraw()
        if ended is None:
            self._original.move(self._failed, self._parents, [name])
            return True
        return Kept(_GONE) if isinstance(ended, Disposed) else ended

    def _names(self) -> Iterator[bytes]:
        room = COMPONENT_BYTES - len(_ERROR_FILE)
        return (numbered(self._original.name, counter, room=room) for counter in range(1, _MOST_NAMES))

    def _held(self, folder: int, name: bytes) -> bool:
        return peek(self._system, Entry(folder, name)) is not None

    def _cleared(self, folder: int, name: bytes) -> bool:
        """Remove an empty file beside our own reason: a crash left it, where a name is reserved before it is taken."""
        entry = Entry(folder, name)
        if self._card["size"] == 0 or self._system.lstat(entry).st_size:
            return False
        remove(self._system, entry)
        return True

    def _mine(self, folder: int, name: bytes) -> bool | None:
        """Say whether the reason file at a place tells of this very photo; None when there is no such file."""
        entry = Entry(folder, name + _ERROR_FILE)
        found = peek(self._system, entry)
        if found is None:
            return None
        if not bits.S_ISREG(found.st_mode) or found.st_size > _LONGEST_ERROR_FILE:
            return False
        with opened(self._system, entry) as descriptor:
            text = b"".join(iter(lambda: self._system.read(descriptor, _LONGEST_ERROR_FILE), b""))
        try:
            card = json.loads(text)
        except ValueError:
            return False
        same = ("inbox", "path", "path_b64", "size", "mtime_ns")
        return isinstance(card, dict) and all(card.get(key) == self._card.get(key) for key in same)

    def _write_reason(self, folder: int, name: bytes, *, renew: bool) -> bool:
        """Write the reason file whole and durable; False when its name was taken meanwhile."""
        entry = Entry(folder, name + _ERROR_FILE)
        if renew:
            remove(self._system, entry)
        temp = create_temp(self._system, Entry(folder, self._original.spare), 0o666)
        try:
            write_all(self._system, temp.descriptor, json.dumps(self._card, indent=2).encode() + b"\n")
            self._system.fsync(temp.descriptor)
            put_temp(self._system, temp, entry)
        except FileExistsError:
            return False
        finally:
            drop_temp(self._system, temp)
        sync_folder(self._system, folder)
        return True

    def _drop_reason(self, folder: int, name: bytes) -> None:
        if not self._held(folder, name):
            remove(self._system, Entry(folder, name + _ERROR_FILE))
