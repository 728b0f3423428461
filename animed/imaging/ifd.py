"""Directories of tagged entries, as EXIF and TIFF have them: raw values in, raw values out, nothing interpreted.

A value stays the bytes that it was, in the byte order that it had, so that what is odd in a photo is neither lost nor
made odder. What cannot be read is left out, entry by entry: a broken entry costs no other.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Order = Literal["<", ">"]

BYTE: Final = 1
ASCII: Final = 2
SHORT: Final = 3
LONG: Final = 4
UNDEFINED: Final = 7
DETAIL: Final = 0x8769  # where the main directory says that the EXIF directory is
PLACE: Final = 0x8825  # the same, for GPS

HEADERS: Final = (b"II*\0", b"MM\0*")

_MARKER: Final = b"Exif\0\0"
# Bytes of one value, by kind. Kinds that point somewhere else are not there: what they point at does not move along.
_WIDTHS: Final[Mapping[int, int]] = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 129: 1}
_MOST_ENTRIES: Final = 512  # of one directory; cameras write some sixty
_LONGEST: Final = 65_000  # bytes of a value; more cannot be written into a JPEG
_ENTRY: Final = 12  # bytes


class Entry(NamedTuple):
    """One value or several of one kind."""

    kind: int
    number: int  # of values
    value: bytes  # in the byte order of the tree


Directory = dict[int, Entry]


@dataclass(frozen=True, slots=True)
class Tree:
    """What one EXIF record holds, without thumbnails and pointers."""

    order: Order
    main: Directory = field(default_factory=dict)
    detail: Directory = field(default_factory=dict)  # EXIF: how the photo was taken
    place: Directory = field(default_factory=dict)  # GPS: where

    def short(self, value: int) -> Entry:
        """Return a number of 0 … 65535 as an entry of this tree."""
        return Entry(SHORT, 1, struct.pack(self.order + "H", value))

    def long(self, value: int) -> Entry:
        """Return a number of 0 … 2³²-1 as an entry of this tree."""
        return Entry(LONG, 1, struct.pack(self.order + "I", value))

    def number(self, tag: int) -> int:
        """Return a small whole number of the main directory; 0 where there is none."""
        entry = self.main.get(tag)
        if entry is None or entry.kind not in {SHORT, LONG} or entry.number != 1:
            return 0
        return int(struct.unpack(self.order + ("H" if entry.kind == SHORT else "I"), entry.value)[0])


def text(value: str) -> Entry:
    """Return text as an entry of any tree."""
    data = value.encode() + b"\0"
    return Entry(ASCII, len(data), data)


def parse(data: bytes) -> Tree | None:
    """Return what EXIF data or a TIFF file hold in the first directory and those for EXIF and GPS; None for neither."""
    while data.startswith(_MARKER):
        data = data[len(_MARKER) :]
    order: Order = "<" if data[:2] == b"II" else ">"
    if not data.startswith(HEADERS) or len(data) < 8:  # noqa: PLR2004 - bytes of the header
        return None
    start = int(struct.unpack_from(order + "I", data, 4)[0])
    return Tree(
        order,
        dict(_entries(data, order, start)),
        dict(_entries(data, order, _pointer(data, order, start, DETAIL))),
        dict(_entries(data, order, _pointer(data, order, start, PLACE))),
    )


def size(tree: Tree) -> int:
    """Return how many bytes `serialise` will write."""
    pointers = {tag: tree.long(0) for tag, part in ((DETAIL, tree.detail), (PLACE, tree.place)) if part}
    parts = sum(_length(part) for part in (tree.detail, tree.place) if part)
    return len(_MARKER) + 8 + _length(tree.main | pointers) + parts


def serialise(tree: Tree) -> bytes:
    """Return a tree as EXIF data; empty directories are left out."""
    parts = {DETAIL: tree.detail, PLACE: tree.place}
    main = tree.main | {tag: tree.long(0) for tag, part in parts.items() if part}
    end = 8 + _length(main)
    for tag, part in parts.items():
        if part:
            main[tag] = tree.long(end)
            end += _length(part)
    header = (b"II*\0" if tree.order == "<" else b"MM\0*") + struct.pack(tree.order + "I", 8)
    data = bytearray(header)
    for directory in (main, *(part for part in parts.values() if part)):
        data += _directory(directory, tree.order, len(data))
    return _MARKER + bytes(data)


def _slots(data: bytes, order: Order, start: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield tag, kind, count and the offset of the last field of each entry of the directory at `start`."""
    if not 8 <= start <= len(data) - 2:  # noqa: PLR2004 - the header ends there
        return
    count = int(struct.unpack_from(order + "H", data, start)[0])
    for at in islice(range(start + 2, len(data) - _ENTRY + 1, _ENTRY), min(count, _MOST_ENTRIES)):
        yield *struct.unpack_from(order + "HHI", data, at), at + 8


def _entries(data: bytes, order: Order, start: int) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of a directory whose values lie within the data; of equal tags the first counts."""
    seen = {DETAIL, PLACE}
    for tag, kind, count, at in _slots(data, order, start):
        size = _WIDTHS.get(kind, 0) * count
        if tag in seen or not 0 < size <= _LONGEST:
            continue
        where = at if size <= 4 else int(struct.unpack_from(order + "I", data, at)[0])  # noqa: PLR2004 - fits in place
        if where + size <= len(data):
            seen.add(tag)
            yield tag, Entry(kind, count, data[where : where + size])


def _pointer(data: bytes, order: Order, start: int, wanted: int) -> int:
    """Return where a directory is that the one at `start` points to; 0 for nowhere."""
    found = (at for tag, _, _, at in _slots(data, order, start) if tag == wanted)
    at = next(found, None)
    return 0 if at is None else int(struct.unpack_from(order + "I", data, at)[0])


def _length(directory: Directory) -> int:
    """Return the bytes that a directory takes with the values that do not fit in place, each from an even offset on."""
    large = (len(entry.value) for entry in directory.values() if len(entry.value) > 4)  # noqa: PLR2004 - in place
    return 2 + _ENTRY * len(directory) + 4 + sum(size + size % 2 for size in large)


def _directory(directory: Directory, order: Order, start: int) -> bytes:
    """Return a directory that begins at `start`, and its values."""
    at = start + 2 + _ENTRY * len(directory) + 4
    table, values = bytearray(struct.pack(order + "H", len(directory))), bytearray()
    for tag, (kind, count, value) in sorted(directory.items()):
        table += struct.pack(order + "HHI", tag, kind, count)
        if len(value) <= 4:  # noqa: PLR2004 - fits in place
            table += value.ljust(4, b"\0")
        else:
            table += struct.pack(order + "I", at + len(values))
            values += value + bytes(len(value) % 2)
    return bytes(table) + bytes(4) + bytes(values)
