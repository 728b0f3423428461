"""Colours by ICC profiles, through the whole way to the file, against another program's conversion.

tests/data/profile_colours.json holds what ImageMagick makes of the twelve colours by each profile;
tests/reference_colours.py says how, and is run by hand.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import pillow_heif
import pytest
from icc_profiles import P3, PROFILES
from mode_samples import image, middles
from photo_bench import Bench, Drawn, delta_e
from PIL import ImageCms

from animed.records import PictureFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

TABLE: Final[dict[str, list[list[int]]]] = json.loads(
    (Path(__file__).parent / "data" / "profile_colours.json").read_text()
)
# Formats that hold each mode, written so finely that the profile is all that matters.
FORMS: Final = {"RGB": ("JPEG", "PNG", "WEBP", "TIFF", "AVIF", "HEIF"), "CMYK": ("JPEG", "TIFF")}
FINEST: Final[dict[str, dict[str, Any]]] = {
    "JPEG": {"quality": 100, "subsampling": 0},
    "WEBP": {"lossless": True},
    "AVIF": {"quality": 100, "subsampling": "4:4:4"},
}
# Delta E 2000 that is allowed. WebP has no full chroma and 219 steps of luma, each of which is a large one in the dark
# of ProPhoto RGB (2.2 measured there).
ALLOWED: Final = {"jpeg": 2.0, "png": 2.0, "avif": 2.0, "webp": 2.5}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("inbox"))


def photo(name: str, form: str) -> bytes:
    """Return the patches as a file that carries a profile."""
    profile, mode = PROFILES[name]
    target = io.BytesIO()
    if form == "HEIF":
        picture = image(mode)
        picture.info["icc_profile"] = profile
        pillow_heif.from_pillow(picture).save(target, quality=100, chroma=444)
    else:
        image(mode).save(target, form, icc_profile=profile, **FINEST.get(form, {}))
    return target.getvalue()


def seen(drawn: Drawn) -> NDArray[Any]:
    """Return the picture's twelve colours in sRGB, by its own profile where it has one."""
    picture = drawn.image("RGB")
    own = drawn.image().info.get("icc_profile")
    if own:
        shown = ImageCms.profileToProfile(
            picture,
            ImageCms.ImageCmsProfile(io.BytesIO(own)),
            ImageCms.createProfile("sRGB"),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        )
        assert shown is not None
        picture = shown
    return middles(np.asarray(picture))


def cases() -> Iterator[tuple[str, str]]:
    for name, (_, mode) in PROFILES.items():
        for form in FORMS[mode]:
            yield name, form


@pytest.mark.parametrize("icc", ["srgb", "keep", "strip"])
@pytest.mark.parametrize(("name", "form"), list(cases()))
def test_a_photo_by_its_profile(bench: Bench, name: str, form: str, icc: str) -> None:
    """Whatever becomes of the profile, the picture shows the reference's colours within a Delta E 2000 of 2."""
    drawn = bench.draw(photo(name, form), output_format="png", icc=icc)
    assert delta_e(seen(drawn), TABLE[name]).max() <= 2


@pytest.mark.parametrize("icc", ["srgb", "keep", "strip"])
@pytest.mark.parametrize("form", [form for form in get_args(PictureFormat) if form != "png"])
@pytest.mark.parametrize("name", PROFILES)
def test_every_output_shows_it(bench: Bench, name: str, form: str, icc: str) -> None:
    """So do the pictures of lossy formats at quality 92."""
    drawn = bench.draw(photo(name, "TIFF"), output_format=form, icc=icc)
    assert delta_e(seen(drawn), TABLE[name]).max() <= ALLOWED[form]


@pytest.mark.parametrize("form", get_args(PictureFormat))
def test_what_becomes_of_the_profile(bench: Bench, form: str) -> None:
    """`keep` writes the photo's own bytes into the picture, `strip` none; `srgb` none, or one of sRGB."""
    data = photo("Display P3", "PNG")
    found = {icc: bench.draw(data, output_format=form, icc=icc).image().info.get("icc_profile") for icc in
             ("srgb", "keep", "strip")}  # fmt: skip
    assert found["keep"] == P3.profile()
    assert not found["strip"]
    if found["srgb"]:
        named = ImageCms.ImageCmsProfile(io.BytesIO(found["srgb"])).profile.profile_description
        assert "sRGB" in (named or "")


def test_a_profile_of_inks_is_not_kept_for_rgb(bench: Bench) -> None:
    """A picture is RGB: the profile of a press does not fit it, whatever the configuration says."""
    drawn = bench.draw(photo("CMYK", "JPEG"), output_format="jpeg", icc="keep")
    own = drawn.image().info.get("icc_profile")
    assert not own or ImageCms.ImageCmsProfile(io.BytesIO(own)).profile.xcolor_space.strip() == "RGB"


@pytest.mark.parametrize("icc", ["srgb", "keep", "strip"])
@pytest.mark.parametrize("profile", [P3.profile()[:400], b"no profile", PROFILES["CMYK"][0]])
def test_a_profile_that_is_broken_or_of_other_colours_is_left_out(bench: Bench, profile: bytes, icc: str) -> None:
    """The photo is taken for sRGB, and the picture carries no profile that would show it otherwise."""
    target = io.BytesIO()
    image("RGB").save(target, "PNG", icc_profile=profile)
    drawn = bench.draw(target.getvalue(), icc=icc)
    assert delta_e(seen(drawn), middles(np.asarray(image("RGB")))).max() <= 1


@pytest.mark.parametrize("icc", ["srgb", "keep", "strip"])
def test_alpha_beside_a_profile(bench: Bench, icc: str) -> None:
    """Alpha is not colour: a profile changes it by nothing."""
    target = io.BytesIO()
    image("RGBA").save(target, "PNG", icc_profile=P3.profile())
    drawn = bench.draw(target.getvalue(), icc=icc)
    assert (middles(drawn.pixels())[:, 3] == middles(np.asarray(image("RGBA")))[:, 3]).all()
    opaque = middles(drawn.pixels())[:, 3] == 255
    assert delta_e(seen(drawn)[opaque], np.array(TABLE["Display P3"])[opaque]).max() <= 2


def test_pillow_reads_the_profiles() -> None:
    """The profiles are sound: the colour library opens them, and they are of the space that the table says."""
    for profile, mode in PROFILES.values():
        assert ImageCms.ImageCmsProfile(io.BytesIO(profile)).profile.xcolor_space.strip() == mode
