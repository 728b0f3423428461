"""Folders that must not share files: an overlap would feed pictures back in, or let one rule undo another.

Folders are compared by their real paths, and by the identity of what exists, so that neither a symbolic link nor a
second mount of the same folder hides an overlap.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from animed.config.problems import Loc, Told, dotted
from animed.config.programs import open_to_others
from animed.limited import PATIENCE_S, limited, whereabouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from animed.config.inbox import InboxConfig

_SHARED: Final = frozenset({"output", "processed_dir", "failed_dir"})
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with its role, where it really is, and the (device, inode) of it and of each folder above it.

    Or a program, with its mode.
    """

    loc: Loc
    path: Path
    real: Path
    identity: Identity | None
    above: frozenset[Identity]
    mode: int | None = None  # st_mode; None where it cannot be asked

    @classmethod
    def find(cls, loc: Loc, path: Path) -> Place:
        """Ask about a folder or a program, which need not exist; TimeoutError when its file system is silent."""
        real, found = limited(whereabouts, str(path), folder=path)
        known = [None if one is None else one[:2] for one in found]
        mode = None if found[0] is None else found[0][2]
        return cls(loc, path, Path(real), known[0], frozenset(one for one in known[1:] if one), mode)

    def same(self, other: Place) -> bool:
        """Say whether both are one folder."""
        return self.real == other.real or (self.identity is not None and self.identity == other.identity)

    def inside(self, other: Place) -> bool:
        """Say whether this folder lies somewhere below the other one."""
        return other.real in self.real.parents or (other.identity is not None and other.identity in self.above)


def overlaps(
    inboxes: Iterable[tuple[Loc, InboxConfig]],
    state_dir: Path | None,
    *,
    programs: Iterable[tuple[Loc, Path]] = (),
    find: Callable[[Loc, Path], Place] = Place.find,
    patience: float = PATIENCE_S,
) -> list[Told]:
    """Compare every folder that is used with every other one; only equal roles may share one folder.

    A folder whose file system does not answer within `patience` seconds is compared by its name alone: one share that
    hangs must not keep the service, and with it all other inboxes, from starting. `programs` must lie elsewhere.
    """
    wanted = [used for at, inbox in inboxes for used in _used(at, inbox)]
    if state_dir is not None:
        wanted.append((("state_dir",), state_dir))
    folders = len(wanted)
    wanted += [pair for loc, program in programs for pair in ((loc, program), (loc, program.parent))]
    found = _find_all(wanted, find, patience)
    places, rest = found[:folders], found[folders:]
    told = [told for one, other in itertools.combinations(places, 2) for told in _compare(one, other)]
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return told + [one for program, holder in pairs for one in open_to_others(program, holder, places)]


def _find_all(wanted: list[tuple[Loc, Path]], find: Callable[[Loc, Path], Place], patience: float) -> list[Place]:
    """Ask about each folder in a thread of its own: one that hangs is given up, and the others are known by then."""
    found: dict[int, Place] = {}

    def ask(number: int, loc: Loc, path: Path) -> None:
        with contextlib.suppress(TimeoutError):
            found[number] = find(loc, path)

    threads = [
        threading.Thread(target=ask, args=(number, loc, path), daemon=True) for number, (loc, path) in enumerate(wanted)
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 2 * patience
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return [
        found.get(number) or Place(loc, path, Path(os.path.abspath(path)), None, frozenset())
        for number, (loc, path) in enumerate(wanted)
    ]


def _used(at: Loc, inbox: InboxConfig) -> Iterator[tuple[Loc, Path]]:
    """Yield the folders that an inbox works with."""
    yield (*at, "path"), inbox.path
    yield (*at, "output"), inbox.output
    if inbox.originals == "move":
        yield (*at, "processed_dir"), inbox.processed_dir
    if inbox.failed != "leave":
        yield (*at, "failed_dir"), inbox.failed_dir


def _compare(one: Place, other: Place) -> Iterator[Told]:
    """Yield the overlap of two folders, if there is one."""
    if one.same(other):
        if one.loc[-1] == other.loc[-1] and one.loc[-1] in _SHARED:
            return
        relation = "is the same folder as"
    elif other.inside(one):
        relation = "lies inside"
    elif one.inside(other):
        relation = "contains"
    else:
        return
    got = f"{_shown(other)}, which {relation} {dotted(one.loc)} {_shown(one)}"
    yield other.loc, got, "folders that do not overlap", "animed must never read what it writes"


def _shown(place: Place) -> str:
    """Write a folder, with its real path where that is another one."""
    return str(place.path) if place.path == place.real else f"{place.path} (really {place.real})"
