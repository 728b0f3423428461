"""The part of `animed check` that looks at hooks: each is there, is a program, and belongs to nobody else."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from animed.commands.findings import Finding, failure, good, warning
from animed.commands.output import shown
from animed.errors import EXIT_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.config import HooksConfig

_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def look_at_hooks(hooks: HooksConfig) -> Iterator[Finding]:
    """Look at every hook that is set. One that others may change has been refused with the configuration."""
    for key, command in hooks.commands().items():
        yield _look(key, command[0])


def _look(key: str, program: str) -> Finding:
    text = shown(program)
    try:
        mode = os.stat(program).st_mode
    except OSError as error:
        remedy = "a program and its arguments are written as a list: [PROGRAM, ARGUMENT]" if " " in program else ""
        why = f"{text}: {error.strerror}"
        return failure("hook", key, why, remedy or "give the full path of a program", status=EXIT_CONFIG)
    if not stat.S_ISREG(mode):
        return failure("hook", key, f"{text} is not a file", "give the full path of a program", status=EXIT_CONFIG)
    if not os.access(program, os.X_OK, effective_ids=True):
        remedy = "run chmod +x on it, and let the service's user reach it"
        return failure("hook", key, f"{text} may not be executed by this user", remedy, status=EXIT_CONFIG)
    folder = _open_folder(os.path.realpath(program))
    if folder:
        why = f"{text} can be replaced by others: they may write the folder {shown(folder)}"
        return warning("hook", key, why, "move it to where only its owner may write")
    return good("hook", key, f"{text} can be started")


def _open_folder(path: str) -> str:
    """Return the nearest folder above a path in which others may replace what it holds; nothing when there is none."""
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        mode = os.stat(path).st_mode
        if mode & _OTHERS and not mode & stat.S_ISVTX:
            return path
    return ""
