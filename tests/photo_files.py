"""Photos of every kind, what the decoder makes of them, and their pictures."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pillow_heif
from picture_writers import Tiff, long, rationals, short, tiff
from PIL import Image

from animed.imaging import encode
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted
from animed.imaging.icc import SRGB
from animed.imaging.metadata import Notes

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


def held(
    seen: NDArray[np.uint8],
    photo: NDArray[np.uint8] | None = None,
    *,
    native: NDArray[np.uint8] | None = None,
    detail: NDArray[np.uint8] | None = None,
) -> Decoded:
    """Return a photo as decoding gives it: what the network sees, and `photo` in the size of the picture."""
    photo = seen if photo is None else photo
    height, width = photo.shape[:2]
    profile = b"" if native is None else SRGB
    return Decoded(seen, photo, None, native, profile, width, height, "png", Notes(), detail)


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


def dng(mosaic: NDArray[np.uint16], *, orientation: int = 1, rendering: Image.Image | None = None) -> bytes:
    """Return an (H, W) mosaic of red, green, green and blue as an uncompressed DNG, with the camera's own rendering."""
    matrix = (3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570)  # XYZ to linear sRGB
    tags = {
        254: long(0),
        271: (2, b"Animed\x00", 7),
        272: (2, b"Test\x00", 5),
        274: short(orientation),
        33421: short(2, 2),
        33422: (1, bytes([0, 1, 1, 2]), 4),
        50706: (1, bytes([1, 4, 0, 0]), 4),
        50707: (1, bytes([1, 1, 0, 0]), 4),
        50708: (2, b"Animed Test\x00", 12),
        50717: long(65535),
        50721: rationals(*matrix, signed=True),
        50728: rationals(1, 1, 1),
        50778: short(21),
    }
    sensor = Tiff(32803, bits=16, tags=tags), mosaic
    if rendering is None:
        return tiff(sensor)
    packed = saved(rendering, "jpeg", quality=95)
    return tiff(sensor, (Tiff(6, tags={254: long(1), 259: short(7)}, coded=packed), np.asarray(rendering)))


def mosaic(image: Image.Image) -> NDArray[np.uint16]:
    """Return what a sensor with red, green, green and blue filters sees of an sRGB picture, linear, 16 bits."""
    unit = np.asarray(image.convert("RGB")).astype(float) / 255
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    deep = np.rint(linear * 60000).astype(np.uint16)
    seen: NDArray[np.uint16] = deep[..., 1].copy()
    seen[::2, ::2] = deep[::2, ::2, 0]
    seen[1::2, 1::2] = deep[1::2, 1::2, 2]
    return seen
