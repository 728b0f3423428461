"""A picture keeps what describes its photo, in every format, and nothing that is no longer true."""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_files import (
    CHANGED,
    COLOUR_SPACE,
    DIGITISED,
    EXIF,
    FORMATS,
    GPS,
    HEIGHT,
    MAKE,
    MODEL,
    ORIENTATION,
    SOFTWARE,
    TAKEN,
    WIDTH,
    ZONE,
    iim,
    opened,
    packet,
    photo,
    picture,
    record,
    resource,
    said,
    with_iptc,
    with_xmp,
)
from photo_files import decoded
from PIL import Image, TiffImagePlugin, TiffTags
from PIL.PngImagePlugin import PngInfo

from animed import __version__

if TYPE_CHECKING:
    from animed.records import PictureFormat

PLACES = "<photoshop:City>Hidden</photoshop:City><exif:GPSLatitude>48,8N</exif:GPSLatitude>"
PLACE_SETS = iim((2, 90, b"Hidden"), (2, 101, b"Hidden"), (2, 25, b"beach"))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("source", ["jpeg", "png", "webp", "tiff", "avif"])
def test_exif_goes_from_every_format_into_every_format(source: str, form: PictureFormat) -> None:
    """Camera, date and place arrive, upright, in sRGB, with the picture's own size, and the program's name."""
    image = opened(picture(photo(source, exif=record()), form))
    exif = image.getexif()
    assert (exif[MAKE], exif[MODEL], exif[SOFTWARE]) == ("Maker", "Model 1", f"animed {__version__}")
    assert exif.get(ORIENTATION, 1) == 1
    detail = exif.get_ifd(EXIF)
    assert (detail[TAKEN], detail[ZONE]) == ("2024:05:06 07:08:09", "+02:00")
    assert (detail[WIDTH], detail[HEIGHT], detail[COLOUR_SPACE]) == (*image.size, 1)
    assert exif.get_ifd(GPS)[1] == "N"
    assert exif.get_ifd(GPS)[2] == (48.0, 8.0, 14.0)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("source", ["jpeg", "png", "webp", "tiff", "avif"])
def test_xmp_goes_from_every_format_into_every_format(source: str, form: PictureFormat) -> None:
    """Rating, keywords and title arrive, beside what the picture says of itself."""
    keywords = "<dc:subject><rdf:Bag><rdf:li>beach</rdf:li><rdf:li>s&amp;s</rdf:li></rdf:Bag></dc:subject>"
    xmp = said(picture(with_xmp(packet(keywords, attributes='xmp:Rating="4"'), source), form))
    assert "<rdf:li>beach</rdf:li><rdf:li>s&amp;s</rdf:li>" in xmp
    assert "<xmp:Rating>4</xmp:Rating>" in xmp


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("keep", [True, False])
def test_every_picture_names_its_photo_in_plain_bytes(form: PictureFormat, *, keep: bool) -> None:
    """Whatever else is kept, the digest of the photo's file stands in the picture, to be found without a decoder."""
    source = photo("png", exif=record())
    data = picture(source, form, exif=keep)
    found = re.findall(rb"<animed:SourceDigest>([0-9a-f]{64})</animed:SourceDigest>", data)
    assert found == [hashlib.sha256(source).hexdigest().encode()]
    xmp = said(data)
    assert "<animed:Style>cel</animed:Style>" in xmp
    assert "<animed:Strength>0.5</animed:Strength>" in xmp
    assert f"<xmp:CreatorTool>animed {__version__}</xmp:CreatorTool>" in xmp


@pytest.mark.parametrize("form", FORMATS)
def test_a_picture_of_a_picture_names_its_own_source_alone(form: PictureFormat) -> None:
    """What the first drawing wrote of itself is not taken for a description of the photo."""
    first = picture(photo(), form)
    second = picture(first, form)
    assert re.findall(r"SourceDigest>([0-9a-f]{64})<", said(second)) == [hashlib.sha256(first).hexdigest()]


