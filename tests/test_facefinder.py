"""The face detector: what a worker makes of its file and of its answers, and the real one on a photo that ships."""

from __future__ import annotations

import hashlib
from importlib import resources
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from photo_files import held
from PIL import Image
from test_pipeline import cel

from animed import detector, extras
from animed.engine import pipeline
from animed.errors import StyleError
from animed.imaging.facefinder import EDGE, FaceFinder, face_of
from animed.imaging.portraits import refine
from animed.imaging.secondlook import small_faces
from animed.imaging.squares import Square, cut
from animed.records import DetectorFile
from animed.style import weights

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from animed.imaging.faces import Face

    Pixels = NDArray[np.uint8]

needs_library = pytest.mark.skipif(not extras.installed("faces"), reason="OpenCV is not on this machine")
ROW = np.array([10, 20, 30, 40, 17, 35, 33, 35, 25, 42, 18, 50, 32, 50, 0.875], np.float32)


class FakeError(Exception):
    """Stand in for OpenCV's own error."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


class FakeDetector:
    """Answers every picture with the same faces, and notes what it was shown."""

    def __init__(self, rows: NDArray[np.float32] | None, fault: FakeError | None = None) -> None:
        self.rows = rows
        self.fault = fault
        self.sizes: list[tuple[int, int]] = []
        self.shown: list[Pixels] = []

    def setInputSize(self, size: tuple[int, int]) -> None:  # noqa: N802 - OpenCV's name
        """Note a size."""
        self.sizes.append(size)

    def detect(self, pixels: Pixels) -> tuple[int, NDArray[np.float32] | None]:
        """Answer."""
        if self.fault:
            raise self.fault
        self.shown.append(pixels)
        return 1, self.rows


def finder(fake: FakeDetector, threads: list[int] | None = None) -> FaceFinder:
    """Return one over a fake; `threads` takes what the library is told."""
    told = [] if threads is None else threads
    return FaceFinder(fake, SimpleNamespace(error=FakeError, setNumThreads=told.append), 1)


def astronaut(side: int) -> Pixels:
    """Return the sample with a face, reduced."""
    with resources.files("animed.samples").joinpath("astronaut.jpg").open("rb") as stream, Image.open(stream) as image:
        return np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.LANCZOS))


def test_a_row_of_the_detector_is_a_face() -> None:
    """Box, five landmarks and score stand in the order that the detector gives them; other rows are refused."""
    face = face_of(ROW)
    assert (face.x, face.y, face.width, face.height, face.score) == (10, 20, 30, 40, 0.875)
    assert face.landmarks == ((17, 35), (33, 35), (25, 42), (18, 50), (32, 50))
    with pytest.raises(ValueError, match="14 numbers"):
        face_of(ROW[:14])


def test_a_large_picture_is_looked_at_reduced() -> None:
    """The faces come back in the pixels of the picture that was given."""
    fake = FakeDetector(ROW[None])
    (face,) = finder(fake).find(np.zeros((2 * EDGE, EDGE, 3), np.uint8), threads=1)
    assert fake.sizes == [(EDGE // 2, EDGE)]
    assert (face.x, face.y, face.height) == (20, 40, 80)


def test_the_detector_is_shown_blue_first() -> None:
    """It was trained so."""
    fake = FakeDetector(None)
    red = np.zeros((64, 64, 3), np.uint8)
    red[..., 0] = 255
    assert finder(fake).find(red, threads=1) == ()
    assert tuple(fake.shown[0][0, 0]) == (0, 0, 255)


def test_a_sliver_is_not_looked_at() -> None:
    """A picture that is too narrow for a face holds none."""
    fake = FakeDetector(ROW[None])
    assert finder(fake).find(np.zeros((5, 4000, 3), np.uint8), threads=1) == ()
    assert fake.shown == []


def test_the_library_is_told_of_other_threads_only() -> None:
    """As many threads as the photo has, set when they change."""
    told: list[int] = []
    looking = finder(FakeDetector(None), told)
    for threads in (1, 2, 2, 1):
        looking.find(np.zeros((64, 64, 3), np.uint8), threads=threads)
    assert told == [2, 1]


def test_memory_that_runs_out_in_the_library_is_told_as_such() -> None:
    """OpenCV's number for it becomes a MemoryError; other errors stay what they are."""
    blank = np.zeros((64, 64, 3), np.uint8)
    with pytest.raises(MemoryError):
        finder(FakeDetector(None, FakeError(-4))).find(blank, threads=1)
    with pytest.raises(FakeError):
        finder(FakeDetector(None, FakeError(-215))).find(blank, threads=1)


