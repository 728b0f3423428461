"""The frozen, picklable values that travel between the stages.

Relative paths are bytes (a name need not be UTF-8) and never start with a slash; roots are `str` as the
configuration gave them (surrogateescape). Times named `*_at` are `time.monotonic()` seconds; `*_s` are durations.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animed.errors import PlaceRole

Upsampling = Literal["half_pixel", "align_corners", "asymmetric"]
OutputFormat = Literal["same", "jpeg", "png", "webp", "avif"]
PictureFormat = Literal["jpeg", "png", "webp", "avif"]
OutputSize = Literal["styled", "original"]
Subsampling = Literal["auto", "4:4:4", "4:2:2", "4:2:0"]
Icc = Literal["srgb", "keep", "strip"]
Faces = Literal["off", "auto"]
Status = Literal["publishing", "done", "duplicate", "skipped", "failed", "retry"]


# By format, the ending of a picture's name.
SUFFIXES: Final[Mapping[PictureFormat, str]] = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "avif": ".avif"}


class Reason:
    """Why a photo failed: stable words that programs grep (two of them carry a suffix after a colon)."""

    EMPTY: Final = "empty"
    NOT_AN_IMAGE: Final = "not_an_image"
    TRUNCATED: Final = "truncated"
    UNSUPPORTED: Final = "unsupported"  # unsupported:KIND
    TOO_LARGE: Final = "too_large"
    UNREADABLE: Final = "unreadable"
    TIMEOUT: Final = "timeout"
    WORKER_CRASHED: Final = "worker_crashed"  # worker_crashed:SIGNAL
    OUT_OF_MEMORY: Final = "out_of_memory"
    NOT_FINITE: Final = "not_finite"
    CHANGED: Final = "changed"
    CONFLICT: Final = "conflict"
    OUTPUT_DENIED: Final = "output_denied"
    ENCODE: Final = "encode"


# Between a worker or an I/O thread and the main loop only: a photo that was gone when it was opened. It becomes
# `file.vanished`, never an outcome.
VANISHED: Final = "vanished"


class PhotoKey(NamedTuple):
    """What names a photo for ever: its inbox and its path below the inbox's root."""

    inbox: str
    path: bytes

    def holds(self, other: PhotoKey) -> bool:
        """Say whether another path is this one or lies below it; an empty path holds its whole inbox."""
        below = self.path + b"/" if self.path else b""
        return other.inbox == self.inbox and (other.path == self.path or other.path.startswith(below))


@dataclass(frozen=True, slots=True)
class FileStat:
    """What one `lstat` said of a file."""

    size: int  # bytes
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    mode: int  # st_mode: type and permission bits

    @classmethod
    def of(cls, found: os.stat_result) -> FileStat:
        """Take the fields that animed compares from a stat result."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev, found.st_mode)

    def same_file(self, other: FileStat) -> bool:
        """Say whether both describe the same unchanged file, within one life of the process."""
        return (self.size, self.mtime_ns, self.inode, self.device) == (
            other.size,
            other.mtime_ns,
            other.inode,
            other.device,
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """Every option that decides the bytes of a picture: equal photos under equal recipes share one."""

    style: str
    weights_sha256: str
    upsampling: Upsampling
    strength: float  # 0 = the photo, 1 = the style
    max_edge: int  # longest side that the network sees, pixels
    output_format: OutputFormat
    quality: int  # 1 … 100
    exif: bool
    gps: bool
    output_size: OutputSize = "styled"
    icc: Icc = "srgb"
    faces: Faces = "off"
    subsampling: Subsampling = "auto"
    progressive: bool = True
    detector_sha256: str = ""  # of what looks for faces; empty where nothing does

    @property
    def digest(self) -> str:
        """Return 16 hex digits that change when any option changes."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A style as a worker needs it: where its weights are, and what they must be."""

    style: str
    path: str
    sha256: str  # hex, of the whole file
    upsampling: Upsampling


@dataclass(frozen=True, slots=True)
class DetectorFile:
    """The face detector as a worker needs it: where it is, and what it must be."""

    path: str
    sha256: str  # hex, of the whole file


@dataclass(frozen=True, slots=True)
class Sighting:
    """A path that has settled: complete, regular, not empty, with the stat that was seen twice."""

    key: PhotoKey
    stat: FileStat
    settled_at: float