@pytest.mark.parametrize("form", FORMATS)
def test_without_exif_nothing_of_the_photo_is_said(form: PictureFormat) -> None:
    """`preserve.exif: false` leaves how the picture came about, and nothing else: neither EXIF nor XMP nor IPTC."""
    source = with_iptc(PLACE_SETS, photo(exif=record(), xmp=packet(PLACES, attributes='xmp:Rating="4"')))
    data = picture(source, form, exif=False)
    assert not opened(data).getexif()
    assert "photoshop" not in opened(data).info
    for word in (b"Maker", b"2024", b"Rating", b"Hidden", b"beach"):
        assert word not in data


@pytest.mark.parametrize("form", FORMATS)
def test_the_place_is_dropped_everywhere_on_demand(form: PictureFormat) -> None:
    """Without `gps` neither coordinates nor names of places are left in EXIF, XMP or IPTC."""
    source = with_iptc(PLACE_SETS, photo(exif=record(), xmp=packet(PLACES)))
    data = picture(source, form, gps=False)
    assert GPS not in opened(data).getexif()
    assert opened(data).getexif()[MODEL] == "Model 1"
    assert b"Hidden" not in data
    assert b"GPS" not in data
    assert b"beach" in data
    assert picture(source, form).count(b"Hidden") >= 2


def test_iptc_stays_iptc_in_jpeg_and_becomes_xmp_elsewhere() -> None:
    """A JPEG keeps the block itself, without previews; in every format its keywords are XMP's too."""
    block = iim((1, 90, b"\x1b%G"), (2, 25, "Zürich".encode()), (2, 25, b"beach"), (2, 202, b"preview"))
    source = with_iptc(block, others=resource(0x040C, b"a thumbnail"))
    for form in FORMATS:
        data = picture(source, form)
        assert "<dc:subject><rdf:Bag><rdf:li>Zürich</rdf:li><rdf:li>beach</rdf:li></rdf:Bag></dc:subject>" in said(data)
        assert b"preview" not in data
        assert b"a thumbnail" not in data
    kept = opened(picture(source)).info["photoshop"]
    assert kept == {0x0404: iim((1, 90, b"\x1b%G"), (2, 25, "Zürich".encode()), (2, 25, b"beach"))}


def test_xmp_wins_over_iptc() -> None:
    """Where both name a title, that of XMP is the newer."""
    title = '<dc:title><rdf:Alt><rdf:li xml:lang="x-default">new</rdf:li></rdf:Alt></dc:title>'
    xmp = said(picture(with_iptc(iim((2, 5, b"old"), (2, 80, b"Ann")), photo(xmp=packet(title)))))
    assert ">new</rdf:li>" in xmp
    assert "old" not in xmp
    assert "<dc:creator><rdf:Seq><rdf:li>Ann</rdf:li></rdf:Seq></dc:creator>" in xmp


@pytest.mark.parametrize("tag", [33723, 34377])
def test_iptc_of_a_tiff_is_found(tag: int) -> None:
    """A TIFF holds the block as a tag of its own, or among Photoshop's resources."""
    block = iim((2, 25, b"beach"))
    value = block if tag == 33723 else resource(0x03ED, b"odd") + resource(0x0404, block)
    assert "<rdf:li>beach</rdf:li>" in said(picture(photo("tiff", tiffinfo={tag: value})))


def test_texts_of_a_png_are_kept_as_xmp() -> None:
    """Title, author, description and copyright are kept, prompts of generators and other programs' names are not."""
    chunks = PngInfo()
    for key, text in {
        "Title": "A & B", "Author": "Ann", "Comment": "x" * 5000, "Copyright": "free", "Software": "paint 1",
        "parameters": "prompt",
    }.items():  # fmt: skip
        chunks.add_text(key, text)
    xmp = said(picture(photo("png", pnginfo=chunks)))
    assert '<dc:title><rdf:Alt><rdf:li xml:lang="x-default">A &amp; B</rdf:li></rdf:Alt></dc:title>' in xmp
    assert "<rdf:li>Ann</rdf:li>" in xmp
    assert f">{'x' * 2000}<" in xmp
    assert "free" in xmp
    assert "paint 1" not in xmp
    assert "prompt" not in xmp


