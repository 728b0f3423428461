"""The photos that the paths of a command line mean, and how they are named to the service."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.commands.access import find_inbox, find_photo, full_path
from animed.commands.output import note, shown
from animed.records import PhotoKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from animed.config import Config

_REQUEST_CHARACTERS: Final = 32_768  # of encoded paths in one request: the service takes 64 KB


@dataclass(frozen=True, slots=True)
class Wanted:
    """A photo, or with an empty path a whole inbox: how the ledger names it, and its path as the service writes it."""

    key: PhotoKey
    path: bytes


def sort_out(config: Config, paths: Sequence[Path]) -> tuple[list[Wanted], bool]:
    """Return what the paths mean, and whether some lie in no inbox, which is told."""
    roots = {inbox.name: os.fsencode(inbox.path) for inbox in config.inboxes}
    wanted: dict[PhotoKey, Wanted] = {}
    strangers = False
    for path in map(full_path, paths):
        inbox = find_inbox(path, config.inboxes)
        key = PhotoKey(inbox, b"") if inbox else find_photo(path, config.inboxes)
        if key is None:
            strangers = True
            note(f"{shown(path)}: lies in no inbox of this configuration")
        else:
            place = os.path.join(roots[key.inbox], key.path) if key.path else roots[key.inbox]
            wanted[key] = Wanted(key, place)
    return list(wanted.values()), strangers


def portions(wanted: Iterable[Wanted]) -> Iterator[list[str]]:
    """Yield the paths, as base64 of their bytes, in portions that fit a request."""
    portion: list[str] = []
    length = 0
    for each in wanted:
        text = base64.b64encode(each.path).decode()
        if portion and length + len(text) > _REQUEST_CHARACTERS:
            yield portion
            portion, length = [], 0
        portion.append(text)
        length += len(text)
    yield portion
