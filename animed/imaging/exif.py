"""The EXIF data that a picture keeps of its photo: what describes the photo, not what describes the file's bytes.

Malformed EXIF is common, and never a reason to fail a photo: what cannot be carried over is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed import __version__
from animed.imaging import ifd, taken
from animed.imaging.geometry import UPRIGHT

if TYPE_CHECKING:
    from animed.imaging.taken import Moment

SOFTWARE: Final = f"animed {__version__}"
MAX_BYTES: Final = 65_533  # of a JPEG segment, without its marker and length

ORIENTATION: Final = 0x0112
_SOFTWARE: Final = 0x0131
_CHANGED: Final = 0x0132
_POSITIONS: Final = 0x0213
_VERSION: Final = 0x9000
_TAKEN: Final = 0x9003
_DIGITISED: Final = 0x9004
_ZONE_TAKEN: Final = 0x9011
_COLOUR_SPACE: Final = 0xA001
_WIDTH: Final = 0xA002
_HEIGHT: Final = 0xA003
_SRGB: Final = 1
_UNCALIBRATED: Final = 65_535
_CENTRED: Final = 1  # the only place of colour samples that JFIF knows

# The main directory of a TIFF also holds where its strips are and how they are packed, so the list says what is kept:
# title, camera, resolution, date, author, host, copyright, rating, and the titles that Windows writes.
_MAIN: Final = frozenset(
    {
        *(0x010E, 0x010F, 0x0110, 0x011A, 0x011B, 0x0128, 0x0132, 0x013B, 0x013C, 0x8298, 0x4746, 0x4749),
        *(0x9C9B, 0x9C9C, 0x9C9D, 0x9C9E, 0x9C9F),
    }
)
# The EXIF directory may hold anything as well: places as maps have them, IPTC, resources of Photoshop's. Of what the
# standard knows these are not listed: what is of the photo's file (CompressedBitsPerPixel, size, colour space, sound,
# interoperability); what counts the photo's pixels (SubjectArea, SubjectLocation, SpatialFrequencyResponse);
# ImageUniqueID, for galleries take files that share one for the same picture; and the maker's note. That one's offsets
# count from where it was, so that moving it breaks it; it holds previews of the photo, places under other names, and
# what pairs a Live Photo with a video that the picture does not have.
_DETAIL: Final = frozenset(
    {
        *(0x829A, 0x829D, 0x8822, 0x8824, 0x8827, 0x8828),  # ExposureTime … OECF
        *(0x882A, 0x882B),  # TimeZoneOffset, SelfTimerMode: of an older standard, and still written
        *range(0x8830, 0x8836),  # SensitivityType … ISOSpeedLatitudezzz
        *(_VERSION, _TAKEN, _DIGITISED, 0x9010, _ZONE_TAKEN, 0x9012),
        0x9101,  # ComponentsConfiguration
        *range(0x9201, 0x920B),  # ShutterSpeedValue … FocalLength
        *(0x9286, 0x9290, 0x9291, 0x9292),  # UserComment, SubSecTime …
        *range(0x9400, 0x9406),  # AmbientTemperature … CameraElevationAngle
        0xA000,  # FlashpixVersion
        *(0xA20B, 0xA20E, 0xA20F, 0xA210, 0xA215, 0xA217),  # FlashEnergy, FocalPlane…, ExposureIndex, SensingMethod
        *(0xA300, 0xA301, 0xA302),  # FileSource, SceneType, CFAPattern
        *range(0xA401, 0xA40D),  # CustomRendered … SubjectDistanceRange
        *range(0xA430, 0xA43D),  # CameraOwnerName … MetadataEditingSoftware: people, lens, title, programs
        *(0xA460, 0xA461, 0xA462, 0xA500),  # CompositeImage …, Gamma
    }
)
# What the standard requires to be there; a photo's own values win.
_REQUIRED: Final[ifd.Directory] = {
    _VERSION: ifd.Entry(ifd.UNDEFINED, 4, b"0232"),
    0x9101: ifd.Entry(ifd.UNDEFINED, 4, b"\1\2\3\0"),  # ComponentsConfiguration: Y, Cb, Cr
    0xA000: ifd.Entry(ifd.UNDEFINED, 4, b"0100"),  # FlashpixVersion
}
_PLACE: Final = range(0x20)  # GPSVersionID … GPSHPositioningError
_DATES: Final = (_CHANGED, _TAKEN, _DIGITISED)


@dataclass(frozen=True, slots=True)
class Frame:
    """What a picture's EXIF data have to say of the picture itself."""

    width: int
    height: int
    srgb: bool = True
    upright: bool = True  # write the orientation down; where it is left out it is the same