@dataclass(frozen=True, slots=True)
class Job:
    """A photo to draw. `alone` marks a suspect: nothing else may share the worker with it."""

    key: PhotoKey
    stat: FileStat
    recipe: Recipe
    settled_at: float
    attempt: int = 1  # 1 = the first try
    crashes: int = 0  # workers that died while this photo was the only one in them
    alone: bool = False
    sha256: str = ""  # of the source, hex; empty until it was read


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs that arrived together, and are accounted and logged together."""

    number: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where and how a worker stages a finished picture: on the output's file system, out of sight."""

    folder: str  # an existing folder on the output's file system
    temp_prefix: str  # ".syncthing.animed-<instance>-": a named temp file is prefix + random + ".tmp"
    mode: int | None  # permission bits of the picture; None = 0666 less the umask
    keep_mtime: bool  # give the picture the photo's mtime


@dataclass(frozen=True, slots=True)
class Task:
    """What the parent sends to a worker: one photo, by path; pixels never travel."""

    number: int  # unique within one life of the parent
    root: str  # the inbox's root folder
    path: bytes  # below the root
    stat: FileStat  # what the file must still be
    recipe: Recipe
    max_pixels: int
    animated: Literal["first", "skip"]
    stage: Stage
    threads: int  # intra-op threads for this photo
    compare: bool = False  # tell what it looks like, and wait for the word whether it is to be drawn


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a photo looks like: numbers that differ in few bits where photos look alike."""

    whole: int  # 256 bits, of the whole photo
    inner: int  # 256 bits, of the photo without its margins: a copy that lost them has it as its `whole`
    tint: bytes  # 8 numbers: Cb and Cr of each quarter
    detail: bytes = b""  # luma in 48 rows of 48, and the shape; empty where it was left out, or never taken

    SIZE: ClassVar[int] = 32  # bytes of each of the two
    BRIEF: ClassVar[int] = 72  # bytes of all but the detail

    def to_bytes(self) -> bytes:
        """Return the bytes that the ledger keeps; without the last part, the detail, they are a fingerprint as well."""
        return self.whole.to_bytes(self.SIZE) + self.inner.to_bytes(self.SIZE) + self.tint + self.detail

    @classmethod
    def from_bytes(cls, data: bytes) -> Fingerprint:
        """Return what `to_bytes` wrote."""
        size, brief = cls.SIZE, cls.BRIEF
        hashes = int.from_bytes(data[:size]), int.from_bytes(data[size : 2 * size])
        return cls(*hashes, data[2 * size : brief], data[brief:])


@dataclass(frozen=True, slots=True)
class Staged:
    """A finished picture that is durable but has no final name yet."""

    device: int
    inode: int
    size: int
    sha256: str
    name: str | None  # file name of a named temp file in Stage.folder; None = an unnamed file, held by a descriptor


@dataclass(frozen=True, slots=True)
class Picture:
    """What a worker made of a photo, with the figures of the canonical log line."""

    staged: Staged
    ext: str  # ".jpg", ".png", ".webp", ".avif": what the bytes are
    width: int  # of the photo, after orientation
    height: int
    out_width: int
    out_height: int
    bytes_in: int
    bytes_out: int
    decode_s: float
    infer_s: float
    encode_s: float
    faces: int | None = None  # drawn again by themselves; None where none were looked for
    taken: str = ""  # when the photo was, by the camera's own clock: 2024-05-17T18:03:59; empty where that is unknown


@dataclass(frozen=True, slots=True)
class Skip:
    """A worker's word that this photo is to be skipped by policy (animated: skip)."""

    cause: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault of a photo."""

    reason: str  # one of Reason, with its suffix
    detail: str  # one line for people


@dataclass(frozen=True, slots=True)
class PlaceFault:
    """A fault of a place, with the system's error number."""

    role: PlaceRole
    code: int
    path: str
    detail: str


Outcome = Picture | Skip | Failure | PlaceFault


def printable(path: bytes | str) -> str:
    """Return a path as text that any log can hold: what is not UTF-8 becomes backslash escapes."""
    raw = path if isinstance(path, bytes) else os.fsencode(path)
    return raw.decode("utf-8", "backslashreplace")


def absolute(root: str, path: bytes) -> bytes:
    """Return the full path of a photo as bytes."""
    return os.path.join(os.fsencode(root), path)
