"""A picture with clear parts is styled as if there were none, and gets its own shape back."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from photo_files import decoded, oriented, saved, written
from PIL import Image

from animed.imaging import alpha, colour

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.imaging.decoded import Decoded
    from animed.records import PictureFormat

ORANGE, GREEN = (230, 120, 20), (20, 120, 60)


def decoded_of(image: Image.Image, form: str = "png", *, turn: int = 1, **wanted: Any) -> Decoded:
    return decoded(saved(image, form, exif=oriented(turn)), **wanted)


def disc(size: int = 96, *, hidden: tuple[int, int, int] = (0, 0, 0), soft: bool = True) -> Image.Image:
    """Return an orange disc with a soft edge; what is hidden around it has another colour."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    reach = size * 0.35 - np.hypot(x, y)
    cover = np.clip(reach * 40 + 128, 0, 255) if soft else np.where(reach > 0, 255, 0)
    pixels = np.empty((size, size, 4), np.uint8)
    pixels[...] = (*ORANGE, 0)
    pixels[..., 3] = cover.astype(np.uint8)
    pixels[pixels[..., 3] == 0] = (*hidden, 0)
    return Image.fromarray(pixels)


def off(pixels: NDArray[np.uint8], meant: tuple[int, int, int]) -> int:
    return int(np.abs(pixels.astype(int) - meant).max())


@pytest.mark.parametrize("hidden", [(0, 0, 0), (255, 255, 255), (0, 0, 255)])
@pytest.mark.parametrize("max_edge", [512, 64, 40, 20, 7])
def test_what_is_hidden_leaves_no_rim(hidden: tuple[int, int, int], max_edge: int) -> None:
    """The network sees the visible colour everywhere, whatever is hidden, reduced or not: no rim can come of it."""
    result = decoded_of(disc(hidden=hidden), max_edge=max_edge)
    assert result.alpha is not None
    assert off(result.pixels[result.alpha >= 64], ORANGE) <= 4
    assert off(result.pixels, ORANGE) <= 16
    assert 0 < result.alpha.mean() < 255
    assert written(result, "jpeg", 90)


def test_a_filling_goes_on_with_what_is_near() -> None:
    """Clear parts take the colour beside them: orange on the left, green on the right, and a way between."""
    pixels = np.zeros((40, 200, 3), np.uint8)
    cover = np.zeros((40, 200), np.uint8)
    pixels[:, :20], cover[:, :20] = ORANGE, 255
    pixels[:, -20:], cover[:, -20:] = GREEN, 255
    alpha.fill(pixels, cover)
    assert off(pixels[:, :24], ORANGE) <= 12
    assert off(pixels[:, -24:], GREEN) <= 12
    red = pixels[20, :, 0].astype(int)
    assert red[40] > red[100] > red[160]


def test_visible_pixels_are_not_touched() -> None:
    """Whatever has alpha, be it ever so little, keeps its colour to the bit; only what cannot be seen is filled."""
    chance = np.random.default_rng(5)
    pixels = chance.integers(0, 256, (90, 70, 3), np.uint8)
    cover = chance.choice(np.array([0, 1, 40, 255], np.uint8), (90, 70))
    filled = pixels.copy()
    alpha.fill(filled, cover)
    assert np.array_equal(filled[cover > 0], pixels[cover > 0])
    assert not np.array_equal(filled, pixels)


def test_nothing_to_see_is_white() -> None:
    """A picture that is clear everywhere is drawn as white paper, and stays clear."""
    result = decoded_of(Image.new("RGBA", (50, 30), (9, 9, 9, 0)))
    assert result.pixels.min() == 255
    assert result.alpha is not None
    assert result.alpha.max() == 0
    assert result.alpha.shape == (30, 50)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (2, 2), (5, 3)])
def test_tiny_and_narrow_pictures_are_filled(size: tuple[int, int]) -> None:
    """One visible pixel gives its colour to all others."""
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    image.putpixel((0, 0), (*ORANGE, 255))
    assert off(decoded_of(image).pixels, ORANGE) <= 2


