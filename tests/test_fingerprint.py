"""What a photo looks like: what changes a fingerprint, what does not, and when there is none."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from photo_files import saved
from PIL import Image, ImageDraw

from animed.config import InboxConfig
from animed.imaging import fingerprint
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted
from animed.schedule.likeness import distance, same_details, same_tint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.records import Fingerprint

MOST: int = InboxConfig.model_fields["similar_distance"].default


def scene(seed: int, size: tuple[int, int] = (480, 360)) -> Image.Image:
    """Return a picture with large and small things in it, that differs for each seed."""
    chance = np.random.default_rng(seed)
    layers = [
        np.asarray(Image.fromarray(chance.integers(0, 256, (cells, cells, 3), dtype=np.uint8)).resize(size))
        for cells in (4, 9, 24)
    ]
    return Image.fromarray(np.mean(layers, axis=0).astype(np.uint8))


def looks(picture: Image.Image) -> Fingerprint:
    found = fingerprint.of(np.asarray(picture))
    assert found is not None
    return found


def saved_again(picture: Image.Image, form: str, **options: Any) -> Image.Image:
    return Image.open(io.BytesIO(saved(picture, form, **options))).convert("RGB")


def alike(one: Image.Image, other: Image.Image) -> bool:
    first, second = looks(one), looks(other)
    near = distance(first, second) <= MOST and same_tint(first, second)
    return near and same_details(first.detail, second.detail)


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_is_alike(seed: int) -> None:
    """Saved again, in another format, smaller, or with 2 to 5 % of each side cut off: the same photo."""
    first = scene(seed)
    width, height = first.size
    copies = [
        saved_again(first, "JPEG", quality=60),
        saved_again(first, "WEBP", quality=70),
        first.resize((width // 2, height // 2)),
        saved_again(first.resize((width // 4, height // 4)), "JPEG", quality=80),
        *(first.crop((round(width * cut), round(height * cut), round(width * (1 - cut)), round(height * (1 - cut))))
          for cut in (0.02, 0.05)),
    ]  # fmt: skip
    assert [alike(first, copy) for copy in copies] == [True] * len(copies)


def test_another_photo_is_not_alike() -> None:
    """Different scenes, and what is mirrored, turned or without colours, are photos of their own."""
    first = scene(1)
    others = [
        scene(2),
        first.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        first.transpose(Image.Transpose.ROTATE_90),
        first.transpose(Image.Transpose.ROTATE_180),
    ]
    assert [alike(first, other) for other in others] == [False] * len(others)
    vivid = Image.merge("RGB", (first.getchannel(0), first.getchannel(0).point(lambda v: v // 2), first.getchannel(0)))
    assert not alike(vivid, vivid.convert("L").convert("RGB"))


def form(amount: str, boat: int) -> Image.Image:
    """Return a page with printed lines, a figure and a boat."""
    page = Image.new("RGB", (800, 1131), "white")
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, 0, 800, 120), fill=(30, 60, 120))
    for line in range(220, 1100, 70):
        draw.line((40, line, 760, line), fill="black")
        draw.text((60, line + 20), "Base salary", fill="black", font_size=26)
    draw.text((600, 240), amount, fill="black", font_size=26)
    draw.polygon([(boat, 60), (boat + 40, 60), (boat + 20, 30)], fill="white")
    return page


def test_what_is_small_tells_photos_apart() -> None:
    """Forms with another figure, and seas with a boat elsewhere, are photos of their own; copies of them are not."""
    first = form("2310.55", 100)
    assert distance(looks(first), looks(form("2911.20", 100))) <= MOST
    assert not alike(first, form("2911.20", 100))
    assert not alike(first, form("2310.55", 400))
    assert alike(first, saved_again(first, "JPEG", quality=70))
    assert alike(first, first.resize((400, 566), Image.Resampling.LANCZOS))


def test_a_photo_that_is_turned_by_its_orientation_tag_is_the_same() -> None:
    """The fingerprint is of the photo as people see it, however its pixels are stored."""
    first = scene(3)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    target = io.BytesIO()
    first.transpose(Image.Transpose.ROTATE_90).save(target, "JPEG", quality=90, exif=exif)
    found = decode(target.getvalue(), Wanted(10**7, 256))
    assert isinstance(found, Decoded)
    turned = fingerprint.of(found.pixels)
    assert turned is not None
    assert distance(looks(first), turned) <= MOST


def noise(level: int, width: int = 400, height: int = 300) -> NDArray[np.uint8]:
    grain = np.random.default_rng(level).normal(level, 4, (height, width, 3))
    return grain.clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((300, 400, 3), np.uint8),
        np.full((300, 400, 3), 255, np.uint8),
        np.full((300, 400, 3), (200, 30, 30), np.uint8),
        noise(3),
        noise(128),
        np.zeros((1, 1, 3), np.uint8),
        np.asarray(scene(1, (31, 400))),
    ],
    ids=["black", "white", "red", "black and grainy", "grey and grainy", "one pixel", "narrow"],
)
def test_what_says_nothing_has_no_fingerprint(pixels: NDArray[np.uint8]) -> None:
    """All-black photos are not duplicates of each other, nor are specks: they are drawn without a question."""
    assert fingerprint.of(pixels) is None


def test_a_flat_inside_says_nothing_either() -> None:
    """A frame around nothing would otherwise be like every other framed nothing."""
    framed = np.zeros((400, 400, 3), np.uint8)
    framed[16:-16, 16:-16] = 128
    assert fingerprint.of(framed) is None


def test_the_library_is_imported_by_the_first_photo_only() -> None:
    """Who does not compare photos neither needs nor pays for the extra."""
    import subprocess  # noqa: PLC0415 - this test alone starts an interpreter

    code = "import sys, animed.imaging.fingerprint; sys.exit('imagehash' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_shape_of_a_photo_counts() -> None:
    """A panorama that was stretched out of a photo is not the photo, though all is where it was."""
    photo = scene(1)
    width, height = photo.size
    assert not alike(photo, photo.resize((3 * width, height)))
    assert not alike(photo, photo.resize((width, height * 10 // 12)))
    assert alike(photo, photo.resize((width // 2 + 1, height // 2)))
