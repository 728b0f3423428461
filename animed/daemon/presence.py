"""Whether the ledger's file is still the one that was opened: what is written into a removed file is lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from animed.opening import Identity


class Presence:
    """Remembers which file has a name, and says when another one has it, or none. The file lies on a local disk."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity = _identity(path)

    def missing(self) -> str:
        """Return what has become of the file, for people; nothing while it is there."""
        found = _identity(self._path)
        if found == self._identity:
            return ""
        folder = os.path.dirname(self._path)
        if found is None:
            return f"{self._path} is gone: bring {folder} back; nothing is drawn without it"
        return f"{self._path} is another file than the service opened: restart it to use this one"


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
