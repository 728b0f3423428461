"""Faces on a photo's way through a worker: what they change, and that nothing changes without them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from engine_fakes import Unheard
from PIL import Image
from test_faces import face
from test_pipeline import RECIPE, Shelf, built, inbox, loaded, photo, silent, task
from test_secondlook import Looks, enlarged

from animed.errors import PhotoError, StyleError
from animed.imaging.secondlook import SIDE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from animed.imaging.faces import Face
    from animed.records import Picture, Recipe

__all__ = ["inbox"]

AUTO = replace(RECIPE, faces="auto", detector_sha256="f" * 64, max_edge=128)
OFF = replace(AUTO, faces="off", detector_sha256="")


class Finder:
    """Stands in for the detector."""

    def __init__(self, *answers: Sequence[Face]) -> None:
        self.looks = Looks(*(answers or ((),)))

    def find(self, pixels: NDArray[np.uint8], *, threads: int) -> tuple[Face, ...]:
        """Answer with what is next."""
        assert threads == 1
        return tuple(self.looks(pixels))


def one_face() -> Finder:
    """Return one that sees a face of 40 pixels in the middle of 128 by 96."""
    return Finder([face(40, at=(64.0, 48.0))], [enlarged()])


def drawn(inbox: Path, finder: Finder | None, recipe: Recipe) -> tuple[Picture, bytes]:
    """Return the figures and the bytes of a picture."""
    shelf = Shelf()
    line = built(stage_writer=shelf, finder=finder)
    given = task(inbox, photo(400, 300), recipe)
    ready = loaded(line, given)
    picture, _ = line.finish(given, line.draw(given, ready, silent), Unheard())
    return picture, shelf.kept[0][0]


@pytest.mark.parametrize("output_size", ["styled", "original"])
def test_a_picture_without_a_face_is_the_same_byte_for_byte(inbox: Path, output_size: str) -> None:
    """To look for faces changes nothing, though more of the photo is decoded for it."""
    sizes = {"output_size": output_size}
    plain, plain_bytes = drawn(inbox, None, replace(OFF, **sizes))  # type: ignore[arg-type]  # one key
    looked, looked_bytes = drawn(inbox, Finder(), replace(AUTO, **sizes))  # type: ignore[arg-type]  # one key
    assert looked_bytes == plain_bytes
    assert (plain.faces, looked.faces) == (None, 0)


@pytest.mark.parametrize("output_size", ["styled", "original"])
def test_a_face_is_drawn_again_and_counted(inbox: Path, output_size: str) -> None:
    """The picture is another one, and its figures say how many faces."""
    sizes = {"output_size": output_size}
    _, plain = drawn(inbox, None, replace(OFF, **sizes))  # type: ignore[arg-type]  # one key
    picture, other = drawn(inbox, one_face(), replace(AUTO, **sizes))  # type: ignore[arg-type]  # one key
    assert picture.faces == 1
    assert other != plain


def test_the_photo_is_drawn_as_ever_around_the_face(inbox: Path) -> None:
    """Pixels far from the face are the same, and the strength is applied last, to the face too."""
    results = {}
    for strength in (1.0, 0.5):
        for finder, recipe in ((None, OFF), (one_face(), AUTO)):
            line = built(finder=finder)
            given = task(inbox, photo(400, 300), replace(recipe, strength=strength))
            ready = loaded(line, given)
            results[strength, recipe.faces] = line.draw(given, ready, silent).pixels.astype(int)
            results["photo"] = ready.decoded.pixels.astype(int)  # type: ignore[index]  # a key of its own
    assert (results[1.0, "off"][:, :20] == results[1.0, "auto"][:, :20]).all()
    assert (results[1.0, "off"] != results[1.0, "auto"])[38:58, 54:74].mean() > 0.5
    half = (results["photo"] + results[1.0, "auto"]) / 2  # type: ignore[index]  # a key of its own
    assert np.abs(results[0.5, "auto"] - half).max() <= 1


def test_the_second_look_sees_more_of_a_larger_photo(inbox: Path) -> None:
    """Twice what the network sees is decoded for faces, and is not where they are off or the photo has no more."""
    line = built(finder=Finder())
    assert loaded(line, task(inbox, photo(400, 300), OFF)).decoded.detail is None
    assert loaded(line, task(inbox, photo(100, 80), AUTO)).decoded.detail is None
    detail = loaded(line, task(inbox, photo(400, 300), AUTO)).decoded.detail
    assert detail is not None
    assert detail.shape == (192, 256, 3)
    finder = one_face()
    drawn(inbox, finder, AUTO)
    assert finder.looks.shown == [(96, 128), (SIDE, SIDE)]


def test_each_face_gives_signs_of_life(inbox: Path) -> None:
    """Many faces take long: the network beats for each of them."""
    beats = []
    two = [face(40, at=(64.0, 48.0)), face(30, at=(64.0, 48.0))]
    for finder in (Finder(), Finder(two, [enlarged()], [enlarged()])):
        line, count = built(finder=finder), list[int]()
        given = task(inbox, photo(400, 300), AUTO)
        line.draw(given, loaded(line, given), lambda count=count: count.append(1))  # type: ignore[misc]  # mypy knows no defaults of lambdas
        beats.append(len(count))
    assert beats[1] == 3 * beats[0]


def test_no_face_is_looked_for_where_nothing_is_drawn(inbox: Path) -> None:
    """At strength 0 the picture is the photo."""
    finder = Finder()
    picture, _ = drawn(inbox, finder, replace(AUTO, strength=0.0))
    assert picture.faces is None
    assert finder.looks.shown == []


def test_a_worker_without_the_detector_says_so(inbox: Path) -> None:
    """It would otherwise draw another picture than the recipe says."""
    with pytest.raises(StyleError, match="no face detector"):
        drawn(inbox, None, AUTO)


def test_memory_that_runs_out_on_a_face_is_the_photo_s(inbox: Path) -> None:
    """A square of its own may be one too many: the reason is the stable word."""

    class Full(Finder):
        """Runs out of memory."""

        def find(self, pixels: NDArray[np.uint8], *, threads: int) -> tuple[Face, ...]:
            """Fail."""
            raise MemoryError(pixels.shape, threads)

    with pytest.raises(PhotoError, match="more memory than there is") as caught:
        drawn(inbox, Full(), AUTO)
    assert caught.value.reason == "out_of_memory"


def test_another_detector_is_another_recipe() -> None:
    """The digest of what finds faces decides about the picture, as faces do."""
    digests = {recipe.digest for recipe in (OFF, AUTO, replace(AUTO, detector_sha256="0" * 64))}
    assert len(digests) == 3


@pytest.mark.parametrize("turn", [1, 2, 6, 7])
def test_the_finer_pixels_are_of_the_same_view(inbox: Path, turn: int) -> None:
    """Turned as the photo says, and in the same colours as what the network sees."""
    exif = Image.Exif()
    exif[0x0112] = turn
    for size in ((400, 300), (200, 150)):  # reduced, and as it is
        decoded = loaded(built(finder=Finder()), task(inbox, photo(*size, exif=exif, quality=95), AUTO)).decoded
        assert decoded.detail is not None
        height, width = decoded.pixels.shape[:2]
        again = np.asarray(Image.fromarray(decoded.detail).resize((width, height), Image.Resampling.LANCZOS))
        assert np.abs(again.astype(int) - decoded.pixels).max() <= 3
