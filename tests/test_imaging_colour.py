"""The colours of a photo are those of its picture, whatever its numbers mean; a profile that is wrong costs nothing.

Reference values come from transicc of LittleCMS 2.14 (relative colorimetric, black point compensation), with the
profiles that Debian ships for Adobe RGB and ProPhoto RGB, rounded and clipped; ImageMagick 6.9 gave the same within 1.
"""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icc_profiles import ADOBE, P3, PROPHOTO, SRGB, grey, inks
from photo_files import decoded, saved, written
from picture_writers import chunk
from PIL import Image, ImageCms
from skimage.color import deltaE_ciede2000, rgb2lab

from animed.imaging import colour, declared, icc, profiles
from animed.imaging.decoded import Wanted
from animed.imaging.develop import develop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.records import Icc, PictureFormat

Rgb = tuple[int, int, int]
Turn = Literal[1, 2, 3, 4, 5, 6, 7, 8]

FORMATS: tuple[PictureFormat, ...] = ("jpeg", "png", "webp", "avif")
PATCHES: dict[str, tuple[bytes, dict[Rgb, Rgb]]] = {
    "Display P3": (
        P3.profile(),
        {
            # Apple's numbers for the primaries of sRGB, and the rest.
            (234, 51, 35): (255, 0, 0),
            (117, 251, 76): (3, 255, 0),
            (0, 0, 245): (0, 0, 255),
            (200, 100, 50): (215, 93, 31),
            (60, 140, 70): (0, 142, 60),
            (128, 128, 128): (128, 128, 128),
        },
    ),
    "Adobe RGB": (
        ADOBE.profile(),
        {
            (200, 100, 50): (227, 100, 42),
            (60, 140, 70): (0, 141, 63),
            (40, 60, 160): (21, 57, 164),
            (220, 200, 60): (228, 201, 37),
            (90, 150, 180): (36, 151, 183),
            (180, 120, 160): (199, 121, 163),
            (128, 128, 128): (129, 129, 129),
            (20, 20, 20): (12, 12, 12),
        },
    ),
    "ProPhoto RGB": (
        PROPHOTO.profile(),
        {
            (200, 100, 50): (255, 80, 47),
            (180, 120, 160): (227, 122, 180),
            (220, 200, 60): (255, 206, 0),
            (128, 128, 128): (146, 146, 146),
            (20, 20, 20): (26, 26, 26),
        },
    ),
}
INKS: dict[tuple[int, int, int, int], Rgb] = {
    (0, 0, 0, 0): (255, 255, 255),
    (255, 0, 0, 0): (63, 160, 221),
    (0, 255, 0, 0): (196, 56, 129),
    (0, 0, 255, 0): (234, 221, 69),
    (0, 0, 0, 255): (48, 48, 48),
    (50, 20, 10, 0): (226, 228, 237),
    (20, 120, 160, 30): (197, 163, 126),
    (100, 40, 10, 90): (162, 168, 183),
    (200, 180, 30, 20): (102, 93, 143),
}
LCMS_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def scene() -> Image.Image:
    """Return a smooth picture of many colours."""
    corners = np.array([[[230, 20, 30], [20, 200, 60]], [[250, 250, 250], [10, 30, 180]]], np.uint8)
    return Image.fromarray(corners).resize((60, 40), Image.Resampling.BILINEAR)


def distance(shown: NDArray[np.uint8], meant: Rgb) -> float:
    """Return the mean Delta E 2000 between the middle of a patch and a colour, both in sRGB."""
    middle = shown[4:-4, 4:-4, :3]
    apart = deltaE_ciede2000(rgb2lab(middle), rgb2lab(np.full_like(middle, meant)))  # type: ignore[no-untyped-call]  # theirs
    return float(apart.mean())


CASES = [(name, numbers, meant) for name, (_, patches) in PATCHES.items() for numbers, meant in patches.items()]


