"""Faces in a picture: what was found, which are worth another drawing, and the square around one. Pure geometry."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Points = NDArray[np.float64]  # (N, 2): x, y

# Where eyes, nose and corners of the mouth lie in an upright face, left to right as the onlooker sees them: the five
# points that face recognition aligns to, in a square of side 1 around their middle.
TEMPLATE: Final = np.array([(-0.157, -0.182), (0.157, -0.182), (0.0, -0.002), (-0.130, 0.183), (0.130, 0.183)])
LEAST_SCORE: Final = 0.7  # enough for a second look, which decides
SMALLEST: Final = 12  # pixels; below it nothing is there that could be drawn better
LARGEST: Final = 80  # pixels; above it the built-in style draws a face as well within its picture
MOST: Final = 32  # faces in one picture, the largest first
UPRIGHT: Final = 10.0  # degrees; so small a tilt is left alone, because turning softens a picture
_LOOSE: Final = 0.25  # of a face's size by which landmarks may lie outside its box


@dataclass(frozen=True, slots=True)
class Face:
    """A face: its box and five landmarks, in pixels, and how sure the detector is of it (0 … 1)."""

    x: float
    y: float
    width: float
    height: float
    landmarks: tuple[tuple[float, float], ...]  # right eye, left eye, nose, right and left corner of the mouth
    score: float

    @property
    def size(self) -> float:
        """Return the longer side of its box."""
        return max(self.width, self.height)

    @property
    def centre(self) -> tuple[float, float]:
        """Return the middle of its box."""
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def tilt(self) -> float:
        """Return by how many degrees it is turned clockwise from upright: -180 … 180."""
        return fit(TEMPLATE, np.array(self.landmarks)).degrees

    def scaled(self, across: float, down: float) -> Face:
        """Return it as it lies in a picture that is so many times as wide and high."""
        points = tuple((x * across, y * down) for x, y in self.landmarks)
        return replace(
            self,
            x=self.x * across,
            y=self.y * down,
            width=self.width * across,
            height=self.height * down,
            landmarks=points,
        )

    def moved(self, right: float, down: float) -> Face:
        """Return it as it lies in a picture whose corner is so many pixels further left and up."""
        points = tuple((x + right, y + down) for x, y in self.landmarks)
        return replace(self, x=self.x + right, y=self.y + down, landmarks=points)


@dataclass(frozen=True, slots=True)
class Similarity:
    """A map of the plane: turn and scale by (a, b), then move by (x, y)."""

    a: float  # scale · cosine
    b: float  # scale · sine
    x: float
    y: float

    @property
    def scale(self) -> float:
        """Return how many times as large things become."""
        return math.hypot(self.a, self.b)

    @property
    def degrees(self) -> float:
        """Return by how much things turn, clockwise as a picture shows it."""
        return math.degrees(math.atan2(self.b, self.a))

    def apply(self, points: Points) -> Points:
        """Map (N, 2) points."""
        x, y = points[:, 0], points[:, 1]
        return np.stack((self.a * x - self.b * y + self.x, self.b * x + self.a * y + self.y), axis=1)

    def inverse(self) -> Similarity:
        """Return the way back; the scale must not be 0."""
        square = self.a * self.a + self.b * self.b
        a, b = self.a / square, -self.b / square
        return Similarity(a, b, -(a * self.x - b * self.y), -(b * self.x + a * self.y))


def fit(source: Points, target: Points) -> Similarity:
    """Return the similarity that takes (N, 2) source points nearest to the target points, by least squares."""
    from_middle, to_middle = source.mean(axis=0), target.mean(axis=0)
    p, q = source - from_middle, target - to_middle
    spread = float((p * p).sum())
    a = float((p * q).sum()) / spread
    b = float((p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]).sum()) / spread
    turned = Similarity(a, b, 0.0, 0.0).apply(from_middle[None])[0]
    return Similarity(a, b, float(to_middle[0] - turned[0]), float(to_middle[1] - turned[1]))


def is_plausible(face: Face) -> bool:
    """Say whether the landmarks are those of a face: inside its box, the mouth below the eyes, left and right in order.

    Both eyes of a profile may lie on one line.
    """
    points = np.array(face.landmarks)
    if face.score < LEAST_SCORE or not (np.isfinite(points).all() and face.width > 0 and face.height > 0):
        return False
    corner, far = np.array((face.x, face.y)), np.array((face.x + face.width, face.y + face.height))
    slack = _LOOSE * face.size
    if not ((points >= corner - slack) & (points <= far + slack)).all():
        return False
    tilt = math.radians(face.tilt)
    upright = Similarity(math.cos(tilt), -math.sin(tilt), 0.0, 0.0).apply(points)
    right, left, nose, mouth = upright[0], upright[1], upright[2], upright[3:].mean(axis=0)
    eyes = (right + left) / 2
    ordered = left[0] - right[0] > -0.05 * face.size and eyes[1] < nose[1] + slack and nose[1] < mouth[1] + slack
    return bool(ordered and mouth[1] - eyes[1] > 0.2 * face.size)


def worth_drawing(found: Iterable[Face]) -> tuple[Face, ...]:
    """Return the faces that the network draws better when it sees them larger: the largest first, at most 32."""
    small = [face for face in found if SMALLEST <= face.size <= LARGEST and is_plausible(face)]
    return tuple(sorted(small, key=lambda face: face.size, reverse=True)[:MOST])