def test_profiles_that_a_converter_wrote_as_text_are_read() -> None:
    """PNG files of older converters hold EXIF, XMP and IPTC as hexadecimal text."""
    chunks = PngInfo()
    for name, raw in {
        "exif": record().tobytes(), "xmp": packet("", attributes='xmp:Rating="4"'), "iptc": iim((2, 25, b"beach")),
    }.items():  # fmt: skip
        chunks.add_text(f"Raw profile type {name}", f"\n{name}\n {len(raw)}\n{raw.hex()}\n", zip=True)
    data = picture(photo("png", pnginfo=chunks))
    assert opened(data).getexif()[MODEL] == "Model 1"
    assert "<xmp:Rating>4</xmp:Rating>" in said(data)
    assert "<rdf:li>beach</rdf:li>" in said(data)


def test_a_title_of_several_words_over_the_digits_is_no_matter() -> None:
    """Some converters call the text "IPTC profile", others "iptc"."""
    chunks = PngInfo()
    block = iim((2, 25, b"beach"))
    chunks.add_text("Raw profile type iptc", f"\nIPTC profile\n      {len(block)}\n{block.hex()}\n", zip=True)
    assert "<rdf:li>beach</rdf:li>" in said(picture(photo("png", pnginfo=chunks)))


@pytest.mark.parametrize("order", ["<", ">"])
def test_keywords_of_a_tiff_are_found_as_numbers_of_four_bytes(order: str) -> None:
    """Most programs give the block of a TIFF a wrong kind, and some turn its bytes around for that."""
    block = iim((2, 25, b"beach"), (2, 25, b"a long day there"))
    block += bytes(-len(block) % 4)
    stored = struct.pack("<8I", *struct.unpack(f"{order}8I", block))
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags.tagtype[33_723] = TiffTags.UNDEFINED
    tags[33_723] = stored
    as_bytes = struct.pack("<HHI", 33_723, TiffTags.UNDEFINED, len(stored))
    as_numbers = struct.pack("<HHI", 33_723, TiffTags.LONG, len(stored) // 4)
    xmp = said(picture(photo("tiff", tiffinfo=tags).replace(as_bytes, as_numbers)))
    assert "<rdf:li>beach</rdf:li>" in xmp
    assert "<rdf:li>a long day there</rdf:li>" in xmp


# ---- When the photo was taken --------------------------------------------------------------------------------------


def dates(**tags: str) -> Image.Exif:
    exif = Image.Exif()
    if "changed" in tags:
        exif[CHANGED] = tags["changed"]
    names = {"taken": TAKEN, "digitised": DIGITISED}
    exif[EXIF] = {tag: tags[name] for name, tag in names.items() if name in tags}
    return exif


def test_the_first_date_that_is_one_is_the_photos() -> None:
    """EXIF's original date comes first, then XMP's, then digitised ones, IPTC's, a PNG's, and that of a change."""
    exif = {"taken": "2001:01:01 01:01:01", "digitised": "2003:01:01 01:01:01", "changed": "2007:01:01 01:01:01"}
    original, created = 'exif:DateTimeOriginal="2002-01-01"', 'xmp:CreateDate="2004-01-01"'
    block = iim((2, 55, b"20050101"))
    found = []
    for dropped in range(6):
        steps = [("taken", "exif"), ("original", "xmp"), ("digitised", "exif"), ("created", "xmp"), ("block", "iptc")]
        left = {name for name, _ in steps[dropped:]}
        attributes = " ".join(text for name, text in (("original", original), ("created", created)) if name in left)
        tags = {name: text for name, text in exif.items() if name in left or name == "changed"}
        data = photo(exif=dates(**tags), xmp=packet("", attributes=attributes))
        found.append(decoded(with_iptc(block, data) if "block" in left else data).notes.taken[:4])
    assert found == ["2001", "2002", "2003", "2004", "2005", "2007"]
    chunks = PngInfo()
    chunks.add_text("Creation Time", "Sun, 01 Jan 2006 01:01:01 +0100")
    assert (
        decoded(photo("png", pnginfo=chunks, exif=dates(changed=exif["changed"]))).notes.taken == "2006-01-01T01:01:01"
    )


@pytest.mark.parametrize("blank", ["0000:00:00 00:00:00", "    :  :     :  :  ", "", "2024:99:99 99:99:99"])
def test_a_blank_date_is_none(blank: str) -> None:
    """A camera without a clock gives no date; the next source is asked, and galleries find its answer in EXIF too."""
    data = photo(
        exif=dates(taken=blank), xmp=packet("", attributes='photoshop:DateCreated="2002-03-04T05:06:07+01:00"')
    )
    assert decoded(photo(exif=dates(taken=blank))).notes.taken == ""
    assert decoded(data).notes.taken == "2002-03-04T05:06:07"
    detail = opened(picture(data)).getexif().get_ifd(EXIF)
    assert (detail[TAKEN], detail[ZONE]) == ("2002:03:04 05:06:07", "+01:00")


@pytest.mark.parametrize("form", FORMATS)
def test_every_picture_shows_the_photos_date_in_exif_and_xmp(form: PictureFormat) -> None:
    """Programs that sort photos find the date in whichever of the two they read in a format."""
    for source in (
        photo(exif=dates(taken="2002:03:04 05:06:07")),
        with_iptc(iim((2, 55, b"20020304"), (2, 60, b"050607"))),
    ):
        data = picture(source, form)
        assert opened(data).getexif().get_ifd(EXIF)[TAKEN] == "2002:03:04 05:06:07"
        assert "<exif:DateTimeOriginal>2002-03-04T05:06:07</exif:DateTimeOriginal>" in said(data)
        assert "<photoshop:DateCreated>2002-03-04T05:06:07</photoshop:DateCreated>" in said(data)


def test_a_scan_keeps_both_of_its_dates() -> None:
    """When a slide was scanned is not when it was taken: no original date is made up of a digitised one."""
    detail = opened(picture(photo(exif=dates(digitised="2003:01:01 01:01:01")))).getexif().get_ifd(EXIF)
    assert detail[DIGITISED] == "2003:01:01 01:01:01"
    assert TAKEN not in detail


def test_a_photo_without_a_date_gets_none() -> None:
    """Nothing is made up: not the time of drawing, not the file's."""
    data = picture(photo())
    assert decoded(photo()).notes.taken == ""
    assert TAKEN not in opened(data).getexif().get_ifd(EXIF)
    assert b"DateTime" not in data


# ---- Malformed -----------------------------------------------------------------------------------------------------


@given(st.sampled_from(["exif", "xmp", "iptc"]), st.data())
@settings(deadline=None, max_examples=150)
def test_malformed_metadata_never_fail_a_photo(which: str, data: st.DataObject) -> None:
    """Whatever is wrong with the metadata, the photo decodes, and its picture can be written and read again."""
    whole = {"exif": record().tobytes(), "xmp": packet(PLACES), "iptc": PLACE_SETS}
    raw = bytearray(whole[which])
    for _ in range(data.draw(st.integers(0, 8))):
        raw[data.draw(st.integers(6, len(raw) - 1))] = data.draw(st.integers(0, 255))
    broken = bytes(raw[: data.draw(st.integers(8, len(raw)))])
    source = with_iptc(broken) if which == "iptc" else photo("jpeg", **{which: broken})
    for form in ("jpeg", "avif"):
        image = opened(picture(source, form))
        assert image.getexif()[SOFTWARE] == f"animed {__version__}"
        image.getexif().get_ifd(EXIF)
        assert "SourceDigest" in image.info["xmp"].decode()
