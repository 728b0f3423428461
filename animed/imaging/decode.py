"""Bytes of a file to upright sRGB pixels, of the size that the network sees and of the size of the picture.

Every fault of a file ends as a PhotoError. One thread decodes at a time: Python's warning filters are the process's.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Literal

from PIL import Image, features
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile, jpeg_factory
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from animed.errors import PhotoError
from animed.imaging import geometry, metadata, sniff
from animed.imaging.develop import develop
from animed.records import Reason, Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray
    from PIL.ImageFile import ImageFile

    from animed.imaging.metadata import Notes
    from animed.imaging.sniff import Kind
    from animed.records import Icc

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
BROKEN: Final = (
    *(OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, OverflowError),
    *(ZeroDivisionError, AssertionError, RuntimeError, struct.error, zlib.error),
)
_SIDEWAYS: Final = 5  # from this orientation on, width and height change places


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is made of a file."""

    max_pixels: int
    max_edge: int  # longest side that the network sees, pixels
    animated: Literal["first", "skip"] = "first"
    full: bool = False  # the picture is to have the photo's own size
    icc: Icc = "srgb"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A photo as the network takes it, and what its picture is made of besides."""

    pixels: NDArray[np.uint8]  # (H, W, 3) sRGB, upright, at most max_edge long: what the network sees
    photo: NDArray[np.uint8]  # (H', W', 3) sRGB in the size of the picture: `pixels` itself unless that is another one
    alpha: NDArray[np.uint8] | None  # (H', W') 0 clear … 255 opaque; None where all is opaque
    native: NDArray[np.uint8] | None  # (H', W', 3) in the space of `profile`; None where `photo` is
    profile: bytes  # the ICC profile that the picture carries; empty for none
    width: int  # of the photo, after orientation
    height: int
    kind: Kind
    notes: Notes  # for the picture's own metadata


def decode(data: bytes, wanted: Wanted, *, name: bytes = b"") -> Decoded | Skip:
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
            return _decode(data, kind, wanted)
    except Image.DecompressionBombError as error:
        # A frame that is larger than the header said; Pillow's own limit holds there.
        raise PhotoError(Reason.TOO_LARGE, str(error).partition(",")[0]) from error
    except BROKEN as error:
        raise _fault(kind, data, error) from error


def _decode(data: bytes, kind: Kind, wanted: Wanted) -> Decoded | Skip:
    """Decode without the net of `decode` below it."""
    image = _PLUGINS[kind](io.BytesIO(data))
    _limit(image.size, wanted.max_pixels)
    if wanted.animated == "skip" and kind in _ANIMATED and getattr(image, "is_animated", False):
        return Skip("animated")
    size = None if wanted.full else _draft(image, wanted.max_edge)
    image.load()
    if sniff.hollow(kind, data):
        raise PhotoError(Reason.TRUNCATED, "the file is filled with zeros from some point on")
    # A TIFF turns itself upright while it loads, and forgets its orientation then.
    turn = metadata.orientation(image)
    width, height = size or image.size
    if turn >= _SIDEWAYS:
        width, height = height, width
    developed = develop(image, turn, wanted)
    return Decoded(
        developed.pixels,
        developed.photo,
        alpha=developed.alpha,
        native=developed.native,
        profile=developed.profile,
        width=width,
        height=height,
        kind=kind,
        notes=metadata.extract(image),
    )


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
