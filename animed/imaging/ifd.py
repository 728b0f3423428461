"""Directories of tagged entries, as EXIF and TIFF have them: raw values in, raw values out, nothing interpreted.

A value stays the bytes that it was, in the byte order that it had, so that what is odd in a photo is neither lost nor
made odder. What cannot be read is left out, entry by entry: a broken entry costs no other.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from animed.imaging.blocks import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Order = Literal["<", ">"]

ASCII: Final = 2  # kinds of values
SHORT: Final = 3
LONG: Final = 4
UNDEFINED: Final = 7
IFD: Final = 13
LONG8: Final = 16
IFD8: Final = 18
DETAIL: Final = 0x8769  # where the main directory says that the EXIF directory is
PLACE: Final = 0x8825  # the same, for GPS

_POINTERS: Final = frozenset({DETAIL, PLACE})

HEADERS: Final = (b"II*\0", b"MM\0*")
_BIG: Final = frozenset({b"+\0", b"\0+"})  # what BigTIFF has instead of the star
_HEADER: Final = 8  # bytes before the first directory

_MARKER: Final = b"Exif\0\0"
# Bytes of one value, by kind; 129 is EXIF's own UTF-8.
WIDTHS: Final[Mapping[int, int]] = {
    **dict.fromkeys((1, ASCII, 6, UNDEFINED, 129), 1),
    **dict.fromkeys((SHORT, 8), 2),
    **dict.fromkeys((LONG, 9, 11, IFD), 4),
    **dict.fromkeys((5, 10, 12, LONG8, 17, IFD8), 8),
}
# What points at a directory is not carried over, for the directory does not move along; the others are BigTIFF's alone.
_NOT_CARRIED: Final = frozenset({IFD, LONG8, 17, IFD8})
MOST_ENTRIES: Final = 512  # of one directory; cameras write some sixty
_LONGEST: Final = 65_000  # bytes of a value; more cannot be written into a JPEG
_ENTRY: Final = 12  # bytes of an entry that is written


class Entry(NamedTuple):
    """One value or several of one kind."""

    kind: int
    number: int  # of values
    value: bytes  # in the byte order of the tree


Directory = dict[int, Entry]


class Layout(NamedTuple):
    """In what widths a file counts: a TIFF and EXIF in one, BigTIFF in another."""

    order: Order
    head: str  # of the number of entries, as `struct` calls it
    offset: str  # of offsets, and of the number of values
    place: int  # bytes of a value that stands in its entry

    @property
    def entry(self) -> int:
        """Return the bytes of an entry: tag, kind, number of values, and the value or where it is."""
        return 4 + 2 * self.place


class Slot(NamedTuple):
    """One entry of a directory, whose value may lie beyond the data."""

    tag: int
    kind: int
    values: int  # how many
    where: int  # offset of the first one
    apart: bool  # it does not stand in the entry

    @property
    def end(self) -> int:
        """Return the offset behind the last value."""
        return self.where + WIDTHS.get(self.kind, 0) * self.values


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
    if not data.startswith(HEADERS) or len(data) < _HEADER:
        return None
    start, order = first(data), layout(data).order
    at = {slot.tag: number(order + "I", data, slot.where) for slot in slots(data, start) if slot.tag in _POINTERS}
    below = (dict(_entries(data, at[tag])) if tag in at else {} for tag in (DETAIL, PLACE))
    return Tree(order, dict(_entries(data, start)), *below)


def layout(data: bytes) -> Layout:
    """Return how a file counts, by its first bytes."""
    order: Order = "<" if data[:2] == b"II" else ">"
    head, offset, place = ("Q", "Q", 8) if data[2:4] in _BIG else ("H", "I", 4)
    return Layout(order, order + head, order + offset, place)


def first(data: bytes) -> int:
    """Return the offset of a file's first directory; 0 where the data end before it says so."""
    form = layout(data)
    return number(form.offset, data, form.place)


def entries(data: bytes, start: int) -> int:
    """Return how many entries the directory at `start` has by its own word."""
    return number(layout(data).head, data, start)


def end(data: bytes, start: int) -> int:
    """Return the offset behind the entries of the directory at `start`, where the offset of the next one stands."""
    form = layout(data)
    return start + struct.calcsize(form.head) + form.entry * entries(data, start)


def slots(data: bytes, start: int) -> Iterator[Slot]:
    """Yield the entries of the directory at `start` that lie within the data, at most 512; of equal tags the first."""
    form, met = layout(data), set[int]()
    if start < _HEADER:
        return
    here = range(start + struct.calcsize(form.head), min(end(data, start), len(data)) - form.entry + 1, form.entry)
    for at in islice(here, MOST_ENTRIES):
        tag, kind, count = struct.unpack_from(f"{form.order}HH{form.offset[1]}", data, at)
        if tag in met:
            continue
        met.add(tag)
        place = at + 4 + form.place
        apart = WIDTHS.get(kind, 0) * count > form.place
        yield Slot(tag, kind, count, number(form.offset, data, place) if apart else place, apart)


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


def _entries(data: bytes, start: int) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of a directory whose values lie within the data, without those that point to others."""
    for slot in slots(data, start):
        size = slot.end - slot.where
        carried = slot.tag not in _POINTERS and slot.kind not in _NOT_CARRIED
        if carried and 0 < size <= _LONGEST and slot.end <= len(data):
            yield slot.tag, Entry(slot.kind, slot.values, data[slot.where : slot.end])


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
