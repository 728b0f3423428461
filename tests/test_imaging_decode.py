"""Every file becomes upright sRGB pixels or a PhotoError."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_files import decoded, oriented, saved, scene, turned
from picture_writers import claimed_png
from PIL import Image, ImageCms

from animed.errors import PhotoError
from animed.imaging.decode import Decoded, Wanted, decode
from animed.imaging.encode import Coding, encode
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


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "tiff", "avif", "heic"])
def test_orientation_is_applied_exactly_once(form: str, turn: int) -> None:
    """A photo that was stored turned comes out upright in every format, and its size is given as people see it."""
    upright = scene()
    result = decoded(saved(turned(upright, turn), form, exif=oriented(turn)))
    assert (result.width, result.height) == (80, 60)
    assert differs(result.pixels, upright) < 8


@pytest.mark.parametrize("value", [0, 9, 77, "text"])
def test_a_senseless_orientation_is_none(value: int | str) -> None:
    """Only the numbers 1 to 8 turn a photo."""
    exif = Image.Exif()
    exif[0x0112] = value if isinstance(value, int) else 6
    number, text = (b"\x01\x12\x00" + kind for kind in (b"\x03", b"\x02"))
    data = exif.tobytes().replace(number, text) if value == "text" else exif.tobytes()
    assert decoded(saved(scene(), "jpeg", exif=data)).pixels.shape == (60, 80, 3)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "I;16", "I", "F"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    """Whatever the numbers of a file mean, its picture has three channels of bytes and a light right half."""
    ramp = Image.linear_gradient("L").rotate(90).resize((64, 32))
    values = np.asarray(ramp)
    sources: dict[str, Image.Image] = {
        "I;16": Image.fromarray(values.astype(np.uint16) * 257),
        "I": Image.fromarray(values.astype(np.int32) * 8_000_000),
        "F": Image.fromarray(values.astype(np.float32) / 255),
        "LAB": Image.merge("LAB", (ramp, Image.new("L", ramp.size, 128), Image.new("L", ramp.size, 128))),
    }
    image = sources[mode] if mode in sources else ramp.convert("RGB").convert(mode)
    form = "tiff" if mode in {"CMYK", "YCbCr", "LAB", "I;16", "I", "F"} else "png"
    pixels = decoded(saved(image, form)).pixels
    assert pixels.shape == (32, 64, 3)
    left, right = pixels[:, :16].mean(), pixels[:, -16:].mean()
    assert abs(float(right) - float(left)) > 150, "the ramp was clipped or lost"


def test_deep_grey_is_scaled_not_clipped() -> None:
    """The middle of 16 bits is the middle of 8."""
    middle = np.full((8, 8), 32768, np.uint16)
    assert decoded(saved(Image.fromarray(middle), "png")).pixels.mean() == 128


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB", "L"])
def test_transparency_lies_on_white(mode: str) -> None:
    """What cannot be seen in the photo is white in a JPEG, however the file says that it is transparent."""
    options: dict[str, Any] = {}
    image = Image.new(mode, (16, 16), 0)
    if mode in {"P", "L"}:
        options["transparency"] = 0
    if mode == "RGB":
        options["transparency"] = (0, 0, 0)
    result = decoded(saved(image, "png", **options))
    assert result.alpha is not None
    assert decoded(encode(result.photo, Coding("jpeg", 90), alpha=result.alpha)).pixels.min() == 255


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


def test_a_profile_is_applied_where_it_fits() -> None:
    """Colours are converted to sRGB by a sound profile of the file's own colour space."""
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    xyz = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    plain = decoded(saved(scene(), "png")).pixels
    for unfit in (lab, xyz, b"not a profile", b"\x00" * 200):
        assert np.array_equal(decoded(saved(scene(), "png", icc_profile=unfit)).pixels, plain)


def test_a_wide_gamut_photo_gets_other_numbers() -> None:
    """The numbers of a profile with other primaries mean other colours, so they change; neutral grey does not."""
    swapped = swapped_primaries()
    pixels = decoded(saved(scene(), "png", icc_profile=swapped)).pixels
    assert pixels[0, 0].tolist() != [255, 0, 0]
    grey = decoded(saved(Image.new("RGB", (8, 8), (128, 128, 128)), "png", icc_profile=swapped)).pixels
    assert np.ptp(grey) <= 3


def swapped_primaries() -> bytes:
    """Return an sRGB profile whose red and green columns changed places, under another name."""
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = struct.unpack_from(">I", data, 128)[0]
    where = {bytes(data[132 + 12 * i : 136 + 12 * i]): 132 + 12 * i for i in range(count)}
    red, green = where[b"rXYZ"], where[b"gXYZ"]
    data[red + 4 : red + 12], data[green + 4 : green + 12] = data[green + 4 : green + 12], data[red + 4 : red + 12]
    return bytes(data).replace("sRGB".encode("utf-16-be"), "odd!".encode("utf-16-be")).replace(b"sRGB b", b"odd! b")


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
