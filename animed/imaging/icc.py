"""ICC profiles made by code: three primaries or grey, and one curve. Small, exact, and nobody's copyright."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

# x and y of red, green, blue and white.
Primaries = tuple[float, float, float, float, float, float, float, float]

_D65: Final = (0.3127, 0.3290)
SRGB_PRIMARIES: Final[Primaries] = (0.64, 0.33, 0.30, 0.60, 0.15, 0.06, *_D65)
ADOBE_PRIMARIES: Final[Primaries] = (0.64, 0.33, 0.21, 0.71, 0.15, 0.06, *_D65)
P3_PRIMARIES: Final[Primaries] = (0.680, 0.320, 0.265, 0.690, 0.150, 0.060, *_D65)
BT2020_PRIMARIES: Final[Primaries] = (0.708, 0.292, 0.170, 0.797, 0.131, 0.046, *_D65)

_D50: Final = np.array((0.9642, 1.0, 0.8249))  # the white of the space in which profiles meet
_BRADFORD: Final = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
_VERSION: Final = 0x04200000
_FREE: Final = "CC0"


def power(gamma: float) -> bytes:
    """Return the curve x ** gamma as the bytes of a profile's tag."""
    return b"para" + bytes(4) + struct.pack(">HH", 0, 0) + _fixed(gamma)


def srgb_curve() -> bytes:
    """Return the curve of sRGB as the bytes of a profile's tag."""
    return b"para" + bytes(4) + struct.pack(">HH", 3, 0) + _fixed(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)


def table(values: Sequence[float]) -> bytes:
    """Return a curve through equally spaced values, 0 … 1, as the bytes of a profile's tag."""
    return b"curv" + struct.pack(f">II{len(values)}H", 0, len(values), *(round(65535 * value) for value in values))


def rgb(primaries: Primaries, curve: bytes, name: str) -> bytes:
    """Return an RGB display profile. Raise ValueError where the primaries span no colours."""
    white = _xyz(primaries[6], primaries[7])
    corners = np.array([_xyz(*primaries[at : at + 2]) for at in (0, 2, 4)]).T  # columns: red, green, blue
    try:
        columns = corners * np.linalg.solve(corners, white)
    except np.linalg.LinAlgError as error:
        raise ValueError("the primaries lie on one line") from error
    adaptation = _adaptation(white)
    adapted = adaptation @ columns
    if not np.isfinite(adapted).all() or np.abs(adapted).max() > 4:  # noqa: PLR2004 - far beyond any real colour
        raise ValueError("the primaries span no colours")
    tags = {f"{letter}XYZ".encode(): _triple(*adapted[:, at]) for at, letter in enumerate("rgb")}
    tags |= dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve)
    return _profile(b"RGB ", name, tags | {b"chad": b"sf32" + bytes(4) + _fixed(*adaptation.flat)})


def grey(curve: bytes, name: str) -> bytes:
    """Return a grey display profile."""
    return _profile(b"GRAY", name, {b"kTRC": curve})


def _xyz(x: float, y: float) -> NDArray[np.float64]:
    """Return X, Y, Z of a chromaticity at Y = 1. Raise ValueError for y = 0."""
    if not y > 0:
        raise ValueError("a chromaticity without light")
    return np.array((x / y, 1.0, (1 - x - y) / y))


def _adaptation(white: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix that brings colours seen under `white` to D50, by Bradford's cones."""
    gains = (_BRADFORD @ _D50) / (_BRADFORD @ white)
    return np.asarray(np.linalg.inv(_BRADFORD) @ np.diag(gains) @ _BRADFORD)


def _profile(space: bytes, name: str, tags: Mapping[bytes, bytes]) -> bytes:
    """Put header, table and tags together; tags of equal content share their bytes."""
    tags = {b"desc": _text(name), b"cprt": _text(_FREE), b"wtpt": _triple(*_D50)} | dict(tags)
    entries, body, places = b"", b"", dict[bytes, int]()
    start = 132 + 12 * len(tags)
    for tag, content in tags.items():
        if content not in places:
            places[content] = start + len(body)
            body += content + bytes(-len(content) % 4)
        entries += tag + struct.pack(">II", places[content], len(content))
    head = struct.pack(">I4xI4s4s4s", start + len(body), _VERSION, b"mntr", space, b"XYZ ")
    head += struct.pack(">6H4s28x", 2026, 1, 1, 0, 0, 0, b"acsp") + _fixed(*_D50) + bytes(48)
    return head + struct.pack(">I", len(tags)) + entries + body


def _text(words: str) -> bytes:
    """Return text as the bytes of a tag."""
    encoded = words.encode("utf-16-be")
    return b"mluc" + bytes(4) + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(encoded), 28) + encoded


def _triple(*values: float) -> bytes:
    """Return X, Y, Z as the bytes of a tag."""
    return b"XYZ " + bytes(4) + _fixed(*values)


def _fixed(*values: float) -> bytes:
    """Return numbers in 16.16 fixed point."""
    return struct.pack(f">{len(values)}i", *(round(65536 * value) for value in values))


SRGB: Final = rgb(SRGB_PRIMARIES, srgb_curve(), "sRGB")  # what a picture in sRGB carries
