"""What a picture says in XMP: the description of its photo, and how it came about.

A list says what is kept of a photo's XMP, because much of it is not true of a picture: recipes of raw converters, the
history and identity of a file, video trailers of motion photos, gain maps, depth, thumbnails.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from animed.imaging import exif, iptc, taken, xmp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from xml.etree.ElementTree import Element

    from animed.imaging.taken import Moment
    from animed.imaging.xmp import Properties
    from animed.records import Recipe

MAX_TEXT: Final = 2_000  # characters of a text out of a PNG

_DC: Final = xmp.SPACES["dc"]
_XMP: Final = xmp.SPACES["xmp"]
_PHOTOSHOP: Final = xmp.SPACES["photoshop"]
_TIFF: Final = xmp.SPACES["tiff"]
_EXIF: Final = xmp.SPACES["exif"]
_EXIF_MORE: Final = xmp.SPACES["exifEX"]
_CORE: Final = xmp.SPACES["Iptc4xmpCore"]
_EXTENSION: Final = xmp.SPACES["Iptc4xmpExt"]
_REGIONS: Final = xmp.SPACES["mwg-rs"]
_PEOPLE: Final = xmp.SPACES["MP"]
OWN: Final = xmp.SPACES["animed"]
_DIGEST: Final = b"<animed:SourceDigest>"  # what people search pictures for

TAKEN: Final = f"{_EXIF}DateTimeOriginal"
CREATED: Final = f"{_PHOTOSHOP}DateCreated"
DIGITISED: Final = (f"{_EXIF}DateTimeDigitized", f"{_XMP}CreateDate")


def _names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# Of these namespaces everything is kept but what stands with them.
_ALL_BUT: Final[Mapping[str, frozenset[str]]] = {
    _EXIF: _names(
        "PixelXDimension PixelYDimension ColorSpace NativeDigest ComponentsConfiguration CompressedBitsPerPixel "
        "ImageUniqueID RelatedSoundFile MakerNote SpatialFrequencyResponse SubjectArea SubjectLocation"
    ),
    _EXIF_MORE: frozenset({"InteroperabilityIndex", "Gamma"}),
    xmp.SPACES["aux"]: frozenset(),
    xmp.SPACES["xmpRights"]: frozenset(),
    _CORE: frozenset(),
    _EXTENSION: frozenset({"DigImageGUID", "DigitalSourceType", "ImageRegion"}),
    xmp.SPACES["lr"]: frozenset(),
    xmp.SPACES["plus"]: frozenset(),
    xmp.SPACES["cc"]: frozenset(),
    xmp.SPACES["mwg-kw"]: frozenset(),
}
# Of these only what stands with them.
_NOTHING_BUT: Final[Mapping[str, frozenset[str]]] = {
    _DC: _names("title description subject creator rights publisher contributor language source date coverage"),
    _XMP: frozenset({"CreateDate", "ModifyDate", "Rating", "Label"}),
    _PHOTOSHOP: _names(
        "DateCreated Headline Credit Source Instructions TransmissionReference AuthorsPosition CaptionWriter "
        "Category SupplementalCategories Urgency City State Country"
    ),
    _TIFF: frozenset({"Make", "Model", "Artist", "Copyright", "ImageDescription", "DateTime"}),
    xmp.SPACES["digiKam"]: frozenset(
        {"TagsList", "CaptionsAuthorNames", "CaptionsDateTimeStamps", "ColorLabel", "PickLabel"}
    ),
    **dict.fromkeys(
        (xmp.SPACES["MicrosoftPhoto"], xmp.SPACES["MicrosoftPhoto_1_"]),
        frozenset({"Rating", "LastKeywordXMP", "LastKeywordIPTC"}),
    ),
    xmp.SPACES["mediapro"]: frozenset({"People", "Event", "Location"}),
    xmp.SPACES["acdsee"]: frozenset({"caption", "categories", "author", "keywords", "rating", "notes", "datetime"}),
}
# Where people stand in the photo. Programs disagree on what turns such areas, so they are kept where nothing is turned.
_AREAS: Final = frozenset({f"{_REGIONS}Regions", f"{_PEOPLE}RegionInfo"})
# How places are called, in whatever namespace and structure: programs put each other's names where they like. The
# address of an author or licensor has other names, and stays.
_PLACE: Final = re.compile(
    r"(?i:gps.*|geo.*|.*(?:latitude|longitude|altitude)|lat|long?|.*location(?:name|id|code|created|shown)?|"
    r"city|(?:province)?state|province|country(?:name|code)?|worldregion|place(?:name)?|coverage)"
)
# What never stands inside of a property either: identities of files, and what a picture says of itself.
_NOT_WITHIN: Final = frozenset({OWN[1:-1], "http://ns.adobe.com/xap/1.0/sType/ResourceRef#"})
# How PNG files call what XMP calls otherwise; of two that mean the same the first counts.
PNG_TEXTS: Final[Mapping[str, str]] = {
    "Title": f"{_DC}title",
    "Author": f"{_DC}creator",
    "Description": f"{_DC}description",
    "Comment": f"{_DC}description",
    "Copyright": f"{_DC}rights",
}
_IPTC_TEXTS: Final[Mapping[int, str]] = {
    iptc.TITLE: f"{_DC}title",
    iptc.CAPTION: f"{_DC}description",
    iptc.KEYWORDS: f"{_DC}subject",
    iptc.CREATOR: f"{_DC}creator",
    iptc.COPYRIGHT: f"{_DC}rights",
    iptc.HEADLINE: f"{_PHOTOSHOP}Headline",
    iptc.CREDIT: f"{_PHOTOSHOP}Credit",
    iptc.SOURCE: f"{_PHOTOSHOP}Source",
    iptc.CITY: f"{_PHOTOSHOP}City",
    iptc.STATE: f"{_PHOTOSHOP}State",
    iptc.COUNTRY: f"{_PHOTOSHOP}Country",
}


def sound(found: Properties) -> Properties:
    """Return properties without dates of the photo that are none."""
    dates = {name for name in (TAKEN, CREATED) if name in found and taken.parse(xmp.text_of(found, name)) is None}
    return {name: element for name, element in found.items() if name not in dates}


def kept(found: Properties, *, turned: bool, gps: bool) -> Properties:
    """Return what a picture keeps of its photo's properties; no place without `gps`, no areas where it is `turned`."""
    allowed: Callable[[str], bool] = _belongs if gps else _belongs_nowhere
    left = (
        (name, xmp.pruned(element, allowed))
        for name, element in sound(found).items()
        if (_describes(name) or (name in _AREAS and not turned)) and allowed(name)
    )
    return {name: element for name, element in left if element is not None}


