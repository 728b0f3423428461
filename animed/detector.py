"""The file of the face detector: which one it is, where it is looked for, and whether it is what it should be.

It is known by its digest, whatever it is called where it comes from. The file is only read here, never opened as a
network: the parent process looks for it, a worker loads it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed import regular
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
FETCH: Final = "`animed styles pull faces` fetches it, `animed styles import FILE` takes one that you have"
LARGEST: Final = 2**24  # bytes; of a larger file no more is read, and it is none of the downloads


def find(*folders: Path, wanted: Download = FACES) -> DetectorFile:
    """Return the detector's verified file, from the first folder that holds one of its name.

    Raise ConfigError where there is none, StyleError for one that is damaged or cannot be read.
    """
    for folder in folders:
        path = folder / wanted.file_name
        if os.path.lexists(path):
            verify(path, wanted=wanted)
            return DetectorFile(os.fspath(path), wanted.sha256)
    title = f"the face detector is not there: {wanted.file_name}"
    raise ConfigError(title, remedy=FETCH, path=os.fspath(folders[0]))


def verify(path: Path, *, wanted: Download = FACES) -> None:
    """Compare a file with a download; raise StyleError where it is another, or cannot be read."""
    if difference := mismatch(_bytes(os.fspath(path)), wanted):
        raise StyleError(f"is not the {wanted.title}: {difference}", remedy=FETCH, path=os.fspath(path))


def read(path: str, sha256: str) -> bytes:
    """Return the bytes of a file that was verified; raise StyleError where they are others now, or cannot be read."""
    data = _bytes(path)
    if digest_of(data) != sha256:
        raise StyleError("the face detector is not what it was", remedy="`animed styles pull faces`", path=path)
    return data


def mismatch(data: bytes, wanted: Download) -> str:
    """Say how bytes differ from a download, by size or else by digest; "" where they do not."""
    if len(data) != wanted.size:
        return f"{f'more than {wanted.size}' if len(data) > wanted.size else f'{len(data)} of {wanted.size}'} bytes"
    digest = digest_of(data)
    return "" if digest == wanted.sha256 else f"sha256 is {digest}, wanted {wanted.sha256}"


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of bytes, hex."""
    return hashlib.sha256(data).hexdigest()


def _bytes(path: str) -> bytes:
    try:
        return regular.read(path, LARGEST)
    except OSError as error:
        raise StyleError(f"the face detector cannot be read: {error.strerror}", path=path) from error
