"""Where the file is, where the folders are that it does not name, and reading its text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from animed import regular
from animed.config.environment import FILE
from animed.config.fields import Reading, folder
from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SYSTEM: Final = Path("/etc/animed/config.yaml")
_MOST_BYTES: Final = 2**20


def find(path: Path | None, *, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the file to read; ConfigError names every place that was looked at.

    A file that was asked for, by the command line or by $ANIMED_CONFIG, must be there: no other one takes its place.
    """
    asked = path or environ.get(FILE)
    if asked:
        chosen = folder(str(asked), Reading(cwd, environ))
        if not os.path.exists(chosen):
            by = "the command line" if path else f"${FILE}"
            raise ConfigError(
                f"no such file (named by {by})", remedy="`animed config init` writes one", path=str(chosen)
            )
        return chosen
    places = list(_places(environ, cwd))
    found = next((place for place in places if os.path.exists(place)), None)
    if found is None:
        raise ConfigError(
            f"no configuration; looked for {', '.join(map(str, places))}", remedy="`animed config init` writes one"
        )
    return found


def read(source: Path) -> str:
    """Return the text of the file; ConfigError if it cannot be read."""
    try:
        raw = regular.read(source, _MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=str(source)) from error
    if len(raw) > _MOST_BYTES:
        raise ConfigError("is larger than 1 MiB", remedy="name the configuration file", path=str(source))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"line {line}: is not UTF-8", remedy="save the file as UTF-8", path=str(source)) from error


def state_dir(environ: Mapping[str, str]) -> str:
    """Return the folder of the ledger where none is named."""
    first = environ.get("STATE_DIRECTORY", "").split(":")[0]
    return first or os.path.join(_base(environ, "XDG_STATE_HOME", "~/.local/state"), "animed")


def styles_dir(environ: Mapping[str, str]) -> str:
    """Return the folder of more styles where none is named."""
    return os.path.join(_base(environ, "XDG_DATA_HOME", "~/.local/share"), "animed", "styles")


def _places(environ: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    """Yield the files that are looked for, in order."""
    yield cwd / "config.yaml"
    own = os.path.join(_base(environ, "XDG_CONFIG_HOME", "~/.config"), "animed", "config.yaml")
    yield folder(own, Reading(cwd, environ))
    yield _SYSTEM


def _base(environ: Mapping[str, str], name: str, default: str) -> str:
    """Return a base folder; the standard says that a relative one counts as unset."""
    given = environ.get(name, "")
    return given if os.path.isabs(given) else default
