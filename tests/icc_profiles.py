"""ICC profiles made by the rules of the format: RGB by primaries and a curve, grey by a curve, and of inks by a table.

None of the usual files may be shipped, or need be there. Nothing here is the product's: a mistake of its own would hide
itself.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]
    XY = tuple[float, float]

D50: Final = np.array([0.9642, 1.0, 0.8249])  # the white of the profiles' connection space
_BRADFORD: Final = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])


@dataclass(frozen=True, slots=True)
class Space:
    """An RGB space: chromaticities of red, green, blue and white, and the exponent of its curve; None for sRGB's."""

    name: str
    red: XY
    green: XY
    blue: XY
    white: XY
    gamma: float | None

    def profile(self) -> bytes:
        """Return the space as an ICC profile of version 2."""
        columns = self._adapted()
        tags = {f"{letter}XYZ".encode(): _xyz(columns[:, index]) for index, letter in enumerate("rgb")}
        curves = dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), _curve(self.gamma))
        return _profile(b"mntr", b"RGB ", b"XYZ ", self.name, tags | curves)

    def _adapted(self) -> Array:
        """Return the XYZ of full red, green and blue as columns, for the white of the connection space."""
        corners = np.array([_tristimulus(xy) for xy in (self.red, self.green, self.blue)]).T
        white = _tristimulus(self.white)
        columns = corners * np.linalg.solve(corners, white)
        cones = np.diag(_BRADFORD @ D50 / (_BRADFORD @ white))
        adapted: Array = np.linalg.inv(_BRADFORD) @ cones @ _BRADFORD @ columns
        return adapted


def _curve(gamma: float | None) -> bytes:
    """Return a curve by its exponent; None for that of sRGB."""
    if gamma is not None:
        return b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256))
    steps = np.arange(4096) / 4095
    linear = np.where(steps <= 0.04045, steps / 12.92, ((steps + 0.055) / 1.055) ** 2.4)
    table: bytes = np.rint(linear * 65535).astype(">u2").tobytes()
    return b"curv" + bytes(4) + struct.pack(">I", 4096) + table


_D65: Final = (0.3127, 0.3290)
SRGB: Final = Space("sRGB IEC61966-2.1", (0.64, 0.33), (0.30, 0.60), (0.15, 0.06), _D65, None)
P3: Final = Space("Display P3", (0.680, 0.320), (0.265, 0.690), (0.150, 0.060), _D65, None)
ADOBE: Final = Space("Adobe RGB (1998)", (0.64, 0.33), (0.21, 0.71), (0.15, 0.06), _D65, 2.19921875)
PROPHOTO: Final = Space("ProPhoto RGB", (0.7347, 0.2653), (0.1596, 0.8404), (0.0366, 0.0001), (0.3457, 0.3585), 1.8)


def grey(gamma: float) -> bytes:
    """Return a profile of grey with the curve of an exponent."""
    return _profile(b"mntr", b"GRAY", b"XYZ ", f"grey {gamma:g}", {b"kTRC": _curve(gamma)})


@functools.cache
def inks(grid: int = 9) -> bytes:
    """Return a profile of a press: each ink takes its part of the light away, none of them all of it.

    Its table has `grid` points an ink; three of them make a small profile, and other colours in between.
    """
    colours = {0: (0.05, 0.35, 0.72), 1: (0.55, 0.04, 0.22), 2: (0.82, 0.72, 0.06), 3: (0.03, 0.03, 0.03)}
    passing = np.array([colours[index] for index in range(4)])

    def lab(amounts: tuple[float, ...]) -> Array:
        light = np.prod(1 - np.array(amounts)[:, None] * (1 - passing), axis=0)  # linear red, green, blue
        return _lab(_SRGB_D50 @ light)

    return _profile(b"prtr", b"CMYK", b"Lab ", "A press", {b"A2B0": _table(lab, grid)})


_SRGB_D50: Final = np.array(
    [[0.4360747, 0.3850649, 0.1430804], [0.2225045, 0.7168786, 0.0606169], [0.0139322, 0.0971045, 0.7141733]]
)


def _lab(xyz: Array) -> Array:
    """Return CIE Lab under D50."""
    part = xyz / D50
    roots = np.where(part > 216 / 24389, np.cbrt(part), (24389 / 27 * part + 16) / 116)
    return np.array([116 * roots[1] - 16, 500 * (roots[0] - roots[1]), 200 * (roots[1] - roots[2])])


def _table(lab: Callable[[tuple[float, ...]], Array], grid: int) -> bytes:
    """Return a table from four inks to Lab in 16 bits."""
    steps = [index / (grid - 1) for index in range(grid)]
    values = np.array([lab(amounts) for amounts in product(steps, repeat=4)])
    # The 16-bit Lab of version 2: 0xFF00 is 100, and a and b are 0 at 0x8000.
    coded = np.column_stack((values[:, 0] * 652.8, (values[:, 1:] + 128) * 256))
    body: bytes = np.rint(coded.clip(0, 65535)).astype(">u2").tobytes()
    identity = struct.pack(">9i", *(65536 if index % 4 == 0 else 0 for index in range(9)))
    line = struct.pack(">2H", 0, 65535)
    head = b"mft2" + bytes(4) + bytes((4, 3, grid, 0)) + identity + struct.pack(">2H", 2, 2)
    return head + line * 4 + body + line * 3


def _tristimulus(xy: XY) -> Array:
    x, y = xy
    return np.array([x / y, 1.0, (1 - x - y) / y])


def _fixed(value: float) -> bytes:
    return struct.pack(">i", round(value * 65536))


def _xyz(values: Array) -> bytes:
    return b"XYZ " + bytes(4) + b"".join(_fixed(float(value)) for value in values)


def _profile(kind: bytes, space: bytes, connection: bytes, name: str, tags: dict[bytes, bytes]) -> bytes:
    """Put a profile together."""
    text = name.encode() + b"\0"
    description = b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(12 + 67)
    whole = {b"desc": description, b"cprt": b"text" + bytes(4) + b"None\0", b"wtpt": _xyz(D50), **tags}
    at = 128 + 4 + 12 * len(whole)
    entries, body = b"", b""
    for tag, content in whole.items():
        entries += tag + struct.pack(">II", at + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    size = at + len(body)
    header = struct.pack(">I4sI4s4s4s", size, b"lcms", 0x02400000, kind, space, connection)
    header += struct.pack(">6H", 2024, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    header += b"".join(_fixed(float(value)) for value in D50)
    return header.ljust(128, b"\0") + struct.pack(">I", len(whole)) + entries + body


# Each profile, with the mode of the pictures that it fits.
PROFILES: Final[Mapping[str, tuple[bytes, str]]] = {
    "Display P3": (P3.profile(), "RGB"),
    "Adobe RGB": (ADOBE.profile(), "RGB"),
    "ProPhoto RGB": (PROPHOTO.profile(), "RGB"),
    "CMYK": (inks(), "CMYK"),
}
