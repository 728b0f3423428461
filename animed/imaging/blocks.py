"""The blocks that files are made of: PNG's and RIFF's chunks, ISO's boxes, GIF's blocks, JPEG's segments.

A walk yields (name, start, size) of each whole block, with its head and its end, by the file's own word: what it says
may reach beyond its last byte. It judges nothing. Every step goes on in the data, and no walk takes more of them than
photos have blocks: a file of millions of empty ones is refused, with PhotoError("too_large"). Zeros are no blocks of a
PNG or WebP: their walk ends where a file was not written yet.
"""

from __future__ import annotations

import re
import struct
from functools import wraps
from typing import TYPE_CHECKING, Final, NamedTuple

from animed.errors import PhotoError
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST: Final = 1 << 17  # blocks of one file that are walked over; a PNG of 1 GB, in pieces of 8 KiB, has as many
MOST_PIECES: Final = 1 << 22  # of at most 255 bytes, of which a GIF's blocks are made; one of 1 GB has as many

PICTURE: Final = b","  # GIF's blocks
EXTENSION: Final = b"!"
TRAILER: Final = b";"
PADDING: Final = b"\0"  # zeros, which some programs leave between blocks
JUNK: Final = b""  # what is none of them

SCAN: Final = b"\xda"  # JPEG's segments
END: Final = b"\xd9"
EXIF: Final = b"\xe1"  # and XMP

_UNWRITTEN: Final = bytes(8)  # in the place of a chunk's head, which is as long
_BOX: Final = 8  # bytes of a box's head, which counts as part of it
_BY_INTRODUCER: Final = re.compile(rb"(?P<padding>\0+)|(?P<junk>[^\0!,;]+)")
# Neither stuffing, fill bytes nor the marks that stand inside of a scan and have no length: RST and TEM.
_MARKER: Final = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
_BARE: Final = frozenset({b"\xd8", END})  # marks without a length that are kept


class Block(NamedTuple):
    """One block of a file."""

    name: bytes
    start: int  # offset of its first byte
    size: int  # bytes, with head and end

    @property
    def end(self) -> int:
        """Return the offset behind it, which may lie beyond the data."""
        return self.start + self.size


def number(layout: str, data: bytes, at: int) -> int:
    """Read a number; 0 where the data end before it, so that a walk through broken data just comes to its end."""
    size = struct.calcsize(layout)
    if at < 0 or at + size > len(data):
        return 0
    return int(struct.unpack_from(layout, data, at)[0])


def too_many(what: str) -> PhotoError:
    """Return the error for a file that would take long to walk through."""
    return PhotoError(Reason.TOO_LARGE, f"more than {what}: no picture has so many")


def _bounded(walk: Callable[[bytes], Iterator[Block]]) -> Callable[[bytes], Iterator[Block]]:
    """Have a walk end with PhotoError("too_large") after MOST blocks."""

    @wraps(walk)
    def bounded(data: bytes) -> Iterator[Block]:
        for count, block in enumerate(walk(data)):
            if count >= MOST:
                raise too_many(f"{MOST} blocks")
            yield block

    return bounded


@_bounded
def png_chunks(data: bytes) -> Iterator[Block]:
    """Yield the chunks of a PNG; what a chunk holds begins 8 bytes behind its start."""
    at = 8
    while at + 8 <= len(data) and data[at : at + 8] != _UNWRITTEN:
        block = Block(data[at + 4 : at + 8], at, 12 + number(">I", data, at))
        yield block
        at = block.end


@_bounded
def riff_chunks(data: bytes) -> Iterator[Block]:
    """Yield the chunks of a WebP, each without the byte that fills it up to an even size."""
    at = 12
    while at + 8 <= len(data) and data[at : at + 8] != _UNWRITTEN:
        block = Block(data[at : at + 4], at, 8 + number("<I", data, at + 4))
        yield block
        at = block.end + block.size % 2


@_bounded
def boxes(data: bytes) -> Iterator[Block]:
    """Yield the boxes at the top of a HEIF, AVIF or CR3."""
    at = 0
    while at + _BOX <= len(data):
        size = number(">I", data, at)
        if size == 1:
            size = number(">Q", data, at + _BOX)
        # 0 means "to the end of the file", and less than a head is nonsense.
        block = Block(data[at + 4 : at + 8], at, size if size >= _BOX else len(data) - at)
        yield block
        at = block.end


@_bounded
def jpeg_segments(data: bytes) -> Iterator[Block]:
    """Yield the segments of a JPEG by the second byte of their marks; what they hold begins 4 bytes behind their start.

    Scans count as their heads alone: what follows these is passed over, like anything else that is no segment.
    """
    at = 2
    while found := _MARKER.search(data, at):
        bare = found[1] in _BARE
        block = Block(found[1], found.start(), 2 if bare else 2 + max(2, number(">H", data, found.end())))
        yield block
        at = block.end


@_bounded
def gif_blocks(data: bytes) -> Iterator[Block]:
    """Yield the blocks of a GIF by their first byte, its trailer, and runs of what is none, as PADDING or JUNK."""
    at, left = 13 + gif_palette(data, 10), MOST_PIECES
    while at < len(data):
        name = data[at : at + 1]
        if found := _BY_INTRODUCER.match(data, at):
            name, end = PADDING if found["padding"] else JUNK, found.end()
        elif name == TRAILER:
            end = at + 1
        else:
            # An extension has its label, a picture its place, its palette, and the first size of a code.
            head = 2 if name == EXTENSION else 11 + gif_palette(data, at + 9)
            end, left = _behind_pieces(data, at + head, left)
        yield Block(name, at, end - at)
        at = end


def gif_palette(data: bytes, at: int) -> int:
    """Return the bytes of the palette that a GIF's flags at an offset announce."""
    flags = number("B", data, at)
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _behind_pieces(data: bytes, at: int, left: int) -> tuple[int, int]:
    """Return the offset behind a chain of pieces, beyond the data where it is cut, and how many more may follow."""
    while at < len(data) and (size := data[at]):
        at += 1 + size
        left -= 1
        if left < 0:
            raise too_many(f"{MOST_PIECES} pieces in the blocks of a GIF")
    return at + 1, left
