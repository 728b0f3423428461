"""An opened picture to what the network sees and what its picture is made of: reduced, in sRGB, upright."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from animed.imaging import alpha, colour, declared, geometry, icc, profiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from animed.imaging.decoded import Wanted
    from animed.imaging.profiles import Conversion


# A worker's process has no handler: the note goes to its standard error, and from there to the log as worker.output.
_LOG: Final = logging.getLogger(__name__)
DETAIL: Final = 2  # times max_edge: a face that is drawn larger is reduced to its place again, which hides the rest


@dataclass(frozen=True, slots=True)
class Developed:
    """The pixels of a photo; the fields are those of the same names in `decoded.Decoded`."""

    pixels: NDArray[np.uint8]
    photo: NDArray[np.uint8]
    alpha: NDArray[np.uint8] | None
    native: NDArray[np.uint8] | None
    profile: bytes
    detail: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A picture in one size: upright, writable."""

    photo: NDArray[np.uint8]  # (H, W, 3) sRGB
    alpha: NDArray[np.uint8]  # (H, W)
    native: NDArray[np.uint8] | None  # (H, W, 3) in the photo's own space


def develop(image: Image.Image, turn: int, wanted: Wanted, *, data: bytes = b"") -> Developed:
    """Develop a loaded picture of any mode that is still to be turned by the EXIF orientation `turn`, 1 … 8.

    `data` is its file: some say there what their colours are. A profile that cannot be right is left aside, and that is
    noted in the log. Raise what Pillow raises for broken pictures.
    """
    deep = colour.depth(image)
    size = geometry.fit(*image.size, wanted.max_edge)
    conversion = _conversion(image, data)
    keep = wanted.icc == "keep" and bool(conversion.profile)
    darkroom = _Darkroom(turn, conversion, keep=keep and conversion.transform is not None)
    reduced = size != image.size
    seen = _sheet(image, deep, darkroom, size=size, profile=conversion.profile)
    full = wanted.full and reduced
    laid = _sheet(image, deep, darkroom, size=image.size, profile=conversion.profile) if full else seen
    clear = int(laid.alpha.min()) < 255  # noqa: PLR2004 - opaque
    profile = b"" if wanted.icc == "strip" else conversion.profile if keep else icc.SRGB
    detail = _detail(image, deep, _Darkroom(turn, conversion, keep=False), wanted) if reduced else None
    return Developed(seen.photo, laid.photo, laid.alpha if clear else None, laid.native, profile, detail)


def _detail(
    image: Image.Image, deep: colour.Depth | None, darkroom: _Darkroom, wanted: Wanted
) -> NDArray[np.uint8] | None:
    """Return more pixels than the network sees, where small faces are to be drawn from them and there are more."""
    if wanted.full or not wanted.faces:
        return None
    size = geometry.fit(*image.size, DETAIL * wanted.max_edge)
    return _sheet(image, deep, darkroom, size=size, profile=b"").photo


def _sheet(
    image: Image.Image, deep: colour.Depth | None, darkroom: _Darkroom, *, size: tuple[int, int], profile: bytes
) -> _Sheet:
    """Return a picture in a (width, height) before turning, its clear parts filled; in its own size part by part."""
    if size == image.size:
        sheet = darkroom.lay(_strips(image, deep), size)
        _fill(sheet, profile, faint=1)
    else:
        sheet = darkroom.lay([(slice(0, size[1]), _reduced(colour.plain(image, deep), size))], size)
        _fill(sheet, profile, faint=alpha.FAINT)
    return sheet


def _conversion(image: Image.Image, data: bytes) -> Conversion:
    """Return what the numbers of a picture mean."""
    mode = colour.space(image)
    # The numbers of a Lab picture say by themselves what they mean.
    profile, note = (b"", "") if image.mode == "LAB" else declared.profile_of(image, data, mode)
    conversion = profiles.conversion(profile, mode) if profile else profiles.Conversion(mode)
    for each in filter(None, (note, conversion.note)):
        _LOG.warning("%s; the colours are taken as if it were not there", each)
    return conversion


def _reduced(plain: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return a plain picture in a smaller size."""
    if plain.mode in {"LA", "RGBA"}:
        return alpha.reduced(plain, size)
    return plain.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _strips(image: Image.Image, deep: colour.Depth | None) -> Iterator[tuple[slice, Image.Image]]:
    """Yield a picture in parts that are plain, so that a large one needs no second copy of itself."""
    for rows in colour.bands(image.height, image.width):
        yield rows, colour.plain(image.crop((0, rows.start, image.width, rows.stop)), deep)


class _Darkroom:
    """Brings parts of a picture to where they belong, in the colours that are wanted."""

    def __init__(self, turn: int, conversion: Conversion, *, keep: bool) -> None:
        self._turn = turn
        self._conversion = conversion
        self._keep = keep  # the photo's own numbers as well

    def lay(self, parts: Iterable[tuple[slice, Image.Image]], size: tuple[int, int]) -> _Sheet:
        """Return a picture of a (width, height) before turning, from its plain parts."""
        width, height = size
        photo = _blank((height, width, 3), self._turn)
        cover = _blank((height, width), self._turn)
        native = _blank((height, width, 3), self._turn) if self._keep else None
        for rows, part in parts:
            base, clear = colour.split(part)
            _as_stored(photo, self._turn)[rows] = np.asarray(self._conversion.to_srgb(base))
            _as_stored(cover, self._turn)[rows] = 255 if clear is None else np.asarray(clear)
            if native is not None:
                _as_stored(native, self._turn)[rows] = np.asarray(base)
        return _Sheet(photo, cover, native)


def _blank(shape: tuple[int, ...], turn: int) -> NDArray[np.uint8]:
    """Return an array for a picture of this (height, width, …) once it is upright."""
    height, width, *rest = shape
    return np.empty((width, height, *rest) if geometry.sideways(turn) else shape, np.uint8)


def _as_stored(upright: NDArray[Any], turn: int) -> NDArray[Any]:
    """Return a view of an upright (H, W, …) picture as the file that has this orientation stores it."""
    across = upright.swapaxes(0, 1) if geometry.sideways(turn) else upright
    vertical = slice(None, None, -1) if turn in {3, 4, 6, 7} else slice(None)
    horizontal = slice(None, None, -1) if turn in {2, 3, 7, 8} else slice(None)
    return across[vertical, horizontal]


def _fill(sheet: _Sheet, profile: bytes, *, faint: int) -> None:
    """Fill what is clear, in the photo's own space too."""
    alpha.fill(sheet.photo, sheet.alpha, faint=faint)
    if sheet.native is None:
        return
    for rows in colour.bands(*sheet.alpha.shape):
        clear = sheet.alpha[rows] < faint
        if clear.any():
            sheet.native[rows][clear] = colour.from_srgb(sheet.photo[rows], profile)[clear]
