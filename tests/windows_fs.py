"""A file system like those of Windows: all spellings of a name lead to one file, and some names are refused."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Final

from animed.folding import folded
from animed.system import Entry, System

if TYPE_CHECKING:
    from collections.abc import Callable

_REFUSED: Final = re.compile(rb'[\x01-\x1f<>:"\\|?*]|[. ]$')


class WindowsSystem(System):
    """The real calls, with other ideas of names. `limit` is the longest name in bytes."""

    def __init__(
        self, *, limit: int = 255, refusal: int = errno.EINVAL, fold: Callable[[bytes], bytes] = folded,
        ascii_only: bool = False, said: int | None = None,
    ) -> None:  # fmt: skip
        self._limit = limit
        self._refusal = refusal
        self._fold = fold
        self._ascii_only = ascii_only
        self._said = limit if said is None else said

    def _held(self, entry: Entry) -> Entry:
        """Return the entry under the spelling that it has on the disk."""
        if entry.folder is None or entry.name == b"." or b"/" in entry.name:
            return entry
        if len(entry.name) > self._limit:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        names = {self._fold(os.fsencode(name)): os.fsencode(name) for name in os.listdir(entry.folder)}
        return entry._replace(name=names.get(self._fold(entry.name), entry.name))

    def _new(self, entry: Entry) -> Entry:
        """Return the entry, or refuse to make it."""
        if entry.folder is not None and entry.name != b".":
            bad = _REFUSED.search(entry.name) or (self._ascii_only and not entry.name.isascii())
            if bad:
                raise OSError(self._refusal, os.strerror(self._refusal))
        return self._held(entry)

    def open(self, entry: Entry, flags: int, mode: int = 0o600) -> int:
        """Open a file by any spelling of its name; there are no unnamed files."""
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return super().open(self._new(entry) if flags & os.O_CREAT else self._held(entry), flags, mode)

    def lstat(self, entry: Entry) -> os.stat_result:
        """Look at a name in any spelling."""
        return super().lstat(self._held(entry))

    def mkdir(self, entry: Entry, mode: int) -> None:
        """Make a folder."""
        super().mkdir(self._new(entry), mode)

    def link(self, source: Entry, target: Entry) -> None:
        """Link."""
        super().link(self._held(source), self._new(target))

    def link_descriptor(self, descriptor: int, target: Entry) -> None:
        """Link an open file."""
        super().link_descriptor(descriptor, self._new(target))

    def rename(self, source: Entry, target: Entry) -> None:
        """Rename; the name that is replaced keeps its spelling."""
        super().rename(self._held(source), self._new(target))

    def rename_free(self, source: Entry, target: Entry) -> None:
        """Rename without replacing any spelling."""
        super().rename_free(self._held(source), self._new(target))

    def unlink(self, entry: Entry) -> None:
        """Remove a name in any spelling."""
        super().unlink(self._held(entry))

    def statvfs(self, descriptor: int) -> os.statvfs_result:
        """Say how long names may be."""
        values = list(super().statvfs(descriptor))
        values[9] = self._said
        return os.statvfs_result((*values, 0))
