"""The same twelve colours in every mode of every format that animed reads, as bytes of files."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pillow_heif
from picture_writers import (
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGBA,
    Tiff,
    bmp,
    bmp_rows,
    nibble_runs,
    palette,
    png,
    run_lengths,
)
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Build = Callable[[], bytes]

DATA: Final = Path(__file__).parent / "data"
SIDE: Final = 16  # pixels of a patch: whole blocks of every lossy format
COLUMNS, ROWS = 4, 3
COLOURS: Final = (
    (255, 255, 255, 255), (0, 0, 0, 255), (128, 128, 128, 255), (255, 0, 0, 255),
    (0, 255, 0, 255), (0, 0, 255, 255), (224, 172, 105, 255), (64, 160, 150, 128),
    (240, 130, 20, 64), (250, 230, 40, 255), (32, 32, 32, 255), (90, 60, 200, 0),
)  # fmt: skip


def spread(patches: Array) -> Array:
    """Return 12 patch values (12,) or (12, C) as a picture of 4 by 3 patches."""
    grid = patches.reshape(ROWS, COLUMNS, *patches.shape[1:])
    picture: Array = grid.repeat(SIDE, axis=0).repeat(SIDE, axis=1)
    return picture


def middles(picture: Array) -> Array:
    """Return the mean of the inner quarter of each of the 12 patches of an (H, W, C) picture, as (12, C)."""
    quarter, half = SIDE // 4, SIDE // 2
    boxes = picture.reshape(ROWS, SIDE, COLUMNS, SIDE, -1)[:, quarter : quarter + half, :, quarter : quarter + half]
    means: Array = boxes.mean(axis=(1, 3)).reshape(ROWS * COLUMNS, -1)
    return means


def _rgba() -> Array:
    return np.array(COLOURS, np.int64)


def _rgb() -> Array:
    return _rgba()[:, :3]


def _grey() -> Array:
    """Return the patches' greys: their greens, which all differ enough."""
    return _rgba()[:, 1]


def _deep(values: Array) -> Array:
    """Return bytes as 16-bit values that are no multiples: the nearest byte is still the same one."""
    deep: Array = np.clip(values * 257 + np.where(values % 2, 100, -100), 0, 65535)
    return deep


def _saved(mode: str, values: Array, form: str, **options: Any) -> bytes:
    target = io.BytesIO()
    _image(mode, values).save(target, form, **options)
    return target.getvalue()


def _image(mode: str, values: Array) -> Image.Image:
    picture = spread(values.astype(np.uint8))
    return Image.frombytes(mode, (COLUMNS * SIDE, ROWS * SIDE), picture.tobytes())


def image(mode: str) -> Image.Image:
    """Return the patches as an RGB, RGBA or CMYK picture."""
    return _image(mode, {"RGB": _rgb, "RGBA": _rgba, "CMYK": _cmyk}[mode]())


def _indices(count: int = 12) -> Array:
    return np.arange(12) % count


def _paletted(count: int, depth: int, alpha: bytes = b"") -> bytes:
    """Return a PNG with a palette of `count` colours."""
    early = [palette(COLOURS[:count])] + ([(b"tRNS", alpha)] if alpha else [])
    return png(spread(_indices(count)), PALETTE, depth, early=early)


def _ratio(values: Array) -> Array:
    return values / 255


def _cmyk() -> Array:
    """Return inks that a press could print: no black under full colours, some of it under dark ones."""
    rgb = _rgb() / 255
    black = 1 - rgb.max(axis=1, keepdims=True)
    inks = np.where(black < 1, (1 - rgb - black) / np.maximum(1 - black, 1e-9), 0)
    values: Array = np.rint(np.hstack((inks, black)) * 255).astype(np.int64)
    return values


def without_adobe(data: bytes) -> bytes:
    """Return a JPEG without its Adobe segment."""
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + struct.unpack_from(">H", data, at + 2)[0] :]


def _transform(data: bytes, code: int) -> bytes:
    """Return a JPEG whose Adobe segment names another colour transform: 0 none, 1 YCbCr, 2 YCCK."""
    at = data.index(b"Adobe") + 11
    return data[:at] + bytes((code,)) + data[at + 1 :]


def _ycck() -> bytes:
    """Return a JPEG in YCCK: inks as YCbCr as if they were RGB, and inverted black."""
    inks = _cmyk()
    as_ycc = np.asarray(Image.fromarray(inks[None, :, :3].astype(np.uint8)).convert("YCbCr"))[0]
    # What is written is inverted on its way into the file, which YCC is not to be.
    values = np.hstack((255 - as_ycc.astype(np.int64), inks[:, 3:]))
    return _transform(_saved("CMYK", values, "JPEG", quality=100), 2)


