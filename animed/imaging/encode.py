"""A picture's pixels to the bytes of a file."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from animed.errors import PhotoError, starved
from animed.imaging import alpha as transparency
from animed.imaging import described, iptc, needs
from animed.imaging.faults import BROKEN
from animed.imaging.metadata import Imprint
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from animed.imaging.sniff import Kind
    from animed.records import OutputFormat, PictureFormat, Recipe, Subsampling

FINE_QUALITY: Final = 90  # from here on, colour is kept at full resolution
# Pixels up to which that goes for AVIF. Its encoder takes 38 bytes a pixel then, 26 otherwise: gigabytes for a picture
# that is looked at from far.
FINE_AVIF: Final = 32_000_000
# Up to so many pixels, libaom's speed. A megapixel was measured to take 0.37 s of a core at speed 6, 0.16 s at 8 (and a
# fifth more bytes), 0.07 s at 9 (docs/performance.md).
AVIF_SPEEDS: Final = ((4_000_000, 6), (FINE_AVIF, 8), (math.inf, 9))
# Pixels of the longer side: what the encoders take, and for AVIF what the usual decoders do.
MOST_EDGE: Final[Mapping[PictureFormat, int]] = {"jpeg": 65_500, "png": 2**31 - 1, "webp": 16_383, "avif": 32_768}
# What encoders say of sound pixels when memory has run out, and for no other reason: their options are checked earlier.
_BROKEN_OFF: Final = re.compile(r"(?i)broken data stream|encoding of (?:color|alpha) planes failed")
# What `same` makes of each kind of photo; of all others it makes png.
_SAME: Final[Mapping[str, PictureFormat]] = {
    "jpeg": "jpeg",
    "png": "png",
    "webp": "webp",
    "avif": "avif",
    "heic": "jpeg",  # this and the next are photos, and few programs can show them
    "raw": "jpeg",
}


@dataclass(frozen=True, slots=True)
class Coding:
    """How pixels become the bytes of a file."""

    form: PictureFormat
    quality: int = 92  # 1 … 100, of the lossy formats
    subsampling: Subsampling = "auto"
    progressive: bool = True
    threads: int = 1  # at most, where the encoder knows threads


def coding(kind: Kind, recipe: Recipe, threads: int) -> Coding:
    """Return how the picture of a photo of this kind is written."""
    form = output_format(kind, recipe.output_format)
    return Coding(form, recipe.quality, recipe.subsampling, recipe.progressive, threads)


def encode(
    pixels: NDArray[np.uint8],
    coding: Coding,
    *,
    alpha: NDArray[np.uint8] | None = None,
    profile: bytes = b"",
    imprint: Imprint | None = None,
) -> bytes:
    """Return (H, W, 3) pixels, in the space of `profile` or sRGB, as the bytes of a file.

    `alpha` is (H, W); the formats that have none lay the picture on white. Raise PhotoError("encode") where it fails.
    """
    form, imprint = coding.form, imprint or Imprint()
    height, width = pixels.shape[:2]
    demand_fit(form, width, height)
    if alpha is not None and form == "jpeg":
        pixels, alpha = transparency.on_white(pixels, alpha), None
    target = io.BytesIO()
    try:
        if form == "avif":
            needs.reserve_avif(width * height, alpha=alpha is not None)
        image = Image.fromarray(pixels if alpha is None else np.dstack((pixels, alpha)))
        options = _options(coding, width * height) | _carried(form, imprint)
        image.save(target, form.upper(), icc_profile=described.defused(profile) or None, **options)
    except (*BROKEN, MemoryError) as error:
        raise _fault(error, f"{width}x{height} as {form}") from error
    data = target.getvalue()
    return iptc.embedded(data, described.defused(imprint.iptc)) if form == "jpeg" else data


def _fault(error: BaseException, what: str) -> PhotoError:
    """Tell a machine without memory from a picture that its format does not take."""
    cause = " ".join(str(error).split()) or type(error).__name__
    if starved(error) or _BROKEN_OFF.search(cause):
        return PhotoError(Reason.OUT_OF_MEMORY, f"writing {what} took more memory than there is: {cause}")
    return PhotoError(Reason.ENCODE, f"{what}: {cause}")


def demand_fit(form: PictureFormat, width: int, height: int) -> None:
    """Raise PhotoError("encode") for a picture that is longer than its format can be."""
    most = MOST_EDGE[form]
    if max(width, height) > most:
        detail = f"{width}\u00d7{height} is too large for {form}, whose sides have at most {most} pixels"
        raise PhotoError(Reason.ENCODE, f"{detail}; output_format: png takes it, output_size: styled makes it smaller")


def output_format(kind: Kind, wanted: OutputFormat) -> PictureFormat:
    """Return the format of a picture: `same` keeps those that can be written; photos of phones and cameras are jpeg."""
    return _SAME.get(kind, "png") if wanted == "same" else wanted


def _options(coding: Coding, pixels: int) -> dict[str, Any]:
    """Return how a picture of so many pixels is written."""
    coarse = is_coarse(coding, pixels)
    colour = ("4:2:0" if coarse else "4:4:4") if coding.subsampling == "auto" else coding.subsampling
    lossy = {"quality": coding.quality}
    options: dict[PictureFormat, dict[str, Any]] = {
        "jpeg": {**lossy, "subsampling": colour, "optimize": True, "progressive": coding.progressive},
        "png": {"compress_level": 6},
        "webp": {**lossy, "method": 4},
        "avif": {
            **lossy,
            "subsampling": colour,
            "speed": _avif_speed(pixels),
            "max_threads": coding.threads,
            # The shape of a photo with clear parts is not up to `quality`.
            "advanced": {"alpha:lossless": "1"},
        },
    }
    return options[coding.form]


def is_coarse(coding: Coding, pixels: int) -> bool:
    """Say whether the colour of a picture of so many pixels is written at half its resolution."""
    if coding.subsampling != "auto":
        return coding.subsampling == "4:2:0"
    return coding.quality < FINE_QUALITY or (coding.form == "avif" and pixels > FINE_AVIF)


def _avif_speed(pixels: int) -> int:
    """Return how fast AVIF is written: a full-size picture would else keep a worker for minutes on a slow machine."""
    return next(speed for most, speed in AVIF_SPEEDS if pixels <= most)


def _carried(form: PictureFormat, imprint: Imprint) -> dict[str, Any]:
    """Return how the library is told what a picture carries."""
    exif = described.defused(imprint.exif)
    if form != "png":
        return {"exif": exif, "xmp": imprint.xmp}
    chunks = PngInfo()
    if imprint.xmp:
        chunks.add_itxt("XML:com.adobe.xmp", imprint.xmp.decode())
    return {"exif": exif, "pnginfo": chunks}
