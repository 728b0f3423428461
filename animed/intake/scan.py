"""Lists what is in an inbox, step by step, without following a link: one listing per folder, one stat per candidate.

An inbox that cannot be read raises PlaceError: it must never look like an empty one.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.errors import PlaceError
from animed.opening import NotRegularError, identity, kind_of, open_folder, open_root
from animed.records import FileStat
from animed.system import DENIED, GONE, REAL, STARVED, System, at, shut
from animed.system import Entry as Name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from animed.intake.rules import Rules
    from animed.opening import Identity
    from animed.system import Listed

MARKER: Final = ".animed-inbox"
_GONE: Final = GONE | {errno.ELOOP}


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file with a name that is taken, and what one stat said of it."""

    path: bytes
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file or folder that is never taken, and the rule that says so. What is in such a folder is not listed."""

    path: bytes
    rule: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder that cannot be listed, or a file that cannot be looked at; the others go on."""

    path: bytes
    code: int  # errno


Entry = Found | Ignored | Unreadable


class Scanner:
    """Scans one inbox.

    `outputs` are the folders that pictures are written to: a mount can bring one into the inbox, where it is not
    entered. The set may grow while the scanner lives.
    """

    def __init__(
        self,
        root: str,
        rules: Rules,
        *,
        require_marker: bool = False,
        outputs: AbstractSet[Identity] = frozenset(),
    ) -> None:
        self.root = root
        self.rules = rules
        self._require_marker = require_marker
        self.outputs = outputs

    def scan(self, below: bytes = b"", system: System = REAL) -> Iterator[Entry]:
        """List everything below the folder `below` (b"" = the root); take as many entries at a time as you like.

        Nothing is opened before the first entry is asked for; closing the iterator lets go of the inbox. What goes
        away meanwhile is skipped. Raises PlaceError when the inbox itself cannot be read.
        """
        root = open_root(self.root, system)
        try:
            if self._require_marker:
                _demand_marker(system, self.root, root)
            if self.rules.judge(below, is_dir=True) is None:
                yield from _Pass(self, system, root).walk(below)
        finally:
            shut(system, root)


class _Pass:
    """One way through an inbox whose root is open."""

    def __init__(self, scanner: Scanner, system: System, root: int) -> None:
        self._scanner = scanner
        self._system = system
        self._root = root  # descriptor

    def walk(self, below: bytes) -> Iterator[Entry]:
        """List everything below a folder."""
        waiting = [below]
        while waiting:
            folder = waiting.pop()
            try:
                yield from self._list(folder, waiting)
            except NotRegularError:
                continue  # A link took the folder's place since its parent was listed; a link is not followed.
            except OSError as error:
                yield from self._fault(folder, error)

    def _list(self, folder: bytes, waiting: list[bytes]) -> Iterator[Entry]:
        descriptor = open_folder(self._root, folder, system=self._system)
        try:
            if folder and identity(descriptor, self._system) in self._scanner.outputs:
                yield Ignored(folder, "output")
                return
            with self._system.scandir(descriptor) as entries:
                for entry in entries:
                    path = os.path.join(folder, os.fsencode(entry.name))
                    try:
                        yield from self._take(path, entry, Name(descriptor, os.fsencode(entry.name)), waiting)
                    except OSError as error:
                        yield from self._fault(path, error)
        finally:
            shut(self._system, descriptor)

    def _take(self, path: bytes, entry: Listed, name: Name, waiting: list[bytes]) -> Iterator[Entry]:
        if entry.is_symlink():
            yield Ignored(path, "symlink")
            return
        is_dir = entry.is_dir(follow_symlinks=False)
        rule = self._scanner.rules.judge(path, is_dir=is_dir)
        if rule is not None:
            yield Ignored(path, rule)
        elif is_dir:
            waiting.append(path)
        else:
            found = FileStat.of(self._system.lstat(name))
            kind = kind_of(found.mode)
            yield Found(path, found) if kind is None else Ignored(path, kind)

    def _fault(self, path: bytes, error: OSError) -> Iterator[Unreadable]:
        """Tell a fault of one file or folder from a fault of the whole inbox."""
        code = error.errno or errno.EIO
        if not path or code not in _GONE | DENIED:
            self._demand_root(error, sure=not path or code in STARVED)
        if code not in _GONE:
            yield Unreadable(path, code)

    def _demand_root(self, error: OSError, *, sure: bool) -> None:
        """Raise PlaceError where no single path is at fault: that is `sure`, or the root cannot be listed either."""
        code = error.errno or errno.EIO
        if not sure:
            try:
                with self._system.scandir(self._root) as entries:
                    next(iter(entries), None)
            except OSError as again:
                code = again.errno or errno.EIO
            else:
                return
        raise PlaceError("inbox", code, self._scanner.root, f"the inbox cannot be read: {os.strerror(code)}") from error


def root_identity(root: str, *, require_marker: bool = False, system: System = REAL) -> tuple[int, int]:
    """Return (device, inode) of the root folder: another one means another folder, or another mount.

    Raises PlaceError when it is not there, not a folder, or lacks the marker that is required.
    """
    try:
        found = system.stat(at(root))
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), root)
        if require_marker:
            _demand_marker(system, root, None)
    except OSError as error:
        code = error.errno or errno.EIO
        raise PlaceError("inbox", code, root, f"the inbox is not there: {os.strerror(code)}") from error
    return found.st_dev, found.st_ino


def _demand_marker(system: System, root: str, descriptor: int | None) -> None:
    name = MARKER if descriptor is not None else os.path.join(root, MARKER)
    try:
        system.lstat(Name(descriptor, os.fsencode(name)))
    except OSError as error:
        code = error.errno or errno.EIO
        detail = (
            f"the marker file {MARKER} is not in the inbox ({os.strerror(code)}): the share is not mounted, "
            "or the marker was never made (require_marker is on)"
        )
        raise PlaceError("inbox", code, root, detail) from error