def _lab() -> Array:
    """Return the patches in CIE Lab as TIFF has it: L from 0 to 255, a and b signed bytes."""
    values = [(100, 0, 0), (0, 0, 0), (53.6, 0, 0), (54, 80, 69), (70, -40, 40), (30, 20, -60), (74, 13, 41),
              (60, -28, -3), (65, 35, 66), (90, -8, 80), (12, 0, 0), (38, 30, -55)]  # fmt: skip
    lab = np.array(values)
    return np.column_stack((np.rint(lab[:, 0] * 2.55), np.rint(lab[:, 1:]).astype(np.int64) & 255)).astype(np.int64)


def _multiplied() -> Array:
    """Return the patches with their colours multiplied by their alpha."""
    rgba = _rgba()
    return np.hstack((np.rint(rgba[:, :3] * rgba[:, 3:] / 255), rgba[:, 3:])).astype(np.int64)


def _indexed(size: int = 256) -> Image.Image:
    """Return a picture with a palette that holds the colours."""
    image = _image("P", _indices())
    image.putpalette([value for colour in COLOURS for value in colour[:3]] + [0] * 3 * (size - 12))
    return image


def _tiff(values: Array, **layout: Any) -> bytes:
    return Tiff(**layout).write(spread(values))


def _tiff_palette() -> bytes:
    table = np.zeros((3, 256), "<u2")
    table[:, :12] = _rgb().T * 257
    return Tiff(3, tags={320: (3, table.tobytes(), 768)}).write(spread(_indices()))


