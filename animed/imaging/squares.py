"""Turned squares of a picture: cut out, resampled once, and laid back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from animed.imaging import faces
from animed.imaging.faces import Similarity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.imaging.faces import Face

Box = tuple[int, int, int, int]  # left, upper, right, lower

_SPARE: Final = 3  # pixels around a window that the resampling reads


@dataclass(frozen=True, slots=True)
class Square:
    """The turned square around a face that the network sees, as a map from its pixels to those of a picture."""

    side: int  # pixels
    place: Similarity

    @classmethod
    def around(cls, face: Face, side: int, *, shown: float) -> Square:
        """Return the square that shows a face in so many pixels; one that is nearly upright is not turned."""
        tilt = face.tilt
        turn = math.radians(tilt) if abs(tilt) > faces.UPRIGHT else 0.0
        scale = face.size / shown
        a, b = scale * math.cos(turn), scale * math.sin(turn)
        x, y = face.centre
        half = side / 2
        return cls(side, Similarity(a, b, x - a * half + b * half, y - b * half - a * half))

    @property
    def turned(self) -> bool:
        """Say whether it does not lie straight."""
        return self.place.b != 0

    @property
    def bounds(self) -> Box:
        """Return the whole pixels of the picture that it touches; some may lie outside the picture."""
        corners = np.array([(0, 0), (self.side, 0), (0, self.side), (self.side, self.side)], dtype=np.float64)
        placed = self.place.apply(corners)
        low, high = np.floor(placed.min(axis=0)), np.ceil(placed.max(axis=0))
        return int(low[0]), int(low[1]), int(high[0]), int(high[1])


def cut(source: NDArray[np.uint8], square: Square) -> NDArray[np.uint8]:
    """Return the (side, side, 3) pixels of a square; the picture is mirrored beyond its border."""
    left, upper, right, lower = square.bounds
    box = (left - _SPARE, upper - _SPARE, right + _SPARE, lower + _SPARE)
    window = _window(source, box)
    place = square.place
    within = Similarity(place.a, place.b, place.x - box[0], place.y - box[1])
    return _resampled(window, within, (square.side, square.side))


def lay(drawn: NDArray[np.uint8], square: Square, box: Box) -> NDArray[np.uint8]:
    """Return the (h, w, 3) pixels of a box of the picture as the drawn square shows them; mirrored beyond it."""
    left, upper, right, lower = box
    back = square.place.inverse()
    origin = back.apply(np.array([(left, upper)], dtype=np.float64))[0]
    # Mirrored by half a side, so that the corners of the box that lie outside a turned square read something.
    spare = square.side // 2
    wide = _window(drawn, (-spare, -spare, square.side + spare, square.side + spare))
    within = Similarity(back.a, back.b, float(origin[0]) + spare, float(origin[1]) + spare)
    return _resampled(wide, within, (right - left, lower - upper))


def _window(pixels: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    """Return the pixels of a box, mirrored again and again beyond the border."""
    rows, columns = _mirrored(box[1], box[3], pixels.shape[0]), _mirrored(box[0], box[2], pixels.shape[1])
    return pixels[rows[:, None], columns]


def _mirrored(start: int, end: int, count: int) -> NDArray[np.intp]:
    """Return indices in 0 … count-1 for start … end-1."""
    at = np.arange(start, end) % (2 * count)
    return np.where(at < count, at, 2 * count - 1 - at)


def _resampled(pixels: NDArray[np.uint8], place: Similarity, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return a picture of (width, height) whose points `place` takes to points of `pixels`.

    One that is not turned is resampled once. A turned one is turned at the finer of both scales, where that softens
    least.
    """
    image = Image.fromarray(pixels)
    width, height = size
    if place.b == 0:
        box = (place.x, place.y, place.x + place.a * width, place.y + place.a * height)
        return np.asarray(image.resize(size, Image.Resampling.LANCZOS, box=_inside(box, image.size)))
    if place.scale < 1:
        larger = (round(image.width / place.scale), round(image.height / place.scale))
        across, down = image.width / larger[0], image.height / larger[1]
        turned = image.resize(larger, Image.Resampling.LANCZOS)
        data = (place.a / across, -place.b / across, place.x / across, place.b / down, place.a / down, place.y / down)
        return np.asarray(turned.transform(size, Image.Transform.AFFINE, data, Image.Resampling.BICUBIC))
    finer = (math.ceil(width * place.scale), math.ceil(height * place.scale))
    across, down = width / finer[0], height / finer[1]
    data = (place.a * across, -place.b * down, place.x, place.b * across, place.a * down, place.y)
    turned = image.transform(finer, Image.Transform.AFFINE, data, Image.Resampling.BICUBIC)
    return np.asarray(turned.resize(size, Image.Resampling.LANCZOS))


def _inside(box: tuple[float, float, float, float], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return a box without what rounding added beyond a picture."""
    return max(box[0], 0.0), max(box[1], 0.0), min(box[2], float(size[0])), min(box[3], float(size[1]))
