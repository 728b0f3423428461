"""Bytes and numbers in [-1, 1] are turned into each other without loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.errors import PhotoError
from animed.imaging import tensors


def every_byte() -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)


def test_every_byte_survives_the_way_there_and_back() -> None:
    """All 256 values come back, white among them: numbers are rounded, not cut."""
    tensor = tensors.to_tensor(every_byte())
    assert tensor.shape == (1, 3, 16, 16)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert (float(tensor.min()), float(tensor.max())) == (-1, 1)
    assert np.array_equal(tensors.to_pixels(tensor), every_byte())


def test_numbers_are_rounded_to_the_nearest_step() -> None:
    """254.6 is white, not 254."""
    tensor = torch.full((1, 3, 1, 1), 254.6 / 127.5 - 1)
    assert tensors.to_pixels(tensor)[0, 0].tolist() == [255, 255, 255]


def test_a_view_of_a_larger_picture_is_taken_as_it_looks() -> None:
    """Cropped and flipped arrays are not contiguous, and mean what they show."""
    view = every_byte()[::-1, 3:9]
    assert np.array_equal(tensors.to_pixels(tensors.to_tensor(view)), view)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    """One value that is not finite fails the photo rather than blackening it."""
    tensor = torch.zeros(1, 3, 4, 4)
    tensor[0, 1, 2, 3] = value
    with pytest.raises(PhotoError) as caught:
        tensors.to_pixels(tensor)
    assert caught.value.reason == "not_finite"


@given(strength=st.floats(0, 1), seed=st.integers(0, 50))
@settings(deadline=None)
def test_strength_goes_from_the_photo_to_the_style(strength: float, seed: int) -> None:
    """Every byte lies between photo and style, at the nearest step to its share."""
    chance = np.random.default_rng(seed)
    photo, style = (chance.integers(0, 256, (5, 7, 3), np.uint8) for _ in range(2))
    mixed = tensors.blend(photo, style, strength)
    exact = photo + strength * (style.astype(float) - photo)
    assert mixed.dtype == np.uint8
    assert np.abs(mixed - exact).max() <= 0.5 + 1e-3


def test_the_ends_of_strength_are_exact() -> None:
    """0 is the photo and 1 is the style, byte for byte."""
    photo, style = every_byte(), 255 - every_byte()
    assert np.array_equal(tensors.blend(photo, style, 0.0), photo)
    assert np.array_equal(tensors.blend(photo, style, 1.0), style)
