"""What a colour profile does to numbers: to sRGB and back, judged by what it does and not by its name.

Relative colorimetric with black point compensation: paper becomes white, the darkest ink black, and what both can show
stays as it is. For profiles of primaries and curves every intent gives the same; for print it is what photo editors do.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image, ImageCms

from animed.imaging import icc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MAX_BYTES: Final = 8 * 2**20  # of a profile that is parsed; those of the largest print tables have 3 MB

# What kind of profile fits the numbers of a mode. Cameras and programs attach wrong ones.
_SPACES: Final[Mapping[str, bytes]] = {"L": b"GRAY", "RGB": b"RGB ", "CMYK": b"CMYK"}
_DEVICES: Final = (b"mntr", b"scnr", b"prtr", b"spac")  # the classes that say what numbers mean
_HEADER: Final = 128
# What a broken profile makes the colour library's binding raise.
_BROKEN: Final = (ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError)
_SAME: Final = 1  # step of a byte; what two ways of writing the same curve differ by
_LEAST_RANGE: Final = 48  # steps of a byte between black and white; less is no picture
_CACHED: Final = 4  # profiles; a camera's photos and its neighbour's share theirs


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is to be done with numbers of one mode (L, RGB, CMYK) to have them in sRGB."""

    mode: str
    transform: ImageCms.ImageCmsTransform | None = None  # None: what they are without a profile
    profile: bytes = b""  # an RGB profile that a picture can be brought back to; empty where there is none
    note: str = ""  # why a profile was ignored

    def to_srgb(self, image: Image.Image) -> Image.Image:
        """Return a picture of this mode as sRGB, in mode RGB."""
        if self.transform is None:
            return image if image.mode == "RGB" else image.convert("RGB")
        return self.transform.apply(image)


@lru_cache(maxsize=_CACHED)
def conversion(profile: bytes, mode: str) -> Conversion:
    """Return what an ICC profile means for numbers of a mode: L, RGB or CMYK; one that cannot be right is ignored."""
    if note := _unfit(profile, mode):
        return Conversion(mode, note=note)
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        transform = _transform(source, _srgb(), mode)
        probe = _probe(mode)
        seen = np.asarray(transform.apply(probe)).reshape(-1, 3).astype(np.int16)
    except _BROKEN as error:
        return Conversion(mode, note=f"the colour profile cannot be used: {error}")
    if int(seen[-1].sum()) - int(seen[0].sum()) < 3 * _LEAST_RANGE:
        return Conversion(mode, note="the colour profile leaves no difference between black and white")
    same = mode != "CMYK" and int(np.abs(seen - np.asarray(probe.convert("RGB")).reshape(-1, 3)).max()) <= _SAME
    kept = profile if mode == "RGB" and (same or backward(profile) is not None) else b""
    return Conversion(mode, None if same else transform, kept)


@lru_cache(maxsize=_CACHED)
def backward(profile: bytes) -> ImageCms.ImageCmsTransform | None:
    """Return the way from sRGB to an RGB profile; None where it has none, as those of scanners."""
    try:
        return _transform(_srgb(), ImageCms.ImageCmsProfile(io.BytesIO(profile)), "RGB")
    except _BROKEN:
        return None


def _unfit(profile: bytes, mode: str) -> str:
    """Say by its header why a profile cannot be that of a picture; empty where it can."""
    if len(profile) > MAX_BYTES:
        return f"the colour profile has {len(profile)} bytes, limit {MAX_BYTES}"
    if len(profile) <= _HEADER or profile[36:40] != b"acsp":
        return "what stands for a colour profile is none"
    kind, space = profile[12:16], profile[16:20]
    if kind not in _DEVICES:
        return f"the colour profile is of the class {kind!r}, which no picture can have"
    if space != _SPACES[mode]:
        return f"the colour profile is for {space!r}, the picture is {mode}"
    return ""


def _transform(
    source: ImageCms.ImageCmsProfile, target: ImageCms.ImageCmsProfile, mode: str
) -> ImageCms.ImageCmsTransform:
    """Build the way from a profile for a mode to one for RGB."""
    return ImageCms.buildTransform(
        source,
        target,
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _srgb() -> ImageCms.ImageCmsProfile:
    """Return sRGB as the colour library takes it."""
    return ImageCms.ImageCmsProfile(io.BytesIO(icc.SRGB))


def _probe(mode: str) -> Image.Image:
    """Return numbers from all over a mode's range; the first is its black, the last its white."""
    if mode == "RGB":
        steps = np.linspace(0, 255, 9).astype(np.uint8)
        grid = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
        greys = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
        return _row(mode, np.concatenate((grid, greys)))
    if mode == "L":
        return _row(mode, np.arange(256, dtype=np.uint8))
    return _row(mode, np.array(((255, 255, 255, 255), (0, 0, 0, 0)), np.uint8))


def _row(mode: str, values: NDArray[np.uint8]) -> Image.Image:
    """Return values as a picture of one row."""
    return Image.frombytes(mode, (len(values), 1), values.tobytes())
