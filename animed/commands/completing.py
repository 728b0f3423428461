"""What a shell's Tab key is told: the names that only the catalog of styles knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from animed.catalog import Catalog
from animed.config import glance, locate
from animed.errors import ConfigError, StyleError

if TYPE_CHECKING:
    from collections.abc import Mapping


def styles(config_file: Path | None, environ: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """Return every style that can be named, with its title; nothing where the catalog cannot be read."""
    try:
        catalog = Catalog.read(styles_dir=_styles_dir(config_file, environ))
    except StyleError:
        return []  # A half-typed line is no place for a message: the command itself tells it.
    return [(style.name, style.card.title) for style in catalog.styles]


def _styles_dir(config_file: Path | None, environ: Mapping[str, str]) -> Path:
    """Return where further styles are, by the configuration if there is one that can be read."""
    try:
        return glance.styles_dir(config_file, environ=environ, cwd=Path.cwd())
    except ConfigError:
        return Path(os.path.expanduser(locate.styles_dir(environ)))
