"""Lists what is in an inbox, step by step, without following a link: one listing per folder, one stat per candidate.

An inbox that cannot be read raises PlaceError: it must never look like an empty one.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from animed.errors import PlaceError
from animed.opening import NotRegularError, identity, kind_of, open_folder, open_root
from animed.records import FileStat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from animed.intake.rules import Rules
    from animed.opening import Identity

MARKER: Final = ".animed-inbox"
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


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


class ListedEntry(Protocol):
    """What a scan asks of an `os.DirEntry`."""

    @property
    def name(self) -> str:
        """The name as text; what is not UTF-8 stands as surrogates."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Say whether it is a folder."""

    def is_symlink(self) -> bool:
        """Say whether it is a link."""

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Look at it."""


class Scanner:
    """Scans one inbox. `scandir` lists a folder's descriptor, as `os.scandir` does.

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
        scandir: Callable[[int], AbstractContextManager[Iterable[ListedEntry]]] = os.scandir,
    ) -> None:
        self.root = root
        self._rules = rules
        self._require_marker = require_marker
        self._outputs = outputs
        self._scandir = scandir

    def scan(self, below: bytes = b"") -> Iterator[Entry]:
        """List everything below the folder `below` (b"" = the root); take as many entries at a time as you like.

        Nothing is opened before the first entry is asked for; closing the iterator lets go of the inbox. What goes
        away meanwhile is skipped. Raises PlaceError when the inbox itself cannot be read.
        """
        root = open_root(self.root)
        try:
            if self._require_marker:
                _demand_marker(self.root, root)
            if self._rules.judge(below, is_dir=True) is None:
                yield from self._walk(root, below)
        finally:
            os.close(root)

    def _walk(self, root: int, below: bytes) -> Iterator[Entry]:
        waiting = [below]
        while waiting:
            folder = waiting.pop()
            try:
                yield from self._list(root, folder, waiting)
            except NotRegularError:
                continue  # A link took the folder's place since its parent was listed; a link is not followed.
            except OSError as error:
                yield from self._fault(root, folder, error)

    def _list(self, root: int, folder: bytes, waiting: list[bytes]) -> Iterator[Entry]:
        descriptor = open_folder(root, folder)
        try:
            if folder and identity(descriptor) in self._outputs:
                yield Ignored(folder, "output")
                return
            with self._scandir(descriptor) as entries:
                for entry in entries:
                    path = os.path.join(folder, os.fsencode(entry.name))
                    try:
                        yield from self._take(path, entry, waiting)
                    except OSError as error:
                        yield from self._fault(root, path, error)
        finally:
            os.close(descriptor)

    def _take(self, path: bytes, entry: ListedEntry, waiting: list[bytes]) -> Iterator[Entry]:
        if entry.is_symlink():
            yield Ignored(path, "symlink")
            return
        is_dir = entry.is_dir(follow_symlinks=False)
        rule = self._rules.judge(path, is_dir=is_dir)
        if rule is not None:
            yield Ignored(path, rule)
        elif is_dir:
            waiting.append(path)
        else:
            found = FileStat.of(entry.stat(follow_symlinks=False))
            kind = kind_of(found.mode)
            yield Found(path, found) if kind is None else Ignored(path, kind)

    def _fault(self, root: int, path: bytes, error: OSError) -> Iterator[Unreadable]:
        """Tell a fault of one file or folder from a fault of the whole inbox."""
        code = error.errno or errno.EIO
        if not path or code not in _GONE | _DENIED:
            self._demand_root(root, error, sure=not path)
        if code not in _GONE:
            yield Unreadable(path, code)

    def _demand_root(self, root: int, error: OSError, *, sure: bool) -> None:
        """Raise PlaceError when the root is at fault: it is `sure`ly, or it can no longer be listed either."""
        code = error.errno or errno.EIO
        if not sure:
            try:
                with self._scandir(root) as entries:
                    next(iter(entries), None)
            except OSError as again:
                code = again.errno or errno.EIO
            else:
                return
        raise PlaceError("inbox", code, self.root, f"the inbox cannot be read: {os.strerror(code)}") from error


def root_identity(root: str, *, require_marker: bool = False) -> tuple[int, int]:
    """Return (device, inode) of the root folder: another one means another folder, or another mount.

    Raises PlaceError when it is not there, not a folder, or lacks the marker that is required.
    """
    try:
        found = os.stat(root)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), root)
        if require_marker:
            _demand_marker(root, None)
    except OSError as error:
        code = error.errno or errno.EIO
        raise PlaceError("inbox", code, root, f"the inbox is not there: {os.strerror(code)}") from error
    return found.st_dev, found.st_ino


def _demand_marker(root: str, descriptor: int | None) -> None:
    name = MARKER if descriptor is not None else os.path.join(root, MARKER)
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError as error:
        code = error.errno or errno.EIO
        detail = (
            f"the marker file {MARKER} is not in the inbox ({os.strerror(code)}): the share is not mounted, "
            "or the marker was never made (require_marker is on)"
        )
        raise PlaceError("inbox", code, root, detail) from error
