"""What becomes of a decoded photo: strength, the photo's own size and colours, and signs of life."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from photo_files import held
from PIL import Image

from animed.imaging import colour, geometry, rendering, upsample
from animed.imaging.icc import SRGB
from animed.records import Recipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.imaging.decoded import Decoded

    Pixels = NDArray[np.uint8]

RECIPE = Recipe("cel", "0" * 64, "half_pixel", 1.0, 64, "same", 92, exif=True, gps=True, output_size="original")


def decoded(height: int, width: int, edge: int = 64, *, native: bool = False) -> Decoded:
    photo = np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8)
    seen = np.asarray(Image.fromarray(photo).resize(geometry.fit(width, height, edge), Image.Resampling.LANCZOS))
    return held(seen, photo, native=255 - photo if native else None)


def negative(seen: Pixels) -> Pixels:
    return 255 - seen


def silent() -> None:
    """Hear a beat, and do nothing."""


def render(photo: Decoded, strength: float = 1.0) -> Pixels:
    return rendering.render(photo, replace(RECIPE, strength=strength), negative, silent)


@pytest.mark.parametrize("native", [False, True])
def test_strength_0_is_the_photo_without_a_look_at_the_network(native: bool) -> None:
    """At full size too, the photo's own pixels come back, in its own colours where those are kept."""

    def draw(_seen: Pixels) -> Pixels:
        pytest.fail("the network ran")

    photo = decoded(90, 300, native=native)
    own = photo.native if native else photo.photo
    assert np.array_equal(rendering.render(photo, replace(RECIPE, strength=0), draw, silent), np.asarray(own))


@pytest.mark.parametrize("size", [(40, 30), (100, 130), (180, 330)])
def test_strength_mixes_at_the_size_of_the_photo(size: tuple[int, int]) -> None:
    """Half of the strength is half of the way from the photo to the whole style, for each full-size pixel."""
    photo = decoded(*size)
    whole, half = render(photo), render(photo, 0.5)
    assert whole.shape == half.shape == photo.photo.shape
    assert np.abs(half - (whole / 2 + photo.photo / 2)).max() <= 0.5
    assert np.array_equal(whole, upsample.enlarge(negative(photo.pixels), photo.pixels, photo.photo))


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_strips_are_the_same_as_the_whole(strength: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are converted and mixed in strips, and no value depends on where they are cut."""
    photo = decoded(150, 90, native=True)
    strips = render(photo, strength)
    monkeypatch.setattr(rendering, "BAND", 1000)
    assert np.array_equal(render(photo, strength), strips)
    if strength == 1:
        full = upsample.enlarge(negative(photo.pixels), photo.pixels, photo.photo)
        assert np.array_equal(strips, colour.from_srgb(full, SRGB))


def test_a_large_photo_shows_that_it_goes_on() -> None:
    """Enlarging and mixing beat, so that a worker on a huge photo is not taken for one that hangs."""
    beats: list[int] = []
    photo = decoded(1200, 20)
    rendering.render(photo, replace(RECIPE, strength=0.5), negative, lambda: beats.append(1))
    assert len(beats) >= 1200 // upsample.BAND + 1200 // rendering.BAND
