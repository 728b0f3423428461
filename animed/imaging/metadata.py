"""The EXIF data of a photo that its picture keeps: what describes the photo, not what describes the file's bytes.

Malformed EXIF is common, and never a reason to fail a photo: what cannot be carried over is left out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from PIL import ExifTags, Image

if TYPE_CHECKING:
    from collections.abc import Callable

Tags = dict[int, Any]

SOFTWARE: Final = "animed"
MAX_BYTES: Final = 65_533  # of a JPEG segment, without its marker and length

_ORIENTATION: Final = 0x0112
_SOFTWARE: Final = 0x0131
_EXIF: Final = 0x8769
_GPS: Final = 0x8825
_MAKER_NOTE: Final = 0x927C
_INTEROP: Final = 0xA005  # Names the colour space too ("R03" is Adobe RGB), and the picture is sRGB.
_COLOUR_SPACE: Final = 0xA001
_WIDTH: Final = 0xA002
_HEIGHT: Final = 0xA003
_SRGB: Final = 1
_UPRIGHT: Final = 1

# The main directory of a TIFF also holds where its strips are and how they are packed, so the list says what is kept:
# title, camera, resolution, date, author, copyright, host, rating, and the titles that Windows writes.
_KEPT: Final = (
    *(0x010E, 0x010F, 0x0110, 0x011A, 0x011B, 0x0128, 0x0132, 0x013B, 0x013C, 0x8298, 0x4746, 0x4749),
    *(0x9C9B, 0x9C9C, 0x9C9D, 0x9C9E, 0x9C9F),
)
# What reading or writing malformed EXIF makes the library raise.
_MALFORMED: Final = (
    *(SyntaxError, OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, struct.error),
    *(OverflowError, ZeroDivisionError, AssertionError, EOFError, RuntimeError),
)


@dataclass(frozen=True, slots=True)
class Notes:
    """What a photo says of itself."""

    exif: bytes = b""  # for `prepare`
    xmp: bytes = b""
    iptc: bytes = b""
    taken: str = ""  # when, by the camera's own clock: 2024-05-17T18:03:59; empty where that is unknown


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation of a loaded picture, 1 … 8; 1 where there is none or it makes no sense."""
    try:
        found = image.getexif().get(_ORIENTATION, _UPRIGHT)
    except _MALFORMED:
        return _UPRIGHT
    return found if isinstance(found, int) and 1 <= found <= 8 else _UPRIGHT  # noqa: PLR2004 - the eight there are


def extract(image: Image.Image) -> Notes:
    """Return what a loaded picture says of itself; what is malformed is left out."""
    return Notes(exif=_exif(image))


def prepare(exif: bytes, *, gps: bool, width: int, height: int) -> bytes:
    """Return what the picture of this size carries: upright, sRGB, without thumbnail, without GPS unless `gps`.

    `exif` is that of `Notes`. Empty input gives a record of the program alone.
    """
    kept = Image.Exif()
    kept.load(exif)
    parts = {tag: dict(kept.get_ifd(tag)) for tag in (_EXIF, _GPS) if tag in kept and (gps or tag != _GPS)}
    detail = parts.setdefault(_EXIF, {})
    detail.pop(_INTEROP, None)
    detail |= {_COLOUR_SPACE: _SRGB, _WIDTH: width, _HEIGHT: height}
    main = {tag: kept[tag] for tag in _KEPT if tag in kept}
    return _first_that_fits(main | {_ORIENTATION: _UPRIGHT, _SOFTWARE: SOFTWARE}, parts)


def _exif(image: Image.Image) -> bytes:
    """Return the descriptive EXIF as EXIF bytes; empty where there is none, or it is malformed."""
    try:
        exif = image.getexif()
        main = {tag: exif[tag] for tag in _KEPT if tag in exif}
        parts = {tag: dict(exif.get_ifd(tag)) for tag in (_EXIF, _GPS) if tag in exif}
    except _MALFORMED:
        return b""
    if not main and not any(parts.values()):
        return b""
    return _first_that_fits(main, parts)


def _first_that_fits(main: Tags, parts: dict[int, Tags]) -> bytes:
    """Write as much as can be written into one JPEG segment: all, all but the maker's note, less and less."""
    slim = {tag: {key: value for key, value in part.items() if key != _MAKER_NOTE} for tag, part in parts.items()}
    brief = {tag: value for tag, value in main.items() if tag in {_ORIENTATION, _SOFTWARE}}
    attempts: tuple[Callable[[], bytes], ...] = (
        lambda: _written(main, parts),
        lambda: _written(main, slim),
        lambda: _written(main, {}),
        lambda: _written(brief, {}),
    )
    for attempt in attempts:
        try:
            written = attempt()
        except _MALFORMED:
            continue
        if len(written) <= MAX_BYTES:
            return written
    return b""


def _written(main: Tags, parts: dict[int, Tags]) -> bytes:
    """Serialise directories to EXIF bytes, and prove that they can be read again."""
    exif = Image.Exif()
    for tag, value in main.items():
        exif[tag] = value
    for tag, part in parts.items():
        if part:
            exif[tag] = part
    data = exif.tobytes()
    again = Image.Exif()
    again.load(data)
    for tag in ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo:
        again.get_ifd(tag)
    return data
