"""What the numbers of a picture mean by what its file says: its profile, or what says the same in other words.

Those words are PNG's chunks, the code points of HEIF, AVIF and PNG, and the mark by which cameras name Adobe RGB.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from animed.imaging import blocks, icc, ifd
from animed.imaging.faults import BROKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PIL import Image

    from animed.imaging.icc import Primaries

_D65: Final = (0.3127, 0.3290)
# By the code points of ITU-T H.273; 1 is sRGB's.
_PRIMARIES: Final[Mapping[int, Primaries]] = {
    4: (0.67, 0.33, 0.21, 0.71, 0.14, 0.08, 0.310, 0.316),
    5: (0.64, 0.33, 0.29, 0.60, 0.15, 0.06, *_D65),
    6: (0.630, 0.340, 0.310, 0.595, 0.155, 0.070, *_D65),
    7: (0.630, 0.340, 0.310, 0.595, 0.155, 0.070, *_D65),
    9: icc.BT2020_PRIMARIES,
    11: (0.680, 0.320, 0.265, 0.690, 0.150, 0.060, 0.314, 0.351),
    12: icc.P3_PRIMARIES,
    22: (0.630, 0.340, 0.295, 0.605, 0.155, 0.077, *_D65),
}
_GAMMAS: Final[Mapping[int, float]] = {4: 2.2, 5: 2.8, 8: 1.0}  # other curves are taken for sRGB's, as browsers do
_PQ: Final = 16
_PQ_WHITE: Final = 203.0  # candela per square metre: where video puts the white of paper
_PQ_BRIGHTEST: Final = 1000.0 / _PQ_WHITE  # what is kept apart from white
_POINTS: Final = 1024

_USUAL_GAMMA: Final = (0.44, 0.47)  # 1 / 2.2 in a PNG means sRGB
_GAMMA_RANGE: Final = (0.1, 3.0)  # beyond, a gamma is an error
_CLOSE: Final = 0.005  # between chromaticities that mean the same

_COLOUR_SPACE: Final = 0xA001
_INTEROP: Final = 0xA005
_INDEX: Final = 1
_ADOBE: Final = 2
_SRGB: Final = 1

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_HEAD: Final = 2**16  # bytes of a HEIF or AVIF file in which the properties of its pictures stand
_BOX: Final = b"colrnclx"
_CODE_POINTS: Final = 12 + 4  # bytes of the chunk that holds four of them


class Said(NamedTuple):
    """What a file says of its colours."""

    profile: bytes = b""  # an ICC profile; empty for plain sRGB
    note: str = ""  # what it says in other words that makes no sense; empty for nothing


def profile_of(image: Image.Image, data: bytes, mode: str) -> Said:
    """Return the ICC profile of a loaded picture, or one that says what its file says.

    `data` is the file, `mode` what its numbers are: L, RGB or CMYK. A PNG's code points come before its profile, the
    profile before all else.
    """
    if (points := _png_points(data)) is not None:
        return Said(_by_points(*points, mode))
    embedded = image.info.get("icc_profile")
    if embedded:
        return Said(bytes(embedded))
    return Said() if mode == "CMYK" or "srgb" in image.info else _in_words(image, data, mode)


def _in_words(image: Image.Image, data: bytes, mode: str) -> Said:
    """Return the profile of a picture that carries none, by what else its file says."""
    if "gamma" in image.info or "chromaticity" in image.info:
        return _by_png(image.info.get("gamma"), image.info.get("chromaticity"), mode)
    if (points := _heif_points(image, data)) is not None:
        return Said(_by_points(*points, mode))
    if mode == "RGB" and _is_adobe(image):
        return Said(icc.rgb(icc.ADOBE_PRIMARIES, icc.power(563 / 256), "Adobe RGB"))
    return Said()


def _png_points(data: bytes) -> tuple[int, int] | None:
    """Return the primaries and the curve that a PNG names by code points, None where it does not."""
    if not data.startswith(_PNG):
        return None
    for name, at, size in blocks.png_chunks(data):
        if name == b"cICP" and size == _CODE_POINTS and at + size <= len(data):
            return data[at + 8], data[at + 9]
        if name in {b"IDAT", b"IEND"}:
            break
    return None


def _heif_points(image: Image.Image, data: bytes) -> tuple[int, int] | None:
    """Return the primaries and the curve that a HEIF or AVIF names, None where it does not."""
    named = image.info.get("nclx_profile")
    if isinstance(named, dict):
        return int(named.get("color_primaries", 0)), int(named.get("transfer_characteristics", 0))
    if data[4:8] != b"ftyp":
        return None
    # The first such box is the main picture's in all that encoders write; boxes of gain maps and thumbnails follow.
    at = data.find(_BOX, 0, _HEAD)
    if at < 0 or at + 12 > len(data):
        return None
    primaries, curve = struct.unpack_from(">HH", data, at + len(_BOX))
    return primaries, curve


def _by_points(primaries: int, curve: int, mode: str) -> bytes:
    """Return the profile of two code points; empty where they mean sRGB, or nothing that is known."""
    corners = _PRIMARIES.get(primaries, icc.SRGB_PRIMARIES)
    if curve not in _GAMMAS and curve != _PQ and (mode == "L" or corners is icc.SRGB_PRIMARIES):
        return b""
    shape = icc.table(_pq()) if curve == _PQ else icc.power(_GAMMAS[curve]) if curve in _GAMMAS else icc.srgb_curve()
    return _made(corners, shape, mode)


def _pq() -> list[float]:
    """Return the curve of PQ as light on paper: what is brighter than white is drawn into the upper half."""
    light = []
    for step in range(_POINTS):
        root = (step / (_POINTS - 1)) ** (32 / 2523)
        nits = 10_000 * (max(root - 107 / 128, 0) / (2413 / 128 - 2392 / 128 * root)) ** (16384 / 2610)
        level = nits / _PQ_WHITE
        light.append(min(1.0, level * (1 + level / _PQ_BRIGHTEST**2) / (1 + level)))
    return light


def _by_png(gamma: object, chromaticity: object, mode: str) -> Said:
    """Return the profile of a PNG's gamma and primaries, leaving aside what makes no sense."""
    known = gamma if isinstance(gamma, float) and _GAMMA_RANGE[0] <= gamma <= _GAMMA_RANGE[1] else None
    note = f"the gamma {gamma} makes no sense" if gamma is not None and known is None else ""
    usual = known is None or _USUAL_GAMMA[0] <= known <= _USUAL_GAMMA[1]
    corners = _corners(chromaticity)
    same = all(abs(a - b) <= _CLOSE for a, b in zip(corners, icc.SRGB_PRIMARIES, strict=True))
    if usual and (same or mode == "L"):
        return Said(note=note)
    try:
        return Said(_made(corners, icc.srgb_curve() if known is None else icc.power(1 / known), mode), note)
    except ValueError:
        return Said(note=f"the primaries {corners} make no colours")


