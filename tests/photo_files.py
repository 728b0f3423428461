"""Photos of every kind, made by libraries where they write it, and by hand where they do not."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pillow_heif
from PIL import Image

from animed.imaging import encode
from animed.imaging.decode import Decoded, Wanted, decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.imaging.metadata import Imprint
    from animed.records import PictureFormat

UNDO = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # the transposition that a camera held so has done


def scene(width: int = 80, height: int = 60) -> Image.Image:
    """Return a smooth picture whose corners differ: red, green, blue and white from the upper left, clockwise."""
    corners = np.array([[[255, 0, 0], [0, 255, 0]], [[255, 255, 255], [0, 0, 255]]], np.uint8)
    return Image.fromarray(corners).resize((width, height), Image.Resampling.BILINEAR)


def noise(width: int = 96, height: int = 96, *, seed: int = 1) -> Image.Image:
    """Return a picture that no format packs well, light everywhere: grey or black would stand out."""
    return Image.fromarray(np.random.default_rng(seed).integers(160, 256, (height, width, 3), np.uint8))


def turned(upright: Image.Image, orientation: int) -> Image.Image:
    """Return a picture as a camera in this orientation (1 … 8) stores it."""
    return upright.transpose(Image.Transpose(UNDO[orientation])) if orientation in UNDO else upright


def saved(image: Image.Image, form: str = "png", **options: Any) -> bytes:
    """Return a picture in one of Pillow's formats, or as "heic"."""
    if form == "heic":
        return heic(image, **options)
    target = io.BytesIO()
    # Saving leaves settings of the format on a picture, so copies are saved.
    if "append_images" in options:
        options["append_images"] = [other.copy() for other in options["append_images"]]
    image.copy().save(target, form, **options)
    return target.getvalue()


def heic(image: Image.Image, *more: Image.Image, exif: bytes = b"", **options: Any) -> bytes:
    """Return a HEIC; the orientation in `exif` is written as boxes of the file, as phones do it."""
    target = io.BytesIO()
    file = pillow_heif.from_pillow(image)
    for other in more:
        file.add_from_pillow(other)
    file.save(target, exif=exif or None, **{"quality": 90} | options)
    return target.getvalue()


def decoded(data: bytes, *, name: bytes = b"", **wanted: Any) -> Decoded:
    """Return a decoded photo, which `name` tells the kind of where content does not; `wanted` are fields of Wanted."""
    found = decode(data, Wanted(**{"max_pixels": 10**8, "max_edge": 512, **wanted}), name=name)
    assert isinstance(found, Decoded)
    return found


def written(photo: Decoded, form: PictureFormat, quality: int = 92, *, imprint: Imprint | None = None) -> bytes:
    """Return a photo's picture as it is at strength 0: without the network, and else as every picture."""
    pixels = photo.photo if photo.native is None else photo.native
    coding = encode.Coding(form, quality)
    return encode.encode(pixels, coding, alpha=photo.alpha, profile=photo.profile, imprint=imprint)


