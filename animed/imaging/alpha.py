"""Transparency: what lies under clear pixels, and what stands behind them where a format has no alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from animed.imaging.colour import bands

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAINT: Final = 32  # of 255; below it the colours of a reduced picture are too uncertain to be drawn from

_GAP: Final = 1.5  # how many times the final size a picture is reduced to by plain means before a filter does the rest
_PAPER: Final = 255.0  # where there is no colour at all
_SAMPLED: Final = 2048  # pixels; the longest side of what a filling is made from
_SMOOTH: Final = 512  # pixels; the longest side of a filling
_CHILDREN: Final = 4  # pixels that one of the next coarser level stands for


def on_white(pixels: NDArray[np.uint8], alpha: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Lay an (H, W, 3) picture with (H, W) alpha on white."""
    laid = np.empty_like(pixels)
    for rows in bands(*alpha.shape):
        cover = alpha[rows, :, None].astype(np.uint16)
        laid[rows] = (pixels[rows] * cover + 255 * (255 - cover) + 127) // 255
    return laid


def reduced(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return a picture of mode LA or RGBA in a smaller (width, height), each pixel weighted by how much it shows.

    Computed in floats: in bytes the faint pixels lose their colours, and those at an edge are cut off when the filter
    rings, which leaves a rim.
    """
    factor = max(1, int(min(image.width / size[0], image.height / size[1]) / _GAP))
    if factor > 1:
        weighted = image.convert("RGBa" if image.mode == "RGBA" else "La").reduce(factor)
        *colours, cover = weighted.split()
        scale = np.ones((1, 1), np.float32)
    else:
        *colours, cover = image.split()
        scale = np.asarray(cover, np.float32) / np.float32(255)
    box = (0.0, 0.0, image.width / factor, image.height / factor)

    def smaller(plane: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.LANCZOS, box=box))

    seen = smaller(np.asarray(cover, np.float32))
    gain = np.divide(255, seen, out=np.zeros_like(seen), where=seen > 0.5)  # noqa: PLR2004 - what rounds to some alpha
    planes = [smaller(np.asarray(band, np.float32) * scale) * gain for band in colours]
    made = [Image.fromarray(np.rint(plane).clip(0, 255).astype(np.uint8)) for plane in (*planes, seen)]
    return Image.merge(image.mode, made)


def fill(pixels: NDArray[np.uint8], alpha: NDArray[np.uint8], *, faint: int = 1) -> None:
    """Give the clear parts of an (H, W, 3) picture the colours that lie around them, in place.

    `alpha` is (H, W). Pixels from `faint` on stay as they are, those below are mixed with the filling by their alpha;
    at 1 only fully clear ones change. A picture that is clear everywhere becomes white.
    """
    if int(alpha.min()) >= faint:
        return
    filling = _filling(pixels, alpha)
    height, width = alpha.shape
    for rows in bands(height, width):
        clear = alpha[rows] < faint
        if not clear.any():
            continue
        scale = filling.height / height
        box = (0, rows.start * scale, filling.width, rows.stop * scale)
        size = (width, rows.stop - rows.start)
        around = np.asarray(filling.resize(size, Image.Resampling.BILINEAR, box=box))[clear]
        weight = (alpha[rows][clear] / np.float32(faint))[:, None]
        part = pixels[rows]
        part[clear] = np.rint(part[clear] * weight + around * (1 - weight)).astype(np.uint8)


def _filling(pixels: NDArray[np.uint8], alpha: NDArray[np.uint8]) -> Image.Image:
    """Return a small smooth picture of the visible colours, continued into all that is clear."""
    # A filling is smooth, so it may be made from some of the pixels of a large picture.
    step = max(1, -(-max(alpha.shape) // _SAMPLED))
    seen = alpha[::step, ::step]
    picture = Image.fromarray(np.dstack((pixels[::step, ::step], seen))).convert("RGBa")
    picture = picture.reduce(max(1, -(-max(picture.size) // _SMOOTH)))
    *light, cover = (np.asarray(band, np.float32) for band in picture.split())
    planes = _spread(light, cover / np.float32(255))
    whole = np.dstack([np.rint(plane).clip(0, 255) for plane in planes]).astype(np.uint8)
    return Image.fromarray(whole)


def _spread(light: list[NDArray[np.float32]], cover: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Return colours everywhere, from planes of light that is weighted by cover (0 … 1): pull, then push.

    Each level halves the size. What a pixel lacks in cover it takes from the next coarser level, which knows a wider
    neighbourhood; so a colour goes on as far as there is none that is nearer.
    """
    if float(cover.min()) >= 1:
        return light
    if cover.size == 1:
        weight = float(cover[0, 0])
        return [plane / weight if weight > 0 else np.full_like(plane, _PAPER) for plane in light]
    total = _halved(cover)
    coarse = np.minimum(1, total * _CHILDREN)
    gain = np.divide(coarse, total, out=np.zeros_like(total), where=total > 0)
    wide = _spread([_halved(plane) * gain for plane in light], coarse)
    lack = 1 - cover
    return [plane + _enlarged(far, cover) * lack for plane, far in zip(light, wide, strict=True)]


def _halved(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of blocks of two by two."""
    return np.asarray(Image.fromarray(plane).reduce(2))


def _enlarged(plane: NDArray[np.float32], like: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a plane in the size of another."""
    height, width = like.shape
    return np.asarray(Image.fromarray(plane).resize((width, height), Image.Resampling.BILINEAR))
