"""XMP packets: read with care, cleaned of what is not true of a picture, written so that every format holds them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_files import ORIENTATION, packet, photo, picture, said
from PIL import Image
from work_steps import within

from animed.imaging import described, xmp

DC, XMP = "{http://purl.org/dc/elements/1.1/}", "{http://ns.adobe.com/xap/1.0/}"
TITLE = '<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Tom &amp; Jerry &lt;3</rdf:li></rdf:Alt></dc:title>'
SPACES = {
    "xmpMM": "http://ns.adobe.com/xap/1.0/mm/",
    "xmpNote": "http://ns.adobe.com/xmp/note/",
    "crs": "http://ns.adobe.com/camera-raw-settings/1.0/",
    "GCamera": "http://ns.google.com/photos/1.0/camera/",
    "Container": "http://ns.google.com/photos/1.0/container/",
    "hdrgm": "http://ns.adobe.com/hdr-gain-map/1.0/",
    "apdi": "http://ns.apple.com/pixeldatainfo/1.0/",
    "drone": "http://www.dji.com/drone-dji/1.0/",
    "mwgrs": "http://www.metadataworkinggroup.com/schemas/regions/",
    "stArea": "http://ns.adobe.com/xmp/sType/Area#",
    "digiKam": "http://www.digikam.org/ns/1.0/",
    "odd": "urn:odd/",
}
DECLARED = " ".join(f'xmlns:{name}="{uri}"' for name, uri in SPACES.items())
REGIONS = '<mwgrs:Regions><rdf:Bag><rdf:li mwgrs:Name="Ann" stArea:x="0.5"/></rdf:Bag></mwgrs:Regions>'


def test_attributes_and_elements_are_one() -> None:
    """A simple property means the same whichever way a program wrote it."""
    attribute = xmp.read(packet("", attributes='xmp:Rating="4"'))
    element = xmp.read(packet("<xmp:Rating>4</xmp:Rating>"))
    assert xmp.text_of(attribute, f"{XMP}Rating") == xmp.text_of(element, f"{XMP}Rating") == "4"
    assert xmp.write(attribute) == xmp.write(element)


def test_what_is_written_is_read_back() -> None:
    """A packet survives, with its language, its characters, and names that nobody has heard of."""
    nested = '<dc:source rdf:parseType="Resource"><odd:a odd:b="&quot;1&quot;">ü</odd:a></dc:source>'
    written = xmp.write(xmp.read(packet(TITLE + nested, DECLARED)))
    assert TITLE in written.decode()
    again = xmp.read(written)
    assert [*again[f"{DC}source"][0].attrib.items()] == [("{urn:odd/}b", '"1"')]
    assert xmp.write(again) == written


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_old_encodings_are_read(encoding: str) -> None:
    """Programs wrote packets in UTF-16 and Latin-1 too, and padded them with zeros."""
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + packet("", attributes='xmp:Label="Grün"').decode().replace(
        "\ufeff", ""
    )
    assert xmp.text_of(xmp.read(text.encode(encoding) + b"\0\0"), f"{XMP}Label") == "Grün"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\xff\xfe",
        b"not xml",
        packet(TITLE)[:-200],
        packet("<xmp:Label>" * 10 + "</xmp:Label>" * 10 + "<unclosed>"),
        b"<a>" * 50_000,
        packet("<xmp:Label>" * 40 + "</xmp:Label>" * 40),
        packet("<xmp:Label/>" * 30_000),
        packet(f"<xmp:Label>{'x' * xmp.MAX_READ}</xmp:Label>"),
    ],
)
def test_what_is_malformed_or_beyond_the_bounds_is_nothing(broken: bytes) -> None:
    """A packet that is no XML, too deep, too large or of too many elements gives no properties and no error."""
    assert xmp.read(broken) == {}
    assert "SourceDigest" in said(picture(photo(xmp=broken[:60_000])))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_packet_that_declares_entities_is_not_read(encoding: str) -> None:
    """Entities make small XML large, and fetch files; no packet needs them."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    text = bomb + packet("", attributes='xmp:Label="&b;"').decode().replace("\ufeff", "")
    assert xmp.read(text.encode(encoding)) == {}
    assert xmp.read(text.replace("<!DOCTYPE", "<!dOcTyPe").encode(encoding)) == {}


def test_what_is_not_true_of_a_picture_is_dropped() -> None:
    """Identity, history, raw settings, motion photos, gain maps, depth, thumbnails and sizes belong to the photo."""
    attributes = (
        'tiff:Orientation="6" exif:PixelXDimension="4000" exif:ColorSpace="65535" xmp:CreatorTool="camera" '
        'xmp:MetadataDate="2020-01-01" xmpMM:DocumentID="one" xmpMM:InstanceID="two" crs:Exposure2012="1" '
        'GCamera:MotionPhoto="1" GCamera:MicroVideo="1" hdrgm:Version="1.0" apdi:AuxiliaryImageType="urn:depth" '
        'drone:GpsLatitude="1" xmpNote:HasExtendedXMP="AA" dc:format="image/jpeg" xmp:Rating="5"'
    )
    elements = (
        "<xmp:Thumbnails>t</xmp:Thumbnails><Container:Directory>d</Container:Directory><xmpMM:History>h</xmpMM:History>"
    )
    kept = described.kept(xmp.read(packet(elements, DECLARED, attributes)), turned=False, gps=True)
    assert [*kept] == [f"{XMP}Rating"]


