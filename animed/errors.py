"""Every error that animed raises on purpose.

Keep this module free of heavy imports: every room uses it, and the parent process stays small.

    AnimedError                      carries a title, what to do about it, and the path concerned
    ├── ConfigError                  exit 78   the configuration cannot be used
    ├── LockedError                  exit 69   another instance holds the state folder
    ├── NotRunningError              exit 69   no service answers on the control socket
    ├── OutputError                  exit 73   a folder or file cannot be made
    ├── StyleError                   exit 4    a style is missing, damaged, or not what its card says
    ├── WorkersError                 exit 4    workers cannot start, for a reason that will not go away
    ├── PhotoError                   a fault of one photo: recorded, never stops the others
    └── PlaceError                   a fault of a place (full, read-only, gone): costs no photo an attempt
"""

from __future__ import annotations

import re
from typing import Final, Literal

PlaceRole = Literal["inbox", "output", "processed", "failed"]

EXIT_OK = 0
EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
EXIT_SOME_FAILED = 3
EXIT_WORKERS = 4
EXIT_UNAVAILABLE = 69
EXIT_CANNOT_CREATE = 73
EXIT_TEMPORARY = 75
EXIT_CONFIG = 78

# torch and oneDNN, OpenCV, libwebp, libavif, libheif, libtiff, zlib by way of Pillow, the C++ library.
_LIMIT: Final = re.compile(r"(?i)security limit")  # libheif calls what it refuses a "memory allocation error"
_WORDS: Final = re.compile(
    r"(?i)can(?:'|no)t allocate|out of memory|bad_alloc|(?:not enough|insufficient) memory|memory allocation|"
    r"failed to (?:re)?allocate|allocation failed|encoding error [12]\b"
)


def visible(text: str) -> str:
    """Return text that cannot play tricks on a terminal: what is not printable, or not UTF-8, is escaped."""
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # noqa: PLR2004 -- what stands for a byte that is not UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


class AnimedError(Exception):
    """An error that a user can act on: what was wrong, where, and what to do."""

    exit_status = EXIT_UNEXPECTED

    def __init__(self, title: str, *, remedy: str = "", path: str = "") -> None:
        super().__init__(title, remedy, path)
        self.title = title
        self.remedy = remedy
        self.path = path

    def __str__(self) -> str:
        """Return one readable text: the path, as a terminal can show it, the title and the remedy."""
        place = f"{visible(self.path)}: " if self.path else ""
        return f"{place}{self.title}" + (f" ({self.remedy})" if self.remedy else "")


class ConfigError(AnimedError):
    """The configuration cannot be used."""

    exit_status = EXIT_CONFIG


class LockedError(AnimedError):
    """Another instance holds the state folder."""

    exit_status = EXIT_UNAVAILABLE


class NotRunningError(AnimedError):
    """No service answers on the control socket."""

    exit_status = EXIT_UNAVAILABLE


class OutputError(AnimedError):
    """A folder or file cannot be made or written."""

    exit_status = EXIT_CANNOT_CREATE


class StyleError(AnimedError):
    """A style is missing, damaged, or not what its card says."""

    exit_status = EXIT_WORKERS


class WorkersError(AnimedError):
    """Workers cannot start, for a reason that will not go away."""

    exit_status = EXIT_WORKERS


class PhotoError(AnimedError):
    """A fault of one photo; `reason` is one of the stable words of the log contract."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[PhotoError], tuple[str, str]]:
        """Travel through a pipe with both fields."""
        return type(self), (self.reason, self.detail)


class PlaceError(AnimedError):
    """A fault of a place rather than of a photo: the place is suspended and probed, the photo waits.

    `code` is the errno.
    """

    def __init__(self, role: PlaceRole, code: int, path: str, detail: str = "") -> None:
        super().__init__(detail or f"{role}: errno {code}", path=path)
        self.role: PlaceRole = role
        self.code = code
        self.detail = detail

    def __reduce__(self) -> tuple[type[PlaceError], tuple[PlaceRole, int, str, str]]:
        """Travel through a pipe with all fields."""
        return type(self), (self.role, self.code, self.path, self.detail)


def starved(error: BaseException) -> bool:
    """Say whether an error is one of the many ways to run out of memory; a library's own limit of sizes is none."""
    text = str(error)
    return isinstance(error, MemoryError) or bool(_WORDS.search(text) and not _LIMIT.search(text))
