"""Sizes come out exactly, for every width and height from one pixel on."""

from __future__ import annotations

import numpy as np
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
    """The network sees multiples of 16, at least 16, and the photo comes back untouched."""
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)
    padded = geometry.pad(pixels)
    assert padded.shape[:2] == geometry.padded(width, height)[::-1]
    assert all(side % 16 == 0 and side >= 16 for side in padded.shape[:2])
    assert padded.shape[0] - height < 16
    assert padded.shape[1] - width < 16
    assert np.array_equal(geometry.crop(padded, width, height), pixels)


def test_the_border_is_a_mirror() -> None:
    """What is added looks like what is there: the last row once, then back."""
    pixels = np.arange(14, dtype=np.uint8)[:, None, None].repeat(16, 1).repeat(3, 2)
    assert geometry.pad(pixels)[12:, 0, 0].tolist() == [12, 13, 12, 11]


def test_a_fitting_photo_is_not_copied() -> None:
    """Where nothing is to be added nothing is done."""
    pixels = np.zeros((32, 48, 3), np.uint8)
    assert geometry.pad(pixels) is pixels