def test_faces_stay_where_nothing_is_turned() -> None:
    """Areas with names are parts of the picture as it was stored: they go where the picture is turned."""
    data = packet(
        REGIONS + "<digiKam:TagsList><rdf:Seq><rdf:li>People/Ann</rdf:li></rdf:Seq></digiKam:TagsList>", DECLARED
    )
    turned = Image.Exif()
    turned[ORIENTATION] = 6
    assert 'mwg-rs:Name="Ann"' in said(picture(photo(xmp=data)))
    assert "mwg-rs" not in said(picture(photo(xmp=data, exif=turned)))
    assert "People/Ann" in said(picture(photo(xmp=data, exif=turned)))


def test_a_packet_fits_into_one_jpeg_segment() -> None:
    """What is longest goes first; how the picture came about stays."""
    long = "".join(f"<dc:{name}>{'x' * 30_000}</dc:{name}>" for name in ("source", "language", "publisher"))
    data = packet(long + TITLE)
    found = described.kept(xmp.read(data), turned=False, gps=True)
    written = xmp.write(found)
    assert len(written) <= xmp.MAX_WRITTEN
    assert TITLE.encode() in written
    assert len(xmp.read(written)) == 3
    for form in ("jpeg", "webp"):
        assert "SourceDigest" in said(picture(photo("webp", xmp=data), form))


def test_namespaces_without_end_cannot_push_out_the_rest() -> None:
    """A property that declares thousands of namespaces is measured with them, and goes."""
    many = "".join(f'<n{n}:a xmlns:n{n}="urn:{n}:{"x" * 20}/">1</n{n}:a>' for n in range(3_000))
    written = xmp.write(xmp.read(packet(f'<dc:source rdf:parseType="Resource">{many}</dc:source>' + TITLE)))
    assert TITLE.encode() in written
    assert b"urn:" not in written
    assert len(written) < 1000


def test_every_namespace_has_a_prefix_of_its_own() -> None:
    """Two namespaces under one prefix would be no XML."""
    assert len(set(xmp.PREFIXES.values())) == len(xmp.PREFIXES)


def test_control_characters_do_not_break_a_packet() -> None:
    """Texts from elsewhere may hold what XML may not."""
    element = xmp.worded(f"{DC}title", "a\x00b\x08c\ufffe]]>d")
    assert xmp.text_of(xmp.read(xmp.write({element.tag: element})), f"{DC}title") == "abc]]>d"


@given(st.dictionaries(st.sampled_from(["title", "source", "rights"]), st.text(max_size=60)))
@settings(deadline=None, max_examples=100)
def test_any_text_is_written_as_xml(texts: dict[str, str]) -> None:
    """Whatever people wrote, the packet is XML, and says the same but for what XML cannot."""
    written = xmp.write({f"{DC}{name}": xmp.plain(f"{DC}{name}", text) for name, text in texts.items()})
    ET.fromstring(written.partition(b"?>")[2])  # noqa: S314 - our own
    again = xmp.read(written)
    assert again.keys() == {f"{DC}{name}" for name in texts}


@given(st.binary(max_size=400))
@settings(deadline=None, max_examples=100)
def test_any_bytes_are_a_packet_or_none(data: bytes) -> None:
    """No data are too odd to be looked at."""
    xmp.write(xmp.read(data))
    xmp.write(xmp.read(packet(TITLE) + data))


def test_a_hundred_thousand_properties_cost_a_few_steps_each() -> None:
    """What does not fit is left out in one go, however much of it there is."""
    names = [f"{{http://ns.adobe.com/exif/1.0/}}a{number}" for number in range(20_000)]
    packet = within(10_000_000, lambda: xmp.write({name: xmp.plain(name, "1") for name in names}))
    assert 0.95 * xmp.MAX_WRITTEN < len(packet) <= xmp.MAX_WRITTEN
    assert 0 < len(xmp.read(packet)) < len(names)


def test_heads_without_an_end_are_not_searched_for_one_again_and_again() -> None:
    """The search for the head of a packet looks at no more of it than a head is long."""
    assert xmp._HEADER.sub("", "<?xml version='1.0' encoding='UTF-8' standalone='yes'?><a/>") == "<a/>"
    assert xmp._HEADER.search("<?xml " + "a" * 1000 + "?>") is None
    assert xmp.read(b"<?xml " * (xmp.MAX_READ // 6)) == {}
