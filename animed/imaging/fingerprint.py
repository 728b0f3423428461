"""What a photo looks like, in 72 bytes and a small copy: photos that look alike differ in few bits, and nowhere much.

A perceptual hash of 256 bits says where a photo is lighter and darker than its middle, in 256 of its lowest
frequencies. It survives another format, size and quality. It does not survive a cut, so the same is taken of the photo
without its margins too, and compared with the whole of the other. It knows no colours, so those of each quarter are
kept beside it: a copy in other colours is a picture of its own, if the colours were strong. Nor does it know what is
small, such as the figures on a form: a grey copy of 48 by 48 pixels is there to compare the few that are near closely.
With it goes the photo's shape, which none of these know: a stretched copy is a picture of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from animed.records import Fingerprint

if TYPE_CHECKING:
    from numpy.typing import NDArray

HASH: Final = 16  # bits each way
GRID: Final = 4 * HASH  # pixels each way: what the hash is computed from
DETAIL: Final = 48  # pixels each way of the grey copy
SHAPES: Final = 24  # steps of the shape for each doubling of the width over the height
MARGIN: Final = 0.04  # of each side, cut off for the inner hash
LEAST_SIDE: Final = 2 * HASH  # pixels: below that the finest frequency of the hash cannot be there
LEAST_CONTRAST: Final = 4.0  # of 255, standard deviation over the grid: below that noise decides the hash


def prepare() -> None:
    """Load what hashes, once and early; raise ImportError where the extra `similar` is not installed, or broken."""
    import imagehash  # noqa: F401, PLC0415  # an extra, and slow to import: only who compares photos needs it


def of(pixels: NDArray[np.uint8]) -> Fingerprint | None:
    """Return the fingerprint of (H, W, 3) upright sRGB pixels; None where there is too little to tell photos apart.

    Raise ImportError where the extra `similar` is not installed.
    """
    picture = Image.fromarray(pixels)
    if min(picture.size) < LEAST_SIDE:
        return None
    grey = picture.convert("L")
    whole, inner = _grid(grey, 0), _grid(grey, MARGIN)
    if min(np.asarray(whole).std(), np.asarray(inner).std()) < LEAST_CONTRAST:
        return None
    quarters = np.asarray(picture.resize((2, 2), Image.Resampling.BOX).convert("YCbCr"))
    detail = grey.resize((DETAIL, DETAIL), Image.Resampling.BOX).tobytes()
    return Fingerprint(_hash(whole), _hash(inner), quarters[..., 1:].tobytes(), detail + _shape(*picture.size))


def _shape(width: int, height: int) -> bytes:
    """Return the proportion of the sides in one byte."""
    return bytes([min(max(round(128 + SHAPES * math.log2(width / height)), 0), 255)])


def _grid(grey: Image.Image, margin: float) -> Image.Image:
    """Reduce a picture without its margins to the grid."""
    width, height = grey.size
    box = (width * margin, height * margin, width * (1 - margin), height * (1 - margin))
    return grey.resize((GRID, GRID), Image.Resampling.LANCZOS, box=box, reducing_gap=3.0)


def _hash(grid: Image.Image) -> int:
    import imagehash  # noqa: PLC0415  # an extra, and slow to import: only who compares photos needs it

    return int.from_bytes(np.packbits(imagehash.phash(grid, hash_size=HASH).hash).tobytes())
