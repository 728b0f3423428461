"""Limits that hold before anything is decoded: what a file says of itself is enough to refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed.errors import PhotoError
from animed.imaging import blocks, extents, ifd
from animed.imaging.blocks import number
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from animed.imaging.ifd import Slot
    from animed.imaging.sniff import Kind

    Held = tuple[str, int, int]  # what a file holds besides its picture, how much of it, and how much may be

MAX_SIDE: Final = 100_000  # pixels; a line of a gigapixel is no photo, and each side costs its own tables
PACKED: Final = 16 << 20  # bytes that one profile or text of a PNG may unpack to
EXIF: Final = 16 << 20  # bytes; in a JPEG all its segments together, which are joined one by one
METADATA: Final = 64 << 20  # bytes of a file that are no picture
COMMENTS: Final = 1 << 20  # bytes of a GIF's comments, which are joined in pieces of 255 bytes, and between its blocks
GAPS: Final = 1 << 20  # bytes between the segments of a JPEG, over which its library goes one by one
SCANS: Final = 256  # of a progressive JPEG, each of which goes over the whole picture; programs write ten or so
_SCAN, _END = b"\xff\xda", b"\xff\xd9"  # marks that cannot stand in a JPEG's packed data
_TEXTS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"iCCP"})
_NOTES: Final = frozenset({b"EXIF", b"XMP ", b"ICCP"})
_TRANSFER: Final = 301  # TransferFunction: large, and never looked at
# The bits of NewSubfileType and SubfileType that make a page a smaller one, or a mask.
_PARTS: Final[Mapping[int, int]] = {254: 1 | 4, 255: 2}


def size(width: int, height: int, max_pixels: int) -> None:
    """Refuse a picture that would take too much memory. Raise PhotoError("too_large"), with what would do."""
    if width * height > max_pixels:
        detail = f"{width}\u00d7{height} = {_megapixels(width * height)}, limit {_megapixels(max_pixels)} (max_pixels)"
        raise PhotoError(Reason.TOO_LARGE, detail)
    if max(width, height) > MAX_SIDE:
        raise PhotoError(Reason.TOO_LARGE, f"{width}\u00d7{height}, limit {MAX_SIDE} pixels a side")


def header(kind: Kind, data: bytes, max_pixels: int) -> None:
    """Refuse what a decoder would take memory or time for as soon as it opens a file.

    Raise PhotoError("too_large").
    """
    if kind == "webp":
        size(*_canvas(data), max_pixels)
    if kind == "gif":
        size(*_first_frame(data), max_pixels)
    for what, held, limit in _HELD[kind](data) if kind in _HELD else ():
        if held > limit:
            raise PhotoError(Reason.TOO_LARGE, f"{held} {what} in a {kind} file, limit {limit}")


def webp_pixels(data: bytes) -> int:
    """Return how many pixels the canvas of a WebP has, as far as the file says."""
    width, height = _canvas(data)
    return width * height


def exif(data: object) -> None:
    """Refuse an EXIF block that is no such thing any more by its size. Raise PhotoError("too_large")."""
    if isinstance(data, bytes) and len(data) > EXIF:
        raise PhotoError(Reason.TOO_LARGE, f"{len(data)} bytes of EXIF, limit {EXIF}")


def _canvas(data: bytes) -> tuple[int, int]:
    """Return the size of a WebP; 0 where the file does not say it, which the decoder will complain of."""
    form = data[12:16]
    if form == b"VP8X":
        return (number("<I", data, 24) & 0xFFFFFF) + 1, (number("<I", data, 26) >> 8) + 1
    if form == b"VP8L":
        bits = number("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return number("<H", data, 26) & 0x3FFF, number("<H", data, 28) & 0x3FFF


def _first_frame(data: bytes) -> tuple[int, int]:
    """Return the size that a GIF's canvas gets with its first frame, which may stand out."""
    width, height = number("<H", data, 6), number("<H", data, 8)
    for name, at, _ in blocks.gif_blocks(data):
        if name == blocks.PICTURE:
            left, top, wide, high = (number("<H", data, at + place) for place in (1, 3, 5, 7))
            return max(left + wide, width), max(top + high, height)
    return width, height


