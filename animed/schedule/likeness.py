"""Which photos look alike. Pure and in memory only; the ledger has what must survive.

Photos are compared with such as are drawn themselves, never with duplicates: A like B and B like C does not make C like
A. A photo that only waits for another one is none of those.
"""

from __future__ import annotations

import heapq
import itertools
import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from animed.records import Fingerprint, PhotoKey

TINT: Final = 12  # of 255: what saving again, resizing and cropping move the mean colours of a quarter at most
CLOSELY: Final = 8  # photos that are near enough, at most, are compared closely: that takes 0.5 ms each
SHAPE: Final = 3  # steps of the shape, of 24 for a factor of 2: a cut of 5 % at one side is less
# A copy with the same edges differs from its photo nowhere by more than noise; a copy without its margins differs
# everywhere. What differs in few places only, and there a lot, is another page of the form, or another boat.
_NOISE: Final = 8.0  # of 255: what saving again and resizing move a part of the photo at most
_TIMES: Final = 8.0  # of the difference that nine tenths of the parts stay below
_NINE_TENTHS: Final = 0.9


_Place = tuple[str, tuple[int, ...]]  # recipe, and the cell of colours


def distance(one: Fingerprint, other: Fingerprint) -> int:
    """Return in how many of 256 bits two photos differ, the margins of either left out where that is nearer."""
    return min(
        (one.whole ^ other.whole).bit_count(),
        (one.inner ^ other.whole).bit_count(),
        (one.whole ^ other.inner).bit_count(),
    )


def same_tint(one: Fingerprint, other: Fingerprint) -> bool:
    """Say whether two photos have the same colours, roughly."""
    return all(abs(a - b) <= TINT for a, b in zip(one.tint, other.tint, strict=True))


def same_details(one: bytes, other: bytes) -> bool:
    """Say whether two photos that are near each other differ nowhere more than copies of one photo do.

    Takes what is called `detail` in both fingerprints: luma, and last the shape. Overall brightness and contrast do not
    count. Without a detail that can be compared nothing is the same.
    """
    if len(one) < 2 or len(one) != len(other) or abs(one[-1] - other[-1]) > SHAPE:  # noqa: PLR2004 - luma, shape
        return False
    first, second = _centred(one[:-1]), _centred(other[:-1])
    power = sum(value * value for value in first)
    gain = sum(map(operator.mul, first, second)) / power if power else 0.0
    apart = sorted(abs(a * gain - b) for a, b in zip(first, second, strict=True))
    return apart[-1] <= _NOISE + _TIMES * apart[int(len(apart) * _NINE_TENTHS)]


def _centred(detail: bytes) -> list[float]:
    mean = sum(detail) / len(detail)
    return [value - mean for value in detail]


def _cell(looks: Fingerprint) -> tuple[int, ...]:
    """Return where the colours of the first and the last quarter lie, in steps that like photos cross once at most."""
    return tuple(value // (TINT + 1) for value in (*looks.tint[:2], *looks.tint[-2:]))


class Looks:
    """The photos of one inbox that may be repeated, by recipe and colour.

    Photos of other colours are not alike, so only a part of them has to be looked at: those whose cell of colours, a
    little wider than the colours of like photos may lie apart, is the same or a neighbour. Details are not kept here:
    the ledger has them, for the few that are asked for.
    """

    def __init__(self, found: Iterable[tuple[bytes, str, Fingerprint]] = ()) -> None:
        self._places: dict[bytes, _Place] = {}
        self._cells: dict[_Place, dict[bytes, Fingerprint]] = {}
        for path, recipe, looks in found:
            self.add(path, recipe, looks)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)

    def add(self, path: bytes, recipe: str, looks: Fingerprint) -> None:
        """Take a photo; what it looked like before is forgotten."""
        self.discard(path)
        place = (recipe, _cell(looks))
        self._places[path] = place
        self._cells.setdefault(place, {})[path] = replace(looks, detail=b"")

    def discard(self, path: bytes) -> None:
        """Forget a photo."""
        place = self._places.pop(path, None)
        if place is not None:
            del self._cells[place][path]
            if not self._cells[place]:
                del self._cells[place]

    def nearest(self, path: bytes, recipe: str, looks: Fingerprint, most: int) -> list[tuple[int, bytes]]:
        """Return distance and path of the few photos that look most like this one, itself aside, within `most` bits.

        The nearest comes first; of photos that are equally near, the first by path.
        """
        near = (
            (bits, other)
            for cell in itertools.product(*((value - 1, value, value + 1) for value in _cell(looks)))
            for other, seen in self._cells.get((recipe, cell), {}).items()
            if (bits := distance(looks, seen)) <= most and other != path and same_tint(looks, seen)
        )
        return heapq.nsmallest(CLOSELY, near)


class Waiting:
    """Who waits for whom: photos that look like one under way."""

    def __init__(self) -> None:
        self._followers: dict[PhotoKey, list[PhotoKey]] = {}
        self._leaders: dict[PhotoKey, PhotoKey] = {}

    def __len__(self) -> int:
        """Return how many photos wait."""
        return len(self._leaders)

    def wait(self, key: PhotoKey, leader: PhotoKey) -> None:
        """Let a photo wait for another one; ValueError where it waits already, or the other one waits itself."""
        if key in self._leaders or leader in self._leaders or key in self._followers:
            raise ValueError(f"{key} cannot wait for {leader}")
        self._leaders[key] = leader
        self._followers.setdefault(leader, []).append(key)

    def leave(self, key: PhotoKey) -> tuple[PhotoKey, ...]:
        """Note that a photo has ended; return those that waited for it, in order."""
        leader = self._leaders.pop(key, None)
        if leader is not None:
            self._followers[leader].remove(key)
            if not self._followers[leader]:
                del self._followers[leader]
        followers = tuple(self._followers.pop(key, ()))
        for follower in followers:
            del self._leaders[follower]
        return followers
