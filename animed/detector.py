"""The file of the face detector: which one it is, where it is looked for, and whether it is what it should be.

It is known by its digest, whatever it is called where it comes from. The file is only read here, never opened as a
network: the parent process looks for it, a worker loads it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.catalog import builtin_dir
from animed.errors import ConfigError, StyleError
from animed.records import DetectorFile

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is fetched when the user asks for it."""

    name: str  # what the user calls it
    file_name: str  # what it is called in the folder of styles
    size: int  # bytes
    sha256: str  # hex
    title: str
    licence: str
    url: str


FACES: Final = Download(
    name="faces",
    file_name="face_detection_yunet_2023mar.onnx",
    size=232_589,
    sha256="8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4",
    title="YuNet face detector, March 2023",
    licence="MIT",
    url=(
        "https://media.githubusercontent.com/media/opencv/opencv_zoo/82b38c8f98e7b52aa171400f3e4c722352d0669f/"
        "models/face_detection_yunet/face_detection_yunet_2023mar.onnx"
    ),
)
DOWNLOADS: Final = (FACES,)
MODULE: Final = "cv2"
EXTRA: Final = "the extra: pip install 'animed[faces]'"
FETCH: Final = "`animed styles pull faces` fetches it, `animed styles import FILE` takes one that you have"


def has_library() -> bool:
    """Say whether the library that runs the detector is installed; it is not imported."""
    return importlib.util.find_spec(MODULE) is not None


def find(styles_dir: Path) -> DetectorFile:
    """Return the detector's verified file, from the folder of styles or else from what ships.

    Raise ConfigError where there is none, StyleError for one that is damaged or cannot be read.
    """
    # A package may be made with the detector in it.
    for path in (styles_dir / FACES.file_name, builtin_dir() / FACES.file_name):
        if os.path.lexists(path):
            verify(path)
            return DetectorFile(os.fspath(path), FACES.sha256)
    raise ConfigError(f"the face detector is not there: {FACES.file_name}", remedy=FETCH, path=os.fspath(styles_dir))


def verify(path: Path) -> None:
    """Compare a file with the detector's digest; raise StyleError where it is another, or cannot be read."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(FACES.size + 1)
    except OSError as error:
        raise StyleError(f"the face detector cannot be read: {error.strerror}", path=os.fspath(path)) from error
    if (digest := digest_of(data)) != FACES.sha256:
        title = f"is not the {FACES.title}: {_shortfall(data)}sha256 {digest}, wanted {FACES.sha256}"
        raise StyleError(title, remedy=FETCH, path=os.fspath(path))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of bytes, hex."""
    return hashlib.sha256(data).hexdigest()


def _shortfall(data: bytes) -> str:
    """Say that a file has another size, where it has."""
    if len(data) == FACES.size:
        return ""
    return f"{'more than ' if len(data) > FACES.size else ''}{min(len(data), FACES.size)} bytes, wanted {FACES.size}; "
