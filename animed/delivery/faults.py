"""Which error is whose fault: a place's (it is suspended, the photo waits) or a photo's (recorded, the others go on).

An errno that is not known here counts against the photo: its attempts are bounded, so nothing can loop for ever.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.delivery.portable import NAME_REFUSED
from animed.errors import AnimedError, PhotoError, PlaceError
from animed.records import Reason, printable
from animed.system import FAILING, FULL, STARVED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.errors import PlaceRole

# Wherever below a root these turn up, the disk, the share or the machine is what fails.
_PLACE_CODES: Final = FULL | FAILING | STARVED | {errno.EROFS}
# These are a place's fault only at its root: in a sub-folder they concern the photos of that folder.
_ROOT_CODES: Final = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
# An inbox, a processed or a failed folder that refuses is not waited for: the photo simply stays where it is.
_REFUSALS: Final = frozenset({errno.EACCES, errno.EPERM})


class SourceGone(AnimedError):  # noqa: N818 - it names a state, like FileNotFoundError's "not found".
    """A finished picture is no longer there, or is not the same any more: the photo has to be drawn anew."""


class FolderGone(PhotoError):  # noqa: N818 - it names a state too.
    """A folder between the root and a file does not exist: nor does the file."""


class NameRefused(PhotoError):  # noqa: N818 - it names a state too.
    """The file system of the output cannot take this name: too long, or not of its characters. `code` is the errno."""

    def __init__(self, detail: str, code: int) -> None:
        super().__init__(Reason.OUTPUT_DENIED, detail)
        self.code = code

    def __reduce__(self) -> tuple[type[NameRefused], tuple[str, int]]:  # type: ignore[override]  # other arguments
        """Travel through a pipe with both fields."""
        return type(self), (self.detail, self.code)


@dataclass(frozen=True, slots=True)
class Place:
    """A root folder and its role."""

    role: PlaceRole
    root: str

    @contextmanager
    def guard(self, below: bytes = b"") -> Iterator[None]:
        """Translate each OSError of the work in the folder `below` the root into a PlaceError or a PhotoError."""
        try:
            yield
        except OSError as error:
            raise translate(error, self, below) from error


def translate(error: OSError, place: Place, below: bytes = b"") -> PlaceError | PhotoError:
    """Return the fault that an OSError means; `below` is the folder, relative to the root, where it happened."""
    code = error.errno or errno.EIO
    where = os.path.join(os.fsencode(place.root), below).rstrip(b"/")
    text = f"{os.strerror(code)}: {printable(where)}"
    # A read-only inbox may well be one by intent, and its photos can be drawn; what a read-only disk cannot take now is
    # owed until it can.
    refused = place.role != "output" and (code in _REFUSALS or (place.role == "inbox" and code == errno.EROFS))
    if not refused and (code in _PLACE_CODES or (not below and code in _ROOT_CODES)):
        return PlaceError(place.role, code, place.root, text)
    if place.role == "output" and code in NAME_REFUSED:
        return NameRefused(text, code)
    return PhotoError(Reason.OUTPUT_DENIED, text)
