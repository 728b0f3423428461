"""A picture of the size that the network saw, brought to the size of its photo: guided by the photo, within bounds.

Three ideas, each cheap enough to run over every pixel of a large photo:

* The photo's detail, times what the style made of such detail nearby (the slope of a guided filter: He, Sun and Tang,
  "Guided Image Filtering", 2013; at low resolution as in He and Sun, "Fast Guided Filter", arXiv 1505.00996), is added
  to the enlarged style. So edges stand where the photo has them. Where the style is flat the slope is 0.
* What is brighter or darker than the middle between the brightest and the darkest neighbour is pushed away from that
  middle. Even slopes stay as they are, edges become steep: drawn lines too, of which the photo knows nothing.
* The result is held between those two neighbours. No halo can arise, and no noise of the photo enters a flat area.

The photo is used at half its size where it is much larger than the style: its noise and its finest hairs would fray the
edges. The last doubling has no guide. All works in bands of rows, and each row depends on its place alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from animed.imaging import geometry

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]  # (H, W, 3)
    Floats = NDArray[np.float32]
    Beat = Callable[[], None]

BAND: Final = 32  # rows of the result at a time: what is computed for them stays in the processor's cache
HALVE_FROM: Final = 2.5  # times the style's size; from here on the photo's half is the guide
RADIUS: Final = 2  # pixels of the style; the slopes are fitted to squares of 5 by 5
NOISE: Final = 100.0  # steps of a byte, squared: detail of the photo that is weaker than this counts little
DETAIL: Final = 0.6  # how much of the photo's detail is taken over; more frays edges, less leaves them where they were
STEPS: Final = 32  # steps of a slope; slopes from -4 to nearly 4 fit a byte
ZERO: Final = 128  # the byte that is a slope of 0


@dataclass(frozen=True, slots=True)
class _Guide:
    """What a photo adds to a style, in the size of the style and in the size that is wanted."""

    seen: Pixels  # (h, w, 3) the photo in the size of the style
    photo: Pixels  # (H, W, 3)
    slopes: Pixels  # (h, w, 3) what the style makes of the photo's detail


def enlarge(style: Pixels, seen: Pixels, photo: Pixels, beat: Beat | None = None) -> Pixels:
    """Return (h, w, 3) `style`, which the network drew for (h, w, 3) `seen`, in the size of (H, W, 3) `photo`.

    `photo` is no smaller than `seen`. Every value lies between the least and the greatest of the style within three
    pixels. `beat` is called after every band of rows.
    """
    if seen.shape == photo.shape:
        return style
    alive = beat or _silent
    slopes = _slopes(style, seen)
    if max(photo.shape) < HALVE_FROM * max(seen.shape):
        return _step(style, photo.shape[:2], _Guide(seen, photo, slopes), alive)
    half = _halved(photo, alive)
    middle = _step(style, half.shape[:2], _Guide(seen, half, slopes), alive)
    return _step(middle, photo.shape[:2], None, alive)


def _step(style: Pixels, size: tuple[int, ...], guide: _Guide | None, alive: Beat) -> Pixels:
    """Enlarge once to (height, width), band by band."""
    height, width = size
    result = np.empty((height, width, 3), np.uint8)
    for band in geometry.bands(height, BAND):
        rows = _Rows.of(style.shape[0], height, band)
        low, high = (_across(rows.linear(bound), width, "bilinear") for bound in _extremes(style, rows))
        value = _across(rows.cubic(style), width, "bicubic").short()
        if guide is not None:
            value += _detail(guide, rows, band)
        lowest, highest = low.short(), high.short()
        middle = (lowest + highest).bitwise_right_shift_(1)
        value.mul_(2).sub_(middle).clamp_(lowest, highest)
        result[band] = value.byte().numpy()
        alive()
    return result


def _detail(guide: _Guide, rows: _Rows, band: slice) -> torch.Tensor:
    """Return what a band of the photo has that its small copy lacks, times the slopes: (rows, W, 3) int16."""
    width = guide.photo.shape[1]
    slopes = _across(rows.linear(guide.slopes[rows.first : rows.last]), width, "bilinear").short().sub_(ZERO)
    known = _across(rows.cubic(guide.seen), width, "bicubic").short()
    # At most 128 · 255 + 16: it just fits 16 bits.
    fresh = torch.from_numpy(guide.photo[band].astype(np.int16)).sub_(known)
    return fresh.mul_(slopes).add_(STEPS // 2).bitwise_right_shift_(5)


def _slopes(style: Pixels, seen: Pixels) -> Pixels:
    """Return how each channel of the style follows the photo's around each pixel, as bytes: (h, w, 3)."""
    drawn, given = style.astype(np.float32), seen.astype(np.float32)
    mean_given = _mean(given, RADIUS)
    together: Floats = _mean(drawn * given, RADIUS) - _mean(drawn, RADIUS) * mean_given
    spread: Floats = _mean(given * given, RADIUS) - mean_given * mean_given
    spread += NOISE
    together /= spread
    return _bytes(_mean(together, 1) * np.float32(DETAIL * STEPS) + np.float32(ZERO))


