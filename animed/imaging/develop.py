"""An opened picture to what the network sees and what its picture is made of: reduced, in sRGB, upright."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from animed.imaging import colour, geometry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from animed.imaging.decode import Wanted

_TURNS: Final[Mapping[int, Image.Transpose]] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class Developed:
    """The pixels of a photo; the fields are those of the same names in `decode.Decoded`."""

    pixels: NDArray[np.uint8]
    photo: NDArray[np.uint8]
    alpha: NDArray[np.uint8] | None
    native: NDArray[np.uint8] | None
    profile: bytes


def develop(image: Image.Image, turn: int, wanted: Wanted) -> Developed:
    """Develop a loaded picture of any mode that is still to be turned by the EXIF orientation `turn`, 1 … 8.

    Its profile is looked for in `image.info`. Raise what Pillow raises for broken pictures.
    """
    pixels = _pixels(image, wanted.max_edge, turn)
    photo = _pixels(image, max(image.size), turn) if wanted.full else pixels
    return Developed(pixels, photo, alpha=None, native=None, profile=b"")


def _pixels(image: Image.Image, max_edge: int, turn: int) -> NDArray[np.uint8]:
    """Reduce, convert, turn: in this order, so that all but the first step work on few pixels."""
    small = colour.reducible(image)
    target = geometry.fit(*small.size, max_edge)
    if target != small.size:
        small = small.resize(target, Image.Resampling.LANCZOS, reducing_gap=3.0)
    picture = colour.to_srgb(small, image.info.get("icc_profile"))
    return np.asarray(picture.transpose(_TURNS[turn]) if turn in _TURNS else picture)