def oriented(orientation: int) -> bytes:
    """Return EXIF that says how the camera was held."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def png(pixels: NDArray[Any], *, colour: int, chunks: bytes = b"") -> bytes:
    """Return an (H, W, C) array as a PNG of its own depth; `colour` is the format's number for what C means."""
    height, width = pixels.shape[:2]
    deep = pixels.astype(">u2") if pixels.dtype.itemsize == 2 else pixels
    rows = b"".join(b"\x00" + deep[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND")


def chunk(name: bytes, content: bytes = b"") -> bytes:
    """Return one chunk of a PNG."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def box(name: bytes, content: bytes = b"") -> bytes:
    """Return one box of the ISO base media format."""
    return struct.pack(">I", 8 + len(content)) + name + content


def segment(marker: int, content: bytes) -> bytes:
    """Return one segment of a JPEG."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


Entry = tuple[int, int, int, bytes]  # tag, type, count, value: four bytes, or what stands elsewhere


def short(tag: int, *values: int) -> Entry:
    """Return a TIFF entry of 16-bit numbers."""
    return tag, 3, len(values), struct.pack(f"<{len(values)}H", *values)


def long(tag: int, *values: int) -> Entry:
    """Return a TIFF entry of 32-bit numbers."""
    return tag, 4, len(values), struct.pack(f"<{len(values)}I", *values)


def tiff(*pages: tuple[list[Entry], bytes]) -> bytes:
    """Return a little-endian TIFF of pages, each with one strip, whose offset and length are filled in."""
    out = bytearray(b"II*\x00\x00\x00\x00\x00")
    link = 4
    for described, strip in pages:
        entries = sorted([*described, long(273, len(out)), long(279, len(strip))])
        out += strip + bytes(len(strip) % 2)
        written = b"".join(_entry(out, entry) for entry in entries)
        struct.pack_into("<I", out, link, len(out))
        out += struct.pack("<H", len(entries)) + written
        link = len(out)
        out += bytes(4)
    return bytes(out)


def _entry(out: bytearray, entry: Entry) -> bytes:
    """Return an entry as it stands in its directory; a long value goes to the end of `out`."""
    tag, kind, count, value = entry
    if len(value) > 4:
        out += value + bytes(len(value) % 2)
        value = struct.pack("<I", len(out) - len(value) - len(value) % 2)
    return struct.pack("<HHI", tag, kind, count) + value.ljust(4, b"\x00")


def page(pixels: NDArray[np.uint8], *extra: Entry) -> tuple[list[Entry], bytes]:
    """Return an (H, W, 3) picture as an uncompressed page for `tiff`."""
    height, width = pixels.shape[:2]
    entries = [
        *(long(256, width), long(257, height), short(258, 8, 8, 8), short(259, 1), short(262, 2), short(277, 3)),
        *(long(278, height), short(284, 1)),
    ]
    return [*entries, *extra], pixels.tobytes()


def rationals(tag: int, *values: float, signed: bool = False) -> Entry:
    """Return a TIFF entry of fractions."""
    code, kind = ("i", 10) if signed else ("I", 5)
    return tag, kind, len(values), b"".join(struct.pack(f"<2{code}", round(value * 10000), 10000) for value in values)


def dng(mosaic: NDArray[np.uint16], *, orientation: int = 1, rendering: Image.Image | None = None) -> bytes:
    """Return an (H, W) mosaic of red, green, green and blue as an uncompressed DNG, with the camera's own rendering."""
    height, width = mosaic.shape
    matrix = (3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570)  # XYZ to linear sRGB
    entries = [
        *(long(254, 0), long(256, width), long(257, height), short(258, 16), short(259, 1), short(262, 32803)),
        *((271, 2, 7, b"Animed\x00"), (272, 2, 5, b"Test\x00"), short(274, orientation), short(277, 1)),
        *(long(278, height), short(284, 1), short(33421, 2, 2), (33422, 1, 4, bytes([0, 1, 1, 2]))),
        *((50706, 1, 4, bytes([1, 4, 0, 0])), (50707, 1, 4, bytes([1, 1, 0, 0])), (50708, 2, 12, b"Animed Test\x00")),
        *(long(50717, 65535), rationals(50721, *matrix, signed=True), rationals(50728, 1, 1, 1), short(50778, 21)),
    ]
    sensor = entries, mosaic.astype("<u2").tobytes()
    if rendering is None:
        return tiff(sensor)
    sides = long(254, 1), long(256, rendering.width), long(257, rendering.height), long(278, rendering.height)
    sort = short(258, 8, 8, 8), short(259, 7), short(262, 6), short(277, 3)
    return tiff(sensor, ([*sides, *sort], saved(rendering, "jpeg", quality=95)))


def mosaic(image: Image.Image) -> NDArray[np.uint16]:
    """Return what a sensor with red, green, green and blue filters sees of an sRGB picture, linear, 16 bits."""
    unit = np.asarray(image.convert("RGB")).astype(float) / 255
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    deep = np.rint(linear * 60000).astype(np.uint16)
    seen: NDArray[np.uint16] = deep[..., 1].copy()
    seen[::2, ::2] = deep[::2, ::2, 0]
    seen[1::2, 1::2] = deep[1::2, 1::2, 2]
    return seen
