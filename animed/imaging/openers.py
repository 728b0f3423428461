"""From the bytes of a file to a picture that is opened but not decoded: which decoder, which page, which way up."""

from __future__ import annotations

import io
import re
import warnings
from typing import IO, TYPE_CHECKING, Final

from PIL import AvifImagePlugin, Image, PngImagePlugin, features
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from animed.errors import PhotoError
from animed.imaging import extents, heif, limits, metadata
from animed.imaging.faults import BROKEN
from animed.imaging.geometry import UPRIGHT
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from PIL.ImageFile import ImageFile

    from animed.imaging.sniff import Kind

# The plugins are called by name: nothing else that Pillow could read is reachable. A JPEG of several
# pictures (MPO, gain maps) is its first one.
_PLUGINS: Final[Mapping[Kind, Callable[[IO[bytes]], ImageFile]]] = {
    "jpeg": JpegImageFile,
    "png": PngImageFile,
    "webp": WebPImageFile,
    "tiff": TiffImageFile,
    "bmp": BmpImageFile,
    "gif": GifImageFile,
    "avif": AvifImageFile,
}
_OPTIONAL: Final = frozenset({"webp", "avif"})  # what a Pillow may be built without
_ANIMATED: Final = frozenset({"gif", "webp", "png", "avif"})  # the frames of a TIFF or an MPO are pages and views
_NEW_TYPE, _OLD_TYPE = 254, 255  # NewSubfileType, SubfileType
_BITS, _PLANES = 258, 284  # BitsPerSample, PlanarConfiguration
_APART: Final = 2  # a plane for each colour
_DEEP: Final = 16  # bits
_PART: Final = 1 | 4  # bits of NewSubfileType: reduced, a mask
_REDUCED: Final = 2  # as SubfileType says it
_PILLOWS_LIMIT: Final = 89_478_485  # pixels; it warns beyond, and refuses beyond twice as many

# Settings that are the libraries' modules' own. A worker computes with the threads that it was given and no more. Large
# colour profiles are sound; beyond this they are bombs.
AvifImagePlugin.DEFAULT_MAX_THREADS = 1
PngImagePlugin.MAX_TEXT_CHUNK = limits.PACKED
# Libraries warn of odd files. That is no failure, not even where warnings are errors; it is printed once for each text,
# and what a worker prints lands in the log.
_LIBRARIES: Final = r"(PIL|pillow_heif|animed\.imaging)(\.|$)"
_TOLERATED: Final = ("default", None, Warning, re.compile(_LIBRARIES), 0)  # the filter as `warnings` stores it


def opened(data: bytes, kind: Kind) -> ImageFile:
    """Open a file; of a TIFF the first page in full size. Raise PhotoError, or one of BROKEN."""
    if kind in _OPTIONAL and not features.check(kind):
        raise PhotoError(f"{Reason.UNSUPPORTED}:{kind}", f"this Pillow was built without {kind}")
    if kind == "heic":
        return heif.opened(data)
    image = _PLUGINS[kind](io.BytesIO(data))
    if isinstance(image, TiffImageFile):
        _turn_to_full_page(image)
        _read_planes_deep(image)
    return image


def moving(image: ImageFile, kind: Kind, data: bytes) -> bool:
    """Say whether a file holds an animation; the pages of a TIFF and the views of an MPO are none."""
    if kind == "heic":
        return heif.moving(data)
    return kind in _ANIMATED and bool(getattr(image, "is_animated", False))


def turn(image: Image.Image, kind: Kind) -> int:
    """Return the EXIF orientation, 1 … 8, that a loaded picture is still to be turned by."""
    if kind == "heic":
        return UPRIGHT  # libheif has turned it
    if kind == "avif" and not image.info.get("exif"):
        return UPRIGHT  # the boxes of the file count, as Pillow has put them into the EXIF; never what XMP says
    # A TIFF turns itself upright while it loads, and forgets its orientation then.
    return metadata.orientation(image)


def prepare(max_pixels: int) -> None:
    """Have the libraries' warnings printed, never raised, and Pillow's own limit of pixels give way to a larger one.

    Both are settings of the process; nothing but the thread that decodes depends on them.
    """
    Image.MAX_IMAGE_PIXELS = max(_PILLOWS_LIMIT, max_pixels)
    if _TOLERATED not in warnings.filters:
        warnings.filterwarnings("default", category=Warning, module=_LIBRARIES)


def _turn_to_full_page(image: TiffImageFile) -> None:
    """Go on to the first page that is neither a thumbnail nor a mask; stay where there is none."""
    for page in range(extents.DIRECTORIES):
        try:
            image.seek(page)
        except BROKEN:
            break
        if not (_whole(image.tag_v2.get(_NEW_TYPE)) & _PART or _whole(image.tag_v2.get(_OLD_TYPE)) == _REDUCED):
            return
    image.seek(0)


def _read_planes_deep(image: TiffImageFile) -> None:
    """Have planes of 16 bits without compression read as such: Pillow takes their bytes for pixels.

    Planes that it cannot read so (those of inks) are an error when they are loaded, and no picture of noise.
    """
    bits = image.tag_v2.get(_BITS)
    if image.tag_v2.get(_PLANES) != _APART or not isinstance(bits, tuple) or set(bits) != {_DEEP}:
        return
    order = "L" if image.tag_v2.prefix == b"II" else "B"
    image.tile = [
        tile._replace(args=(f"{tile.args[0]};16{order}", *tile.args[1:]))
        if tile.codec_name == "raw" and isinstance(tile.args, tuple)
        else tile
        for tile in image.tile
    ]


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
