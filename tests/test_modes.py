"""Every mode of every format that animed reads, into every format that it writes, against another program's colours.

tests/data/mode_colours.json holds what ImageMagick (libvips for AVIF and HEIC) reads from the files that mode_samples
makes; tests/reference_colours.py says how, and is run by hand. Nothing of animed had a hand in the values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import pytest
from mode_samples import REFUSED, SAMPLES, SIDE, middles
from photo_bench import Bench, delta_e, on_white

from animed.errors import PhotoError
from animed.records import SUFFIXES, PictureFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE: Final[dict[str, list[list[int]]]] = json.loads(
    (Path(__file__).parent / "data" / "mode_colours.json").read_text()
)
FORMS: Final[tuple[str, ...]] = get_args(PictureFormat)
# Steps of a byte. Deep values are rounded, and YCbCr is turned to RGB, a step apart by different libraries; those that
# decode AVIF and HEIC differ in two. Lab in 8 bits has steps so coarse that rounding it makes four of sRGB.
STEPS: Final = {"tiff lab 8": 4, "avif": 2, "heic": 2}
# Delta E 2000 that the format itself adds to flat patches at quality 92, of which 0.8, 1.4 and 1.8 were measured: WebP
# keeps 219 steps of luma and a quarter of the chroma's pixels, JPEG and AVIF full chroma.
LOSS: Final = {"jpeg": 1.0, "png": 0.0, "webp": 1.5, "avif": 2.0}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Share one pipeline: it keeps nothing from one photo to the next."""
    return Bench(tmp_path_factory.mktemp("inbox"))


def expected(name: str) -> NDArray[Any]:
    return np.array(TABLE[name], np.int64)


def steps(name: str) -> int:
    return STEPS.get(name, STEPS.get(name.split(maxsplit=1)[0], 1))


def test_the_table_has_every_mode() -> None:
    """Each mode has its twelve colours, and no colours are left over from a mode that is gone."""
    assert set(TABLE) == set(SAMPLES)
    assert {np.shape(colours) for colours in TABLE.values()} == {(12, 4)}
    assert set(LOSS) == set(FORMS) == set(SUFFIXES)


@pytest.mark.parametrize("name", SAMPLES)
def test_lossless_pictures_have_the_colours_of_the_reference(bench: Bench, name: str) -> None:
    """What may be seen of a PNG picture is within a step or two of the reference, and its alpha is the photo's."""
    drawn = bench.draw(SAMPLES[name](), output_format="png")
    found, reference = middles(drawn.pixels()), expected(name)
    seen = reference[:, 3] > 0
    assert np.abs(found[:, 3] - reference[:, 3]).max() <= 1
    assert np.abs(found[seen, :3] - reference[seen, :3]).max() <= steps(name)
    assert (drawn.said.width, drawn.said.height) == (4 * SIDE, 3 * SIDE)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "png"])
@pytest.mark.parametrize("name", SAMPLES)
def test_lossy_pictures_have_the_colours_of_the_reference(bench: Bench, name: str, form: str) -> None:
    """What may be seen differs by what the format itself loses; a JPEG lies on white."""
    drawn = bench.draw(SAMPLES[name](), output_format=form)
    assert drawn.image().format == form.upper()
    found, reference = middles(drawn.pixels()), expected(name)
    if form == "jpeg":
        reference = np.hstack((on_white(reference), np.full((12, 1), 255)))
    seen = reference[:, 3] > 0
    assert np.abs(found[:, 3] - reference[:, 3]).max() <= 1
    # The reference's own steps, seen where eyes see steps best.
    allowed = LOSS[form] + 0.5 * steps(name)
    assert delta_e(found[seen, :3], reference[seen, :3]).max() <= allowed


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_and_never_drawn_wrong(bench: Bench, name: str) -> None:
    """A sound file of a rare sort is refused by a reason that says so."""
    build, reason = REFUSED[name]
    with pytest.raises(PhotoError) as caught:
        bench.draw(build())
    assert caught.value.reason == reason
