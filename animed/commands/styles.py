"""`animed styles`: which styles there are, what their cards say, and whether their weights are what they should be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from animed import detector
from animed.catalog import Catalog, Style, builtin_dir
from animed.commands.access import open_config
from animed.commands.output import note, say, say_json, say_table, shown, size
from animed.config.environment import FILE
from animed.config.locate import find, styles_dir
from animed.errors import EXIT_OK, EXIT_WORKERS, ConfigError, StyleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animed.detector import Download

_STYLES_DIR = "ANIMED_STYLES_DIR"


def list_all(config_file: Path | None, *, as_json: bool) -> int:
    """Print the styles, and on stderr those that cannot be used; raises ConfigError."""
    catalog = _catalog(config_file)
    if as_json:
        say_json([_fields(style) for style in catalog.styles])
    else:
        rows = [
            (
                style.name,
                "built-in" if style.builtin else "own",
                str(style.card.preferred_edge),
                shown(style.card.title),
            )
            for style in catalog.styles
        ]
        say_table(("NAME", "FROM", "EDGE", "TITLE"), rows, right=("EDGE",))
    _note_problems(catalog)
    return EXIT_OK


def show(config_file: Path | None, name: str) -> int:
    """Print all that is known of one style; raises ConfigError and StyleError."""
    for key, value in _fields(_catalog(config_file).get(name)).items():
        say(f"{key + ':':16}{shown(str(value))}")
    return EXIT_OK


def verify(config_file: Path | None, name: str | None) -> int:
    """Compare weights with their cards, and fetched files with what they must be; return 4 when any is wrong.

    Raises ConfigError and StyleError.
    """
    catalog = _catalog(config_file)
    styles = catalog.styles if name is None else [catalog.get(name)]
    good = [_is_good(catalog, style) for style in styles]
    # Also a style that could not even be read is one that was asked about.
    broken = name is None and bool(catalog.problems)
    if name is None:
        good += [_is_sound(each, folder_of(config_file), builtin_dir()) for each in detector.DOWNLOADS]
        _note_problems(catalog)
    return EXIT_OK if all(good) and not broken else EXIT_WORKERS


def _is_sound(wanted: Download, *folders: Path) -> bool:
    """Say whether a file that can be fetched is what it should be, in the first folder that holds one, or in none."""
    try:
        found = detector.find(*folders, wanted=wanted)
    except ConfigError:
        return True  # Whether it is needed is for `check` to say.
    except StyleError as error:
        note(str(error))
        say(f"FAIL  {wanted.name}")
        return False
    say(f"ok    {wanted.name}  {found.sha256}")
    return True


def _is_good(catalog: Catalog, style: Style) -> bool:
    try:
        catalog.verify(style)
    except StyleError as error:
        note(f"{style.name}: {error}")
        say(f"FAIL  {style.name}")
        return False
    say(f"ok    {style.name}  {style.card.sha256}")
    return True


def _catalog(config_file: Path | None) -> Catalog:
    return Catalog.read(styles_dir=folder_of(config_file))


def folder_of(config_file: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of more styles; a configuration is not needed, but one that was asked for must be there."""
    try:
        find(config_file, environ=environ, cwd=Path.cwd())
    except ConfigError:
        if config_file or environ.get(FILE):
            raise
        return Path(environ.get(_STYLES_DIR) or styles_dir(environ)).expanduser()
    return open_config(config_file).styles_dir


def _fields(style: Style) -> dict[str, object]:
    return {
        "name": style.name,
        "title": style.card.title,
        "builtin": style.builtin,
        "architecture": style.card.architecture,
        "upsampling": style.card.upsampling,
        "preferred_edge": style.card.preferred_edge,
        "licence": style.card.licence,
        "source": style.card.source,
        "sha256": style.card.sha256,
        "weights": str(style.weights),
        "size": _size(style),
    }


def _size(style: Style) -> str:
    try:
        return size(os.stat(style.weights).st_size)
    except OSError as error:
        return f"unknown ({error.strerror})"


def _note_problems(catalog: Catalog) -> None:
    for problem in catalog.problems:
        note(shown(str(problem)))