def _of(image: Image.Image, form: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()


def _frames(form: str, **options: Any) -> bytes:
    """Return an animation whose second picture is the first one upside down."""
    first = _image("RGBA", _rgba())
    second = first.transpose(Image.Transpose.ROTATE_180)
    return _of(first, form, save_all=True, append_images=[second], **options)


def _mpo() -> bytes:
    first = _image("RGB", _rgb())
    second = first.transpose(Image.Transpose.ROTATE_180)
    return _of(first, "MPO", save_all=True, append_images=[second], quality=95, subsampling=0)


def _pages() -> bytes:
    first = _image("RGB", _rgb())
    return _of(first, "TIFF", save_all=True, append_images=[first.transpose(Image.Transpose.ROTATE_180)])


def _heic(mode: str, values: Array, depth: int = 8) -> bytes:
    picture = spread(values)
    deep = depth > 8
    data = (picture.astype("<u2") if deep else picture.astype(np.uint8)).tobytes()
    file = pillow_heif.from_bytes(f"{mode};16" if deep else mode, (COLUMNS * SIDE, ROWS * SIDE), data)
    target = io.BytesIO()
    pillow_heif.options.SAVE_HDR_TO_12_BIT = depth == 12
    try:
        file.save(target, quality=-1 if mode == "L" else 100, chroma=444)
    finally:
        pillow_heif.options.SAVE_HDR_TO_12_BIT = False
    return target.getvalue()


def _bmp(values: Array, bits: int, **options: Any) -> bytes:
    return bmp(bmp_rows(spread(values), bits), size=(COLUMNS * SIDE, ROWS * SIDE), bits=bits, **options)


def _words(red: int, green: int, blue: int) -> Array:
    """Return the patches as 16-bit words with so many bits for each colour."""
    rgb = _rgb()
    parts = [np.rint(rgb[:, index] / 255 * (2**bits - 1)).astype(np.int64) for index, bits in
             enumerate((red, green, blue))]  # fmt: skip
    joined: Array = (parts[0] << (green + blue)) | (parts[1] << blue) | parts[2]
    return joined


def _dwords() -> Array:
    rgba = _rgba()
    joined: Array = (rgba[:, 3] << 24) | (rgba[:, 0] << 16) | (rgba[:, 1] << 8) | rgba[:, 2]
    return joined


_SIZE: Final = (COLUMNS * SIDE, ROWS * SIDE)
_BILEVEL: Final = np.array([1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1])
SAMPLES: Final[Mapping[str, Build]] = {
    "png grey 1": lambda: png(spread(_BILEVEL), GREY, 1),
    "png grey 2": lambda: png(spread(_grey() // 64), GREY, 2),
    "png grey 4": lambda: png(spread(_grey() // 16), GREY, 4),
    "png grey 8": lambda: png(spread(_grey()), GREY, 8),
    "png grey 16": lambda: png(spread(_deep(_grey())), GREY, 16),
    "png grey 8 tRNS": lambda: png(spread(_grey()), GREY, 8, early=[(b"tRNS", struct.pack(">H", 60))]),
    "png grey 16 tRNS": lambda: png(spread(_grey() * 257), GREY, 16, early=[(b"tRNS", struct.pack(">H", 60 * 257))]),
    "png grey alpha 8": lambda: png(spread(_rgba()[:, [1, 3]]), GREY_ALPHA, 8),
    "png grey alpha 16": lambda: png(spread(_rgba()[:, [1, 3]] * 257), GREY_ALPHA, 16),
    "png rgb 8": lambda: png(spread(_rgb()), RGB, 8),
    "png rgb 8 tRNS": lambda: png(spread(_rgb()), RGB, 8, early=[(b"tRNS", struct.pack(">HHH", 90, 60, 200))]),
    "png rgb 8 interlaced": lambda: png(spread(_rgb()), RGB, 8, interlaced=True),
    "png rgb 16": lambda: png(spread(_deep(_rgb())), RGB, 16),
    "png rgba 8": lambda: png(spread(_rgba()), RGBA, 8),
    "png rgba 16": lambda: png(spread(_rgba() * 257), RGBA, 16),
    "png palette 1": lambda: _paletted(2, 1),
    "png palette 2": lambda: _paletted(4, 2),
    "png palette 4": lambda: _paletted(12, 4),
    "png palette 8": lambda: _paletted(12, 8),
    "png palette 8 alpha": lambda: _paletted(12, 8, bytes(colour[3] for colour in COLOURS)),
    "png palette 8 one clear": lambda: _paletted(12, 8, b"\xff" * 3 + b"\0"),
    "apng": lambda: _frames("PNG"),
    "jpeg grey": lambda: _saved("L", _grey(), "JPEG", quality=100),
    "jpeg 4:4:4": lambda: _saved("RGB", _rgb(), "JPEG", quality=100, subsampling=0),
    "jpeg 4:2:0": lambda: _saved("RGB", _rgb(), "JPEG", quality=100, subsampling=2),
    "jpeg progressive": lambda: _saved("RGB", _rgb(), "JPEG", quality=100, progressive=True),
    "jpeg cmyk adobe": lambda: _saved("CMYK", _cmyk(), "JPEG", quality=100),
    "jpeg cmyk without adobe": lambda: without_adobe(_saved("CMYK", _cmyk(), "JPEG", quality=100)),
    "jpeg ycck": _ycck,
    "jpeg rgb adobe": lambda: _saved("RGB", _rgb(), "JPEG", quality=100, keep_rgb=True),
    "mpo": _mpo,
    "tiff 1 white is 0": lambda: _tiff(_BILEVEL, photometric=0, bits=1),
    "tiff 1 black is 0": lambda: _tiff(_BILEVEL, photometric=1, bits=1),
    "tiff grey 4": lambda: _tiff(_grey() // 16, photometric=1, bits=4),
    "tiff grey 8": lambda: _tiff(_grey(), photometric=1),
    "tiff grey 8 white is 0": lambda: _tiff(255 - _grey(), photometric=0),
    "tiff grey 16": lambda: _tiff(_deep(_grey()), photometric=1, bits=16),
    "tiff grey 16 big-endian": lambda: _tiff(_deep(_grey()), photometric=1, bits=16, order=">"),
    "tiff grey 32 float": lambda: _tiff(_ratio(_grey()), photometric=1, bits=32, floats=True),
    "tiff grey alpha 8": lambda: _tiff(_rgba()[:, [1, 3]], photometric=1, extra=2),
    "tiff rgb 8": lambda: _tiff(_rgb(), photometric=2),
    "tiff rgb 8 strips": lambda: _tiff(_rgb(), photometric=2, rows=5, deflate=True),
    "tiff rgb 8 predictor": lambda: _tiff(_rgb(), photometric=2, deflate=True, predictor=True),
    "tiff rgb 8 planar": lambda: _tiff(_rgb(), photometric=2, planar=True),
    "tiff rgb 8 bigtiff": lambda: _tiff(_rgb(), photometric=2, big=True),
    "tiff rgb 8 lzw": lambda: _saved("RGB", _rgb(), "TIFF", compression="tiff_lzw"),
    "tiff rgb 8 packbits": lambda: _saved("RGB", _rgb(), "TIFF", compression="packbits"),
    "tiff rgb 8 jpeg": lambda: _saved("RGB", _rgb(), "TIFF", compression="jpeg", quality=100),
    "tiff rgb 8 pages": _pages,
    "tiff rgb 16": lambda: _tiff(_deep(_rgb()), photometric=2, bits=16),
    "tiff rgb 16 big-endian": lambda: _tiff(_deep(_rgb()), photometric=2, bits=16, order=">"),
    "tiff rgb 16 deflate": lambda: _tiff(_deep(_rgb()), photometric=2, bits=16, deflate=True),
    "tiff rgb 16 planar": lambda: _tiff(_deep(_rgb()), photometric=2, bits=16, planar=True),
    "tiff rgb 16 planar big-endian": lambda: _tiff(_deep(_rgb()), photometric=2, bits=16, planar=True, order=">"),
    "tiff rgb 16 planar deflate": lambda: _tiff(_deep(_rgb()), photometric=2, bits=16, planar=True, deflate=True),
    "tiff rgba 16 planar": lambda: _tiff(_rgba() * 257, photometric=2, bits=16, extra=2, planar=True, rows=5),
    "tiff rgba 8": lambda: _tiff(_rgba(), photometric=2, extra=2),
    "tiff rgba 8 multiplied": lambda: _tiff(_multiplied(), photometric=2, extra=1),
    "tiff rgba 16": lambda: _tiff(_rgba() * 257, photometric=2, bits=16, extra=2),
    "tiff cmyk 8": lambda: _tiff(_cmyk(), photometric=5),
    "tiff cmyk 8 planar": lambda: _tiff(_cmyk(), photometric=5, planar=True),
    "tiff cmyk 16": lambda: _tiff(_cmyk() * 257, photometric=5, bits=16),
    "tiff lab 8": lambda: _tiff(_lab(), photometric=8),
    "tiff palette": _tiff_palette,
    "bmp 1": lambda: _bmp(_indices(2), 1, colours=COLOURS[:2]),
    "bmp 4": lambda: _bmp(_indices(), 4, colours=COLOURS),
    "bmp 8": lambda: _bmp(_indices(), 8, colours=COLOURS),
    "bmp 8 runs": lambda: bmp(run_lengths(spread(_indices())), size=_SIZE, bits=8, compression=1, colours=COLOURS),
    "bmp 4 runs": lambda: bmp(nibble_runs(spread(_indices())), size=_SIZE, bits=4, compression=2, colours=COLOURS),
    "bmp 16": lambda: _bmp(_words(5, 5, 5), 16),
    "bmp 16 masks": lambda: _bmp(_words(5, 6, 5), 16, compression=3, masks=(0xF800, 0x07E0, 0x001F)),
    "bmp 24": lambda: bmp(bmp_rows(spread(_rgb()[:, ::-1]).reshape(48, -1), 8), size=_SIZE, bits=24),
    "bmp 32": lambda: _bmp(_dwords() & 0xFFFFFF, 32),
    "bmp 32 alpha": lambda: _bmp(_dwords(), 32, compression=3, masks=(0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
    "gif": lambda: _of(_indexed(), "GIF"),
    "gif one clear": lambda: _of(_indexed(), "GIF", transparency=11),
    "gif animated": lambda: _frames("GIF"),
    "webp lossy": lambda: _saved("RGB", _rgb(), "WEBP", quality=100),
    "webp lossless": lambda: _saved("RGB", _rgb(), "WEBP", lossless=True),
    "webp lossless alpha": lambda: _saved("RGBA", _rgba(), "WEBP", lossless=True, exact=True),
    "webp lossy alpha": lambda: _saved("RGBA", _rgba(), "WEBP", quality=100),
    "webp animated": lambda: _frames("WEBP", lossless=True),
    "avif 8": lambda: _saved("RGB", _rgb(), "AVIF", quality=100, subsampling="4:4:4"),
    "avif 8 4:2:0": lambda: _saved("RGB", _rgb(), "AVIF", quality=100, subsampling="4:2:0"),
    "avif 8 alpha": lambda: _saved("RGBA", _rgba(), "AVIF", quality=100, subsampling="4:4:4"),
    "avif 10": (DATA / "ten_bits.avif").read_bytes,  # OpenCV made it from "png rgb 16"
    "avif grey": lambda: _saved("L", _grey(), "AVIF", quality=100),
    "heic 8": lambda: _heic("RGB", _rgb()),
    "heic 8 alpha": lambda: _heic("RGBA", _rgba()),
    "heic grey": lambda: _heic("L", _grey()),
    "heic 10": lambda: _heic("RGB", _rgb() * 257, 10),
    "heic 10 alpha": lambda: _heic("RGBA", _rgba() * 257, 10),
    "heic 12": lambda: _heic("RGB", _rgb() * 257, 12),
}
# Sound files of sorts that are not read: each is refused for the reason beside it, and never drawn wrong.
REFUSED: Final[Mapping[str, tuple[Build, str]]] = {
    "tiff rgb 32 float": (lambda: _tiff(_ratio(_rgb()), photometric=2, bits=32, floats=True), "unsupported:tiff"),
    "tiff cmyk 16 planar": (lambda: _tiff(_cmyk() * 257, photometric=5, bits=16, planar=True), "unsupported:tiff"),
    "tiff rgb 32": (lambda: _tiff(_rgb() * 16843009, photometric=2, bits=32), "unsupported:tiff"),
    "bmp 24 masks": (
        lambda: _bmp(_dwords() & 0xFFFFFF, 32, compression=3, masks=(0x3FF, 0xFFC00, 0x3FF00000)),
        "unsupported:bmp",
    ),
}