def _gif_held(data: bytes) -> Iterator[Held]:
    """Count what stands before the second picture of a GIF: as far as anyone reads it.

    Zeros up to the end are none of it: such a file has not been written to its end.
    """
    held = pictures = 0
    for block in blocks.gif_blocks(data):
        pictures += block.name == blocks.PICTURE
        if pictures > 1 or block.name == blocks.TRAILER:
            break
        if block.name != blocks.PICTURE and block.end < len(data):
            held += block.size
    yield "bytes beside the picture", held, COMMENTS


def _jpeg_held(data: bytes) -> Iterator[Held]:
    """Count the EXIF segments that stand before a JPEG's picture, what lies between segments, and its scans."""
    exif = gaps = scans = 0
    end = 2
    for block in blocks.jpeg_segments(data):
        gaps += block.start - end
        end = block.end
        if block.name == blocks.SCAN:
            scans = data.count(_SCAN, block.start, max(block.start, data.find(_END, block.start)))
            break
        if block.name == blocks.EXIF and data.startswith(b"Exif\x00\x00", block.start + 4):
            exif += block.size
    yield "bytes of EXIF", exif, EXIF
    yield "bytes between segments", gaps, GAPS
    yield "scans", scans, SCANS


def _png_held(data: bytes) -> Iterator[Held]:
    held = sum(block.size for block in blocks.png_chunks(data) if block.name in _TEXTS)
    yield "bytes of metadata", held, METADATA


def _webp_held(data: bytes) -> Iterator[Held]:
    held = sum(block.size for block in blocks.riff_chunks(data) if block.name in _NOTES)
    yield "bytes of metadata", held, METADATA


def _tiff_held(data: bytes) -> Iterator[Held]:
    """Count what directories list, up to the first page in full size: pages may share it, so small files list much."""
    form, start, values = ifd.layout(data), ifd.first(data), 0
    for _ in range(extents.DIRECTORIES):
        there = max(0, len(data) - start) // form.entry
        yield "entries of a directory", min(ifd.entries(data, start), there), ifd.MOST_ENTRIES
        listed = list(ifd.slots(data, start))
        values += sum(_numbers(data, slot) for slot in listed if slot.tag != _TRANSFER)
        yield "numbers in the directories", values, extents.VALUES
        start = number(form.offset, data, ifd.end(data, start))
        if not start or not any(_is_part(data, slot) for slot in listed):
            break


def _numbers(data: bytes, slot: Slot) -> int:
    """Return how many numbers of more than a byte an entry holds: each of them will be an object of its own."""
    width = ifd.WIDTHS.get(slot.kind, 1)
    return min(slot.values, max(0, len(data) - slot.where) // width) if width > 1 else 0


def _is_part(data: bytes, slot: Slot) -> bool:
    """Say whether an entry makes its page a thumbnail or a mask, so that the next page is looked at."""
    code = ifd.layout(data).order + ("H" if slot.kind == ifd.SHORT else "I")
    return bool(number(code, data, slot.where) & _PARTS.get(slot.tag, 0))


def _megapixels(pixels: int) -> str:
    """Write a number of pixels for people."""
    millions = pixels / 1e6
    return f"{millions:.0f} MP" if millions >= 1000 else f"{millions:.4g} MP"  # noqa: PLR2004 - no powers of ten


_HELD: Final[Mapping[Kind, Callable[[bytes], Iterator[Held]]]] = {
    "jpeg": _jpeg_held,
    "png": _png_held,
    "webp": _webp_held,
    "gif": _gif_held,
    "tiff": _tiff_held,
}
