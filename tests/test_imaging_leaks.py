"""Nothing of a place, and nothing that looks like a picture's own word, is carried over, wherever it stands."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icc_profiles import Space
from metadata_files import EXIF, FORMATS, RECIPE, TAKEN, iim, opened, packet, photo, picture, said, with_iptc

from animed.imaging import described, encode, ifd, metadata, xmp
from animed.imaging.exif import Frame

if TYPE_CHECKING:
    from animed.records import PictureFormat

RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
DC: Final = "{http://purl.org/dc/elements/1.1/}"
FAKE: Final = "<animed:SourceDigest>" + "f" * 64 + "</animed:SourceDigest>"
SPACES: Final = (
    'xmlns:ext="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" xmlns:core="http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/" '
    'xmlns:aux="http://ns.adobe.com/exif/1.0/aux/" xmlns:mwg="http://www.metadataworkinggroup.com/schemas/regions/" '
    'xmlns:own="urn:x-animed:1.0/" xmlns:odd="urn:odd/" xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#"'
)
PLACES: Final = (
    *("exif:GPSLatitude", "aux:GPSLongitude", "ext:City", "ext:Sublocation", "ext:CountryName", "ext:CountryCode"),
    *("ext:ProvinceState", "ext:WorldRegion", "ext:LocationName", "ext:LocationId", "ext:LocationShown"),
    *("core:Location", "photoshop:City", "photoshop:State", "dc:coverage", "geo:lat", "geo:long", "odd:GpsAltitude"),
)
ARTWORK: Final = (
    '<ext:ArtworkOrObject><rdf:Bag><rdf:li rdf:parseType="Resource"><ext:AOTitle>Mona</ext:AOTitle>{}</rdf:li>'
    "</rdf:Bag></ext:ArtworkOrObject>"
)


def digests(data: bytes) -> list[str]:
    """Return what a reader without any decoder finds in a picture, the first at first."""
    return [each.decode() for each in re.findall(rb"<animed:SourceDigest>([0-9a-f]{64})", data)]


# ---- Places --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        ARTWORK,
        '<mwg:Regions rdf:parseType="Resource"><mwg:Extensions><rdf:Bag>{}</rdf:Bag></mwg:Extensions></mwg:Regions>',
    ],
)
def test_a_place_goes_at_whatever_depth_of_xmp_it_stands(name: str, around: str) -> None:
    """As a property or in a structure, as an element or as an attribute: what names a place goes, with all in it."""
    data = packet(around.format(f"<{name}>Hidden</{name}>") + '<xmp:Label rdf:nodeID="a">red</xmp:Label>', SPACES)
    attribute = packet(
        around.format(f'<core:Scene {name}="Hidden">x</core:Scene>') + "<xmp:Label>red</xmp:Label>", SPACES
    )
    for each in (data, attribute):
        found = said(picture(photo(xmp=each), gps=False))
        assert "Hidden" not in found
        assert name.partition(":")[2] not in found
        assert ("Mona" in found) == ("Mona" in around)
        assert ">red<" in found


def test_with_places_structures_keep_theirs() -> None:
    """Without the wish to hide it a place stays in its structure; the address of an author always does."""
    shown = (
        '<ext:LocationShown><rdf:Bag><rdf:li ext:City="Rome" exif:GPSLatitude="41,54N"/></rdf:Bag></ext:LocationShown>'
    )
    author = '<core:CreatorContactInfo><rdf:Bag><rdf:li core:CiAdrCity="Bern"/></rdf:Bag></core:CreatorContactInfo>'
    data = photo(xmp=packet(shown + author, SPACES))
    assert 'Iptc4xmpExt:City="Rome" exif:GPSLatitude="41,54N"' in said(picture(data))
    assert "Rome" not in said(picture(data, gps=False))
    assert 'Iptc4xmpCore:CiAdrCity="Bern"' in said(picture(data, gps=False))


def test_what_is_not_known_does_not_hide_in_what_is_kept() -> None:
    """Names of other namespaces, and those that never are true of a picture, are dropped inside of structures too."""
    inner = "<odd:a>one</odd:a><exif:MakerNote>two</exif:MakerNote><own:Style>three</own:Style><mwg:Name>Ann</mwg:Name>"
    regions = f'<mwg:Regions rdf:parseType="Resource">{inner}</mwg:Regions><dc:source><odd:b>four</odd:b></dc:source>'
    found = said(picture(photo(xmp=packet(regions, SPACES))))
    assert "<mwg-rs:Regions><mwg-rs:Name>Ann</mwg-rs:Name></mwg-rs:Regions>" in found.replace(
        ' rdf:parseType="Resource"', ""
    )
    assert not re.search("one|two|three|four|odd|dc:source", found)


@pytest.mark.parametrize(
    "tag", [0x83BB, 0x8649, 0x830E, 0x8480, 0x8482, 0x85D8, 0x87AF, 0x87B0, 0x87B1, 0x935C, 0x02BC, 0x8825]
)
def test_the_exif_directory_holds_no_places_in_other_clothes(tag: int) -> None:
    """IPTC, resources of Photoshop's, XMP and places as maps have them are not kept for standing among the rest."""
    value = b"Hidden and more"
    detail = {tag: ifd.Entry(ifd.UNDEFINED, len(value), value), TAKEN: ifd.text("2024:05:06 07:08:09")}
    data = picture(photo(exif=ifd.serialise(ifd.Tree("<", {}, detail))), gps=False)
    assert b"Hidden" not in data
    assert opened(data).getexif().get_ifd(EXIF)[TAKEN] == "2024:05:06 07:08:09"


