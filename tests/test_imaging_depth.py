"""Every mode that Pillow decodes to becomes bytes: scaled and never clipped, black 0, white 255, clear parts clear."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from photo_files import decoded, saved
from picture_writers import Tiff
from PIL import Image

from animed.imaging import colour


def greys(data: bytes) -> list[int]:
    """Return the first row of a picture, which must be grey."""
    pixels = decoded(data).pixels
    assert np.ptp(pixels, axis=2).max() == 0
    return [int(value) for value in pixels[0, :, 0]]


WHOLE = [0, 256, 32768, 65279, 65535, 65535]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (Tiff(1, bits=16).write(np.array([WHOLE], np.uint16)), [0, 1, 128, 254, 255, 255]),
        (saved(Image.fromarray(np.array([WHOLE], np.uint16))), [0, 1, 128, 254, 255, 255]),
        (Tiff(0, bits=16).write(np.array([WHOLE], np.uint16)), [255, 254, 127, 1, 0, 0]),
        (Tiff(1, bits=12).write(np.array([[0, 16, 2048, 4095]], np.uint16)), [0, 1, 128, 255]),
        (Tiff(1, bits=16, signed=True).write(np.array([[-32768, 0, 32767]], np.int16)), [0, 128, 255]),
        (Tiff(1, bits=16, signed=True).write(np.array([[0, 16384, 32767]], np.int16)), [0, 128, 255]),
        (Tiff(1, bits=32).write(np.array([[0, 2**31, 2**32 - 1]], np.uint32)), [0, 128, 255]),
        (Tiff(1, bits=32, signed=True).write(np.array([[0, 128, 255]], np.int32)), [0, 128, 255]),
        (Tiff(1, bits=32, floats=True).write(np.array([[0, 0.5, 1]], np.float32)), [0, 128, 255]),
        (Tiff(1, bits=32, floats=True).write(np.array([[0, 1, 2]], np.float32)), [0, 128, 255]),
        (Tiff(1, bits=32, floats=True).write(np.array([[0, 128, 255]], np.float32)), [0, 128, 255]),
        (Tiff(1, bits=32, floats=True).write(np.array([[-1, 0, 1]], np.float32)), [0, 128, 255]),
        (Tiff(1, bits=32, floats=True).write(np.array([[0.25, np.nan, 1, np.inf]], np.float32)), [64, 0, 255, 255]),
    ],
)  # fmt: skip
def test_deep_greys_are_scaled(data: bytes, expected: list[int]) -> None:
    """White is 255, black 0 and the middle the middle, for every width and sort of number."""
    assert greys(data) == expected


def test_deep_colours_are_scaled() -> None:
    """Sixteen bits a colour become eight: white stays white, black black, and nothing is off by more than a step."""
    values = np.array([[[0, 0, 0], [65535, 65535, 65535], [32768, 256, 65000]]], np.uint16)
    body = values.astype("<u2").tobytes()
    entries = [
        (256, 4, 1, 3), (257, 4, 1, 1), (258, 3, 3, 200), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 206),
        (277, 3, 1, 3), (278, 4, 1, 1), (279, 4, 1, len(body)), (284, 3, 1, 1),
    ]  # fmt: skip
    head = b"II*\x00\x08\x00\x00\x00" + struct.pack("<H", 10)
    head += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    data = head.ljust(200, b"\0") + struct.pack("<3H", 16, 16, 16) + body
    pixels = decoded(data).pixels[0].astype(int)
    assert pixels[:2].tolist() == [[0] * 3, [255] * 3]
    assert np.abs(pixels - values[0] / 257).max() <= 1


@pytest.mark.parametrize("mode", ["I;16", "I;16L", "I;16B"])
def test_the_order_of_bytes_does_not_matter(mode: str) -> None:
    """Modes of 16 bits that differ in their order of bytes give the same picture."""
    order = ">u2" if mode == "I;16B" else "<u2"
    image = Image.frombytes(mode, (3, 1), np.array([0, 32768, 65535], order).tobytes())
    plain = colour.plain(image, colour.depth(image))
    assert (plain.mode, list(plain.tobytes())) == ("L", [0, 128, 255])


RED = (200, 40, 30)


@pytest.mark.parametrize(
    ("mode", "value", "plain_mode", "shown"),
    [
        ("1", 1, "L", (255, 255, 255)),
        ("L", 77, "L", (77, 77, 77)),
        ("LA", (77, 128), "LA", (77, 77, 77)),
        ("La", (50, 128), "LA", (100, 100, 100)),
        ("RGB", RED, "RGB", RED),
        ("RGBA", (*RED, 128), "RGBA", RED),
        ("RGBX", (*RED, 9), "RGB", RED),
        ("RGBa", (100, 20, 15, 128), "RGBA", (199, 40, 30)),
        ("CMYK", (0, 128, 255, 64), "CMYK", (191, 95, 0)),
        ("YCbCr", (81, 99, 213), "RGB", (200, 31, 30)),
        ("HSV", (2, 217, 200), "RGB", (200, 38, 30)),
    ],
)
def test_every_mode_has_a_plain_one(mode: str, value: Any, plain_mode: str, shown: tuple[int, int, int]) -> None:
    """Each mode becomes one that can be resized, with the same colour and its alpha."""
    plain = colour.plain(image := Image.new(mode, (4, 4), value), colour.depth(image))
    assert plain.mode == plain_mode
    base, alpha = colour.split(plain)
    assert base.mode == colour.space(image)
    assert (alpha is None) == ("A" not in plain_mode)
    pixel = base.convert("RGB").getpixel((1, 1))
    assert isinstance(pixel, tuple)
    assert np.abs(np.subtract(pixel, shown)).max() <= 1


def palette(mode: str = "P") -> Image.Image:
    """Return a picture of two colours by number: 0 is red, 1 is blue."""
    image = Image.fromarray(np.array([[0, 1]], np.uint8), "P") if mode == "P" else Image.new(mode, (2, 1))
    image.putpalette([*RED, 0, 0, 250])
    return image


@pytest.mark.parametrize(
    ("data", "alpha"),
    [
        (saved(palette(), transparency=1), [255, 0]),
        (saved(palette(), transparency=b"\x80\x00"), [128, 0]),
        (saved(Image.fromarray(np.array([[9, 77]], np.uint8)), transparency=77), [255, 0]),
        (saved(Image.fromarray(np.array([[9, 770]], np.uint16)), transparency=770), [255, 0]),
        (saved(Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)), transparency=(4, 5, 6)), [255, 0]),
        (saved(Image.fromarray(np.array([[[9, 255], [9, 7]]], np.uint8), "LA")), [255, 7]),
    ],
)
def test_every_way_to_be_clear_is_alpha(data: bytes, alpha: list[int]) -> None:
    """A clear number, a palette with alpha and a channel of alpha all end as the same: alpha."""
    result = decoded(data)
    assert result.alpha is not None
    assert result.alpha[0].tolist() == alpha


def test_the_clear_number_of_a_gif_is_alpha() -> None:
    """A GIF with a clear colour keeps its shape."""
    target = io.BytesIO()
    palette().save(target, "GIF", transparency=1)
    result = decoded(target.getvalue())
    assert result.alpha is not None
    assert result.alpha[0].tolist() == [255, 0]
    assert np.abs(result.pixels[0, 0].astype(int) - RED).max() <= 1


@given(
    values=st.sampled_from(["u2", "i4", "f4"]).flatmap(
        lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
    )
)
@settings(deadline=None, max_examples=150)
def test_brighter_stays_brighter(values: np.ndarray[Any, Any]) -> None:
    """Whatever numbers a grey picture has, infinite ones and none at all included, their order is kept."""
    image = Image.fromarray(values)
    shown = np.asarray(colour.plain(image, colour.depth(image))).ravel()
    numbers = values.ravel().astype(np.float64)
    order = np.argsort(numbers[np.isfinite(numbers)], kind="stable")
    assert (np.diff(shown[np.isfinite(numbers)][order].astype(int)) >= 0).all()
