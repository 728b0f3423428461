"""Sizes come out exactly, for every width and height from one pixel on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.imaging import geometry

sides = st.integers(1, 6000)


@given(width=sides, height=sides, edge=st.integers(1, 2048))
def test_a_photo_fits_and_keeps_its_proportions(width: int, height: int, edge: int) -> None:
    """No side is longer than allowed, none is enlarged, and the shape is off by less than a pixel."""
    wide, high = geometry.fit(width, height, edge)
    assert 1 <= wide <= min(width, max(edge, 1))
    assert 1 <= high <= min(height, max(edge, 1))
    if max(width, height) > edge:
        assert max(wide, high) == edge
        scale = edge / max(width, height)
        assert abs(wide - width * scale) <= 0.5 or wide == 1
        assert abs(high - height * scale) <= 0.5 or high == 1
    else:
        assert (wide, high) == (width, height)


@given(width=st.integers(1, 70), height=st.integers(1, 70), seed=st.integers(0, 99))
@settings(deadline=None)
def test_padding_and_cropping_undo_each_other(width: int, height: int, seed: int) -> None:
    """The network sees multiples of 4, at least 16, and the photo comes back untouched."""
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)
    padded = geometry.pad(pixels)
    assert padded.shape[:2] == geometry.padded(width, height)[::-1]
    assert all(side % 4 == 0 and side >= 16 for side in padded.shape[:2])
    assert padded.shape[0] - height < max(4, 17 - height)
    assert padded.shape[1] - width < max(4, 17 - width)
    assert np.array_equal(geometry.crop(padded, width, height), pixels)


def test_every_small_size_is_padded_and_cropped() -> None:
    """All sizes from one pixel to 40 by 40, thin ones too: nothing but the photo's own colours is added."""
    for height in range(1, 41):
        for width in range(1, 41):
            pixels = np.arange(height * width * 3).reshape(height, width, 3).astype(np.uint8)
            padded = geometry.pad(pixels)
            assert padded.shape == (*geometry.padded(width, height)[::-1], 3)
            assert np.array_equal(geometry.crop(padded, width, height), pixels)
            assert np.isin(padded, pixels).all()


def test_the_border_is_a_mirror() -> None:
    """What is added looks like what is there: the last row once, then back; a tiny side goes back and forth."""
    pixels = np.arange(18, dtype=np.uint8)[:, None, None].repeat(16, 1).repeat(3, 2)
    assert geometry.pad(pixels)[16:, 0, 0].tolist() == [16, 17, 16, 15]
    assert geometry.pad(pixels[:3])[:, 0, 0].tolist() == [0, 1, 2, 1] * 4
    assert geometry.pad(pixels[5:6])[:, 0, 0].tolist() == [5] * 16


@pytest.mark.parametrize(
    ("size", "seen"), [((8000, 400), (1024, 51)), ((400, 8000), (51, 1024)), ((65_000, 2), (1024, 1)), ((1, 1), (1, 1))]
)
def test_panoramas_keep_a_side(size: tuple[int, int], seen: tuple[int, int]) -> None:
    """Twenty to one stays twenty to one; the shorter side never goes away."""
    assert geometry.fit(*size, 1024) == seen


def test_a_fitting_photo_is_not_copied() -> None:
    """Where nothing is to be added nothing is done."""
    pixels = np.zeros((32, 48, 3), np.uint8)
    assert geometry.pad(pixels) is pixels
