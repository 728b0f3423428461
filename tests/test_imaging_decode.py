"""Every file becomes upright sRGB pixels or a PhotoError."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_files import decoded, saved, scene
from picture_writers import claimed_png
from PIL import Image

from animed.errors import PhotoError
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted
from animed.records import Skip

FORMATS = ["jpeg", "png", "webp", "tiff", "bmp", "gif", "avif", "heic"]


def reason(data: bytes, **options: Any) -> str:
    with pytest.raises(PhotoError) as caught:
        decoded(data, **options)
    assert caught.value.detail
    return caught.value.reason


def outcome_of(data: bytes) -> str:
    """Return "done" or the reason of the failure, which must come with a detail; any other error is the test's."""
    try:
        result = decode(data, Wanted(max_pixels=10**8, max_edge=64, animated="first"))
    except PhotoError as error:
        return error.reason if error.detail else "no detail"
    return "done" if isinstance(result, Decoded) and result.pixels.shape[2] == 3 else "no pixels"


def differs(pixels: np.ndarray[Any, Any], expected: Image.Image) -> float:
    return float(np.abs(pixels.astype(int) - np.asarray(expected.convert("RGB")).astype(int)).mean())


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_decodes_to_its_picture(form: str) -> None:
    """All supported formats give the same pixels, but for what their compression loses."""
    result = decoded(saved(scene(), form))
    assert result.kind == form
    assert (result.width, result.height) == (80, 60)
    assert result.pixels.shape == (60, 80, 3)
    assert result.pixels.dtype == np.uint8
    assert differs(result.pixels, scene()) < 8


@pytest.mark.parametrize("value", [0, 9, 77, "text"])
def test_a_senseless_orientation_is_none(value: int | str) -> None:
    """Only the numbers 1 to 8 turn a photo."""
    exif = Image.Exif()
    exif[0x0112] = value if isinstance(value, int) else 6
    number, text = (b"\x01\x12\x00" + kind for kind in (b"\x03", b"\x02"))
    data = exif.tobytes().replace(number, text) if value == "text" else exif.tobytes()
    assert decoded(saved(scene(), "jpeg", exif=data)).pixels.shape == (60, 80, 3)


def test_a_photo_is_reduced_and_never_enlarged() -> None:
    """The longer side becomes max_edge, in the same proportions; a small photo stays as it is."""
    assert decoded(saved(scene(400, 300), "png"), max_edge=100).pixels.shape == (75, 100, 3)
    assert decoded(saved(scene(40, 30), "png"), max_edge=100).pixels.shape == (30, 40, 3)
    assert decoded(saved(scene(400, 1), "png"), max_edge=100).pixels.shape == (1, 100, 3)


@pytest.mark.parametrize("turn", [1, 6])
def test_a_large_jpeg_keeps_its_own_size_in_the_report(turn: int) -> None:
    """Decoding at a fraction changes neither the size that is reported nor the look of the picture."""
    exif = Image.Exif()
    exif[0x0112] = turn
    result = decoded(saved(scene(1603, 1201), "jpeg", exif=exif, quality=95), max_edge=200)
    assert (result.width, result.height) == ((1603, 1201) if turn == 1 else (1201, 1603))
    assert max(result.pixels.shape) == 200
    upright = scene(1603, 1201) if turn == 1 else scene(1603, 1201).transpose(Image.Transpose.ROTATE_270)
    size = (result.pixels.shape[1], result.pixels.shape[0])
    assert differs(result.pixels, upright.resize(size, Image.Resampling.LANCZOS)) < 3


def test_the_limit_of_pixels_holds_before_anything_is_decoded() -> None:
    """A header alone is refused, with the sizes in the message, above Pillow's own limit too."""
    with pytest.raises(PhotoError, match="30000\u00d730000 = 900 MP, limit 120 MP") as caught:
        decoded(claimed_png(30_000, 30_000)[:41], max_pixels=120_000_000)
    assert caught.value.reason == "too_large"
    assert reason(saved(scene(), "jpeg"), max_pixels=4799) == "too_large"
    assert decoded(saved(scene(), "jpeg"), max_pixels=4800).width == 80


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_without_its_end_is_truncated(form: str) -> None:
    """A file that ends too early is told from a damaged one: it may still be on its way."""
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 255, (96, 96, 3), np.uint8))
    data = saved(noise, form)
    assert reason(data[: len(data) // 2]) == "truncated"
    assert reason(data[: max(20, len(data) // 50)]) == "truncated"


def test_a_file_that_was_only_allocated_is_truncated() -> None:
    """Zeros where the second half of a JPEG should be are no grey picture."""
    data = saved(scene(400, 300), "jpeg", quality=95)
    half = len(data) // 2
    assert reason(data[:half] + bytes(len(data) - half)) == "truncated"


def test_a_whole_file_with_broken_data_is_no_image() -> None:
    """Damage inside a file that has its end is not_an_image, with the word damaged."""
    data = bytearray(saved(scene(), "png"))
    at = data.index(b"IDAT") + 4
    data[at : at + 20] = b"\xaa" * 20
    with pytest.raises(PhotoError, match="damaged") as caught:
        decoded(bytes(data))
    assert caught.value.reason == "not_an_image"


def test_animations_give_their_first_frame_or_are_skipped() -> None:
    """The inbox decides whether a moving picture is drawn from its first frame or left alone."""
    frames = [Image.new("RGB", (32, 32), colour) for colour in ("red", "blue", "lime")]
    for form in ("gif", "webp", "png"):
        data = saved(frames[0], form, save_all=True, append_images=frames[1:], duration=50, lossless=True)
        assert decoded(data).pixels[16, 16].tolist() == [255, 0, 0]
        assert isinstance(decode(data, Wanted(max_pixels=10**6, max_edge=64, animated="skip")), Skip)
    assert decoded(saved(frames[0], "gif"), animated="skip").width == 32


def test_the_pages_of_a_tiff_are_no_animation() -> None:
    """A TIFF of several pages is a photo, its first page."""
    pages = [Image.new("RGB", (32, 32), colour) for colour in ("red", "blue")]
    data = saved(pages[0], "tiff", save_all=True, append_images=pages[1:])
    assert decoded(data, animated="skip").pixels[0, 0].tolist() == [255, 0, 0]


def test_a_photo_of_two_views_is_a_jpeg_of_the_first() -> None:
    """An MPO is read as its first picture and counts as a JPEG."""
    result = decoded(saved(scene(), "MPO", save_all=True, append_images=[Image.new("RGB", (80, 60))]))
    assert result.kind == "jpeg"
    assert differs(result.pixels, scene()) < 8


@given(seed=st.integers(0, 10**6), form=st.sampled_from(FORMATS), spots=st.integers(1, 12), cut=st.integers(0, 3))
@settings(deadline=None, max_examples=150)
def test_random_damage_never_escapes(seed: int, form: str, spots: int, cut: int) -> None:
    """A file with random bytes overwritten, and its end cut off perhaps, is decoded or refused in an orderly way."""
    chance = np.random.default_rng(seed)
    data = bytearray(saved(scene(40, 30), form))
    for at in chance.integers(2, len(data), spots):
        data[at] = chance.integers(0, 256)
    outcome = outcome_of(bytes(data[: len(data) - cut * len(data) // 8]))
    assert outcome.partition(":")[0] in {"done", "not_an_image", "truncated", "too_large", "unsupported"}