@pytest.mark.parametrize(("name", "numbers", "meant"), CASES)
def test_patches_of_wide_spaces_keep_their_look(name: str, numbers: Rgb, meant: Rgb) -> None:
    """A colour in Display P3, Adobe RGB or ProPhoto RGB comes out within a step of the reference, in every format."""
    photo = saved(Image.new("RGB", (24, 24), numbers), icc_profile=PATCHES[name][0])
    made = decoded(photo)
    assert np.abs(made.pixels.astype(int) - meant).max() <= 1
    for form in FORMATS:
        picture = opened(written(made, form))
        assert distance(np.asarray(picture.convert("RGB")), meant) < 2, form
        assert picture.info["icc_profile"] == icc.SRGB


@pytest.mark.parametrize("form", ["tiff", "jpeg"])
@pytest.mark.parametrize(("numbers", "meant"), INKS.items())
def test_patches_of_print_keep_their_look(form: str, numbers: tuple[int, int, int, int], meant: Rgb) -> None:
    """Inks come out as their profile says, from TIFF and from a JPEG, which has them upside down."""
    photo = saved(Image.new("CMYK", (24, 24), numbers), form, icc_profile=inks(3))
    assert distance(decoded(photo).pixels, meant) < 2
    assert decoded(photo, icc="keep").profile == icc.SRGB


def test_inks_without_a_profile_are_complements() -> None:
    """Without a profile inks are what browsers make of them: full cyan takes all red, black takes all."""
    for numbers, meant in {(255, 0, 0, 0): (0, 255, 255), (0, 0, 0, 128): (127, 127, 127)}.items():
        photo = saved(Image.new("CMYK", (24, 24), numbers), "tiff")
        assert np.abs(decoded(photo).pixels.astype(int) - meant).max() <= 1


def test_grey_has_profiles_too() -> None:
    """A grey photo with a curve of its own is brought to that of sRGB."""
    ramp = Image.fromarray(np.array([[0, 30, 128, 200, 255]], np.uint8))
    pixels = decoded(saved(ramp, icc_profile=grey(1.8))).pixels
    assert pixels[0].tolist() == [[value] * 3 for value in (0, 40, 146, 210, 255)]


def test_lab_photos_keep_their_look() -> None:
    """The numbers of a Lab picture mean themselves, whatever profile hangs on it."""
    photo = Image.new("LAB", (24, 24), (153, 98, 168))
    meant = (106, 158, 69)  # of L 60, a -30, b 40
    for profile in (None, PROPHOTO.profile()):
        assert distance(decoded(saved(photo, "tiff", icc_profile=profile)).pixels, meant) < 1


# ---- preserve.icc --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATCHES)
@pytest.mark.parametrize("turn", [1, 6])
@pytest.mark.parametrize("full", [False, True])
def test_keep_gives_the_numbers_back(name: str, turn: int, full: bool) -> None:
    """With `keep` the network sees sRGB, and the picture has the photo's own numbers and profile."""
    profile = PATCHES[name][0]
    exif = Image.Exif()
    exif[0x0112] = turn
    photo = scene()
    result = decoded(saved(photo, icc_profile=profile, exif=exif), icc="keep", full=full, max_edge=512)
    upright = photo.transpose(Image.Transpose.ROTATE_270) if turn == 6 else photo
    assert result.profile == profile
    assert result.native is not None
    assert np.array_equal(result.native, np.asarray(upright))
    assert not np.array_equal(result.photo, result.native)
    picture = opened(written(result, "png"))
    assert picture.info["icc_profile"] == profile
    # What the network drew finds its way back into the space of the photo.
    back = colour.from_srgb(result.photo, profile)
    inside = (result.photo > 0).all(axis=2) & (result.photo < 255).all(axis=2)
    assert np.abs(back[inside].astype(int) - result.native[inside]).max() <= 6


@pytest.mark.parametrize("profile", [icc.SRGB, LCMS_SRGB, None, b"no profile at all"])
def test_keep_of_srgb_is_srgb(profile: bytes | None) -> None:
    """A photo in sRGB is not converted, and keeps the profile that says so; where none is sound it gets one."""
    result = decoded(saved(scene(), icc_profile=profile), icc="keep")
    assert result.native is None
    assert np.array_equal(result.photo, np.asarray(scene()))
    assert result.profile == (profile if profile == LCMS_SRGB else icc.SRGB)


