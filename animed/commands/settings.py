"""The part of `animed check` that looks at who could change the configuration and the styles."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from animed.commands.access import real_path
from animed.commands.findings import Finding, warning
from animed.commands.output import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.config import Config

_MOVE: Final = "keep it where only its owner writes"


def look_at_settings(config: Config) -> Iterator[Finding]:
    """Warn of a configuration, or a folder of own styles, that lies among photos or that other users may write.

    Whoever can drop a photo into a share should not be able to say what the service does with all the others.
    """
    sources = [] if config.source is None else [config.source]
    for place in (*sources, config.styles_dir):
        if (folder := _photos_around(place, config)) is not None:
            text = f"{shown(str(place))} lies in {shown(str(folder))}, where others put or find photos"
            yield warning("settings", "", text, "move it out of there")
        elif os.path.exists(place) and is_open_to_others(os.stat(place)):
            yield warning("settings", "", f"{shown(str(place))} may be written by other users", _MOVE)


def look_at_defaults(config: Config) -> Iterator[Finding]:
    """Warn of defaults that nobody takes, such as those of the environment over a file that sets every key."""
    for key in config.unheeded:
        remedy = f"set it there, or take {key} out of the inboxes"
        yield warning("settings", f"defaults.{key}", "has no effect: every inbox has a value of its own", remedy)


def is_open_to_others(found: os.stat_result) -> bool:
    """Say whether others than the owner may write a file; a group of the owner's own number is the owner alone."""
    shared = found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid
    return bool(found.st_mode & stat.S_IWOTH or shared)


def _photos_around(place: Path, config: Config) -> Path | None:
    """Return the inbox or output that a path lies in, as the system sees it."""
    real = Path(os.path.realpath(place))
    folders = [folder for inbox in config.inboxes for folder in (inbox.path, inbox.output)]
    return next(
        (folder for folder in folders if real.is_relative_to(os.fsdecode(real_path(os.fsencode(folder))))), None
    )
