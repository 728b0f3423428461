"""Small faces drawn again by themselves, where the network draws them cleanly, and laid back without a seam."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from animed.imaging.faces import Similarity
from animed.imaging.squares import Box, Square, cut, lay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from animed.imaging.decoded import Decoded
    from animed.imaging.faces import Face, Points

    Draw = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]  # (H, W, 3) sRGB to (H, W, 3) sRGB

# How large the network sees a face, in pixels. Below it features melt together; above it skin gets the creases and the
# blocks of the photo, and what is drawn looks like the photo.
DRAWN: Final = 128
MOST_DRAWN: Final = 256  # where the picture is so much larger than what the network saw
ENLARGED: Final = 3.0  # times; what is enlarged further holds no more than the network makes up
MOST_PLACED: Final = 512  # pixels in the picture; so much larger than it was drawn, a face would look out of focus
MARGIN: Final = 2.0  # sizes of a face that the square around it measures at least
STEP: Final = 128  # pixels; the squares come in three sizes, because each new one costs the network a start
# Of the ellipse around a face, in half axes of 0.62 of its box: whole inside, gone outside.
AXIS: Final = 0.62
WHOLE: Final = 0.9
GONE: Final = 1.35
RING: Final = (0.75, 1.6)  # where the colours of both drawings are compared
REACH: Final = 0.3  # of a face's size over which that comparison is smoothed
COARSE: Final = 64  # pixels a side that suffice for what is so smooth
_FAINT: Final = 1e-3  # weight of what lies off the ring, so that there is a mean everywhere


def refine(picture: NDArray[np.uint8], decoded: Decoded, found: Iterable[Face], draw: Draw) -> NDArray[np.uint8]:
    """Draw faces of the (H, W, 3) sRGB picture of a photo again, in place; they are in pixels of `decoded.pixels`.

    The finest pixels of the photo that are at hand are drawn. `draw` runs the network.
    """
    seen = decoded.pixels
    across, down = picture.shape[1] / seen.shape[1], picture.shape[0] / seen.shape[0]
    placed = [face.scaled(across, down) for face in found]
    return redrawn(picture, decoded.finest, placed, draw)


def redrawn(
    picture: NDArray[np.uint8], source: NDArray[np.uint8], found: Iterable[Face], draw: Draw
) -> NDArray[np.uint8]:
    """Draw faces of `picture` again from `source`, in place; return `picture`.

    `picture` (H, W, 3) is the drawn photo and `source` (H', W', 3) the photo, both of the same whole view, in any
    sizes. Faces are in pixels of `picture`. `draw` runs the network; it is given at most 512² pixels at a time.
    """
    for face in found:
        _redraw(picture, source, face, draw)
    return picture


def drawn_size(in_source: float, in_picture: float) -> float:
    """Return how large the network is to see a face, by how large it is in the photo and in the picture, pixels."""
    return min(max(DRAWN, min(in_picture, MOST_DRAWN)), ENLARGED * in_source)


def side_of(drawn: float) -> int:
    """Return the side of the square that the network sees for a face that it sees in a size: 256, 384 or 512."""
    return max(2 * STEP, math.ceil(drawn * MARGIN / STEP) * STEP)


def stages(found: Iterable[Face], decoded: Decoded) -> tuple[list[Face], list[Face]]:
    """Return the faces that are drawn before the picture is brought to the photo's size, and those for afterwards."""
    factor = decoded.photo.shape[1] / decoded.pixels.shape[1]
    before: list[Face] = []
    after: list[Face] = []
    for face in found:
        (before if face.size * factor > MOST_PLACED else after).append(face)
    return before, after


def mask(points: Points, face: Face) -> NDArray[np.float64]:
    """Return how much of the new drawing shows at (N, 2) points around the middle of an upright face: 0 … 1."""
    share = np.clip((GONE - _radius(points, face)) / (GONE - WHOLE), 0, 1)
    return share * share * (3 - 2 * share)


