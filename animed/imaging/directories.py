"""The structure of TIFF files, of camera raw files that are built alike, and of BigTIFF: directories of tags."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from animed.imaging.blocks import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What is read at most: a directory that claims more is damaged, or meant to keep its reader busy.
_ENTRIES: Final = 512
_DIRECTORIES: Final = 64
_VALUES: Final = 1 << 20

STRIPS: Final = 273, 279  # StripOffsets, StripByteCounts
TILES: Final = 324, 325
_SUB: Final = 330  # SubIFDs
_JPEG: Final = 513, 514  # JPEGInterchangeFormat and its length: thumbnails, and the pictures of some cameras
_COMPRESSION: Final = 259
_READ: Final = frozenset({*STRIPS, *TILES, *_JPEG, _SUB, _COMPRESSION})
_BYTES: Final[Mapping[int, int]] = {
    **dict.fromkeys((1, 2, 6, 7), 1),
    **dict.fromkeys((3, 8), 2),
    **dict.fromkeys((4, 9, 11, 13), 4),
    **dict.fromkeys((5, 10, 12, 16, 17, 18), 8),
}
_WIDTHS: Final[Mapping[int, tuple[str, int]]] = {3: ("H", 2), 4: ("I", 4), 13: ("I", 4), 16: ("Q", 8), 18: ("Q", 8)}


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
        ends = [0]
        for offsets, sizes in (STRIPS, TILES, _JPEG):
            pairs = zip(self.numbers.get(offsets, ()), self.numbers.get(sizes, ()), strict=False)
            ends += [offset + size for offset, size in pairs]
        return max(ends)

    @property
    def reach(self) -> int:
        """Return the offset behind the directory and its picture."""
        return max(self.end, self.strips_end)


def first(data: bytes) -> Directory:
    """Return the first directory of a file."""
    return _read(data, _start(data))


def all_of(data: bytes) -> Iterator[Directory]:
    """Yield the directories of a file and those below them, at most 64."""
    yield from islice(_walk(data), _DIRECTORIES)


def _walk(data: bytes) -> Iterator[Directory]:
    waiting, met = [_start(data)], set[int]()
    while waiting:
        start = waiting.pop()
        if start in met:
            continue
        met.add(start)
        directory = _read(data, start)
        waiting += [at for at in (directory.follows, *directory.numbers.get(_SUB, ())) if at]
        yield directory


def _start(data: bytes) -> int:
    return number(_order(data) + "Q", data, 8) if _big(data) else number(_order(data) + "I", data, 4)


def _read(data: bytes, start: int) -> Directory:
    order, big = _order(data), _big(data)
    entry_size, head = (20, 8) if big else (12, 2)
    count = number(order + ("Q" if big else "H"), data, start)
    end = start + head + entry_size * count
    numbers: dict[int, tuple[int, ...]] = {}
    values_end = 0
    for at in range(start + head, min(end, start + head + entry_size * _ENTRIES), entry_size):
        tag = number(order + "H", data, at)
        values_end = max(values_end, _value_end(data, at, order, big=big))
        if tag in _READ:
            numbers[tag] = _values(data, at, order, big=big)
    return Directory(end, values_end, number(order + ("Q" if big else "I"), data, end), numbers)


def _value_end(data: bytes, at: int, order: str, *, big: bool) -> int:
    """Return where the value of one entry ends; 0 where it stands in the entry."""
    offset, place = ("Q", 8) if big else ("I", 4)
    size = _BYTES.get(number(order + "H", data, at + 2), 0) * number(order + offset, data, at + 4)
    return number(order + offset, data, at + 4 + place) + size if size > place else 0


def _values(data: bytes, at: int, order: str, *, big: bool) -> tuple[int, ...]:
    """Return the whole numbers of one entry; none where they are of another type."""
    offset, place = ("Q", 8) if big else ("I", 4)
    code, width = _WIDTHS.get(number(order + "H", data, at + 2), ("", 0))
    if not code:
        return ()
    count = min(number(order + offset, data, at + 4), len(data) // width, _VALUES)
    here = at + 4 + place
    where = here if count * width <= place else number(order + offset, data, here)
    return tuple(number(order + code, data, where + width * index) for index in range(count))


def _order(data: bytes) -> str:
    return "<" if data[:1] == b"I" else ">"


def _big(data: bytes) -> bool:
    return data[2:4] in {b"+\x00", b"\x00+"}
