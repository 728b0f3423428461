"""One key of a configuration that is not loaded: quick, without a look at any folder, and whatever else is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from animed.config import locate
from animed.config.fields import Reading, folder
from animed.config.yaml_text import parse
from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def styles_dir(path: Path | None, *, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return where further styles are; ConfigError without a file, or where the key itself is wrong."""
    source = locate.find(path, environ=environ, cwd=cwd)
    tree = parse(locate.read(source)).value
    named = tree.get("styles_dir") if isinstance(tree, dict) else None
    given = environ.get("ANIMED_STYLES_DIR", named)
    try:
        return folder(locate.styles_dir(environ) if given in {None, "null"} else given, _reading(source, environ))
    except PydanticCustomError as error:
        raise ConfigError(f"styles_dir: {error}", path=str(source)) from error


def _reading(source: Path, environ: Mapping[str, str]) -> Reading:
    return Reading(source.absolute().parent, environ)
