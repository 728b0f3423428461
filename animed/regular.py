"""Opening files that somebody named: only regular ones, so that a pipe or a device never holds a reader for ever."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Return a regular file, opened to be read; links are followed. Raise OSError, for a file of another kind too."""
    return open(path, "rb", opener=_open)


def read(path: str | os.PathLike[str], most: int) -> bytes:
    """Return at most so many bytes of a regular file; raise OSError, for a file of another kind too."""
    with opened(path) as stream:
        return stream.read(most)


def _open(path: str, flags: int) -> int:
    # A look before the open: opening a device can have effects of its own.
    _demand_regular(os.stat(path), path)
    # Without O_NONBLOCK a pipe that takes the place of the file now would be waited for.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _demand_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _demand_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)