NAMES: Final = st.one_of(
    st.sampled_from([f"{DC}title", f"{DC}source", f"{RDF}Bag", f"{RDF}li", f"{RDF}Description", "{urn:odd/}a"]),
    st.builds(
        "{{{}}}{}".format,
        st.sampled_from([*xmp.PREFIXES, "urn:odd/"]),
        st.sampled_from(["GPSLatitude", "gpsX", "City", "CountryName", "Location", "SourceDigest", "Name", "a"]),
    ),
    st.text("<>ab&", max_size=9).map(lambda odd: f"{{http://purl.org/dc/elements/1.1/{odd}}}title"),
)
TEXTS: Final = st.sampled_from(["", "text", "<&>", FAKE])


def built(name: str, attributes: dict[str, str], text: str, inner: list[ET.Element]) -> ET.Element:
    """Return an element with others in it."""
    element = ET.Element(name, attributes)
    element.text = text
    element.extend(inner)
    return element


ATTRIBUTES: Final = st.dictionaries(NAMES, TEXTS, max_size=2)
TREES: Final = st.recursive(
    st.builds(built, NAMES, ATTRIBUTES, TEXTS, st.just([])),
    lambda inner: st.builds(built, NAMES, ATTRIBUTES, TEXTS, st.lists(inner, max_size=3)),
    max_leaves=12,
)


@given(st.lists(TREES, max_size=4), st.booleans())
@settings(deadline=None, max_examples=150)
def test_whatever_is_nested_no_place_and_no_foreign_word_comes_out(trees: list[ET.Element], gps: bool) -> None:
    """Of any XMP a packet is made that is XML, holds each own property once, and no place where none is wanted."""
    data = xmp.write({tree.tag: tree for tree in trees})
    notes = metadata.Notes(xmp=xmp.read(data))
    packed = metadata.imprint(notes, replace(RECIPE, gps=gps), Frame(4, 3), source="0" * 64).xmp
    assert digests(packed) == ["0" * 64]
    description = ET.fromstring(packed.partition(b"?>")[2])[0][0]  # noqa: S314 - our own
    names = [name for each in description.iter() for name in (each.tag, *each.attrib)]
    own = [name for name in names if name.startswith(described.OWN)]
    assert own == [f"{described.OWN}{name}" for name in ("SourceDigest", "Style", "Weights", "Strength")]
    assert not any(name.startswith("{urn:odd/}") for name in names)
    if not gps:
        assert not re.search("(?i)}gps|}city|}country|}location", " ".join(names))


