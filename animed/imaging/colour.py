"""Pictures of any mode as bytes that can be resized and converted, and sRGB brought back to a photo's own space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import TiffImageFile

from animed.imaging import geometry, profiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

STRIP: Final = 2**21  # pixels that are worked on at a time where a whole picture would take too much memory

# The modes that can be reduced as they are; all others become one of them first.
_REDUCIBLE: Final = frozenset({"L", "LA", "RGB", "RGBA", "CMYK"})
_GREY: Final = frozenset({"1", "L", "LA", "La", "F"})
_BITS, _PHOTOMETRIC, _SAMPLE_FORMAT = 258, 262, 339  # tags of TIFF
_UNSIGNED, _SIGNED = 1, 2
_LONG: Final = 32  # bits
_WHITE_IS_ZERO: Final = 0
_USUAL: Final = (255.0, 65535.0)  # whites
_OVEREXPOSED: Final = 16.0  # light beyond white, in a picture of floats whose white is 1


@dataclass(frozen=True, slots=True)
class Depth:
    """What the numbers of a deep grey picture mean."""

    black: float
    white: float
    unsigned: bool = False  # the 32 bits are to be read without a sign
    clear: int | None = None  # the number that means transparent


def space(image: Image.Image) -> str:
    """Return what the numbers of a picture are once it is `plain`: L, RGB or CMYK."""
    if image.mode in _GREY or image.mode.startswith("I"):
        return "L"
    return "CMYK" if image.mode == "CMYK" else "RGB"


def depth(image: Image.Image) -> Depth | None:
    """Return what black and white are in a loaded picture of more than 8 bits; None for all others."""
    if image.mode != "F" and not image.mode.startswith("I"):
        return None
    tags: Any = image.tag_v2 if isinstance(image, TiffImageFile) else {}
    bits, sort = _first(tags.get(_BITS), 16), _first(tags.get(_SAMPLE_FORMAT), _UNSIGNED)
    unsigned = image.mode == "I" and (bits, sort) == (_LONG, _UNSIGNED)
    if image.mode.startswith("I;"):
        black, white = 0.0, float(2 ** min(bits, 16) - 1)
    else:
        black, white = _range(image, unsigned=unsigned)
        if (bits, sort) == (16, _SIGNED):
            black, white = (-32768.0 if black < 0 else 0.0), 32767.0
    if _first(tags.get(_PHOTOMETRIC), 1) == _WHITE_IS_ZERO:
        black, white = white, black
    clear = image.info.get("transparency")
    return Depth(black, white, unsigned, clear if isinstance(clear, int) else None)


def plain(image: Image.Image, deep: Depth | None) -> Image.Image:
    """Return a picture, or a part of one, in a mode of 8 bits that can be resized: L, LA, RGB, RGBA or CMYK.

    `deep` is the `depth` of the whole picture. A mode with alpha is returned for whatever says that it has clear parts.
    """
    if deep is not None:
        return _shallow(image, deep)
    if image.mode in _REDUCIBLE and "transparency" not in image.info:
        return image
    if image.mode in _GREY:
        return image.convert("LA" if image.has_transparency_data else "L")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def split(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Return the colours of a plain picture (mode L, RGB or CMYK) and its alpha (mode L)."""
    if image.mode == "LA":
        grey, cover = image.split()
        return grey, cover
    if image.mode == "RGBA":
        return image.convert("RGB"), image.getchannel("A")
    return image, None


def from_srgb(pixels: NDArray[np.uint8], profile: bytes) -> NDArray[np.uint8]:
    """Return (H, W, 3) sRGB pixels in the space of an RGB profile. Raise ValueError where the profile has no way in."""
    transform = profiles.backward(profile)
    if transform is None:
        raise ValueError("the profile says what its numbers are, not how to make them")
    made = np.empty_like(pixels)
    for rows in bands(*pixels.shape[:2]):
        made[rows] = np.asarray(transform.apply(Image.fromarray(pixels[rows])))
    return made


def bands(height: int, width: int) -> Iterator[slice]:
    """Cut a picture into bands of rows that hold about `STRIP` pixels each."""
    return geometry.bands(height, max(1, STRIP // width))


def grey(values: NDArray[Any], deep: Depth) -> NDArray[np.uint8]:
    """Scale deep grey values to bytes, rounded; what is not a number is black."""
    numbers = _numbers(values, deep)
    scaled = (numbers - deep.black) * (255 / (deep.white - deep.black))
    return np.rint(scaled).clip(0, 255).astype(np.uint8)


def _shallow(image: Image.Image, deep: Depth) -> Image.Image:
    """Return a deep picture as L, or as LA where a number means transparent."""
    width, height = image.size
    made = np.empty((height, width), np.uint8)
    cover = None if deep.clear is None else np.empty((height, width), np.uint8)
    for rows in bands(height, width):
        values = _rows(image, rows)
        made[rows] = grey(values, deep)
        if cover is not None:
            cover[rows] = np.where(values == deep.clear, 0, 255)
    picture = Image.fromarray(made)
    return picture if cover is None else Image.merge("LA", (picture, Image.fromarray(cover)))


def _rows(image: Image.Image, rows: slice) -> NDArray[Any]:
    """Return some rows of a picture."""
    return np.asarray(image.crop((0, rows.start, image.width, rows.stop)))


def _numbers(values: NDArray[Any], deep: Depth) -> NDArray[np.float64]:
    """Return values as numbers, 0 for what is none."""
    if deep.unsigned:
        values = values.view(np.uint32)
    return np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=deep.white, neginf=deep.black)


def _range(image: Image.Image, *, unsigned: bool) -> tuple[float, float]:
    """Guess what black and white are: the smallest usual range that holds all values, else the values' own."""
    reading = Depth(0.0, 0.0, unsigned)
    ends = [
        (float(numbers.min()), float(numbers.max()))
        for rows in bands(image.height, image.width)
        for numbers in (_numbers(_rows(image, rows), reading),)
    ]
    low, high = min(least for least, _ in ends), max(most for _, most in ends)
    if image.mode == "F" and low >= 0 and high <= _OVEREXPOSED:
        return 0.0, max(high, 1.0)
    for white in _USUAL:
        if low >= 0 and high <= white:
            return 0.0, white
    return low, high if high > low else low + max(1.0, abs(low))


def _first(value: object, default: int) -> int:
    """Return the first number of a tag."""
    if isinstance(value, tuple | list) and value:
        value = value[0]
    return value if isinstance(value, int) else default
