"""Picture files that Pillow cannot write, and parts of files, made by the formats' own rules."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Tag = tuple[int, bytes, int]  # type, content, count

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6  # colour types of a PNG
# First row, first column, and steps down and to the right, of the seven passes of an interlaced PNG.
_PASSES: Final = (*((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)),)


def packed(rows: Array, depth: int) -> list[bytes]:
    """Return (H, N) values below 2**depth as rows of bytes, the first value in the highest bits."""
    if depth == 8:
        return [row.astype(np.uint8).tobytes() for row in rows]
    if depth == 16:
        return [row.astype(">u2").tobytes() for row in rows]
    bits = (rows[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1).astype(np.uint8)).tobytes() for row in bits]


def png(
    values: Array,
    kind: int,
    depth: int,
    *,
    early: Iterable[tuple[bytes, bytes]] = (),
    late: Iterable[tuple[bytes, bytes]] = (),
    interlaced: bool = False,
) -> bytes:
    """Return (H, W) or (H, W, C) values as a PNG; `early` are chunks before the pixels, `late` after them."""
    height, width = values.shape[:2]
    parts = [values[top::down, left::right] for top, left, down, right in _PASSES] if interlaced else [values]
    rows = [row for part in parts for row in packed(part.reshape(part.shape[0], -1), depth)]
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = [(b"IHDR", header), *early, (b"IDAT", body), *late, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in chunks)


def chunk(name: bytes, data: bytes = b"") -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def claimed_png(width: int, height: int, data: bytes = b"") -> bytes:
    """Return an RGB PNG that claims a size, whatever its compressed data are."""
    header = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND")


def box(name: bytes, content: bytes = b"") -> bytes:
    """Return one box of the ISO base media format."""
    return struct.pack(">I", 8 + len(content)) + name + content


def segment(marker: int, content: bytes) -> bytes:
    """Return one segment of a JPEG."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def palette(colours: Sequence[Sequence[int]]) -> tuple[bytes, bytes]:
    """Return a PNG's palette from RGB or RGBA colours."""
    return b"PLTE", bytes(value for colour in colours for value in colour[:3])


def short(*values: int) -> Tag:
    """Return the content of a little-endian TIFF tag: 16-bit numbers."""
    return 3, struct.pack(f"<{len(values)}H", *values), len(values)


def long(*values: int) -> Tag:
    """Return the content of a little-endian TIFF tag: 32-bit numbers."""
    return 4, struct.pack(f"<{len(values)}I", *values), len(values)


def rationals(*values: float, signed: bool = False) -> Tag:
    """Return the content of a little-endian TIFF tag: fractions."""
    code, kind = ("i", 10) if signed else ("I", 5)
    return kind, b"".join(struct.pack(f"<2{code}", round(value * 10000), 10000) for value in values), len(values)


def tiff(*pages: tuple[Tiff, Array]) -> bytes:
    """Return a TIFF of pages, each with its (H, W) or (H, W, C) values; order and width of numbers are the first's."""
    first = pages[0][0]
    out = bytearray(first.head())
    link = len(out) - first.room
    for page, values in pages:
        part, at, following = page.page(values, len(out))
        out += part
        struct.pack_into(f"{first.order}{'Q' if first.big else 'I'}", out, link, at)
        link = following
    return bytes(out)


