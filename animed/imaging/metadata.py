"""What a photo says of itself, and what its picture carries of that: EXIF, XMP, IPTC, and when it was taken.

Malformed metadata are common, and never a reason to fail a photo: what cannot be carried over is left out.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from animed.imaging import described, exif, ifd, iptc, taken, xmp
from animed.imaging.faults import BROKEN
from animed.imaging.geometry import UPRIGHT

if TYPE_CHECKING:
    from PIL import Image

    from animed.imaging.exif import Frame
    from animed.imaging.ifd import Tree
    from animed.imaging.taken import Moment
    from animed.imaging.xmp import Properties
    from animed.records import Recipe

_XMP_TAG: Final = 700
_IPTC_TAG: Final = 33_723
_PHOTOSHOP_TAG: Final = 34_377
_MOST_TEXT: Final = 4 * 2**20  # hexadecimal digits of a profile in a PNG's text


@dataclass(frozen=True, slots=True)
class Notes:
    """What a photo says of itself, bounded and without what no picture keeps."""

    exif: bytes = b""  # as `exif.read` gives it
    xmp: Properties = field(default_factory=dict)  # as they were read
    iptc: bytes = b""  # an IIM block, as `iptc.read` gives it
    texts: tuple[tuple[str, str], ...] = ()  # of a PNG, by the qualified name that XMP has for them
    turned: bool = False  # the photo's pixels were stored turned
    moment: Moment | None = None  # when the photo was taken
    told: bool = False  # by something else than EXIF, which does not say it

    @property
    def taken(self) -> str:
        """Return when the photo was taken, by the camera's own clock: 2024-05-17T18:03:59; empty for unknown."""
        return self.moment.when if self.moment else ""


@dataclass(frozen=True, slots=True)
class Imprint:
    """What a picture carries besides its pixels, ready to be written."""

    exif: bytes = b""  # with its marker, in one JPEG segment at most; empty for none
    xmp: bytes = b""  # a packet, in one JPEG segment at most
    iptc: bytes = b""  # an IIM block; only JPEG holds one


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation of a loaded picture, 1 … 8; 1 where there is none or it makes no sense."""
    try:
        found = image.getexif().get(exif.ORIENTATION, UPRIGHT)
    except BROKEN:
        return UPRIGHT
    return found if isinstance(found, int) and 1 <= found <= 8 else UPRIGHT  # noqa: PLR2004 - the eight there are


def extract(image: Image.Image, data: bytes = b"") -> Notes:
    """Return what a loaded picture says of itself; `data` is its file.

    A TIFF, and what cameras make of it for raw pictures, has its EXIF tags in its own directories.
    """
    whole = data if data.startswith(ifd.HEADERS) else _exif(image)
    tree = ifd.parse(whole)
    own = tree if data.startswith(ifd.HEADERS) else None
    record, block = exif.read(tree), iptc.read(_iptc(image, own))
    said = xmp.read(_bytes(image.info.get("xmp")) or _profile(image, "xmp") or _tag(image, own, _XMP_TAG))
    stored = image.info.get("original_orientation") or orientation(image)
    turned = stored != UPRIGHT or exif.turned(tree)
    moment, told = _moment(record, said, block, str(image.info.get("Creation Time", "")))
    return Notes(record, said, block, _texts(image), turned, moment, told)


def imprint(notes: Notes, recipe: Recipe, frame: Frame, *, source: str) -> Imprint:
    """Return what the picture of a photo carries by a recipe; `source` is the SHA-256 of the photo's file, in hex.

    Without `recipe.exif` that is nothing but how it came about.
    """
    made = described.made(recipe, source)
    if not recipe.exif:
        return Imprint(xmp=xmp.write(made))
    block = notes.iptc if recipe.gps else iptc.without_place(notes.iptc)
    # What comes later wins: XMP is what programs of today write, IPTC and the texts of a PNG may be old.
    properties = (
        described.from_texts(notes.texts)
        | described.from_texts(described.iptc_texts(block))
        | (described.dated(notes.moment) if notes.moment else {})
        | described.kept(notes.xmp, turned=notes.turned, gps=recipe.gps)
    )
    return Imprint(
        exif.prepare(notes.exif, frame, gps=recipe.gps, found=notes.moment if notes.told else None),
        xmp.write(made | properties, needed=made),
        block,
    )


def _moment(record: bytes, said: Properties, block: bytes, text: str) -> tuple[Moment | None, bool]:
    """Return when a photo was taken, and whether only something else than EXIF says so."""
    original, digitised, changed = exif.moments(record)
    if original is not None:
        return original, False
    first = taken.first(xmp.text_of(said, name) for name in (described.TAKEN, described.CREATED))
    if first is not None:
        return first, True
    second = taken.first(xmp.text_of(said, name) for name in described.DIGITISED)
    for moment, told in ((digitised, False), (second, True), (iptc.moment(block), True), (taken.parse(text), True)):
        if moment is not None:
            return moment, told
    return changed, False


def _exif(image: Image.Image) -> bytes:
    """Return the EXIF data of a picture as they are in its file."""
    return _bytes(image.info.get("exif")) or _profile(image, "exif") or _profile(image, "APP1")


def _iptc(image: Image.Image, own: Tree | None) -> bytes:
    """Return the IIM block of a picture, wherever its format has it."""
    resources = image.info.get("photoshop")
    if isinstance(resources, dict):
        return _bytes(resources.get(iptc.RESOURCE_NUMBER))
    profile = _profile(image, "iptc")
    tagged = iptc.resource(_tag(image, own, _PHOTOSHOP_TAG)) or iptc.unswapped(_tag(image, own, _IPTC_TAG))
    return iptc.resource(profile) or profile or tagged


def _tag(image: Image.Image, own: Tree | None, tag: int) -> bytes:
    """Return a tag of a TIFF, or of a raw file that is built alike, as the bytes that it is in its file.

    `own` is what the file's own directories hold. Many programs call bytes numbers of four, of which Pillow gives the
    first.
    """
    if own is not None and tag in own.main:
        return own.main[tag].value
    try:
        value = getattr(image, "tag_v2", {}).get(tag)
    except BROKEN:
        return b""
    return _bytes(value[0] if isinstance(value, tuple) and value else value)


def _profile(image: Image.Image, name: str) -> bytes:
    """Return a profile that a converter wrote into a PNG as text: a title, its length, and hexadecimal digits."""
    text = image.info.get(f"Raw profile type {name}")
    if not isinstance(text, str) or len(text) > _MOST_TEXT:
        return b""
    try:
        return binascii.unhexlify("".join("".join(text.strip().splitlines()[2:]).split()))
    except (binascii.Error, ValueError):
        return b""


def _texts(image: Image.Image) -> tuple[tuple[str, str], ...]:
    """Return the texts of a PNG that describe the photo, by the qualified names that XMP has for them."""
    found = ((name, image.info.get(key)) for key, name in described.PNG_TEXTS.items() if image.format == "PNG")
    return tuple((name, text[: described.MAX_TEXT]) for name, text in found if isinstance(text, str) and text.strip())


def _bytes(value: Any) -> bytes:
    """Return bytes, or nothing for what is something else."""
    return value if isinstance(value, bytes) else b""
