"""`animed config`: shows what is in effect, starts a configuration, prints its schema."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from animed import config
from animed.commands.access import open_config
from animed.commands.output import say, say_json, shown
from animed.errors import EXIT_OK, AnimedError, OutputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def show(config_file: Path | None) -> int:
    """Print the effective configuration as YAML; raises ConfigError."""
    effective = open_config(config_file)
    say(f"# from {shown(str(effective.source))}, the environment and the defaults")
    say(config.dump(effective).rstrip())
    return EXIT_OK


def schema() -> int:
    """Print the JSON Schema of the configuration file."""
    say_json(config.schema())
    return EXIT_OK


def init(config_file: Path | None) -> int:
    """Write the annotated configuration and make the folders that it names; raises OutputError and ConfigError."""
    target = Path(os.path.abspath(config_file or own_file(os.environ)))
    _make_folder(target.parent)
    _write(target)
    try:
        inboxes = open_config(target).inboxes
    except AnimedError:
        # What cannot be used must not be in the way of the next try.
        target.unlink()
        raise
    say(f"wrote {shown(str(target))}")
    for inbox in inboxes:
        for role, folder in (("inbox", inbox.path), ("output", inbox.output)):
            done = "made" if _make_folder(folder) else "found"
            say(f"{done} the {role} folder {shown(str(folder))}")
    say("next: `animed check`, then `animed run`")
    return EXIT_OK


def own_file(environ: Mapping[str, str]) -> str:
    """Return where a user's own configuration lies: the XDG rules, where a relative folder counts as unset."""
    base = environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "animed", "config.yaml")


def _write(target: Path) -> None:
    text = config.default_text()
    try:
        stream = open(target, "x", encoding="utf-8")  # noqa: SIM115 -- what fails below must take the file with it
    except FileExistsError as error:
        raise OutputError(
            "a file is there already, and stays as it is",
            remedy="change it, or name another one with -c",
            path=shown(str(target)),
        ) from error
    except OSError as error:
        raise _cannot_make(target, error) from error
    try:
        with stream:
            stream.write(text)
    except OSError as error:
        target.unlink()
        raise _cannot_make(target, error) from error


def _make_folder(folder: Path) -> bool:
    """Make a folder and what is missing above it; say whether it was missing."""
    if os.path.isdir(folder):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_make(folder, error) from error
    return True


def _cannot_make(path: Path, error: OSError) -> OutputError:
    remedy = "make it yourself, or name another place"
    return OutputError(f"cannot be made: {error.strerror}", remedy=remedy, path=shown(str(path)))
