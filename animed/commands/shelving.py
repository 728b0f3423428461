"""`animed styles pull` and `animed styles import`: files that do not ship, into the folder of styles."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from animed import detector
from animed.commands import fetching
from animed.commands.output import note, say, shown
from animed.commands.progress import ByteBar
from animed.commands.styles import folder_of
from animed.config.fields import near
from animed.errors import EXIT_OK, EXIT_USAGE, StyleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from animed.commands.fetching import Progress
    from animed.detector import Download

    Fetch = Callable[[Download, Progress], bytes]


def pull(
    config_file: Path | None,
    name: str,
    *,
    fetch: Fetch = fetching.download,
    downloads: Iterable[Download] = detector.DOWNLOADS,
) -> int:
    """Fetch a file by its name, unless it is there; raises ConfigError, and AnimedError where it cannot be had."""
    wanted = next((each for each in downloads if each.name == name), None)
    if wanted is None:
        note(_unknown(name, downloads))
        return EXIT_USAGE
    target = folder_of(config_file) / wanted.file_name
    if _is_there(target, wanted):
        say(f"{shown(os.fspath(target))} is there already")
        return EXIT_OK
    note(f"{wanted.title}, licence {wanted.licence}, from {wanted.url}")
    with ByteBar(wanted.name, enabled=sys.stderr.isatty()) as bar:
        data = fetch(wanted, bar.show)
    fetching.store(data, target)
    say(shown(os.fspath(target)))
    return EXIT_OK


def take(
    config_file: Path | None, path: Path, name: str | None, *, downloads: Iterable[Download] = detector.DOWNLOADS
) -> int:
    """Take a file that the user has, known by its content; raises ConfigError, and StyleError for another file."""
    data = fetching.read(path)
    found = next((each for each in downloads if each.sha256 == detector.digest_of(data)), None)
    if found is None:
        known = ", ".join(f"the {each.title} (sha256 {each.sha256})" for each in downloads)
        raise StyleError("is none of the files that this version takes", remedy=f"it takes {known}", path=str(path))
    if name not in {None, found.name}:
        note(f"--name: {shown(os.fspath(path))} is the {found.title}, whose name is {found.name}")
        return EXIT_USAGE
    target = folder_of(config_file) / found.file_name
    fetching.store(data, target)
    say(f"{shown(os.fspath(target))}: {found.title}, licence {found.licence}")
    return EXIT_OK


def _is_there(target: Path, wanted: Download) -> bool:
    """Say whether a file is there and sound."""
    try:
        detector.verify(target, wanted=wanted)
    except StyleError:
        return False
    return True


def _unknown(name: str, downloads: Iterable[Download]) -> str:
    names = [each.name for each in downloads]
    hint = near(name, names) or f"there are: {', '.join(names)}"
    return f"nothing called {name!r} can be fetched ({hint})"
