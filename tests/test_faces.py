"""Faces as plain geometry: which are faces at all, how they are turned, and which are worth another drawing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.imaging import faces
from animed.imaging.faces import TEMPLATE, Face, Similarity, fit, is_plausible, worth_drawing

EXAMPLES = settings(deadline=None, max_examples=60)


def face(
    size: float = 50.0, *, tilt: float = 0.0, at: tuple[float, float] = (100.0, 100.0), score: float = 0.9
) -> Face:
    """Return a face with landmarks in the usual places, turned clockwise."""
    turn = math.radians(tilt)
    place = Similarity(size * math.cos(turn), size * math.sin(turn), *at)
    points = tuple((float(x), float(y)) for x, y in place.apply(TEMPLATE))
    return Face(at[0] - size * 0.4, at[1] - size / 2, size * 0.8, size, points, score)


@given(st.floats(0.1, 50), st.floats(-3.1, 3.1), st.floats(-500, 500), st.floats(-500, 500))
@EXAMPLES
def test_a_similarity_is_found_again_from_five_points(scale: float, turn: float, x: float, y: float) -> None:
    """Least squares over exact points gives the map itself, and its inverse undoes it."""
    place = Similarity(scale * math.cos(turn), scale * math.sin(turn), x, y)
    placed = place.apply(TEMPLATE)
    found = fit(TEMPLATE, placed)
    assert np.allclose((found.a, found.b, found.x, found.y), (place.a, place.b, x, y), atol=1e-6)
    assert np.allclose(place.inverse().apply(placed), TEMPLATE, atol=1e-6)
    assert found.scale == pytest.approx(scale)
    assert found.degrees == pytest.approx(math.degrees(turn), abs=1e-6)


@given(st.floats(-175, 175), st.floats(0, 3), st.integers(0, 1000))
@EXAMPLES
def test_the_tilt_survives_landmarks_that_are_a_little_off(tilt: float, noise: float, seed: int) -> None:
    """Three pixels of error in a face of 100 turn it by a few degrees at most."""
    exact = face(100, tilt=tilt)
    error = np.random.default_rng(seed).uniform(-noise, noise, (5, 2))
    points = tuple((float(x), float(y)) for x, y in np.array(exact.landmarks) + error)
    off = (replace(exact, landmarks=points).tilt - tilt + 180) % 360 - 180
    assert abs(off) < 8


@given(st.floats(0.2, 5), st.floats(-180, 180))
@EXAMPLES
def test_scaling_a_face_scales_all_of_it(factor: float, tilt: float) -> None:
    """Box and landmarks grow together, so size and place do, and the tilt stays."""
    before = face(40, tilt=tilt)
    after = before.scaled(factor, factor)
    assert after.size == pytest.approx(before.size * factor)
    assert after.centre == pytest.approx((before.centre[0] * factor, before.centre[1] * factor))
    assert math.cos(math.radians(after.tilt - before.tilt)) == pytest.approx(1)


@pytest.mark.parametrize("tilt", [0, 9, -30, 45, 90, 180])
def test_a_turned_face_is_a_face(tilt: float) -> None:
    """Somebody who lies down has a face all the same."""
    assert is_plausible(face(tilt=tilt))


def test_a_profile_is_a_face() -> None:
    """Both eyes and both corners of the mouth may lie on one line each."""
    seen = face()
    points = tuple((100 + (x - 100) * 0.15, y) for x, y in seen.landmarks)
    assert is_plausible(replace(seen, landmarks=points))


def _moved(seen: Face, *moves: tuple[int, float, float]) -> Face:
    points = list(seen.landmarks)
    for at, x, y in moves:
        points[at] = (points[at][0] + x, points[at][1] + y)
    return replace(seen, landmarks=tuple(points))


@pytest.mark.parametrize(
    "wrong",
    [
        face(score=0.69),
        replace(face(), width=0.0),
        _moved(face(), (2, math.nan, 0)),
        _moved(face(), (0, -60, 0)),  # an eye far outside the box
        _moved(face(), (3, 0, -19), (4, 0, -19)),  # the mouth at the eyes
        replace(face(), landmarks=tuple((200 - x, y) for x, y in face().landmarks)),  # left and right exchanged
        replace(face(), landmarks=((100.0, 100.0),) * 5),
    ],
    ids=["unsure", "flat", "no number", "outside", "mouth", "mirrored", "one point"],
)
def test_what_is_no_face_is_left_alone(wrong: Face) -> None:
    """A detector that is unsure, or landmarks that no face has."""
    assert not is_plausible(wrong)
    assert worth_drawing([wrong]) == ()


@given(st.lists(st.floats(5, 300), max_size=60))
@EXAMPLES
def test_small_faces_are_drawn_and_the_largest_first(sizes: list[float]) -> None:
    """Neither specks nor faces that come out clean by themselves, and never more than 32."""
    chosen = [seen.size for seen in worth_drawing(face(size) for size in sizes)]
    wanted = sorted((size for size in sizes if faces.SMALLEST <= size <= faces.LARGEST), reverse=True)
    assert chosen == pytest.approx(wanted[: faces.MOST])