def test_strip_leaves_no_profile() -> None:
    """With `strip` the colours are converted all the same."""
    photo = saved(Image.new("RGB", (8, 8), (200, 100, 50)), icc_profile=ADOBE.profile())
    result = decoded(photo, icc="strip")
    assert (result.profile, result.native) == (b"", None)
    assert result.photo[0, 0].tolist() == [227, 100, 42]


@pytest.mark.parametrize("icc_mode", ["srgb", "keep", "strip"])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
def test_a_photo_in_srgb_keeps_its_numbers(icc_mode: Icc, mode: str) -> None:
    """PNG to PNG without the network is the same picture: nothing is converted where nothing has to be."""
    photo = scene().convert(mode)
    if mode == "RGBA":
        photo.putalpha(Image.linear_gradient("L").resize(photo.size))
    result = decoded(saved(photo, icc_profile=None), icc=icc_mode, full=True)
    picture = opened(written(result, "png"))
    mine, theirs = np.asarray(picture.convert("RGBA")), np.asarray(photo.convert("RGBA"))
    seen = theirs[..., 3] > 0
    assert np.array_equal(mine[seen], theirs[seen])
    assert np.array_equal(mine[..., 3], theirs[..., 3])


def test_a_jpeg_is_encoded_once_more_and_no_worse() -> None:
    """JPEG to JPEG without the network is the decoded photo, encoded again."""
    data = saved(scene(), "jpeg", quality=85)
    result = decoded(data, full=True)
    assert np.array_equal(result.photo, np.asarray(opened(data)))
    again = opened(written(result, "jpeg"))
    expected = opened(saved(opened(data), "jpeg", quality=92, subsampling="4:4:4"))
    assert np.array_equal(np.asarray(again), np.asarray(expected))


# ---- Profiles that are not what they seem --------------------------------------------------------------------------


def test_a_profile_is_known_by_what_it_does() -> None:
    """The name of a profile says nothing: one of Display P3 that calls itself sRGB is converted."""
    for space, known in (
        (replace(P3, name=SRGB.name), False),
        (replace(SRGB, name=ADOBE.name), True),
        (replace(SRGB, gamma=2.2), False),
        (SRGB, True),
    ):
        assert (profiles.conversion(space.profile(), "RGB").transform is None) is known


def scanner() -> bytes:
    """Return a profile that says what its numbers are, but not how to make them: a table one way."""
    data = bytearray(inks(3))
    # Three channels instead of four: the first third of the table is read.
    data[16:20] = b"RGB "
    data[12:16] = b"scnr"
    at = data.index(b"mft2")
    data[at + 8] = 3
    return bytes(data)


def test_a_profile_without_a_way_back_is_not_kept() -> None:
    """A photo of a scanner is converted by its profile, but cannot be brought back to it: it stays sRGB."""
    result = decoded(saved(scene(), icc_profile=scanner()), icc="keep")
    assert (result.native, result.profile) == (None, icc.SRGB)
    with pytest.raises(ValueError, match="not how to make them"):
        colour.from_srgb(result.photo, scanner())


def damaged() -> dict[str, bytes]:
    """Return profiles that cannot be those of an RGB picture."""
    sound = P3.profile()
    flat = icc.rgb(icc.P3_PRIMARIES, icc.table([0.0] * 16), "flat")
    return {
        "empty": bytes(200),
        "text": b"not a profile",
        "cut": sound[:300],
        "of print": inks(3),
        "of grey": grey(1.8),
        "of a link": sound[:12] + b"link" + sound[16:],
        "without tags": sound[:128] + bytes(4) + sound[132:],
        "black": flat,
        "endless": sound + bytes(profiles.MAX_BYTES),
        "of a made-up kind": sound[:16] + b"XYZW" + sound[20:],
    }