@needs_library
def test_another_file_than_the_parent_saw_is_not_loaded(tmp_path: Path) -> None:
    """The digest is compared again before the library reads a byte of it; a file that is gone is told too."""
    path = tmp_path / "detector.onnx"
    file = DetectorFile(str(path), "0" * 64)
    with pytest.raises(StyleError, match="cannot be read"):
        FaceFinder.load(file, threads=1)
    path.write_bytes(b"something else")
    with pytest.raises(StyleError, match="is not what it was"):
        FaceFinder.load(file, threads=1)


@needs_library
def test_a_file_that_is_no_detector_is_an_error_with_words(tmp_path: Path) -> None:
    """Whatever the library says becomes one line."""
    path = tmp_path / "detector.onnx"
    path.write_bytes(b"no network at all")
    with pytest.raises(StyleError, match="cannot be loaded"):
        FaceFinder.load(DetectorFile(str(path), hashlib.sha256(path.read_bytes()).hexdigest()), threads=1)


@pytest.fixture
def real(weights_of_others: Path) -> FaceFinder:
    """Load the real detector, which users fetch: it does not ship."""
    return FaceFinder.load(
        DetectorFile(str(weights_of_others / detector.FACES.file_name), detector.FACES.sha256), threads=1
    )


@needs_library
@pytest.mark.parametrize("side", [150, 300, 512])
def test_the_face_of_the_sample_is_found(real: FaceFinder, side: int) -> None:
    """One face, where it is in the sample, whatever size the photo has."""
    (face,) = [each for each in real.find(astronaut(side), threads=2) if each.score > 0.8]
    x, y = face.centre
    assert (x / side, y / side) == pytest.approx((0.436, 0.233), abs=0.02)
    assert abs(face.tilt) < 10


def chosen(pixels: Pixels, looking: FaceFinder) -> tuple[Face, ...]:
    """Return the faces of a photo that would be drawn by themselves."""
    decoded = held(pixels)
    return small_faces(decoded, lambda seen: looking.find(seen, threads=1))


@needs_library
@pytest.mark.parametrize("turn", [-30, -20, 20, 30])
def test_a_tilted_face_is_found_with_its_tilt(real: FaceFinder, turn: int) -> None:
    """The landmarks of the second look say how far the head is turned; those of the first would say 6 degrees."""
    turned = Image.fromarray(astronaut(300)).rotate(-turn, Image.Resampling.BICUBIC, fillcolor=(128, 128, 128))
    (face,) = chosen(np.asarray(turned), real)
    assert face.tilt == pytest.approx(turn, abs=10)


@needs_library
@pytest.mark.parametrize("name", ["coffee.jpg", "rocket.jpg", "chelsea.jpg"])
def test_no_face_is_found_where_there_is_none(real: FaceFinder, name: str) -> None:
    """A cup, a rocket and a cat have no face of this kind."""
    with resources.files("animed.samples").joinpath(name).open("rb") as stream, Image.open(stream) as image:
        assert chosen(np.asarray(image.convert("RGB")), real) == ()


@needs_library
def test_a_face_that_was_drawn_by_itself_is_more_of_a_face(real: FaceFinder) -> None:
    """The built-in style leaves little of a face of 35 pixels; drawn by itself it is found in the picture again."""
    photo = astronaut(160)
    decoded = held(photo, detail=astronaut(320))
    (face,) = small_faces(decoded, lambda seen: real.find(seen, threads=1))
    network = weights.load(cel())

    def draw(pixels: Pixels) -> Pixels:
        return pipeline.draw(network, pixels)

    plain = draw(photo)
    by_itself = refine(plain.copy(), decoded, [face], draw)
    found = [_score(picture, face, real) for picture in (plain, by_itself)]
    assert found[1] > max(found[0], 0.85)


def _score(picture: Pixels, face: Face, looking: FaceFinder) -> float:
    """Return how sure the detector is of a face in a picture, enlarged; 0 where it finds none."""
    square = Square.around(face, 416, shown=256)
    return max((each.score for each in looking.find(cut(picture, square), threads=1)), default=0.0)
