"""Sizes: how far a photo is reduced, and how it is padded for the network and cropped back. No state, no files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Size = tuple[int, int]  # width, height

UPRIGHT: Final = 1  # EXIF orientations: how a picture is stored that needs no turning
UPSIDE_DOWN_MIRRORED: Final = 4  # the last one that keeps width and height

# Both sides are padded to multiples of this, the least that the network takes: the nearer to the photo's own size, the
# nearer is the picture to that of the photo alone. More shapes cost nothing: kernels are built anew for each photo
# anyway, because keeping them would cost memory. docs/performance.md has the figures.
MULTIPLE: Final = 4
SMALLEST: Final = 16  # pixels; the least side that the network sees


def sideways(turn: int) -> bool:
    """Say whether a picture with this EXIF orientation, 1 … 8, is stored with its width and height changed over."""
    return turn > UPSIDE_DOWN_MIRRORED


def fit(width: int, height: int, max_edge: int) -> Size:
    """Return the size whose longer side is at most `max_edge`, in the same proportions; never a larger one."""
    longest = max(width, height)
    if longest <= max_edge:
        return width, height
    return max(1, _scaled(width, max_edge, longest)), max(1, _scaled(height, max_edge, longest))


def bands(height: int, rows: int) -> Iterator[slice]:
    """Cut the rows of a picture into bands of so many, the last of them shorter."""
    return (slice(top, min(top + rows, height)) for top in range(0, height, rows))


def padded(width: int, height: int) -> Size:
    """Return the size that the network sees: each side rounded up to a multiple of 4, and at least 16."""
    return _up(width), _up(height)


def pad(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Extend an (H, W, 3) picture to `padded` size by mirroring it at the right and bottom border.

    A mirror keeps the look of the border, and changes the picture-wide statistics of the network least. A side shorter
    than what is added is mirrored again and again; a single row or column is repeated.
    """
    height, width = pixels.shape[:2]
    wide, high = padded(width, height)
    if (wide, high) == (width, height):
        return pixels
    return np.pad(pixels, ((0, high - height), (0, wide - width), (0, 0)), mode="reflect")


def crop(pixels: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Undo `pad`: return the (height, width, 3) picture in the upper left corner."""
    return pixels[:height, :width]


def _scaled(side: int, numerator: int, denominator: int) -> int:
    """Multiply by a fraction, rounding half up in whole numbers."""
    return (2 * side * numerator + denominator) // (2 * denominator)


def _up(side: int) -> int:
    """Round up to a multiple."""
    return max(SMALLEST, -(-side // MULTIPLE) * MULTIPLE)
