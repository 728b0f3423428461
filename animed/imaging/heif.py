"""HEIC and HEIF: the primary picture of a file, by libheif.

The library turns and mirrors a picture as the file's own boxes say, and only these count: the orientation that EXIF or
XMP repeat is not to be applied again.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import pillow_heif
from pillow_heif import HeifImageFile

from animed.imaging import blocks

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_SEQUENCES: Final = frozenset({b"msf1", b"hevc", b"hevx", b"hevm", b"hevs"})

# The library's own settings are its module's. A worker computes with the threads that it was given and no more; the
# smaller pictures that travel in a file are of no use here, and each would be looked at when a file is opened.
pillow_heif.options.DECODE_THREADS = 1
pillow_heif.options.THUMBNAILS = False
pillow_heif.options.DEPTH_IMAGES = False
pillow_heif.options.AUX_IMAGES = False


def opened(data: bytes) -> ImageFile:
    """Open the primary picture of a file, without decoding it; 10 and 12 bits are scaled to 8 when it is loaded.

    Raise SyntaxError where it is broken, or of a codec that is not there.
    """
    return HeifImageFile(io.BytesIO(data))  # type: ignore[no-untyped-call]  # the library gives no type here


def moving(data: bytes) -> bool:
    """Say whether a file is a sequence of pictures: by its first brand, or because it has a track like a video."""
    return data[8:12] in _SEQUENCES or any(block.name == b"moov" for block in blocks.boxes(data))
