"""Any picture that Pillow decodes, as 8-bit sRGB: deep greys scaled, transparency laid on white, profiles applied."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image, ImageCms

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The modes that can be reduced as they are; all others become one of them first.
_REDUCIBLE: Final = frozenset({"L", "LA", "RGB", "RGBA", "CMYK"})
# What kind of profile fits the numbers of a mode. Cameras and programs attach wrong ones.
_SPACES: Final = {"L": "GRAY", "RGB": "RGB", "CMYK": "CMYK"}
# What a sound-looking but broken profile makes the colour library's binding raise.
_BROKEN_PROFILE: Final = (ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError)


def reducible(image: Image.Image) -> Image.Image:
    """Return the picture in a mode of 8 bits per channel that can be resized: L, LA, RGB, RGBA or CMYK."""
    if image.mode == "F" or image.mode.startswith("I"):
        return Image.fromarray(grey(np.asarray(image)))
    if image.mode in _REDUCIBLE and "transparency" not in image.info:
        return image
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def to_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return a reducible picture as sRGB (mode RGB), converted by its profile where that is sound and fits."""
    opaque = on_white(image)
    if profile:
        try:
            converted = _by_profile(opaque, profile)
        except _BROKEN_PROFILE:
            # Colours as if there were no profile: better than no picture, and what other programs show.
            converted = None
        if converted is not None:
            return converted
    return opaque if opaque.mode == "RGB" else opaque.convert("RGB")


def from_srgb(pixels: NDArray[np.uint8], profile: bytes) -> NDArray[np.uint8]:
    """Return (H, W, 3) sRGB pixels in the space of an RGB profile."""
    return np.asarray(
        ImageCms.profileToProfile(
            Image.fromarray(pixels),
            ImageCms.createProfile("sRGB"),
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
            outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    )


def on_white(image: Image.Image) -> Image.Image:
    """Lay a picture with transparency on white."""
    if image.mode not in {"LA", "RGBA"}:
        return image
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")


def grey(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Scale deep grey values to bytes, never clipping: unsigned 16 bit by its range, others by what they hold."""
    if values.dtype.itemsize == 2:  # noqa: PLR2004 - bytes of a 16-bit value
        return (values >> 8).astype(np.uint8)
    numbers = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(numbers.min()), float(numbers.max())
    black, white = _range(low, high, whole=values.dtype.kind in "iu")
    return np.rint((numbers - black) * (255 / (white - black))).astype(np.uint8)


def _range(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Guess what black and white are: the smallest usual range that holds all values, else the values' own."""
    usual = (255.0, 65535.0) if whole else (1.0, 255.0, 65535.0)
    for white in usual:
        if low >= 0 and high <= white:
            return 0.0, white
    return low, high if high > low else low + 1


def _by_profile(image: Image.Image, data: bytes) -> Image.Image | None:
    """Convert by an ICC profile; None where it is of another colour space, or already sRGB."""
    profile = ImageCms.ImageCmsProfile(io.BytesIO(data))
    if profile.profile.xcolor_space.strip() != _SPACES[image.mode]:
        return None
    if "srgb" in (profile.profile.profile_description or "").lower():
        return None
    return ImageCms.profileToProfile(
        image,
        profile,
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        outputMode="RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