def _redraw(picture: NDArray[np.uint8], source: NDArray[np.uint8], face: Face, draw: Draw) -> None:
    """Draw one face again, into the picture; one that lies off it is left alone."""
    height, width = picture.shape[:2]
    box = left, upper, right, lower = _clipped(Square.around(face, 2, shown=2 / MARGIN).bounds, width, height)
    if left >= right or upper >= lower:
        return
    across, down = source.shape[1] / width, source.shape[0] / height
    in_source = face.scaled(across, down)
    shown = drawn_size(in_source.size, face.size)
    side = side_of(shown)
    drawn = draw(cut(source, Square.around(in_source, side, shown=shown)))
    square = Square.around(face, side, shown=shown)
    base = picture[upper:lower, left:right].astype(np.float32)
    fresh = lay(drawn, square, box).astype(np.float32)
    points = _points(square, box, face)
    shape = base.shape[:2]
    share = mask(points, face).reshape(shape).astype(np.float32)[..., None]
    fresh += _difference(base - fresh, _ring(points, face).reshape(shape), reach=REACH * face.size)
    mixed = base + share * (fresh - base)
    picture[upper:lower, left:right] = np.rint(mixed).clip(0, 255).astype(np.uint8)


def _points(square: Square, box: Box, face: Face) -> Points:
    """Return the middles of all pixels of a box, row by row, around the middle of the face and turned upright."""
    left, upper, right, lower = box
    x, y = np.meshgrid(np.arange(left, right) + 0.5, np.arange(upper, lower) + 0.5)
    middle = face.centre
    a, b = square.place.a / square.place.scale, square.place.b / square.place.scale
    around = np.stack((x.ravel() - middle[0], y.ravel() - middle[1]), axis=1)
    return Similarity(a, -b, 0.0, 0.0).apply(around)


def _radius(points: Points, face: Face) -> NDArray[np.float64]:
    """Return how far points are from the middle, in axes of the ellipse around a face."""
    radius: NDArray[np.float64] = np.hypot(points[:, 0] / (AXIS * face.width), points[:, 1] / (AXIS * face.height))
    return radius


def _ring(points: Points, face: Face) -> NDArray[np.float32]:
    """Return the weight of points for the comparison of colours."""
    radius = _radius(points, face)
    inside = (radius > RING[0]) & (radius < RING[1])
    return (inside + _FAINT).astype(np.float32)


def _difference(difference: NDArray[np.float32], weight: NDArray[np.float32], *, reach: float) -> NDArray[np.float32]:
    """Return an (h, w, 3) difference smoothed over `reach` pixels, carried on to where the (h, w) weight is faint.

    The network's norms run over all that it sees, so a square by itself gets another tone than within its picture.
    """
    height, width = weight.shape
    rows, columns = min(height, COARSE), min(width, COARSE)
    down, across = _gaussian(rows, reach * rows / height), _gaussian(columns, reach * columns / width)
    total = down @ _sized(weight, (columns, rows), Image.Resampling.BOX) @ across
    planes = []
    for channel in range(3):
        plane = _sized(difference[..., channel] * weight, (columns, rows), Image.Resampling.BOX)
        smooth = (down @ plane @ across) / total
        planes.append(_sized(smooth.astype(np.float32), (width, height), Image.Resampling.BICUBIC))
    return np.stack(planes, axis=-1)


def _gaussian(count: int, deviation: float) -> NDArray[np.float32]:
    """Return the (count, count) matrix that smooths a column of pixels by a bell curve."""
    at = np.arange(count)
    return np.exp(-0.5 * ((at[:, None] - at[None]) / deviation) ** 2).astype(np.float32)


def _sized(plane: NDArray[np.float32], size: tuple[int, int], how: Image.Resampling) -> NDArray[np.float32]:
    """Return an (h, w) plane of numbers in another (width, height)."""
    return np.asarray(Image.fromarray(plane).resize(size, how))


def _clipped(box: Box, width: int, height: int) -> Box:
    """Return what of a box lies in a picture; it is empty or turned inside out where nothing does."""
    return max(box[0], 0), max(box[1], 0), min(box[2], width), min(box[3], height)
