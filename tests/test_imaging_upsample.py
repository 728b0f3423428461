"""A picture at its photo's full size: exact size, within the style's bounds, crisp, flat where the style is flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from animed.imaging import geometry, upsample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]


def noise(height: int, width: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def reduced(photo: Pixels, edge: int) -> Pixels:
    height, width = photo.shape[:2]
    size = geometry.fit(width, height, edge)
    return np.asarray(Image.fromarray(photo).resize(size, Image.Resampling.LANCZOS))


def disc(side: int) -> Pixels:
    """Draw a light disc on a dark ground, fine, and reduce it as a lens would."""
    fine = 4 * side
    rows, columns = np.mgrid[:fine, :fine] - fine / 2
    inside = rows**2 + columns**2 < (0.3 * fine) ** 2
    image = Image.fromarray(np.where(inside, 220, 30).astype(np.uint8)).resize((side, side), Image.Resampling.BOX)
    return np.asarray(image.convert("RGB"))


def rise(picture: Pixels) -> int:
    """Count the pixels of the first edge, along the middle row, that belong to neither side of it."""
    row = picture[picture.shape[0] // 2, : picture.shape[1] // 2, 0].astype(int)
    low, high = row.min(), row.max()
    return int(((row > low + 0.1 * (high - low)) & (row < high - 0.1 * (high - low))).sum())


@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    edge=st.integers(1, 150),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=40)
def test_no_value_leaves_the_range_of_its_surroundings(width: int, height: int, edge: int, seed: int) -> None:
    """Whatever style and photo hold, the size is the photo's, and no pixel is beyond what the style has close by."""
    photo = noise(height, width, seed)
    seen = reduced(photo, edge)
    style = noise(seen.shape[0], seen.shape[1], seed + 1)
    full = upsample.enlarge(style, seen, photo)
    assert full.shape == photo.shape
    assert full.dtype == np.uint8
    rows = ((np.arange(height) + 0.5) * len(style) / height).astype(int)
    columns = ((np.arange(width) + 0.5) * style.shape[1] / width).astype(int)
    near = 3
    around = np.pad(style, ((near, near), (near, near), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(around, (2 * near + 1,) * 2, axis=(0, 1))[rows][:, columns]
    assert (full >= windows.min((-2, -1))).all()
    assert (full <= windows.max((-2, -1))).all()


@pytest.mark.parametrize("size", [(90, 120), (200, 301), (517, 640)])
def test_a_flat_style_stays_flat_whatever_the_photo_is(size: tuple[int, int]) -> None:
    """No noise of the photo comes back."""
    photo = noise(*size)
    seen = reduced(photo, 64)
    style = np.full_like(seen, (10, 200, 90))
    assert (upsample.enlarge(style, seen, photo) == (10, 200, 90)).all()


@pytest.mark.parametrize("side", [230, 512, 640])
def test_edges_are_crisp(side: int) -> None:
    """An edge of the photo, drawn in other colours, is at most half as wide as in a picture that is just enlarged."""
    photo = disc(side)
    seen = reduced(photo, 100)
    style = (255 - 0.7 * seen).astype(np.uint8)
    plain = np.asarray(Image.fromarray(style).resize((side, side), Image.Resampling.BICUBIC))
    assert rise(upsample.enlarge(style, seen, photo)) <= max(1, rise(plain) / 2)


def test_a_drawn_line_is_crisp_where_the_photo_has_none() -> None:
    """What the network adds has no edge in the photo to stand on, and comes out sharper all the same."""
    photo = np.full((512, 512, 3), 128, np.uint8)
    seen = reduced(photo, 128)
    style = reduced(disc(512), 128)
    plain = np.asarray(Image.fromarray(style).resize((512, 512), Image.Resampling.BICUBIC))
    assert rise(upsample.enlarge(style, seen, photo)) <= 0.7 * rise(plain)


def test_a_slope_stays_a_slope() -> None:
    """A sky that grows brighter is not cut into steps."""
    ramp = np.linspace(20, 235, 600)[None, :, None].repeat(400, 0).repeat(3, 2).astype(np.uint8)
    seen = reduced(ramp, 100)
    away = upsample.enlarge(seen, seen, ramp).astype(int) - ramp
    assert np.abs(away[:, 20:-20]).max() <= 3


def test_an_edge_stands_where_the_photo_has_it() -> None:
    """A style with the photo's own colours comes out closer to the photo than by plain enlarging."""
    photo = disc(400)
    style = np.asarray(Image.fromarray(photo).resize((100, 100), Image.Resampling.BOX))
    plain = np.asarray(Image.fromarray(style).resize((400, 400), Image.Resampling.BICUBIC))

    def far(picture: Pixels) -> float:
        return float(np.abs(picture.astype(int) - photo).mean())

    assert far(upsample.enlarge(style, reduced(photo, 100), photo)) < 0.4 * far(plain)


@pytest.mark.parametrize("size", [(150, 170), (401, 333)])
def test_bands_are_the_same_as_the_whole(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """How many rows are computed at a time does not change a single value, in one step and in two."""
    photo = noise(*size)
    seen = reduced(photo, 100)
    style = noise(seen.shape[0], seen.shape[1], 1)
    banded = upsample.enlarge(style, seen, photo)
    monkeypatch.setattr(upsample, "BAND", 10_000)
    assert np.array_equal(upsample.enlarge(style, seen, photo), banded)


def test_a_long_work_shows_that_it_goes_on() -> None:
    """Every band of rows is a sign of life."""
    photo = noise(2000, 40)
    beats: list[int] = []
    upsample.enlarge(noise(200, 4), reduced(photo, 200), photo, lambda: beats.append(1))
    assert len(beats) >= 2000 // upsample.BAND


def test_a_picture_of_the_photos_size_is_left_alone() -> None:
    """Where the network saw the whole photo nothing is done."""
    photo, style = noise(30, 40), noise(30, 40, 1)
    assert upsample.enlarge(style, photo.copy(), photo) is style


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (3, 1), (1, 5000), (5000, 1), (2, 3001), (400, 8000)])
def test_thin_photos_come_out(size: tuple[int, int]) -> None:
    """One pixel, one row, one column and panoramas keep size and colour."""
    photo = np.full((*size, 3), (200, 100, 50), np.uint8)
    seen = reduced(photo, 256)
    assert (upsample.enlarge(seen, seen, photo) == photo).all()