def _mean(values: Floats, radius: int) -> Floats:
    """Return the mean over squares around each pixel; beyond the border the last pixel is repeated."""
    count = 2 * radius + 1
    for axis in (0, 1):
        length = values.shape[axis]
        amounts = [(radius, radius) if each == axis else (0, 0) for each in range(3)]
        wide = np.pad(values, amounts, mode="edge")
        values = np.zeros_like(values)
        for shift in range(count):
            values += wide[shift : shift + length] if axis == 0 else wide[:, shift : shift + length]
        values /= np.float32(count)
    return values


def _extremes(style: Pixels, rows: _Rows) -> tuple[Pixels, Pixels]:
    """Return the least and the greatest of each pixel and its eight neighbours, for the rows that a band needs."""
    around = style[np.clip(np.arange(rows.first - 1, rows.last + 1), 0, style.shape[0] - 1)]
    return _of_three(np.minimum, around), _of_three(np.maximum, around)


def _of_three(better: np.ufunc, around: Pixels) -> Pixels:
    """Return the best of each pixel and its neighbours; the first and the last row are neighbours only."""
    best: Pixels = better(better(around[:-2], around[1:-1]), around[2:])
    result = best.copy()
    better(result[:, 1:], best[:, :-1], out=result[:, 1:])
    better(result[:, :-1], best[:, 1:], out=result[:, :-1])
    return result


def _halved(photo: Pixels, alive: Beat) -> Pixels:
    """Return a photo in half its size, rounded up: the means of squares of 2 by 2."""
    height, width = photo.shape[:2]
    half = np.empty(((height + 1) // 2, (width + 1) // 2, 3), np.uint8)
    for band in geometry.bands(height, BAND):
        half[band.start // 2 : (band.stop + 1) // 2] = np.asarray(Image.fromarray(photo[band]).reduce(2))
        alive()
    return half


def _across(rows: Pixels, width: int, mode: Literal["bilinear", "bicubic"]) -> torch.Tensor:
    """Return rows of the wanted width: (rows, W, 3) uint8."""
    planes = torch.from_numpy(rows).permute(2, 0, 1)[None]  # (1, 3, rows, w)
    wide: torch.Tensor = functional.interpolate(planes, size=(rows.shape[0], width), mode=mode, antialias=True)
    return wide[0].permute(1, 2, 0)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Which rows of a smaller picture a band of a larger one is made of."""

    first: int  # the rows that are needed
    last: int  # one beyond
    height: int  # of the smaller picture
    below: NDArray[np.intp]  # for each row of the band, the row at or above its place; may be -1
    part: Floats  # (rows, 1, 1) how far beyond that row, 0 … 1

    @classmethod
    def of(cls, height: int, larger: int, band: slice) -> _Rows:
        """Find them, by the centres of rows."""
        places = (np.arange(band.start, band.stop) + 0.5) * (height / larger) - 0.5
        below = np.floor(places).astype(np.intp)
        first, last = max(0, int(below[0])), min(height, int(below[-1]) + 2)
        return cls(first, last, height, below, (places - below).astype(np.float32)[:, None, None])

    def linear(self, source: Pixels) -> Pixels:
        """Return the band's rows of a picture that begins with row `first` and ends before `last`."""
        given = source.astype(np.float32)
        upper, lower = (given[(self.below + shift).clip(self.first, self.last - 1) - self.first] for shift in (0, 1))
        lower -= upper
        lower *= self.part
        lower += upper
        return _bytes(lower)

    def cubic(self, source: Pixels) -> Pixels:
        """Return the band's rows of a whole picture, by Catmull and Rom's curve through four rows."""
        part = self.part
        weights = (
            ((-0.5 * part + 1) * part - 0.5) * part,
            (1.5 * part - 2.5) * part * part + 1,
            ((-1.5 * part + 2) * part + 0.5) * part,
            (0.5 * part - 0.5) * part * part,
        )
        top = max(0, self.first - 1)
        given = source[top : self.last + 1].astype(np.float32)
        total, term = np.zeros((2, len(self.below), *source.shape[1:]), np.float32)
        for shift, weight in enumerate(weights, -1):
            np.take(given, (self.below + shift).clip(0, self.height - 1) - top, axis=0, out=term, mode="clip")
            term *= weight
            total += term
        return _bytes(total)


def _bytes(values: Floats) -> Pixels:
    """Round to whole steps of a byte, within its range."""
    np.rint(values, out=values)
    np.clip(values, 0, 255, out=values)
    return values.astype(np.uint8)


def _silent() -> None:
    """Stand in where nobody listens."""
