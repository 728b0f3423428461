"""A picture's pixels to the bytes of a file."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from PIL import Image

from animed.errors import PhotoError
from animed.imaging import alpha as transparency
from animed.imaging.faults import BROKEN
from animed.records import OutputFormat, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from animed.imaging.sniff import Kind

PictureFormat = Literal["jpeg", "png", "webp", "avif"]

SUFFIXES: Final[Mapping[PictureFormat, str]] = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "avif": ".avif"}
FINE_QUALITY: Final = 90  # from here on, colour is kept at full resolution
_SAME: Final[Mapping[Kind, PictureFormat]] = {
    "jpeg": "jpeg",
    "png": "png",
    "webp": "webp",
    "avif": "avif",
    "heic": "jpeg",  # this and the next are photos that few programs can show
    "raw": "jpeg",
}


def encode(
    pixels: NDArray[np.uint8],
    *,
    form: PictureFormat,
    quality: int,
    alpha: NDArray[np.uint8] | None = None,
    exif: bytes = b"",
    profile: bytes = b"",
    threads: int = 1,
) -> bytes:
    """Return (H, W, 3) pixels, in the space of `profile` or sRGB, as the bytes of a file.

    `alpha` is (H, W); the formats that have none lay the picture on white. Raise PhotoError("encode") where it fails.
    """
    if alpha is not None and form == "jpeg":
        pixels, alpha = transparency.on_white(pixels, alpha), None
    target = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.fromarray(pixels if alpha is None else np.dstack((pixels, alpha)))
            image.save(target, form.upper(), exif=exif, icc_profile=profile or None, **_options(form, quality, threads))
    except (*BROKEN, MemoryError) as error:
        height, width = pixels.shape[:2]
        cause = " ".join(str(error).split()) or type(error).__name__
        raise PhotoError(Reason.ENCODE, f"{width}x{height} as {form}: {cause}") from error
    return target.getvalue()


def output_format(kind: Kind, wanted: OutputFormat) -> PictureFormat:
    """Return the format of a picture: `same` keeps jpeg, png, webp and avif, and makes jpeg of photos, else png."""
    if wanted != "same":
        return wanted
    return _SAME.get(kind, "png")


def _options(form: PictureFormat, quality: int, threads: int) -> dict[str, Any]:
    """Return how each format is written."""
    colour_rate = "4:4:4" if quality >= FINE_QUALITY else "4:2:0"
    options: dict[PictureFormat, dict[str, Any]] = {
        "jpeg": {"quality": quality, "subsampling": colour_rate, "optimize": True, "progressive": True},
        "png": {"compress_level": 6},
        "webp": {"quality": quality, "method": 4},
        # The shape of a photo with clear parts is not up to `quality`.
        "avif": {
            "quality": quality,
            "subsampling": colour_rate,
            "speed": 6,
            "max_threads": threads,
            "advanced": {"alpha:lossless": "1"},
        },
    }
    return options[form]