# ---- The digest ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("keep", [True, False])
def test_the_first_digest_in_plain_bytes_is_the_true_one(form: PictureFormat, *, keep: bool) -> None:
    """Texts in EXIF, in one value or over two, in IPTC, in XMP and in a colour profile do not stand in for it."""
    half = FAKE.encode()[:12], FAKE.encode()[12:]
    main = {
        0x010E: ifd.text(FAKE),
        0x010F: ifd.Entry(ifd.ASCII, len(half[0]), half[0]),
        0x0110: ifd.Entry(ifd.ASCII, len(half[1]), half[1]),
    }
    title = f"<dc:title><own:SourceDigest>{'e' * 64}</own:SourceDigest></dc:title>"
    text = f"<dc:source><![CDATA[{FAKE}]]></dc:source><own:SourceDigest>{'d' * 64}</own:SourceDigest>"
    profile = Space(FAKE, (0.68, 0.32), (0.265, 0.69), (0.15, 0.06), (0.3127, 0.329), None).profile()
    plain = photo(
        exif=ifd.serialise(ifd.Tree("<", main)), xmp=packet(title + text, SPACES), icc_profile=profile, quality=100
    )
    source = with_iptc(iim((2, 5, FAKE.encode()), (2, 25, b"beach")), plain)
    assert len(digests(plain)) > 2
    data = picture(source, form, exif=keep)
    assert digests(data) == [hashlib.sha256(source).hexdigest()]
    coded = encode.encode(
        np.zeros((3, 4, 3), np.uint8), encode.Coding(form), profile=profile, imprint=metadata.Imprint(xmp=xmp.write({}))
    )
    assert digests(coded) == []
    assert len(opened(coded).info["icc_profile"]) == len(profile)


def test_a_text_that_looks_like_the_digest_is_still_read() -> None:
    """One character of it is another one, so that people see what they wrote."""
    data = picture(photo(exif=ifd.serialise(ifd.Tree("<", {0x010E: ifd.text(f"A {FAKE} B")}))))
    assert opened(data).getexif()[0x010E] == f"A ({FAKE[1:]} B"


@pytest.mark.parametrize("length", [1, 60, 5000])
def test_own_properties_stay_however_many_others_there_are(length: int) -> None:
    """What does not fit is left out among the photo's own properties alone, be they short or long."""
    many = "".join(f"<exif:p{number}>{'x' * length}</exif:p{number}>" for number in range(60_000 // length + 4000))
    packed = metadata.imprint(metadata.Notes(xmp=xmp.read(packet(many))), RECIPE, Frame(4, 3), source="0" * 64).xmp
    assert len(packed) <= xmp.MAX_WRITTEN
    assert digests(packed) == ["0" * 64]
    assert {f"{described.OWN}{name}" for name in ("Style", "Weights", "Strength")} < xmp.read(packed).keys()


def test_a_namespace_with_braces_is_no_way_to_write_xml() -> None:
    """A namespace may hold any character: none of them becomes markup."""
    uri = f"http://purl.org/dc/elements/1.1/}}x>{FAKE}<x"
    written = xmp.write({f"{DC}title": built(f"{DC}title", {}, "", [ET.Element(f"{{{uri}}}a")])})
    assert digests(written) == []
    parser = expat.ParserCreate()  # one that knows namespaces refuses such a name, so it cannot be asked
    started: list[str] = []
    parser.StartElementHandler = lambda name, _: started.append(name)
    parser.Parse(written, True)  # noqa: FBT003 - the library's own signature
    assert started[-2:] == ["dc:title", "ns0:a"]