@dataclass(frozen=True, slots=True)
class Tiff:
    """How a page of a TIFF is written."""

    photometric: int  # 0 white is 0, 1 black is 0, 2 RGB, 3 palette, 5 CMYK, 8 Lab
    bits: int = 8
    order: Literal["<", ">"] = "<"
    extra: int | None = None  # 0 unknown, 1 alpha that colours were multiplied by, 2 alpha
    planar: bool = False
    floats: bool = False
    signed: bool = False
    rows: int = 0  # in a strip; 0 for all
    deflate: bool = False
    predictor: bool = False  # differences along the rows, 8 bits
    big: bool = False
    coded: bytes | None = None  # the one strip, where it is packed in another way than these
    tags: dict[int, Tag] = field(default_factory=dict)  # more, or others than follow from the values

    @property
    def room(self) -> int:
        """Return the bytes of an offset."""
        return 8 if self.big else 4

    def head(self) -> bytes:
        """Return what a file begins with, up to the offset of its first directory, which is 0."""
        mark = b"II" if self.order == "<" else b"MM"
        return mark + (self._pack("HHHQ", 43, 8, 0, 0) if self.big else self._pack("HI", 42, 0))

    def write(self, values: Array) -> bytes:
        """Return (H, W) or (H, W, C) values as a TIFF of one page."""
        return tiff((self, values))

    def page(self, values: Array, start: int) -> tuple[bytes, int, int]:
        """Return the strips and the directory of a page that begins at `start`.

        And where in the file its directory is, and where that says where the next one is.
        """
        cube = values if values.ndim == 3 else values[..., None]
        planes = [cube[..., [index]] for index in range(cube.shape[2])] if self.planar else [cube]
        step = self.rows or cube.shape[0]
        strips = [self._strip(plane[at : at + step]) for plane in planes for at in range(0, cube.shape[0], step)]
        if self.coded is not None:
            strips = [self.coded]
        offsets = [start + sum(len(other) for other in strips[:index]) for index in range(len(strips))]
        body = b"".join(strips)
        body += bytes(-len(body) % 16)
        tags = self._tags(cube, step) | {
            273: (4, self._pack("I", *offsets), len(strips)),
            279: (4, self._pack("I", *map(len, strips)), len(strips)),
        }
        at = start + len(body)
        directory, link = self._directory(tags, at)
        return body + directory, at, link

    def _strip(self, part: Array) -> bytes:
        """Return some rows of values as bytes."""
        if self.predictor:
            shifted = np.pad(part, ((0, 0), (1, 0), (0, 0)))[:, :-1]
            part = (part - shifted) & 255
        flat = part.reshape(part.shape[0], -1)
        if self.bits % 8:
            data = b"".join(packed(flat, self.bits))
        else:
            letter = "f" if self.floats else "i" if self.signed else "u"
            data = flat.astype(f"{self.order}{letter}{self.bits // 8}").tobytes()
        return zlib.compress(data) if self.deflate else data

    def _tags(self, cube: Array, step: int) -> dict[int, Tag]:
        """Return the directory but for where the strips are."""
        height, width, count = cube.shape
        short = {262: self.photometric, 277: count, 284: 2 if self.planar else 1, 259: 8 if self.deflate else 1}
        if self.predictor:
            short[317] = 2
        found = {tag: (3, self._pack("H", value), 1) for tag, value in short.items()}
        found |= {tag: (4, self._pack("I", value), 1) for tag, value in {256: width, 257: height, 278: step}.items()}
        found[258] = (3, self._pack("H", *[self.bits] * count), count)
        if self.floats or self.signed:
            found[339] = (3, self._pack("H", *[3 if self.floats else 2] * count), count)
        if self.extra is not None:
            found[338] = (3, self._pack("H", self.extra), 1)
        return found | self.tags

    def _directory(self, tags: dict[int, Tag], at: int) -> tuple[bytes, int]:
        """Return the directory that lies at a place of the file, and where it links to the next.

        What does not fit into its entries stands behind it.
        """
        word, entry, room = "Q" if self.big else "I", 20 if self.big else 12, self.room
        head = self._pack("Q" if self.big else "H", len(tags))
        after = at + len(head) + entry * len(tags) + room
        entries, outside = b"", b""
        for tag, (kind, content, count) in sorted(tags.items()):
            entries += self._pack("HH" + word, tag, kind, count)
            if len(content) <= room:
                entries += content.ljust(room, b"\0")
            else:
                entries += self._pack(word, after + len(outside))
                outside += content + bytes(len(content) % 2)
        return head + entries + bytes(room) + outside, after - room

    def _pack(self, layout: str, *values: int) -> bytes:
        """Pack numbers in the file's order; one letter stands for all of them."""
        return struct.pack(self.order + (layout if len(layout) > 1 else layout * len(values)), *values)


def bmp(
    data: bytes,
    *,
    size: tuple[int, int],
    bits: int,
    compression: int = 0,
    colours: Sequence[Sequence[int]] = (),
    masks: Sequence[int] = (),
) -> bytes:
    """Return a BMP of (width, height) from its pixel data, bottom row first (or top row first: a negative height)."""
    table = b"".join(bytes((blue, green, red, 0)) for red, green, blue, *_ in colours)
    header_size = 108 if len(masks) == 4 else 40
    fields = struct.pack(
        "<IiiHHIIiiII", header_size, *size, 1, bits, compression, len(data), 2835, 2835, len(colours), 0
    )
    mask = b"".join(struct.pack("<I", value) for value in masks)
    if header_size == 108:
        mask = (mask + b"BGRs").ljust(68, b"\0")
    start = 14 + len(fields) + len(mask) + len(table)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + fields + mask + table + data


def bmp_rows(rows: Array, depth: int) -> bytes:
    """Return (H, N) values as a BMP has them: the last row first, each padded to four bytes."""
    if depth == 16:
        lines = [row.astype("<u2").tobytes() for row in rows]
    elif depth == 32:
        lines = [row.astype("<u4").tobytes() for row in rows]
    else:
        lines = packed(rows, depth)
    return b"".join(line + bytes(-len(line) % 4) for line in reversed(lines))


def run_lengths(rows: Array) -> bytes:
    """Return (H, W) palette indices in the run lengths of a BMP with 8 bits."""
    coded = b""
    for row in rows[::-1]:
        starts = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        for start, end in pairwise(starts):
            coded += bytes((end - start, row[start]))
        coded += b"\0\0"
    return coded + b"\0\1"


def nibble_runs(rows: Array) -> bytes:
    """Return (H, W) palette indices in the run lengths of a BMP with 4 bits."""
    coded = b""
    for row in rows[::-1]:
        starts = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        for start, end in pairwise(starts):
            coded += bytes((end - start, row[start] * 17))
        coded += b"\0\0"
    return coded + b"\0\1"
