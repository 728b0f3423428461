"""The second look at a small face: it decides whether there is one, and where."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from photo_files import held
from test_faces import face

from animed.imaging.secondlook import SHOWN, SIDE, small_faces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from animed.imaging.decoded import Decoded
    from animed.imaging.faces import Face

    Pixels = NDArray[np.uint8]


class Looks:
    """Finds one thing in the photo and another in each enlarged face; notes the sizes that it was shown."""

    def __init__(self, first: Sequence[Face], *second: Sequence[Face]) -> None:
        self.answers = [first, *second]
        self.shown: list[tuple[int, ...]] = []

    def __call__(self, pixels: Pixels) -> Sequence[Face]:
        """Answer."""
        self.shown.append(pixels.shape[:2])
        return self.answers.pop(0)


def decoded(detail: int | None = None) -> Decoded:
    """Return a photo of 200 pixels a side, and perhaps finer pixels."""
    seen = np.zeros((200, 200, 3), np.uint8)
    return held(seen, detail=None if detail is None else np.zeros((detail, detail, 3), np.uint8))


def enlarged(**changes: float) -> Face:
    """Return a face as a second look at an upright one shows it."""
    seen = face(SHOWN, at=(SIDE / 2, SIDE / 2))
    return replace(seen, **changes)  # type: ignore[arg-type]  # floats only


@pytest.mark.parametrize("detail", [None, 400, 900])
def test_a_second_look_says_where_the_face_is(detail: int | None) -> None:
    """What it finds comes back in the pixels that the network sees, whatever the finest ones are."""
    looks = Looks([face(50)], [face(SHOWN, tilt=25, at=(SIDE / 2 + 26, SIDE / 2))])
    (found,) = small_faces(decoded(detail), looks)
    assert looks.shown == [(200, 200), (SIDE, SIDE)]
    assert found.centre == pytest.approx((100 + 26 * 50 / SHOWN, 100))
    assert found.size == pytest.approx(50)
    assert found.tilt == pytest.approx(25)


@pytest.mark.parametrize(
    "second",
    [
        [],
        [enlarged(score=0.79)],
        [enlarged().moved(120, 0)],  # a neighbour
        [enlarged(width=90.0, height=100.0).moved(78, 78)],  # an eye
    ],
    ids=["none", "unsure", "elsewhere", "a part"],
)
def test_what_a_second_look_does_not_show_is_no_face(second: Sequence[Face]) -> None:
    """Nothing, something that it is not sure of, another face, or a part of one."""
    assert small_faces(decoded(), Looks([face(50)], second)) == ()


def test_the_surest_of_a_second_look_counts() -> None:
    """Two boxes around one face are one face."""
    (found,) = small_faces(decoded(), Looks([face(50)], [enlarged(score=0.85), enlarged(score=0.95).moved(5, 0)]))
    assert found.score == 0.95


def test_large_faces_and_none_cost_one_look() -> None:
    """Nothing is looked at twice that would not be drawn."""
    for found in ([], [face(150)], [face(50, score=0.5)]):
        looks = Looks(found)
        assert small_faces(decoded(), looks) == ()
        assert len(looks.shown) == 1