def from_texts(texts: Iterable[tuple[str, str]]) -> Properties:
    """Return properties of plain texts, by qualified name; of equal names the first counts, but lists are gathered."""
    gathered: dict[str, list[str]] = {}
    for name, text in texts:
        gathered.setdefault(name, []).append(text)
    return {name: _element(name, values) for name, values in gathered.items()}


def iptc_texts(block: bytes) -> list[tuple[str, str]]:
    """Return what an IIM block says, by qualified name."""
    found = iptc.texts(block)
    return [(name, text) for number, name in _IPTC_TEXTS.items() for text in found.get(number, [])]


def dated(moment: Moment) -> Properties:
    """Return when the photo was taken, in the two places where programs look for it."""
    when = moment.when + moment.zone
    return {name: xmp.plain(name, when) for name in (TAKEN, CREATED)}


def made(recipe: Recipe, source: str) -> Properties:
    """Return how a picture came about; `source` is the SHA-256 of its photo's file, in hexadecimal digits."""
    values = {
        f"{OWN}SourceDigest": source,
        f"{OWN}Style": recipe.style,
        f"{OWN}Weights": recipe.weights_sha256,
        f"{OWN}Strength": f"{recipe.strength:g}",
        f"{_XMP}CreatorTool": exif.SOFTWARE,
    }
    return {name: xmp.plain(name, value) for name, value in values.items()}


def defused(foreign: bytes) -> bytes:
    """Return what a picture carries of its photo as bytes, of the same length, without what names a photo's digest.

    In XMP nothing foreign can look like it. Elsewhere a text may, by chance or not, and stand before the true one.
    """
    return foreign.replace(_DIGEST, b"(" + _DIGEST[1:])


def _describes(name: str) -> bool:
    """Say whether a property describes the photo, and is true of its picture."""
    uri, local = xmp.split(name)
    space = f"{{{uri}}}"
    if space in _NOTHING_BUT:
        return local in _NOTHING_BUT[space]
    return space in _ALL_BUT and local not in _ALL_BUT[space]


def _belongs(name: str) -> bool:
    """Say whether an element or attribute may stand in a property that is kept."""
    uri, local = xmp.split(name)
    return uri in xmp.PREFIXES and uri not in _NOT_WITHIN and local not in _ALL_BUT.get(f"{{{uri}}}", ())


def _belongs_nowhere(name: str) -> bool:
    """Say the same where nothing may tell where the photo was taken."""
    return _belongs(name) and not _PLACE.fullmatch(xmp.split(name)[1])


def _element(name: str, texts: list[str]) -> Element:
    """Return texts in the form that XMP has for this property."""
    if name in {f"{_DC}subject", f"{_DC}creator"}:
        return xmp.listed(name, texts, ordered=name.endswith("creator"))
    if name.startswith(_DC):
        return xmp.worded(name, texts[0])
    return xmp.plain(name, texts[0])
