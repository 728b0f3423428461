"""Looks at each small face a second time, enlarged: what is none goes, and landmarks are where they should be.

On faces below 100 pixels the detector's landmarks hardly show a tilt: a head of 70 pixels that leans by 30 degrees
measured 6, and 24 when it was looked at again in 256 pixels. A second look takes 35 ms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from animed.imaging.faces import Face, Similarity, is_plausible, worth_drawing
from animed.imaging.squares import Square, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from animed.imaging.decoded import Decoded

    Find = Callable[[NDArray[np.uint8]], Sequence[Face]]  # in an (H, W, 3) sRGB picture, in its pixels

SHOWN: Final = 256  # pixels of the face when it is looked at again
SURE: Final = 0.8  # score: of 140 faces above it in 903 photos one was a dog; masks and backs of heads are below
SIDE: Final = 416  # pixels of the square around it
_OFF: Final = 0.3  # of a face's size by which its middle may move


def small_faces(decoded: Decoded, find: Find) -> tuple[Face, ...]:
    """Return the faces of a photo that are to be drawn by themselves, in pixels of `decoded.pixels`, largest first."""
    seen, source = decoded.pixels, decoded.finest
    across, down = source.shape[1] / seen.shape[1], source.shape[0] / seen.shape[0]
    again = (_look(source, face.scaled(across, down), find) for face in worth_drawing(find(seen)))
    return tuple(face.scaled(1 / across, 1 / down) for face in again if face is not None)


def _look(source: NDArray[np.uint8], face: Face, find: Find) -> Face | None:
    """Return a face as it shows enlarged; None where it then is none."""
    scale = face.size / SHOWN
    x, y = face.centre
    half = scale * SIDE / 2
    square = Square(SIDE, Similarity(scale, 0.0, x - half, y - half))
    placed = (found.scaled(scale, scale).moved(x - half, y - half) for found in find(cut(source, square)))
    return max(_same(face, placed), key=lambda found: found.score, default=None)


def _same(face: Face, found: Iterator[Face]) -> Iterator[Face]:
    """Yield the faces of a second look that may be the one of the first."""
    for each in found:
        near = math.dist(each.centre, face.centre) < _OFF * face.size and 0.5 < each.size / face.size < 2  # noqa: PLR2004 - half and double
        if near and each.score >= SURE and is_plausible(each):
            yield each
