"""Finding out what the file system of an output makes of names, by trying some hidden ones."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from animed.delivery.faults import Place
from animed.delivery.folders import open_folder, peek
from animed.delivery.portable import COMPONENT_BYTES, LEAST_BYTES, NameRules, is_of_windows
from animed.delivery.staging import TRIED, temp_name
from animed.delivery.transfer import create_temp, drop_temp
from animed.system import FAILING, FULL, REAL, STARVED, Entry, System

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.delivery.portable import Charset
    from animed.records import Stage

_COLON, _COMPOSED, _DECOMPOSED = TRIED
_NOT_THE_NAME: Final = FULL | FAILING | STARVED | {errno.EROFS}


def examine(stage: Stage, kind: str, *, system: System = REAL) -> NameRules:
    """Return what names the output can take, and which of them it takes for one.

    `kind` is the type of its file system: on some that Windows reads too, names are such that Windows can read them,
    whatever the driver here would take. Raises PlaceError or PhotoError.
    """
    at = Place("output", stage.folder)
    with open_folder(system, at, ()) as folder, at.guard():
        said = system.statvfs(folder).f_namemax
        trial = _Trial(system, folder, stage.temp_prefix)
        cases = trial.reach(b"", bytes.upper)
        forms = trial.reach(_COMPOSED, lambda name: name.replace(_COMPOSED, _DECOMPOSED))
        free = not is_of_windows(kind) and trial.reach(_COLON, bytes) is not None
    charset: Charset = "ascii" if forms is None else "any" if free else "portable"
    # A file system that does not know counts as one of the usual kind.
    limit = max(LEAST_BYTES, min(said or COMPONENT_BYTES, COMPONENT_BYTES))
    return NameRules(limit, charset, folds=bool(cases or forms))


class _Trial:
    """Makes hidden files for a moment, in an open folder."""

    def __init__(self, system: System, folder: int, prefix: str) -> None:
        self._system = system
        self._folder = folder
        self._prefix = prefix

    def reach(self, sign: bytes, spelling: Callable[[bytes], bytes]) -> bool | None:
        """Make a file with a sign in its name, and say whether another spelling of the name leads to it as well.

        None where the file system refuses such a name.
        """
        name = temp_name(self._prefix, sign)
        try:
            temp = create_temp(self._system, Entry(self._folder, name), 0o600, unnamed=False)
            try:
                return peek(self._system, Entry(self._folder, spelling(name))) is not None
            finally:
                drop_temp(self._system, temp)
        except OSError as error:
            if not sign or error.errno in _NOT_THE_NAME:
                raise
            return None  # drivers differ in what they call it; a plain name they took a moment ago
