"""Pillow in and out: bytes of a file to upright sRGB pixels of the size that the network sees, and back to bytes.

Every fault of a file ends as a PhotoError. One thread decodes at a time: Python's warning filters are the process's.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal

import numpy as np
from PIL import Image, features
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile, jpeg_factory
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from animed.errors import PhotoError
from animed.imaging import colour, geometry, metadata, sniff
from animed.records import OutputFormat, Reason, Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from PIL.ImageFile import ImageFile

    from animed.imaging.sniff import Kind

PictureFormat = Literal["jpeg", "png", "webp", "avif"]

SUFFIXES: Final[Mapping[PictureFormat, str]] = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "avif": ".avif"}
_SAME: Final[Mapping[Kind, PictureFormat]] = {"jpeg": "jpeg", "png": "png", "webp": "webp", "avif": "avif"}
FINE_QUALITY: Final = 90  # from here on, colour is kept at full resolution

# The plugins are called by name: nothing else that Pillow could read is reachable, and its process-wide limit of pixels
# gives way to the limit of the inbox.
_PLUGINS: Final[Mapping[Kind, Callable[[IO[bytes]], ImageFile]]] = {
    "jpeg": jpeg_factory,  # also takes the first picture of an MPO
    "png": PngImageFile,
    "webp": WebPImageFile,
    "tiff": TiffImageFile,
    "bmp": BmpImageFile,
    "gif": GifImageFile,
    "avif": AvifImageFile,
}
_OPTIONAL: Final = frozenset({"webp", "avif"})  # what a Pillow may be built without
_ANIMATED: Final = frozenset({"gif", "webp", "png", "avif"})  # the frames of a TIFF or an MPO are pages and views
# All that Pillow and the libraries below it were seen to raise for broken files.
_BROKEN: Final = (
    *(OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, OverflowError),
    *(ZeroDivisionError, AssertionError, RuntimeError, struct.error, zlib.error),
)
_TURNS: Final[Mapping[int, Image.Transpose]] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS: Final = 5  # from this orientation on, width and height change places


@dataclass(frozen=True, slots=True)
class Decoded:
    """A photo as the network takes it, and what its picture inherits."""

    pixels: NDArray[np.uint8]  # (H, W, 3) sRGB, upright, at most max_edge long
    width: int  # of the photo, after orientation
    height: int
    kind: Kind
    exif: bytes  # for metadata.prepare; empty where there is none


def decode(
    data: bytes, *, max_pixels: int, max_edge: int, animated: Literal["first", "skip"], name: bytes = b""
) -> Decoded | Skip:
    """Decode the content of a file; `name` only helps to tell camera raw files from TIFF.

    Raise PhotoError: empty, not_an_image, truncated, unsupported:KIND or too_large; MemoryError where it runs out.
    """
    kind = sniff.identify(data, name)
    if kind in _OPTIONAL and not features.check(kind):
        raise PhotoError(f"{Reason.UNSUPPORTED}:{kind}", f"this Pillow was built without {kind}")
    try:
        # Libraries warn of odd files; that is neither news nor, where warnings are errors, a failure.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _decode(data, kind, max_pixels=max_pixels, max_edge=max_edge, animated=animated)
    except Image.DecompressionBombError as error:
        # A frame that is larger than the header said; Pillow's own limit holds there.
        raise PhotoError(Reason.TOO_LARGE, str(error).partition(",")[0]) from error
    except _BROKEN as error:
        raise _fault(kind, data, error) from error


def encode(
    pixels: NDArray[np.uint8], *, form: PictureFormat, quality: int, exif: bytes = b"", threads: int = 1
) -> bytes:
    """Return (H, W, 3) sRGB pixels as the bytes of a file; raise PhotoError("encode") where that fails."""
    target = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Image.fromarray(pixels).save(target, form.upper(), exif=exif, **_options(form, quality, threads))
    except (*_BROKEN, MemoryError) as error:
        height, width = pixels.shape[:2]
        cause = " ".join(str(error).split()) or type(error).__name__
        raise PhotoError(Reason.ENCODE, f"{width}x{height} as {form}: {cause}") from error
    return target.getvalue()


def output_format(kind: Kind, wanted: OutputFormat) -> PictureFormat:
    """Return the format of a picture: `same` keeps jpeg, png, webp and avif, and makes png of the others."""
    if wanted != "same":
        return wanted
    return _SAME.get(kind, "png")


def _decode(
    data: bytes, kind: Kind, *, max_pixels: int, max_edge: int, animated: Literal["first", "skip"]
) -> Decoded | Skip:
    """Decode without the net of `decode` below it."""
    image = _PLUGINS[kind](io.BytesIO(data))
    _limit(image.size, max_pixels)
    if animated == "skip" and kind in _ANIMATED and getattr(image, "is_animated", False):
        return Skip("animated")
    size = _draft(image, max_edge)
    image.load()
    if sniff.hollow(kind, data):
        raise PhotoError(Reason.TRUNCATED, "the file is filled with zeros from some point on")
    # A TIFF turns itself upright while it loads, and forgets its orientation then.
    turn = metadata.orientation(image)
    width, height = size or image.size
    if turn >= _SIDEWAYS:
        width, height = height, width
    pixels = _pixels(image, max_edge, turn)
    return Decoded(pixels, width, height, kind, metadata.extract(image))


def _pixels(image: Image.Image, max_edge: int, turn: int) -> NDArray[np.uint8]:
    """Reduce, convert, turn: in this order, so that all but the first step work on few pixels."""
    small = colour.reducible(image)
    target = geometry.fit(*small.size, max_edge)
    if target != small.size:
        small = small.resize(target, Image.Resampling.LANCZOS, reducing_gap=3.0)
    picture = colour.to_srgb(small, image.info.get("icc_profile"))
    return np.asarray(picture.transpose(_TURNS[turn]) if turn in _TURNS else picture)


def _draft(image: ImageFile, max_edge: int) -> tuple[int, int] | None:
    """Have a large JPEG decoded at a fraction of its size, never below twice the target; return its full size.

    Decoding at 1/2, 1/4 or 1/8 costs next to nothing, and halving what is left keeps the LANCZOS quality.
    """
    if not isinstance(image, JpegImageFile):
        return None
    full = image.size
    width, height = geometry.fit(*full, max_edge)
    image.draft(None, (2 * width, 2 * height))
    return full


def _limit(size: tuple[int, int], max_pixels: int) -> None:
    """Refuse what would take too much memory, by the header alone."""
    width, height = size
    if width * height > max_pixels:
        sizes = f"{width}\u00d7{height} = {_megapixels(width * height)}"
        raise PhotoError(Reason.TOO_LARGE, f"{sizes}, limit {_megapixels(max_pixels)}")


def _megapixels(pixels: int) -> str:
    """Write a number of pixels for people."""
    millions = pixels / 1e6
    return f"{millions:.0f} MP" if millions >= 1000 else f"{millions:.4g} MP"  # noqa: PLR2004 - no powers of ten


def _fault(kind: Kind, data: bytes, error: Exception) -> PhotoError:
    """Tell a file that ends too early, and may still be completed, from one that is damaged."""
    cause = " ".join(str(error).split()) or type(error).__name__
    if "truncated" in cause.lower() or sniff.ends_early(kind, data):
        return PhotoError(Reason.TRUNCATED, f"the {kind} file ends too early: {cause}")
    return PhotoError(Reason.NOT_AN_IMAGE, f"damaged {kind} file: {cause}")


def _options(form: PictureFormat, quality: int, threads: int) -> dict[str, Any]:
    """Return how each format is written."""
    colour_rate = "4:4:4" if quality >= FINE_QUALITY else "4:2:0"
    options: dict[PictureFormat, dict[str, Any]] = {
        "jpeg": {"quality": quality, "subsampling": colour_rate, "optimize": True, "progressive": True},
        "png": {"compress_level": 6},
        "webp": {"quality": quality, "method": 4},
        "avif": {"quality": quality, "subsampling": colour_rate, "speed": 6, "max_threads": threads},
    }
    return options[form]
