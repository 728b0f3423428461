"""How much memory a picture takes on its way, by its size and format alone: known before anything is decoded.

The figures are measured (docs/performance.md), rounded up, and in bytes for each pixel.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animed.imaging.sniff import Kind
    from animed.records import PictureFormat

# While a decoder works: its own pictures and the one that it gives. Of a JPEG that is decoded at a fraction, that part.
_DECODING: Final[Mapping[Kind, int]] = {"webp": 14, "avif": 14, "heic": 16, "gif": 12, "raw": 16}
_PLAIN: Final = 8  # of all others: one picture of four bytes a pixel, and once more where it is converted
_HELD: Final = 4  # a decoded picture, while the photo's pixels are made of it
_COLOURS: Final = 3
_CLEAR: Final = 1
_WRITTEN: Final = 4  # the encoder's own copy
# What encoders take besides. A JPEG's coefficients, and a buffer for the whole of the file.
_ENCODING: Final[Mapping[PictureFormat, int]] = {"jpeg": 10, "png": 3, "webp": 10, "avif": 38}
AVIF_COARSE: Final = 32  # with colour at half the resolution; alpha, which is not known before, included
# What AVIF's encoder asks for, which is more than it uses, and what the C library asks for beyond that. Its library is
# ended by the kernel where it gets none.
_ASKED: Final = {False: 56, True: 76}  # without and with alpha
_BEYOND: Final = 320 << 20


@dataclass(frozen=True, slots=True)
class Way:
    """What is done with a photo."""

    kind: Kind
    form: PictureFormat
    decoded: int  # pixels that the decoder gives
    picture: int  # pixels of the picture
    full: bool  # the picture has the photo's own size
    native: bool = False  # the photo's own colours are kept beside sRGB
    coarse: bool = False  # colour is written at half the resolution


def most(way: Way) -> int:
    """Return the bytes that a photo takes at most, beside what a worker holds anyway."""
    return max(_to_load(way), _to_draw(way), _to_write(way))


def _to_load(way: Way) -> int:
    decoding = _DECODING.get(way.kind, _PLAIN) * way.decoded
    photo = (_HELD + _kept(way)) * way.decoded if way.full else 0
    return max(decoding, photo)


def _to_draw(way: Way) -> int:
    return (_kept(way) + _COLOURS + 1) * way.picture if way.full else 0  # the last: a quarter of the photo as guide


def _to_write(way: Way) -> int:
    encoder = AVIF_COARSE if way.form == "avif" and way.coarse else _ENCODING[way.form]
    return (_COLOURS + _CLEAR + _WRITTEN + encoder) * way.picture


def _kept(way: Way) -> int:
    return _COLOURS + _CLEAR + (_COLOURS if way.native else 0)


def reserve_avif(pixels: int, *, alpha: bool) -> None:
    """Make sure that a limit of this process has room for encoding an AVIF of so many pixels. Raise MemoryError."""
    reserve(_ASKED[alpha] * pixels + _BEYOND)


def reserve_webp(pixels: int) -> None:
    """Make sure that a limit of this process has room for decoding a WebP of so many pixels. Raise MemoryError."""
    reserve(_DECODING["webp"] * pixels)


def reserve(size: int) -> None:
    """Make sure that a limit of this process has room for so many bytes. Raise MemoryError."""
    if not size:
        return
    try:
        # Private memory, as the limit counts it; it is not touched, so it is not taken.
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise MemoryError(f"{size >> 20} MiB cannot be had") from error
