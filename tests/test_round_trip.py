"""Strength 0 in the photo's own size gives the photo back: everything but the network, within one encoding."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_bench import Bench
from photo_files import saved
from PIL import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.uint8]

# What a network of 48 pixels would see of these is far less than the photo.
SMALL: Final[dict[str, Any]] = {"max_edge": 48, "output_size": "original"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("inbox"))


def scene(width: int = 150, height: int = 101) -> Array:
    """Return a picture with slow and quick changes, edges and noise of little strength."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(4).integers(-6, 7, (height, width, 3))
    waves = np.stack((x * 255 / width, y * 255 / height, 127 + 120 * np.sin(x * y / 400)), axis=-1)
    waves[20:60, 30:90] = (250, 240, 10)
    return (waves + noise).clip(0, 255).astype(np.uint8)


def pixels(data: bytes, mode: str = "RGB") -> Array:
    return np.asarray(Image.open(io.BytesIO(data)).convert(mode))


def distance(one: Array, other: Array) -> float:
    """Return the root of the mean square of the differences."""
    return float(np.sqrt(np.mean((one.astype(float) - other.astype(float)) ** 2)))


@pytest.mark.parametrize(
    ("form", "options"),
    [("PNG", {}), ("TIFF", {}), ("BMP", {}), ("WEBP", {"lossless": True}), ("TIFF", {"compression": "tiff_lzw"})],
)
def test_lossless_photos_come_back_exactly(bench: Bench, form: str, options: dict[str, Any]) -> None:
    """Every pixel of a lossless photo is in its PNG picture."""
    drawn = bench.draw(saved(Image.fromarray(scene()), form, **options), output_format="png", **SMALL)
    assert (drawn.pixels()[..., :3] == scene()).all()
    assert (drawn.said.out_width, drawn.said.out_height) == (150, 101)


@pytest.mark.parametrize("mode", ["L", "P", "1", "LA"])
def test_other_modes_come_back_exactly(bench: Bench, mode: str) -> None:
    """So is every pixel of a grey or a paletted one, as colours."""
    photo = Image.fromarray(scene()).convert("L" if mode == "LA" else mode)
    if mode == "LA":
        photo.putalpha(Image.fromarray(scene()[..., 1]))
    drawn = bench.draw(saved(photo, "PNG"), **SMALL)
    found, expected = drawn.pixels(), np.asarray(photo.convert("RGBA"))
    assert (found[..., 3] == expected[..., 3]).all()
    visible = expected[..., 3] > 0
    assert (found[visible] == expected[visible]).all()


def test_visible_pixels_of_a_transparent_photo_come_back_exactly(bench: Bench) -> None:
    """Alpha comes back as it was; colours do wherever anything of them may be seen."""
    photo = np.dstack((scene(), np.roll(scene()[..., 2], 40, axis=0)))
    photo[:30, :30, 3] = 0
    drawn = bench.draw(saved(Image.fromarray(photo), "PNG"), **SMALL)
    found = drawn.pixels()
    assert (found[..., 3] == photo[..., 3]).all()
    assert (found[photo[..., 3] > 0] == photo[photo[..., 3] > 0]).all()


def test_deep_photos_come_back_within_rounding(bench: Bench) -> None:
    """16 bits become the nearest 8."""
    deep = scene()[..., 0].astype(np.uint16) * 257
    drawn = bench.draw(saved(Image.fromarray(deep), "TIFF"), **SMALL)
    assert np.abs(drawn.pixels()[..., 0].astype(int) - scene()[..., 0]).max() <= 1


@pytest.mark.parametrize("quality", [75, 92])
@pytest.mark.parametrize("form", ["jpeg", "webp", "avif"])
def test_lossy_photos_are_encoded_once(bench: Bench, form: str, quality: int) -> None:
    """A lossy picture is no further from the decoded photo than one plain encoding of it is."""
    data = saved(Image.fromarray(scene()), form.upper(), quality=90)
    drawn = bench.draw(data, quality=quality, output_format=form, **SMALL)
    photo = pixels(data)
    rate = {} if form == "webp" else {"subsampling": "4:4:4" if quality >= 90 else "4:2:0"}
    once = pixels(saved(Image.fromarray(photo), form.upper(), quality=quality, **rate))
    assert distance(drawn.pixels()[..., :3], photo) <= distance(once, photo) * 1.02 + 0.05


@settings(deadline=None, max_examples=25)
@given(width=st.integers(1, 70), height=st.integers(1, 70), edge=st.integers(16, 64), alpha=st.booleans())
def test_any_size_comes_back(bench: Bench, width: int, height: int, edge: int, *, alpha: bool) -> None:
    """From a single pixel on, whatever the network's size would be."""
    photo = scene(70, 70)[:height, :width]
    if alpha:
        photo = np.dstack((photo, np.full(photo.shape[:2], 200, np.uint8)))
    drawn = bench.draw(saved(Image.fromarray(photo), "PNG"), max_edge=edge, output_size="original")
    assert (drawn.pixels()[..., : photo.shape[2]] == photo).all()
