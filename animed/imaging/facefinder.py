"""The face detector: YuNet, run by OpenCV. OpenCV is an extra, and imported by a worker that needs it only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from animed import detector, extras
from animed.errors import StyleError, WorkersError
from animed.imaging.faces import LEAST_SCORE, Face
from animed.imaging.geometry import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from animed.records import DetectorFile

EDGE: Final = 1024  # pixels, longest side that is looked at: a face that is smaller then is too small to be drawn
LEAST_SIDE: Final = 32  # pixels; what is smaller holds no face
OVERLAP: Final = 0.3  # share of two boxes in common from which on they are one face
MOST: Final = 500  # boxes before overlaps are sorted out
_NO_MEMORY: Final = -4  # OpenCV's number of it
_FIELDS: Final = 15  # of a face: box, five landmarks, score


class FaceFinder:
    """Finds faces in pictures; holds a loaded detector. For one thread at a time."""

    def __init__(self, network: Any, library: Any, threads: int) -> None:
        self._detector = network
        self._library = library
        self._threads = threads

    @classmethod
    def load(cls, file: DetectorFile, *, threads: int) -> FaceFinder:
        """Load the detector; raise WorkersError without OpenCV, StyleError where the file is not what it should be."""
        try:
            import cv2  # noqa: PLC0415 -- an extra, and 60 MB of a process that does not look for faces
        except ImportError as error:
            raise WorkersError(f"faces: auto needs OpenCV: {error}", remedy=extras.remedy("faces")) from error
        cv2.setNumThreads(threads)
        model = np.frombuffer(detector.read(file.path, file.sha256), dtype=np.uint8)
        try:
            network = cv2.FaceDetectorYN.create(
                "onnx", model, np.empty(0, np.uint8), (EDGE, EDGE), LEAST_SCORE, OVERLAP, MOST
            )
        except cv2.error as error:
            title = f"the face detector cannot be loaded: {' '.join(str(error).split())}"
            raise StyleError(title, remedy="use opencv-python-headless 4.10 or later", path=file.path) from error
        return cls(network, cv2, threads)

    def find(self, pixels: NDArray[np.uint8], *, threads: int) -> tuple[Face, ...]:
        """Return the faces in an (H, W, 3) sRGB picture, in its pixels, in no order; MemoryError where it runs out."""
        height, width = pixels.shape[:2]
        seen = fit(width, height, EDGE)
        if min(seen) < LEAST_SIDE:
            return ()
        if threads != self._threads:
            self._library.setNumThreads(threads)
            self._threads = threads
        image = Image.fromarray(pixels)
        if seen != image.size:
            image = image.resize(seen, Image.Resampling.LANCZOS, reducing_gap=3.0)
        self._detector.setInputSize(seen)
        rows = self._detect(np.ascontiguousarray(np.asarray(image)[..., ::-1]))  # it takes BGR
        found = () if rows is None else tuple(face_of(row) for row in rows)
        return tuple(face.scaled(width / seen[0], height / seen[1]) for face in found)

    def _detect(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32] | None:
        try:
            _, rows = self._detector.detect(pixels)
        except self._library.error as error:
            if error.code == _NO_MEMORY:
                raise MemoryError(str(error)) from error
            raise
        found: NDArray[np.float32] | None = rows
        return found


def face_of(row: NDArray[np.float32]) -> Face:
    """Return the face of one row of the detector: x, y, width, height, five times x and y, score."""
    values = [float(value) for value in row]
    if len(values) != _FIELDS:
        raise ValueError(f"the face detector gave {len(values)} numbers for a face, not {_FIELDS}")
    points = tuple(zip(values[4:14:2], values[5:14:2], strict=True))
    x, y, width, height = values[:4]
    return Face(x, y, width, height, points, score=values[14])
