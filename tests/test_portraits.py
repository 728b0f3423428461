"""Faces laid into a picture: nothing else changes, no seam shows, and the network is asked for little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_files import held
from test_faces import face

from animed.imaging import portraits
from animed.imaging.faces import UPRIGHT, Face
from animed.imaging.portraits import MARGIN, drawn_size, mask, redrawn, refine, side_of, stages
from animed.imaging.squares import Square, cut, lay

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

TILTS = [0.0, 8.0, 25.0, -60.0, 135.0]


def waves(height: int, width: int, *, period: float = 60.0) -> Pixels:
    """Return a smooth picture of three colours: the same view in any size, where the period goes with it."""
    y, x = (np.mgrid[0:height, 0:width] + 0.5) * (2 * np.pi / period)
    planes = (np.sin(x) * np.cos(y), np.cos(x + y), np.sin(y - x / 2))
    return np.stack([128 + 60 * plane for plane in planes], axis=-1).astype(np.uint8)


def same(pixels: Pixels) -> Pixels:
    """Stand in for a network that changes nothing."""
    return pixels


def toned(pixels: Pixels) -> Pixels:
    """Stand in for a network whose tone depends on what it sees, as norms over all of it make it."""
    seen = pixels.astype(np.float32)
    shifted = (seen - seen.mean(axis=(0, 1))) * 1.1 + (150, 120, 90)
    drawn: Pixels = np.clip(shifted, 0, 255).astype(np.uint8)
    return drawn


def energy(pixels: Pixels, points: NDArray[np.intp]) -> float:
    """Return the 99th percentile of the steps between neighbours at some pixels."""
    grey = pixels.astype(float).mean(axis=-1)
    across, down = np.abs(np.diff(grey, axis=1))[:-1], np.abs(np.diff(grey, axis=0))[:, :-1]
    return float(np.percentile(np.hypot(across, down)[points[:, 1], points[:, 0]], 99))


def ring(seen: Face, radius: float) -> NDArray[np.intp]:
    """Return the pixels on the ellipse around an upright face at so many of its axes."""
    turn = np.linspace(0, 2 * np.pi, 400)
    x = seen.centre[0] + radius * portraits.AXIS * seen.width * np.cos(turn)
    y = seen.centre[1] + radius * portraits.AXIS * seen.height * np.sin(turn)
    return np.stack((x, y), axis=1).astype(np.intp)


def test_a_picture_without_faces_is_the_picture() -> None:
    """It is not copied, and the network is not asked."""
    picture = waves(50, 60)

    def never(pixels: Pixels) -> Pixels:
        raise AssertionError(pixels.shape)

    assert redrawn(picture, picture, (), never) is picture


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("scale", [1, 2, 5])
def test_a_network_that_changes_nothing_leaves_no_trace(tilt: float, scale: int) -> None:
    """Out of the photo, upright, and back into the picture is where it was, to a rounding step or two."""
    source = waves(200 * scale, 200 * scale, period=60 * scale)
    picture = waves(200, 200)
    result = redrawn(picture.copy(), source, [face(40, tilt=tilt)], same)
    assert np.abs(result.astype(int) - picture).max() <= 4


@pytest.mark.parametrize("tilt", TILTS)
def test_what_lies_off_the_face_stays_byte_for_byte(tilt: float) -> None:
    """Only the ellipse around the face is drawn again, and all of its middle."""
    picture = waves(200, 200)
    result = redrawn(picture.copy(), picture, [face(40, tilt=tilt)], lambda pixels: 255 - pixels)
    changed = (result != picture).any(axis=-1)
    y, x = np.nonzero(changed)
    assert np.hypot(x - 100, y - 100).max() <= 40 * portraits.AXIS * portraits.GONE + 1
    assert changed[95:105, 95:105].mean() > 0.9


@pytest.mark.parametrize("size", [20, 50, 90])
def test_no_seam_shows_around_a_face(size: float) -> None:
    """Along the border the steps between pixels are those of the columns beside it, whatever tone the square got."""
    photo = waves(300, 300)
    picture = toned(photo)
    seen = face(size, at=(150.0, 150.0))
    result = redrawn(picture.copy(), photo, [seen], lambda pixels: toned(pixels) // 2 + 20)
    beside = energy(picture, ring(seen, 1.5))
    for radius in (0.9, 1.0, 1.1, 1.2, 1.3, portraits.GONE):
        assert energy(result, ring(seen, radius)) <= 1.1 * beside + 0.5


def test_the_tone_of_the_face_is_that_of_the_picture_around_it() -> None:
    """A square that the network drew 60 steps darker comes out as bright as what it lies in."""
    picture = np.full((200, 200, 3), 150, np.uint8)
    result = redrawn(picture.copy(), picture, [face(50)], lambda pixels: pixels - 60)
    assert np.abs(result.astype(int) - 150).max() <= 1


@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.tuples(st.floats(-40, 120), st.floats(-40, 120)),
    st.floats(12, 96),
    st.floats(-180, 180),
)
@settings(deadline=None, max_examples=60)
def test_faces_may_lie_anywhere(of: tuple[int, int], at: tuple[float, float], size: float, tilt: float) -> None:
    """Across the border, beyond it, in a picture of one pixel: a picture of the same size comes out."""
    picture = waves(*of)
    result = redrawn(picture.copy(), picture, [face(size, tilt=tilt, at=at)], same)
    assert result.shape == picture.shape
    assert result.dtype == picture.dtype
    assert np.abs(result.astype(int) - picture).mean() < 16


def test_a_face_at_the_border_sees_the_photo_mirrored() -> None:
    """No black is drawn into the square where the photo ends."""
    photo = np.full((60, 60, 3), 200, np.uint8)
    assert cut(photo, Square.around(face(40, at=(2.0, 3.0), tilt=20), 128, shown=64)).min() == 200


def test_faces_that_overlap_are_each_drawn() -> None:
    """One after the other into the same picture."""
    asked: list[tuple[int, ...]] = []

    def network(pixels: Pixels) -> Pixels:
        asked.append(pixels.shape)
        return pixels

    picture = waves(200, 200)
    result = redrawn(picture.copy(), picture, [face(60), face(40, at=(120.0, 100.0))], network)
    assert len(asked) == 2
    assert np.abs(result.astype(int) - picture).max() <= 4


@given(st.floats(12, 1000), st.floats(12, 1000))
@settings(deadline=None, max_examples=60)
def test_the_network_is_asked_for_little(in_source: float, in_picture: float) -> None:
    """At most 512² pixels in few sizes; never so few that a face melts, where the photo has more."""
    shown = drawn_size(in_source, in_picture)
    side = side_of(shown)
    assert side in {256, 384, 512}
    assert side / shown >= MARGIN
    if in_source * portraits.ENLARGED >= portraits.DRAWN:
        assert shown >= portraits.DRAWN


def test_a_face_is_drawn_from_the_finest_pixels_there_are() -> None:
    """Twice as many pixels, or the photo's own where the picture has its size, and not what the network saw."""
    lines = (np.arange(400) % 4 < 2) * np.uint8(255)
    fine = np.repeat(np.broadcast_to(lines, (400, 400))[..., None], 3, axis=2)
    seen = np.full((200, 200, 3), 127, np.uint8)
    given: list[Pixels] = []

    def network(pixels: Pixels) -> Pixels:
        given.append(pixels)
        return pixels

    for decoded in (
        held(seen, detail=fine),
        held(seen, fine),
        held(seen),
    ):
        anything: Any = decoded
        refine(np.full_like(decoded.photo, 127), anything, [face(60)], network)
    assert [pixels.std() > 50 for pixels in given] == [True, True, False]


