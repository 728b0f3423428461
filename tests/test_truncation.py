"""A file that ends too early never becomes a picture with a part missing, wherever it ends."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import photo_files
import pytest
from picture_writers import RGB, Tiff, bmp, bmp_rows, png, run_lengths
from PIL import Image

from animed.errors import PhotoError
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

CUTS: Final = 40  # for each format
WIDTH, HEIGHT = 96, 72
LEAST: Final = 1024  # bytes that were never written; a few zeros may be what was meant
HEAD: Final = 32  # bytes; what has fewer need not be known for what it is


@cache
def scene() -> NDArray[np.uint8]:
    """Return noise, which no compression makes small, above a last row of a colour that nothing else has."""
    pixels = np.random.default_rng(7).integers(0, 200, (HEIGHT, WIDTH, 3), np.uint8)
    pixels[-1] = (255, 0, 255)
    return pixels


def saved(form: str, **options: Any) -> bytes:
    return photo_files.saved(Image.fromarray(scene()), form, **options)


def frames(form: str, **options: Any) -> bytes:
    return saved(form, save_all=True, append_images=[Image.fromarray(scene()[::-1].copy())], **options)


def heic(**options: Any) -> bytes:
    return photo_files.heic(Image.fromarray(scene()), **options)


def indices() -> NDArray[Any]:
    return scene()[..., 0] // 8


def greys() -> list[tuple[int, int, int]]:
    return [(step * 8, step * 8, step * 8) for step in range(32)]


SIZE: Final = (WIDTH, HEIGHT)
FILES: Final[Mapping[str, Callable[[], bytes]]] = {
    "jpeg": lambda: saved("JPEG", quality=90),
    "jpeg progressive": lambda: saved("JPEG", quality=90, progressive=True),
    "mpo": lambda: frames("MPO"),
    "png": lambda: saved("PNG"),
    "png interlaced": lambda: png(scene(), RGB, 8, interlaced=True),
    "png 16": lambda: png(scene().astype(int) * 257, RGB, 16),
    "apng": lambda: frames("PNG"),
    "webp lossy": lambda: saved("WEBP", quality=90),
    "webp lossless": lambda: saved("WEBP", lossless=True),
    "webp animated": lambda: frames("WEBP", lossless=True),
    "tiff": lambda: saved("TIFF"),
    "tiff directory last": lambda: Tiff(2, rows=7).write(scene()),
    "tiff deflate": lambda: Tiff(2, rows=7, deflate=True).write(scene()),
    "tiff lzw": lambda: saved("TIFF", compression="tiff_lzw"),
    "tiff jpeg": lambda: saved("TIFF", compression="jpeg"),
    "tiff bigtiff": lambda: Tiff(2, big=True).write(scene()),
    "tiff planar": lambda: Tiff(2, planar=True).write(scene()),
    "tiff pages": lambda: frames("TIFF"),
    "bmp 24": lambda: saved("BMP"),
    "bmp 8": lambda: bmp(bmp_rows(indices(), 8), size=SIZE, bits=8, colours=greys()),
    "bmp 8 from the top": lambda: bmp(bmp_rows(indices()[::-1], 8), size=(WIDTH, -HEIGHT), bits=8, colours=greys()),
    "bmp runs": lambda: bmp(run_lengths(indices()), size=SIZE, bits=8, compression=1, colours=greys()),
    "gif": lambda: saved("GIF"),
    "gif animated": lambda: frames("GIF"),
    "avif": lambda: saved("AVIF", quality=90),
    "heic": heic,
}
# What was compressed hardly ever has so many zeros; without compression they are black.
SOUND: Final = [name for name in FILES if name.split()[0] in {"jpeg", "png", "apng", "webp", "gif", "avif", "heic"}]


def seen(data: bytes) -> NDArray[np.uint8] | str:
    """Return the pixels of a file, or the reason why it has none."""
    try:
        result = decode(data, Wanted(max_pixels=10**6, max_edge=512))
    except PhotoError as error:
        return error.reason if error.detail else "no detail"
    assert isinstance(result, Decoded)
    return result.pixels


def cuts(size: int) -> list[int]:
    """Return where a file is cut: evenly over its length, and by each of its last bytes."""
    return sorted({size * index // CUTS for index in range(CUTS)} | set(range(max(0, size - 6), size)))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_ends_early_gives_no_picture_or_all_of_it(name: str) -> None:
    """Cut anywhere, a file is refused; only where nothing but an unneeded end is gone its picture is the whole one."""
    data = FILES[name]()
    whole = seen(data)
    assert isinstance(whole, np.ndarray)
    for end in cuts(len(data)):
        found = seen(data[:end])
        if isinstance(found, str):
            # A file that is still being written is tried again; one that is none of ours is not.
            assert found == "truncated" or end < HEAD, f"{found} after {end} of {len(data)} bytes"
        else:
            assert (found == whole).all(), f"a picture with a part missing, of {end} of {len(data)} bytes"


@pytest.mark.parametrize("name", SOUND)
def test_a_file_whose_end_was_never_written_gives_no_picture(name: str) -> None:
    """Programs that reserve a file's room first leave zeros where the rest is to come."""
    data = FILES[name]()
    whole = seen(data)
    for end in cuts(len(data) - LEAST):
        found = seen(data[:end].ljust(len(data), b"\0"))
        assert isinstance(found, str) or (found == whole).all(), f"a picture of {end} of {len(data)} bytes"
