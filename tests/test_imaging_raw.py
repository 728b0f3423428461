"""Camera raw files: the camera's own rendering where it is large enough, else the sensor's data; upright once."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from photo_files import dng, long, mosaic, saved, scene, tiff, turned
from PIL import Image

from animed.errors import PhotoError
from animed.imaging.decode import Decoded, Wanted, decode

needs_rawpy = pytest.mark.skipif(not importlib.util.find_spec("rawpy"), reason="the extra raw is not installed")


def decoded(data: bytes, *, max_edge: int = 512, full: bool = False, max_pixels: int = 10**7) -> Decoded:
    result = decode(data, Wanted(max_pixels=max_pixels, max_edge=max_edge, full=full), name=b"photo.dng")
    assert isinstance(result, Decoded)
    return result


def differs(pixels: np.ndarray[Any, Any], expected: Image.Image) -> float:
    assert pixels.shape[:2] == expected.size[::-1]
    return float(np.abs(pixels.astype(int) - np.asarray(expected.convert("RGB")).astype(int)).mean())


def with_rendering(sensor: Image.Image, rendering: Image.Image, orientation: int = 1) -> bytes:
    """Return a DNG with a JPEG in it: two DNGs' worth of places are needed to know where the JPEG stands."""
    jpeg = saved(rendering, "jpeg", quality=95)
    plain = dng(mosaic(sensor), orientation=orientation)
    entries = [long(513, len(plain) + 4096), long(514, len(jpeg))]
    data = dng(mosaic(sensor), orientation=orientation, extra=tuple(entries))
    return data.ljust(len(plain) + 4096, b"\x00") + jpeg


@needs_rawpy
@pytest.mark.parametrize("turn", range(1, 9))
def test_a_raw_file_is_developed_upright(turn: int) -> None:
    """White is white, colours are the scene's, and each of the eight orientations is applied once."""
    upright = scene(320, 240)
    result = decoded(dng(mosaic(turned(upright, turn)), orientation=turn))
    assert (result.width, result.height) == (320, 240)
    assert result.kind == "raw"
    assert differs(result.pixels, upright) < 12


@needs_rawpy
def test_a_small_picture_of_a_raw_file_is_developed_in_half_size() -> None:
    """What is reduced anyway is developed faster, and the photo's size is reported all the same."""
    result = decoded(dng(mosaic(scene(320, 240))), max_edge=100)
    assert (result.width, result.height) == (320, 240)
    assert differs(result.pixels, scene(100, 75)) < 12


@needs_rawpy
def test_the_words_of_a_raw_file_reach_its_picture() -> None:
    """The camera that the file names is in the picture's EXIF, and no orientation that would turn it again."""
    notes = decoded(dng(mosaic(scene(64, 48)), orientation=6)).notes
    assert b"Animed" in notes.exif
    exif = Image.Exif()
    exif.load(notes.exif)
    assert exif.get(0x0112, 1) == 1


@needs_rawpy
def test_the_limit_of_pixels_holds_for_raw_files() -> None:
    """The sensor's size is known before anything is developed."""
    with pytest.raises(PhotoError) as caught:
        decoded(dng(mosaic(scene(320, 240))), max_pixels=320 * 240 - 1)
    assert caught.value.reason == "too_large"


@needs_rawpy
def test_a_raw_file_of_an_unknown_camera_is_unsupported() -> None:
    """A TIFF under the name of a raw file says what is wrong, and with which format."""
    with pytest.raises(PhotoError, match="dng") as caught:
        decoded(saved(scene(), "tiff", compression="tiff_lzw"))
    assert caught.value.reason in {"unsupported:raw", "not_an_image"}


def test_without_the_extra_raw_files_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The format and the extra are named; the reason is one for all cameras."""
    original = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name == "rawpy":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return original(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    for head, form in ((b"FUJIFILMCCD-RAW 0201", "raf"), (dng(mosaic(scene(16, 16))), "dng"), (tiff(([], b"")), "dng")):
        with pytest.raises(PhotoError, match=rf"{form} .*animed\[raw\]") as caught:
            decoded(head)
        assert caught.value.reason == "unsupported:raw"
