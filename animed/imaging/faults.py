"""What goes wrong with a file, told in the words of the log: truncated, unsupported, too large, damaged."""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Final

from PIL import Image

from animed.errors import PhotoError
from animed.imaging import ends, extents
from animed.records import Reason

if TYPE_CHECKING:
    from animed.imaging.sniff import Kind

# All that Pillow and the libraries below it were seen to raise for broken files.
BROKEN: Final = (
    *(OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, OverflowError),
    *(ZeroDivisionError, AssertionError, RuntimeError, struct.error, zlib.error, Image.DecompressionBombError),
)
# How decoders say that they refuse a size …
_LARGE: Final = re.compile(r"(?i)exceeds limit|decompressed data too large|too much memory used|security.limit")
# … that data are missing …
_SHORT: Final = re.compile(r"(?i)truncated|unexpected end of file|outside of file bounds|insufficient input data")
# … and that a file may be sound, but is of a sort that they do not read.
_FOREIGN: Final = re.compile(
    r"(?i)unsupported|not supported|cannot handle|not configured|"
    r"unknown (?:compression|pixel mode|raw mode|data organi)"
)
# Ways to pack a TIFF that its library may be built without: JBIG, JPEG 2000, LERC, LZMA, Zstandard, WebP, JPEG XL.
_RARE: Final = frozenset({34661, 34712, 34887, 34925, 50000, 50001, 50002})


def fault(kind: Kind, data: bytes, error: Exception) -> PhotoError:
    """Tell a file that ends too early, and may still be completed, from one that is damaged or of an unknown sort."""
    cause = " ".join(str(error).split()) or type(error).__name__
    if _LARGE.search(cause):
        return PhotoError(Reason.TOO_LARGE, f"{kind}: {cause}")
    if _SHORT.search(cause) or ends.ends_early(kind, data) or ends.unwritten(kind, data):
        return PhotoError(Reason.TRUNCATED, f"the {kind} file ends too early: {cause}")
    if _FOREIGN.search(cause):
        return PhotoError(f"{Reason.UNSUPPORTED}:{kind}", f"this sort of {kind} file cannot be read: {cause}")
    if kind == "tiff" and (method := extents.first(data).compression) in _RARE:
        return PhotoError(f"{Reason.UNSUPPORTED}:tiff", f"the tiff file is packed by method {method}: {cause}")
    return PhotoError(Reason.NOT_AN_IMAGE, f"damaged {kind} file: {cause}")