def _corners(chromaticity: object) -> Primaries:
    """Return a PNG's primaries in the order of this program; sRGB's where it gives none."""
    if not isinstance(chromaticity, tuple | list) or len(chromaticity) != 8:  # noqa: PLR2004 - white, red, green, blue
        return icc.SRGB_PRIMARIES
    white_x, white_y, *colours = (float(value) for value in chromaticity)
    red_x, red_y, green_x, green_y, blue_x, blue_y = colours
    return red_x, red_y, green_x, green_y, blue_x, blue_y, white_x, white_y


def _made(corners: Primaries, curve: bytes, mode: str) -> bytes:
    """Make the profile. Raise ValueError where the primaries make none."""
    return icc.grey(curve, "grey") if mode == "L" else icc.rgb(corners, curve, "RGB")


def _is_adobe(image: Image.Image) -> bool:
    """Say whether a camera's mark names Adobe RGB: it says "not sRGB" and, in a corner of its own, "R03"."""
    try:
        exif = image.getexif()
        space = exif.get_ifd(ifd.DETAIL).get(_COLOUR_SPACE)
        index = exif.get_ifd(_INTEROP).get(_INDEX) if space not in {_SRGB, _ADOBE} else None
    except BROKEN:
        return False
    if isinstance(index, bytes):
        index = index.decode("ascii", "replace")
    return space == _ADOBE or (isinstance(index, str) and index.strip("\x00 ") == "R03")
