"""Limits that hold before anything is decoded: what a file says of itself is enough to refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed.errors import PhotoError
from animed.imaging.ends import skip_blocks
from animed.imaging.sniff import number
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from animed.imaging.sniff import Kind

MAX_SIDE: Final = 100_000  # pixels; a line of a gigapixel is no photo, and each side costs its own tables
PACKED: Final = 16 << 20  # bytes that one profile or text of a PNG may unpack to
EXIF: Final = 16 << 20  # bytes; in a JPEG all its segments together, which are joined one by one
METADATA: Final = 64 << 20  # bytes of a file that are no picture
COMMENTS: Final = 1 << 20  # bytes of a GIF's comments, which are joined in pieces of 255 bytes
_TEXTS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"iCCP"})
_NOTES: Final = frozenset({b"EXIF", b"XMP ", b"ICCP"})


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
    count = _COUNTS.get(kind)
    if count is None:
        return
    held, limit = count(data)
    if held > limit:
        raise PhotoError(Reason.TOO_LARGE, f"{held} bytes of metadata in a {kind} file, limit {limit}")


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
    for at in _gif_blocks(data):
        if data[at] == 0x2C:  # noqa: PLR2004 - a picture
            left, top, width, height = (number("<H", data, at + place) for place in (1, 3, 5, 7))
            return max(left + width, number("<H", data, 6)), max(top + height, number("<H", data, 8))
    return number("<H", data, 6), number("<H", data, 8)


def _gif_metadata(data: bytes) -> tuple[int, int]:
    """Count what stands before the second picture of a GIF: as far as anyone reads it."""
    held = pictures = 0
    for at in _gif_blocks(data):
        pictures += data[at] == 0x2C  # noqa: PLR2004 - a picture
        if pictures > 1:
            break
        if data[at] == 0x21:  # noqa: PLR2004 - an extension
            held += skip_blocks(data, at + 2) - at
    return held, COMMENTS


def _gif_blocks(data: bytes) -> Iterator[int]:
    """Yield where the blocks of a GIF begin."""
    flags = data[10:11]
    at = 13 + (3 << ((flags[0] & 7) + 1) if flags and flags[0] & 0x80 else 0)
    while at < len(data) and data[at] in {0, 0x21, 0x2C}:
        yield at
        if data[at] == 0:
            at += 1
        elif data[at] == 0x21:  # noqa: PLR2004 - an extension
            at = skip_blocks(data, at + 2)
        else:
            local = number("B", data, at + 9)
            at = skip_blocks(data, at + 11 + (3 << ((local & 7) + 1) if local & 0x80 else 0))


def _jpeg_metadata(data: bytes) -> tuple[int, int]:
    """Count the EXIF segments that stand before a JPEG's picture."""
    at, held = 2, 0
    while data[at : at + 1] == b"\xff" and data[at + 1 : at + 2] not in {b"\xda", b""}:
        length = number(">H", data, at + 2)
        if data[at + 1] == 0xE1 and data[at + 4 : at + 10] == b"Exif\x00\x00":  # noqa: PLR2004 - APP1
            held += length
        at += 1 if data[at + 1] == 0xFF else 2 + length  # noqa: PLR2004 - a marker may be preceded by fill bytes
    return held, EXIF


def _png_metadata(data: bytes) -> tuple[int, int]:
    at, held = 8, 0
    while at + 8 <= len(data):
        length = number(">I", data, at)
        if data[at + 4 : at + 8] in _TEXTS:
            held += length
        at += 12 + length
    return held, METADATA


def _webp_metadata(data: bytes) -> tuple[int, int]:
    at, held = 12, 0
    while at + 8 <= len(data):
        length = number("<I", data, at + 4)
        if data[at : at + 4] in _NOTES:
            held += length
        at += 8 + length + length % 2
    return held, METADATA


def _megapixels(pixels: int) -> str:
    """Write a number of pixels for people."""
    millions = pixels / 1e6
    return f"{millions:.0f} MP" if millions >= 1000 else f"{millions:.4g} MP"  # noqa: PLR2004 - no powers of ten


_COUNTS: Final[Mapping[Kind, Callable[[bytes], tuple[int, int]]]] = {
    "jpeg": _jpeg_metadata,
    "png": _png_metadata,
    "webp": _webp_metadata,
    "gif": _gif_metadata,
}
