"""Pixels become a file of the format that was asked for, which opens again and shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import photo_files
import pytest
from metadata_files import opened

from animed.errors import PhotoError
from animed.imaging.encode import (
    MOST_EDGE,
    Coding,
    _avif_speed,
    coding,
    demand_fit,
    encode,
    output_format,
)
from animed.imaging.metadata import Imprint
from animed.records import SUFFIXES, PictureFormat, Recipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.imaging.sniff import Kind
    from animed.records import OutputFormat, Subsampling

FORMATS: Final[tuple[PictureFormat, ...]] = ("jpeg", "png", "webp", "avif")
RECIPE: Final = Recipe("cel", "0" * 64, "half_pixel", 1.0, 64, "same", 92, exif=True, gps=True)
SAMPLING: Final = {"4:4:4": (1, 1), "4:2:2": (2, 1), "4:2:0": (2, 2)}


def scene(width: int = 80, height: int = 60) -> NDArray[np.uint8]:
    return np.asarray(photo_files.scene(width, height))


def lines() -> NDArray[np.uint8]:
    """Return thin red lines, which only full colour resolution keeps."""
    pixels = np.zeros((32, 32, 3), np.uint8)
    pixels[:, ::2] = (255, 0, 0)
    return pixels


def loss(pixels: NDArray[np.uint8], data: bytes) -> float:
    return float(np.abs(np.asarray(opened(data).convert("RGB")).astype(int) - pixels).mean())


def factors(jpeg: bytes) -> tuple[int, int]:
    """Return how many columns and rows of brightness share one value of colour."""
    (_, wide, high, _), (_, *colour, _), _ = opened(jpeg).layer  # type: ignore[attr-defined]  # of JPEG alone
    assert colour == [1, 1]
    return wide, high


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("quality", [50, 92])
def test_pictures_open_again(form: PictureFormat, quality: int) -> None:
    """What is written is of the format that its name says, and shows the picture."""
    data = encode(scene(), Coding(form, quality))
    assert opened(data).format == form.upper()
    assert SUFFIXES[form][1:] in {form, "jpg"}
    assert loss(scene(), data) < 8


@pytest.mark.parametrize("form", FORMATS)
def test_an_odd_size_of_one_pixel_is_a_picture(form: PictureFormat) -> None:
    """Every format takes pictures of one pixel, one row and one column."""
    for width, height in ((1, 1), (1, 37), (37, 1)):
        assert opened(encode(scene(width, height), Coding(form))).size == (width, height)


@pytest.mark.parametrize("form", ["png", "webp", "avif"])
def test_alpha_is_given_back(form: PictureFormat) -> None:
    """The formats that can keep transparency keep it exactly; jpeg shows the picture on white."""
    alpha = np.full((60, 80), 255, np.uint8)
    alpha[:, :40] = 0
    seen = opened(encode(scene(), Coding(form), alpha=alpha))
    assert (np.asarray(seen.getchannel("A")) == alpha).all()
    flat = np.asarray(opened(encode(scene(), Coding("jpeg", 100), alpha=alpha)))
    assert flat[:, :32].min() > 250


@pytest.mark.parametrize("form", ["jpeg", "avif"])
def test_high_quality_keeps_colour_at_full_resolution(form: PictureFormat) -> None:
    """With auto thin coloured lines survive at quality 90 and above."""
    coarse, fine = (loss(lines(), encode(lines(), Coding(form, quality))) for quality in (89, 90))
    assert coarse > 3 * fine


@pytest.mark.parametrize("wanted", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("quality", [50, 95])
def test_the_resolution_of_colour_is_as_was_said(wanted: Subsampling, quality: int) -> None:
    """A named subsampling holds at every quality, in jpeg as its header says, and in avif as its lines show."""
    assert factors(encode(scene(), Coding("jpeg", quality, wanted))) == SAMPLING[wanted]
    full = loss(lines(), encode(lines(), Coding("avif", quality, "4:4:4")))
    assert (loss(lines(), encode(lines(), Coding("avif", quality, wanted))) > 2 * full) is (wanted != "4:4:4")


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_fails_for_a_subsampling_it_does_not_know(form: PictureFormat) -> None:
    """An inbox with `same` writes all formats with one setting."""
    for wanted in SAMPLING:
        encode(scene(), Coding(form, 92, wanted))  # type: ignore[arg-type]  # the keys are the words


def test_jpeg_comes_in_passes_unless_that_is_unwanted() -> None:
    """`progressive: false` writes the jpeg that every old device shows, with the same pixels."""
    passes, plain = (encode(scene(), Coding("jpeg", progressive=progressive)) for progressive in (True, False))
    assert opened(passes).info.get("progressive") == 1
    assert "progressive" not in opened(plain).info
    assert (np.asarray(opened(passes)) == np.asarray(opened(plain))).all()


@pytest.mark.parametrize(("form", "most"), [("jpeg", 65_500), ("webp", 16_383)])
def test_the_longest_side_of_a_format_is_known(form: PictureFormat, most: int) -> None:
    """A picture of just the longest side is written, one that is a pixel longer is refused before it is tried."""
    assert opened(encode(np.zeros((1, most, 3), np.uint8), Coding(form, 50))).size == (most, 1)
    with pytest.raises(PhotoError, match=rf"1\u00d7{most + 1} is too large for {form}.* {most} .*output_format: png"):
        encode(np.zeros((most + 1, 1, 3), np.uint8), Coding(form, 50))


def test_large_avif_pictures_are_written_faster() -> None:
    """The larger a picture is, the less time each of its pixels gets; none is without a speed."""
    speeds = [_avif_speed(pixels) for pixels in (1, 4_000_000, 4_000_001, 32_000_001, 10**9)]
    assert speeds == [6, 6, 8, 9, 9]


def test_a_picture_that_is_too_large_is_of_the_reason_encode() -> None:
    """Each format but png has its limit; png takes what there is."""
    for form in ("jpeg", "webp", "avif"):
        with pytest.raises(PhotoError) as caught:
            demand_fit(form, 10, MOST_EDGE[form] + 1)
        assert caught.value.reason == "encode"
    demand_fit("png", 10, 10**6)
    assert opened(encode(np.zeros((2, 70_000, 3), np.uint8), Coding("png"))).size == (70_000, 2)


def test_what_cannot_be_encoded_is_a_photo_error() -> None:
    """What the library refuses ends as the reason encode, which says what was tried."""
    with pytest.raises(PhotoError, match="80x60 as jpeg") as caught:
        encode(scene(), Coding("jpeg"), imprint=Imprint(exif=b"x" * 70_000))
    assert caught.value.reason == "encode"


@pytest.mark.parametrize(
    ("kind", "wanted", "form"),
    [
        ("jpeg", "same", "jpeg"),
        ("png", "same", "png"),
        ("webp", "same", "webp"),
        ("avif", "same", "avif"),
        ("heic", "same", "jpeg"),
        ("raw", "same", "jpeg"),
        ("tiff", "same", "png"),
        ("bmp", "same", "png"),
        ("gif", "same", "png"),
        ("tiff", "jpeg", "jpeg"),
        ("jpeg", "avif", "avif"),
    ],
)
def test_the_format_of_a_picture(kind: Kind, wanted: OutputFormat, form: PictureFormat) -> None:
    """`same` keeps what can be written, photos become JPEG and drawings PNG; any other word is obeyed."""
    assert output_format(kind, wanted) == form


def test_every_way_of_writing_is_part_of_the_recipe() -> None:
    """What is written follows the recipe, and a change of it makes another recipe."""
    changed = Recipe(
        "cel", "0" * 64, "half_pixel", 1.0, 64, "avif", 50, exif=True, gps=True, subsampling="4:2:2", progressive=False
    )
    assert coding("png", RECIPE, 3) == Coding("png", 92, "auto", progressive=True, threads=3)
    assert coding("png", changed, 1) == Coding("avif", 50, "4:2:2", progressive=False, threads=1)
    assert changed.digest != RECIPE.digest
