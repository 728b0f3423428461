"""How far into its file the pictures of a TIFF reach, of camera raw files that are built alike, and of BigTIFF."""

from __future__ import annotations

import operator
import struct
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from animed.imaging import ifd
from animed.imaging.blocks import number, too_many

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from animed.imaging.ifd import Slot

# What is read at most of all directories of a file together.
DIRECTORIES: Final = 64
VALUES: Final = 1 << 21  # whole numbers; of a tile of 16 by 16 pixels there are two, a strip is a row or more

STRIPS: Final = 273, 279  # StripOffsets, StripByteCounts
TILES: Final = 324, 325
_SUB: Final = 330  # SubIFDs
_JPEG: Final = 513, 514  # JPEGInterchangeFormat and its length: thumbnails, and the pictures of some cameras
_COMPRESSION: Final = 259
_PLACES: Final = (STRIPS, TILES, _JPEG)
_READ: Final = frozenset({*STRIPS, *TILES, *_JPEG, _SUB, _COMPRESSION})
_CODES: Final[Mapping[int, str]] = {ifd.SHORT: "H", ifd.LONG: "I", ifd.IFD: "I", ifd.LONG8: "Q", ifd.IFD8: "Q"}


@dataclass(frozen=True, slots=True)
class Directory:
    """One picture of a TIFF, as far as its place in the file is concerned."""

    end: int  # offset behind the directory itself
    values_end: int  # offset behind the values that stand outside of it
    follows: int  # offset of the next one; 0 for none
    numbers: Mapping[int, tuple[int, ...]]  # offsets and sizes, by tag

    @property
    def compression(self) -> int:
        """Return the method by which the picture is packed; 1 is none."""
        return next(iter(self.numbers.get(_COMPRESSION, ())), 1)

    @property
    def strips_end(self) -> int:
        """Return the offset behind the strips, tiles and JPEGs that the directory lists; 0 where it lists none."""
        pairs = ((self.numbers.get(offsets, ()), self.numbers.get(sizes, ())) for offsets, sizes in _PLACES)
        return max(max(map(operator.add, *pair), default=0) for pair in pairs)

    @property
    def reach(self) -> int:
        """Return the offset behind the directory and its picture."""
        return max(self.end, self.strips_end)


def first(data: bytes) -> Directory:
    """Return the first directory of a file. Raise PhotoError("too_large") where it lists more than VALUES."""
    return _read(data, ifd.first(data), VALUES)


def all_of(data: bytes) -> Iterator[Directory]:
    """Yield the directories of a file and those below them, at most 64.

    Raise PhotoError("too_large") where they list more than VALUES.
    """
    yield from islice(_walk(data), DIRECTORIES)


def _walk(data: bytes) -> Iterator[Directory]:
    waiting, met, left = [ifd.first(data)], set[int](), VALUES
    while waiting:
        start = waiting.pop()
        if start in met:
            continue
        met.add(start)
        directory = _read(data, start, left)
        left -= sum(map(len, directory.numbers.values()))
        waiting += filter(None, (directory.follows, *directory.numbers.get(_SUB, ())))
        yield directory


def _read(data: bytes, start: int, left: int) -> Directory:
    """Read one directory, and at most so many numbers."""
    numbers: dict[int, tuple[int, ...]] = {}
    values_end = 0
    for slot in ifd.slots(data, start):
        if slot.apart:
            values_end = max(values_end, slot.end)
        if slot.tag in _READ:
            numbers[slot.tag] = _values(data, slot, left)
            left -= len(numbers[slot.tag])
    end = ifd.end(data, start)
    return Directory(end, values_end, number(ifd.layout(data).offset, data, end), numbers)


def _values(data: bytes, slot: Slot, left: int) -> tuple[int, ...]:
    """Return the whole numbers of one entry, as many as are there; none where they are of another type."""
    code = _CODES.get(slot.kind)
    if code is None:
        return ()
    count = min(slot.values, max(0, len(data) - slot.where) // ifd.WIDTHS[slot.kind])
    if count > left:
        raise too_many(f"{VALUES} strips, tiles and directories")
    return struct.unpack_from(f"{ifd.layout(data).order}{count}{code}", data, min(slot.where, len(data)))
