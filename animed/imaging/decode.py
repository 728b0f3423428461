"""Bytes of a file to upright sRGB pixels, of the size that the network sees and of the size of the picture.

Every fault of a file ends as a PhotoError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL.JpegImagePlugin import JpegImageFile

from animed.errors import PhotoError, starved
from animed.imaging import ends, geometry, limits, metadata, needs, openers, raw, sniff
from animed.imaging.decoded import Decoded, Found, Wanted
from animed.imaging.develop import develop
from animed.imaging.faults import BROKEN, fault
from animed.records import Reason, Skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

    from animed.imaging.metadata import Notes
    from animed.imaging.sniff import Kind

    Announce = Callable[["Found"], None]


def decode(data: bytes, wanted: Wanted, *, name: bytes = b"", announce: Announce | None = None) -> Decoded | Skip:
    """Decode the content of a file; `name` only helps to tell camera raw files from TIFF.

    `announce` is told what there is before it is decoded, and may refuse it by raising PhotoError.
    Raise PhotoError: empty, not_an_image, truncated, unsupported:KIND or too_large; MemoryError where it runs out.
    """
    kind = sniff.identify(data, name)
    openers.prepare(wanted.max_pixels)
    try:
        limits.header(kind, data, wanted.max_pixels)
        if kind == "raw":
            return _decode_raw(data, wanted, name, announce or _ignored)
        return _decode(data, kind, wanted, announce or _ignored)
    except BROKEN as error:
        if starved(error):
            raise MemoryError(str(error)) from error
        if kind == "webp":
            # Its library has the same words for a damaged file and for no memory.
            needs.reserve_webp(limits.webp_pixels(data))
        raise fault(kind, data, error) from error


def _decode(data: bytes, kind: Kind, wanted: Wanted, announce: Announce) -> Decoded | Skip:
    """Decode any kind but raw; what goes wrong in libraries is raised as it comes."""
    image = openers.opened(data, kind)
    limits.size(*image.size, wanted.max_pixels)
    limits.exif(image.info.get("exif"))
    if wanted.animated == "skip" and openers.moving(image, kind, data):
        return Skip("animated")
    _demand_end(kind, data)
    size = None if wanted.full else _draft(image, wanted.max_edge)
    width, height = size or image.size
    announce(Found(kind, width, height, image.width * image.height))
    image.load()
    limits.size(*image.size, wanted.max_pixels)  # the pictures in a HEIF need not be as large as its boxes say
    notes = metadata.extract(image, data)
    size = size or image.size
    return _developed(image, openers.turn(image, kind), kind=kind, wanted=wanted, size=size, notes=notes, data=data)


def _decode_raw(data: bytes, wanted: Wanted, name: bytes, announce: Announce) -> Decoded:
    """Decode what a camera wrote without developing it."""
    form = sniff.camera(data, name)
    rawpy = raw.library(form)
    _demand_end("raw", data)
    shot = raw.Shot(rawpy, data, form)
    try:
        limits.size(*shot.size, wanted.max_pixels)
        width, height = shot.size
        announce(Found("raw", width, height, width * height))
        image = shot.picture(wanted.max_edge, full=wanted.full)
    finally:
        shot.close()
    notes = metadata.extract(image, data)
    size = image.size if wanted.full else shot.size
    return _developed(image, shot.turn, kind="raw", wanted=wanted, size=size, notes=notes)


def _demand_end(kind: Kind, data: bytes) -> None:
    """Refuse a file that is not there to its end. Raise PhotoError("truncated")."""
    if ends.hollow(kind, data):
        raise PhotoError(Reason.TRUNCATED, "the file is filled with zeros from some point on")
    if ends.must_end(kind) and ends.ends_early(kind, data):
        raise PhotoError(Reason.TRUNCATED, f"the {kind} file ends too early: its end is missing")
    if kind == "bmp" and ends.unfinished_runs(data):
        raise PhotoError(Reason.TRUNCATED, "the bmp file ends too early: rows are missing")


def _developed(
    image: Image, turn: int, *, kind: Kind, wanted: Wanted, size: tuple[int, int], notes: Notes, data: bytes = b""
) -> Decoded:
    """Return a loaded picture as the network takes it.

    `size` is that of the photo, before it is turned; `data` is where colours may be described, beside `image.info`.
    """
    width, height = size[::-1] if geometry.sideways(turn) else size
    developed = develop(image, turn, wanted, data=data)
    return Decoded(
        developed.pixels,
        developed.photo,
        alpha=developed.alpha,
        native=developed.native,
        profile=developed.profile,
        width=width,
        height=height,
        kind=kind,
        notes=notes,
        detail=developed.detail,
    )


def _draft(image: Image, max_edge: int) -> tuple[int, int] | None:
    """Have a large JPEG decoded at a fraction of its size, never below twice the target; return its full size.

    Decoding at 1/2, 1/4 or 1/8 costs next to nothing, and halving what is left keeps the LANCZOS quality.
    """
    if not isinstance(image, JpegImageFile):
        return None
    full = image.size
    width, height = geometry.fit(*full, max_edge)
    image.draft(None, (2 * width, 2 * height))
    return full


def _ignored(found: Found) -> None:
    """Stand in where nobody wants to know the size."""