def test_all_opaque_is_no_alpha() -> None:
    """An alpha channel that hides nothing is none."""
    image = disc()
    image.putalpha(255)
    assert decoded_of(image).alpha is None
    assert decoded_of(Image.new("RGB", (8, 8))).alpha is None


FORMS: list[PictureFormat] = ["png", "webp", "avif"]


@pytest.mark.parametrize("turn", [1, 3, 6])
@pytest.mark.parametrize("form", FORMS)
def test_the_alpha_of_the_photo_comes_back(form: PictureFormat, turn: int) -> None:
    """At full size the picture has the photo's alpha, byte for byte, in every format that has one."""
    photo = disc(120)
    cover = np.random.default_rng(3).integers(0, 256, (120, 120), np.uint8)
    photo.putalpha(Image.fromarray(cover))
    result = decoded_of(photo, full=True, max_edge=50, turn=turn)
    assert result.pixels.shape == (50, 50, 3)
    assert result.photo.shape == (120, 120, 3)
    picture = Image.open(io.BytesIO(written(result, form, 80)))
    turned = {1: cover, 3: cover[::-1, ::-1], 6: np.rot90(cover, -1)}[turn]
    assert np.array_equal(np.asarray(picture.getchannel("A")), turned)


def test_a_reduced_picture_has_a_reduced_alpha() -> None:
    """The alpha of a smaller picture is that of the photo, reduced as its colours are."""
    photo = disc(200)
    result = decoded_of(photo, max_edge=50)
    expected = photo.getchannel("A").resize((50, 50), Image.Resampling.LANCZOS)
    assert result.alpha is not None
    assert np.abs(result.alpha.astype(int) - np.asarray(expected)).max() <= 6


@pytest.mark.parametrize("size", [40, 96])
def test_a_jpeg_lies_on_white_without_a_rim(size: int) -> None:
    """Flattened, each pixel lies between the visible colour and white, however dark what is hidden."""
    result = decoded_of(disc(hidden=(0, 0, 0)), max_edge=size)
    assert result.alpha is not None
    laid = alpha.on_white(result.photo, result.alpha).astype(int)
    assert laid[0, 0].tolist() == [255, 255, 255]
    assert (laid >= np.array(ORANGE) - 8).all()
    picture = np.asarray(Image.open(io.BytesIO(written(result, "jpeg", 95))))
    assert np.abs(picture.astype(int) - laid).max() <= 16


def test_work_in_strips_is_work_on_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large picture is worked on in parts, and nobody can tell where they meet."""
    chance = np.random.default_rng(7)
    photo = Image.fromarray(chance.integers(0, 256, (64, 48, 4), np.uint8))
    deep = Image.fromarray(chance.integers(0, 65536, (64, 48), np.uint16))

    def made() -> list[Any]:
        results = [
            decoded_of(photo, full=True, max_edge=max_edge, turn=turn) for turn in (1, 6) for max_edge in (30, 99)
        ]
        results.append(decoded_of(deep, full=True))
        return [(result.photo.tolist(), None if result.alpha is None else result.alpha.tolist()) for result in results]

    whole = made()
    monkeypatch.setattr(colour, "STRIP", 48 * 10)
    assert [cover for _, cover in made()] == [cover for _, cover in whole]
    for (mine, _), (theirs, _) in zip(made(), whole, strict=True):
        assert np.abs(np.subtract(mine, theirs)).max() <= 1


@pytest.mark.parametrize("turn", range(1, 9))
def test_alpha_and_colours_turn_together(turn: int) -> None:
    """Each orientation brings colours and alpha upright, at full size and reduced."""
    chance = np.random.default_rng(turn)
    upright = chance.integers(1, 256, (24, 36, 4), np.uint8)
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # the transposition that a camera held so has done
    image = Image.fromarray(upright)
    stored = image.transpose(Image.Transpose(undo[turn])) if turn > 1 else image
    result = decoded_of(stored, full=True, turn=turn)
    assert np.array_equal(result.photo, upright[..., :3])
    assert np.array_equal(result.alpha, upright[..., 3])  # type: ignore[arg-type]  # None is unequal
    assert decoded_of(stored, max_edge=18, turn=turn).pixels.shape == (12, 18, 3)