def test_a_face_that_would_be_out_of_focus_is_drawn_before_the_picture_grows() -> None:
    """One that measures more than 512 pixels in the picture, of which the network drew 256 at most."""
    seen = np.zeros((100, 100, 3), np.uint8)
    decoded = held(seen, np.zeros((1000, 1000, 3), np.uint8))
    large, small = face(52), face(50)
    assert stages([large, small], decoded) == ([large], [small])
    same_size = held(seen)
    assert stages([large, small], same_size) == ([], [large, small])


@pytest.mark.parametrize("tilt", [0.0, UPRIGHT - 1, UPRIGHT + 1, 90.0])
def test_only_a_tilted_face_is_turned(tilt: float) -> None:
    """To turn a picture softens it, so a small tilt is left alone."""
    square = Square.around(face(50, tilt=tilt), 128, shown=64)
    assert square.turned is (tilt > UPRIGHT)


@given(st.floats(-180, 180), st.integers(64, 512), st.floats(12, 96))
@settings(deadline=None, max_examples=60)
def test_the_square_lies_around_the_face(tilt: float, side: int, size: float) -> None:
    """Its middle is the face's, it shows the face in as many pixels as asked for, and its bounds hold all of it."""
    square = Square.around(face(size, tilt=tilt), side, shown=side / 3)
    middle = square.place.apply(np.array([(side / 2, side / 2)]))[0]
    assert np.allclose(middle, (100, 100), atol=1e-6)
    assert square.place.scale * side == pytest.approx(3 * size)
    left, upper, right, lower = square.bounds
    assert left <= 100 - 1.5 * size + 1e-6
    assert right >= 100 + 1.5 * size - 1e-6
    assert (right - left) * (lower - upper) >= (3 * size) ** 2 - 1e-6


def test_the_mask_is_whole_inside_and_gone_outside() -> None:
    """It falls steadily with the distance from the middle, without a step."""
    points = np.stack((np.zeros(200), np.linspace(0, 60, 200)), axis=1)
    share = mask(points, face(50))
    assert (share[0], share[-1]) == (1, 0)
    assert (np.diff(share) <= 0).all()
    assert np.abs(np.diff(share)).max() < 0.05


def test_a_square_laid_back_is_the_picture() -> None:
    """`lay` undoes `cut`, in the middle of the square, for a turned square too."""
    photo = waves(200, 200)
    for tilt in TILTS:
        square = Square.around(face(50, tilt=tilt), 160, shown=80)
        back = lay(cut(photo, square), square, (75, 75, 125, 125))
        assert np.abs(back.astype(int) - photo[75:125, 75:125]).max() <= 4
