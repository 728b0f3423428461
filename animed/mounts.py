"""The kernel's table of mounts: which file system a path lies on. Reading it asks no file system anything."""

from __future__ import annotations

import os
import re
from typing import Final

TABLE: Final = "/proc/self/mountinfo"
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_POINT: Final = 4  # the field of the mount point (proc_pid_mountinfo(5)), counted from 0


def mounted(table: str = TABLE) -> dict[str, str]:
    """Return the kind of file system at each mount point, the top one of several; empty without a table."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as opened:
            lines = opened.read().split("\n")
    except OSError:
        return {}
    kinds = {}
    for line in lines:
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if separator and len(fields) > _POINT:
            kinds[_ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[_POINT])] = after.split(" ")[0]
    return kinds


def kind_at(path: str, kinds: dict[str, str]) -> str | None:
    """Return the kind of the nearest mount at or above an absolute path without links; None where there is none."""
    while path not in kinds:
        if path == "/":
            return None
        path = os.path.dirname(path)
    return kinds[path]
