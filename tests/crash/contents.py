"""The files that writers bring: small photos that carry a mark, and what looks like photos and is none."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Final

import pillow_heif
from PIL import ExifTags, Image

from .story import Content

if TYPE_CHECKING:
    import random

SMALLEST: Final = 48  # pixels
LARGEST: Final = 128
EXTENSIONS: Final = ("jpg", "png", "webp", "avif", "tif", "heic")
_FORMATS: Final = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP", "avif": "AVIF", "tif": "TIFF"}
_LOSSLESS: Final = ("png", "tif")
_SCALES: Final = (1.0, 1.0, 0.8, 0.6)  # of a photo that is saved again
BAD: Final = ("text", "cut", "cut", "empty", "huge")


def good(dice: random.Random, mark: str, ext: str) -> tuple[bytes, Content]:
    """Return a photo of a few coloured boxes with its mark in the EXIF title."""
    shape = dice.randint(SMALLEST, LARGEST), dice.randint(SMALLEST, LARGEST)
    picture = Image.new("RGB", shape, _colour(dice))
    for _ in range(6):
        left, top = dice.randrange(shape[0]), dice.randrange(shape[1])
        picture.paste(_colour(dice), (left, top, left + dice.randint(4, 60), top + dice.randint(4, 60)))
    data = _saved(picture, mark, ext, dice.randint(80, 95))
    return data, Content.of(data, mark, shape)


def resaved(dice: random.Random, data: bytes, mark: str, ext: str) -> tuple[bytes, Content]:
    """Return a photo as other programs save it once more: the same scene and the same mark in other bytes.

    Other programs make it smaller, too. `data` is of any kind but HEIC.
    """
    with Image.open(io.BytesIO(data)) as picture:
        scale = dice.choice(_SCALES)
        shape = round(picture.width * scale), round(picture.height * scale)
        again = _saved(picture.convert("RGB").resize(shape), mark, ext, dice.randint(75, 95))
    return again, Content.of(again, mark, shape)


def _saved(picture: Image.Image, mark: str, ext: str, quality: int) -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = mark
    out = io.BytesIO()
    if ext == "heic":
        # Not through Pillow: what registers the format there would do so for the tests of the product, too.
        pillow_heif.from_pillow(picture).save(out, quality=quality, exif=exif.tobytes())
    else:
        picture.save(out, _FORMATS[ext], exif=exif, **({} if ext in _LOSSLESS else {"quality": quality}))
    return out.getvalue()


def bad(dice: random.Random, mark: str, kind: str, ext: str = "jpg") -> tuple[bytes, Content]:
    """Return what is named like a photo and is none, with the reasons for which it may fail."""
    if kind == "empty":
        data, reasons = b"", ("empty",)
    elif kind == "huge":
        data, reasons = _huge_header() + mark.encode(), ("too_large",)
    elif kind == "cut":
        whole, _ = good(dice, mark, ext)
        data, reasons = whole[: len(whole) * 2 // 3], ("truncated",)
    else:
        data, reasons = f"{mark} is no picture\n".encode() * dice.randint(1, 40), ("not_an_image",)
    return data, Content.of(data, mark, None, reasons)


def mark_of(picture: Image.Image) -> str:
    """Return the mark that a picture carries; empty when it has none."""
    return str(picture.getexif().get(ExifTags.Base.ImageDescription, ""))


def _colour(dice: random.Random) -> tuple[int, int, int]:
    return dice.randrange(256), dice.randrange(256), dice.randrange(256)


def _huge_header() -> bytes:
    """Return a PNG that claims 30,000 by 30,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