@pytest.mark.parametrize("name", damaged())
def test_a_wrong_profile_is_left_aside_and_noted(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A profile that cannot be right changes nothing, fails nothing, and is named in the log."""
    result = decode_image(scene(), damaged()[name])
    assert np.array_equal(result, np.asarray(scene()))
    assert "as if it were not there" in caplog.text


def decode_image(image: Image.Image, profile: bytes) -> NDArray[np.uint8]:
    """Develop a picture that carries a profile, past the limits of files."""
    carrying = image.copy()
    carrying.info["icc_profile"] = profile
    return develop(carrying, 1, Wanted(max_pixels=10**6, max_edge=512)).pixels


@given(seed=st.integers(0, 10**6), spots=st.integers(1, 20), print_=st.booleans())
@settings(deadline=None, max_examples=150)
def test_no_damage_to_a_profile_escapes(seed: int, spots: int, print_: bool) -> None:
    """Whatever is overwritten in a profile, the photo is drawn."""
    chance = np.random.default_rng(seed)
    data = bytearray(inks(3) if print_ else P3.profile())
    for at in chance.integers(0, len(data), spots):
        data[at] = chance.integers(0, 256)
    pixels = decode_image(scene().convert("CMYK") if print_ else scene(), bytes(data))
    assert pixels.shape == (40, 60, 3)


# ---- What says without a profile what colours are ------------------------------------------------------------------


def with_chunks(image: Image.Image, *chunks: tuple[bytes, bytes], **options: Any) -> bytes:
    """Return a PNG with more chunks behind its header."""
    data = saved(image, **options)
    more = b"".join(chunk(kind, body) for kind, body in chunks)
    return data[:33] + more + data[33:]


def gamma(value: float) -> tuple[bytes, bytes]:
    return b"gAMA", struct.pack(">I", round(value * 100_000))


ADOBE_CORNERS = struct.pack(">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)
PATCH = Image.new("RGB", (8, 8), (200, 100, 50))


@pytest.mark.parametrize(
    ("chunks", "meant"),
    [
        ((gamma(0.45455),), (200, 100, 50)),
        ((gamma(1.0),), (228, 168, 122)),  # light itself, by the formula of sRGB's curve
        ((gamma(0.00001),), (200, 100, 50)),
        ((gamma(0.45455), (b"cHRM", ADOBE_CORNERS)), (227, 100, 42)),
        ((gamma(1.0), (b"sRGB", b"\x00")), (200, 100, 50)),
        (((b"cICP", bytes((12, 13, 0, 1))),), (215, 93, 31)),
        (((b"cICP", bytes((1, 13, 0, 1))), gamma(1.0)), (200, 100, 50)),
        (((b"cHRM", bytes(32)),), (200, 100, 50)),
    ],
)
def test_the_chunks_of_a_png_say_what_its_colours_are(chunks: tuple[tuple[bytes, bytes], ...], meant: Rgb) -> None:
    """Code points come before sRGB's own chunk, and that before gamma and primaries; what makes no sense is none."""
    pixels = decoded(with_chunks(PATCH, *chunks)).pixels
    assert np.abs(pixels[4, 4].astype(int) - meant).max() <= 1


def test_code_points_come_before_a_profile() -> None:
    """A PNG that names Display P3 by code points is not what its profile says."""
    data = with_chunks(PATCH, (b"cICP", bytes((12, 13, 0, 1))), icc_profile=PROPHOTO.profile())
    assert np.abs(decoded(data).pixels[4, 4].astype(int) - (215, 93, 31)).max() <= 1


@pytest.mark.parametrize(
    ("chunk", "note"), [(gamma(0.00001), "the gamma 1e-05 makes no sense"), ((b"cHRM", bytes(32)), "make no colours")]
)
def test_words_that_make_no_sense_are_noted(
    chunk: tuple[bytes, bytes], note: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever wonders about a picture's colours finds why in the log, as with a broken profile."""
    decoded(with_chunks(PATCH, chunk))
    assert f"{note}; the colours are taken as if it were not there" in caplog.text


def test_a_grey_png_has_a_gamma() -> None:
    """Light itself in grey: the middle of the light is brighter than the middle of the numbers."""
    data = with_chunks(Image.new("L", (8, 8), 128), gamma(1.0))
    assert decoded(data).pixels[4, 4].tolist() == [188, 188, 188]


@pytest.mark.parametrize(
    ("space", "index", "meant"),
    [
        (0xFFFF, "R03", (227, 100, 42)),
        (2, None, (227, 100, 42)),
        (1, "R03", (200, 100, 50)),
        (0xFFFF, "R98", (200, 100, 50)),
        (0xFFFF, None, (200, 100, 50)),
    ],
)
def test_the_mark_of_cameras_names_adobe_rgb(space: int, index: str | None, meant: Rgb) -> None:
    """A camera set to Adobe RGB writes no profile; its mark counts, unless a profile or sRGB is named."""
    exif = Image.Exif()
    exif[0x8769] = {0xA001: space} | ({0xA005: {1: index}} if index else {})
    pixels = decoded(saved(PATCH, "jpeg", exif=exif, quality=100, subsampling="4:4:4")).pixels
    assert distance(np.tile(pixels, (2, 2, 1)), meant) < 1.5
    carried = decoded(saved(PATCH, "jpeg", exif=exif, icc_profile=icc.SRGB, quality=100, subsampling="4:4:4")).pixels
    assert distance(np.tile(carried, (2, 2, 1)), (200, 100, 50)) < 1.5


def test_an_avif_names_its_colours_by_code_points() -> None:
    """An AVIF without a profile that names Display P3 is in Display P3; with a profile that counts."""
    data = saved(PATCH, "avif", quality=100, subsampling="4:4:4")
    named = data.replace(b"colrnclx\x00\x01\x00\x0d", b"colrnclx\x00\x0c\x00\x0d")
    assert named != data
    assert np.abs(decoded(data).pixels[4, 4].astype(int) - (200, 100, 50)).max() <= 2
    assert np.abs(decoded(named).pixels[4, 4].astype(int) - (215, 93, 31)).max() <= 3


@pytest.mark.parametrize(
    ("primaries", "curve", "meant"),
    [
        (12, 13, (215, 93, 31)),
        (1, 13, (200, 100, 50)),
        (2, 2, (200, 100, 50)),
        (1, 1, (200, 100, 50)),
        (99, 200, (200, 100, 50)),
        (1, 8, (228, 168, 122)),
    ],
)
def test_a_heic_names_its_colours_by_code_points(primaries: int, curve: int, meant: Rgb) -> None:
    """What the decoder of HEIC says of colours counts where there is no profile."""
    photo = PATCH.copy()
    photo.info["nclx_profile"] = {"color_primaries": primaries, "transfer_characteristics": curve}
    pixels = develop(photo, 1, Wanted(max_pixels=10**6, max_edge=64)).pixels
    assert np.abs(pixels[4, 4].astype(int) - meant).max() <= 1


def test_brightness_beyond_white_is_drawn_in() -> None:
    """In PQ, where white is not the brightest, a ramp stays a ramp: dark to bright, and none of it flat."""
    ramp = Image.linear_gradient("L").rotate(90).resize((256, 4)).convert("RGB")
    ramp.info["nclx_profile"] = {"color_primaries": 9, "transfer_characteristics": 16}
    row = develop(ramp, 1, Wanted(max_pixels=10**6, max_edge=512)).pixels[0, :, 1].astype(int)
    assert (np.diff(row) >= 0).all()
    assert row[0] < 5
    paper = 148  # of 255 in PQ: 203 candela per square metre
    assert 150 < row[paper] < 210
    assert row[-1] == 255


def test_broken_words_are_none() -> None:
    """Boxes and chunks that end in the middle say nothing."""
    image = Image.new("RGB", (4, 4))
    assert declared.profile_of(image, b"\x00\x00\x00\x20ftypavif" + b"colrnclx\x00", "RGB") == (b"", "")
    assert declared.profile_of(image, b"\x89PNG\r\n\x1a\n\x00\x00\x00\x04cICP\x0c", "RGB") == (b"", "")
    assert declared.profile_of(image, b"\x89PNG\r\n\x1a\n" + b"\xff" * 40, "RGB") == (b"", "")
