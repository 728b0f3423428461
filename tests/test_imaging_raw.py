"""Camera raw files: the camera's own rendering where it is large enough, else the sensor's data; upright once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from photo_files import decoded, dng, mosaic, saved, scene, turned
from picture_writers import Tiff
from PIL import Image

from animed import extras
from animed.errors import PhotoError
from animed.imaging import raw
from animed.imaging.sniff import camera

needs_rawpy = pytest.mark.skipif(not extras.installed("raw"), reason="the extra raw is not installed")


shot = partial(decoded, name=b"photo.dng")


def differs(pixels: np.ndarray[Any, Any], expected: Image.Image) -> float:
    assert pixels.shape[:2] == expected.size[::-1]
    return float(np.abs(pixels.astype(int) - np.asarray(expected.convert("RGB")).astype(int)).mean())


@needs_rawpy
@pytest.mark.parametrize("turn", range(1, 9))
def test_a_raw_file_is_developed_upright(turn: int) -> None:
    """White is white, colours are the scene's, and each of the eight orientations is applied once."""
    upright = scene(320, 240)
    result = shot(dng(mosaic(turned(upright, turn)), orientation=turn))
    assert (result.width, result.height) == (320, 240)
    assert result.kind == "raw"
    assert differs(result.pixels, upright) < 12


@needs_rawpy
def test_a_small_picture_of_a_raw_file_is_developed_in_half_size() -> None:
    """What is reduced anyway is developed faster, and the photo's size is reported all the same."""
    result = shot(dng(mosaic(scene(320, 240))), max_edge=100)
    assert (result.width, result.height) == (320, 240)
    assert differs(result.pixels, scene(100, 75)) < 12


@needs_rawpy
@pytest.mark.parametrize("turn", [1, 6])
def test_the_cameras_own_rendering_is_drawn_where_it_is_large_enough(turn: int) -> None:
    """It is what the owner saw; where the picture needs more pixels than it has, the sensor's data are developed."""
    upright, rendered = scene(640, 480), scene(320, 240).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    data = dng(mosaic(turned(upright, turn)), orientation=turn, rendering=turned(rendered, turn))
    assert differs(shot(data, max_edge=320).pixels, rendered) < 8
    assert differs(shot(data, max_edge=400).pixels, scene(400, 300)) < 12
    full = shot(data, max_edge=320, full=True)
    assert differs(full.photo, upright) < 12
    assert (full.width, full.height) == (640, 480)


@needs_rawpy
def test_a_rendering_of_another_shape_is_not_drawn() -> None:
    """A rendering that was cropped or turned already does not show what the sensor saw."""
    data = dng(mosaic(scene(640, 480)), rendering=scene(320, 180).transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    assert differs(shot(data, max_edge=320).pixels, scene(320, 240)) < 12


@needs_rawpy
def test_the_words_of_a_raw_file_reach_its_picture() -> None:
    """The camera that the file names is in the picture's EXIF, and no orientation that would turn it again."""
    notes = shot(dng(mosaic(scene(64, 48)), orientation=6)).notes
    assert b"Animed" in notes.exif
    exif = Image.Exif()
    exif.load(notes.exif)
    assert exif.get(0x0112, 1) == 1


@needs_rawpy
def test_the_limit_of_pixels_holds_for_raw_files() -> None:
    """The sensor's size is known before anything is developed."""
    with pytest.raises(PhotoError) as caught:
        shot(dng(mosaic(scene(320, 240))), max_pixels=320 * 240 - 1)
    assert caught.value.reason == "too_large"


@needs_rawpy
def test_a_raw_file_of_an_unknown_camera_is_unsupported() -> None:
    """A TIFF under the name of a raw file says what is wrong, and with which format."""
    with pytest.raises(PhotoError, match="dng") as caught:
        shot(saved(scene(), "tiff", compression="tiff_lzw"))
    assert caught.value.reason in {"unsupported:raw", "not_an_image"}


def test_without_the_extra_raw_files_say_what_to_install() -> None:
    """The format and the extra are named; the reason is one for all cameras."""

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    for head, form in (
        (b"FUJIFILMCCD-RAW 0201", "raf"),
        (dng(mosaic(scene(16, 16))), "dng"),
        (Tiff(1).write(np.zeros((1, 1))), "dng"),
    ):
        with pytest.raises(PhotoError, match=rf"{form} .*animed\[raw\]") as caught:
            raw.library(camera(head, b"photo.dng"), load=missing)
        assert caught.value.reason == "unsupported:raw"