def read(tree: ifd.Tree | None) -> bytes:
    """Return the descriptive part of what EXIF data or a TIFF file hold, as EXIF data; empty where there is nothing."""
    if tree is None:
        return b""
    kept = ifd.Tree(
        tree.order,
        {tag: entry for tag, entry in tree.main.items() if tag in _MAIN and _says_something(tag, entry)},
        {tag: entry for tag, entry in tree.detail.items() if tag in _DETAIL and _says_something(tag, entry)},
        {tag: entry for tag, entry in tree.place.items() if tag in _PLACE},
    )
    return _fitting(kept) if kept.main or kept.detail or kept.place else b""


def turned(tree: ifd.Tree | None) -> bool:
    """Say whether EXIF data or a TIFF file ask for their pixels to be turned."""
    return tree is not None and tree.number(ORIENTATION) > UPRIGHT


def moments(data: bytes) -> tuple[Moment | None, Moment | None, Moment | None]:
    """Return when a photo was taken, digitised, and last changed, by its EXIF data as `read` gives them."""
    tree = ifd.parse(data)
    if tree is None:
        return None, None, None
    original = taken.parse(_text(tree.detail, _TAKEN))
    if original is not None:
        original = original._replace(zone=taken.zone(_text(tree.detail, _ZONE_TAKEN)))
    return original, taken.parse(_text(tree.detail, _DIGITISED)), taken.parse(_text(tree.main, _CHANGED))


def prepare(data: bytes, frame: Frame, *, gps: bool, found: Moment | None = None) -> bytes:
    """Return what a picture carries: of its own size, without place unless `gps`, in one JPEG segment at most.

    `data` are those that `read` gave; none give a record of the program and the picture alone. `found` is when the
    photo was taken, where only something else than EXIF says so: programs that sort photos look here.
    """
    tree = ifd.parse(data) or ifd.Tree("<")
    main = tree.main | {_SOFTWARE: ifd.text(SOFTWARE), _POSITIONS: tree.short(_CENTRED)}
    if frame.upright:
        main[ORIENTATION] = tree.short(UPRIGHT)
    detail = _REQUIRED | tree.detail | _of_picture(tree, frame)
    if found is not None:
        detail[_TAKEN] = ifd.text(found.exif)
        detail.pop(_ZONE_TAKEN, None)
        if found.zone:
            detail[_ZONE_TAKEN] = ifd.text(found.zone)
    return _fitting(ifd.Tree(tree.order, main, detail, tree.place if gps else {}))


def _of_picture(tree: ifd.Tree, frame: Frame) -> ifd.Directory:
    """Return what stands in a picture's EXIF directory whatever its photo said."""
    return {
        _COLOUR_SPACE: tree.short(_SRGB if frame.srgb else _UNCALIBRATED),
        _WIDTH: tree.long(frame.width),
        _HEIGHT: tree.long(frame.height),
    }


def _fitting(tree: ifd.Tree) -> bytes:
    """Write a tree without its longest values, as many as are too much: those are hardly ever what people look for."""
    parts = (tree.main, tree.detail, tree.place)
    longest = sorted(((len(part[tag].value), tag, part) for part in parts for tag in part), key=lambda each: each[:2])
    while len(data := ifd.serialise(tree)) > MAX_BYTES:
        _, tag, part = longest.pop()
        del part[tag]
    return data


def _says_something(tag: int, entry: ifd.Entry) -> bool:
    """Tell a value from one that a camera left blank, and a date from what is none, which galleries stumble over."""
    if tag in _DATES:
        return bool(entry.value.strip(b" \0:0"))
    return entry.kind != ifd.ASCII or bool(entry.value.strip(b" \0"))


def _text(directory: ifd.Directory, tag: int) -> str:
    """Return a text, up to its first NUL; empty where there is none."""
    entry = directory.get(tag)
    return "" if entry is None else entry.value.partition(b"\0")[0].decode("ascii", "replace")
