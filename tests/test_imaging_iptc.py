"""IPTC blocks: whole datasets are carried over, into JPEG as they were, and elsewhere as text."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_files import iim, photo, resource
from PIL import Image

from animed.imaging import iptc

UTF8 = (1, 90, b"\x1b%G")


def test_only_what_describes_the_photo_is_kept() -> None:
    """Previews, digests, and records about how the block was sent go; the order stays."""
    block = iim(UTF8, (1, 20, b"\0\x01"), (2, 25, b"b"), (2, 202, b"preview"), (2, 5, b"t"), (7, 10, b"x"))
    assert iptc.read(block) == iim(UTF8, (2, 25, b"b"), (2, 5, b"t"))
    assert iptc.read(iim(UTF8, (7, 10, b"x"))) == b""


def test_texts_are_decoded_as_they_were_written() -> None:
    """UTF-8 where the block says so or it can be, else Latin-1; repeated datasets are a list."""
    assert iptc.texts(iim(UTF8, (2, 25, "Zürich".encode()), (2, 25, b"b\0"))) == {25: ["Zürich", "b"]}
    assert iptc.texts(iim((2, 25, "Zürich".encode()))) == {25: ["Zürich"]}
    assert iptc.texts(iim((2, 25, "Zürich".encode("latin-1")), (2, 5, b""))) == {25: ["Zürich"]}


def test_a_block_that_is_cut_off_gives_what_is_whole() -> None:
    """The dataset that reaches beyond the end is left out, and what follows it."""
    block = iim((2, 5, b"title"), (2, 25, b"keyword"))
    assert iptc.read(block[:-1]) == iim((2, 5, b"title"))
    assert iptc.read(iim((2, 5, b"title")) + b"\x1c\x02\x19\xff\xff" + bytes(99)) == iim((2, 5, b"title"))


def test_a_large_block_fits_into_one_segment() -> None:
    """What is longest is left out; the order of the rest stays."""
    block = iim(*((2, 25, b"%d" % n + b"x" * 20_000) for n in range(5)), (2, 5, b"title"))
    kept = iptc.read(block)
    assert len(kept) <= iptc.MAX_WRITTEN
    assert kept.endswith(iim((2, 5, b"title")))
    with Image.open(io.BytesIO(iptc.embedded(photo(), kept))) as image:
        assert image.info["photoshop"] == {0x0404: kept}


def test_a_block_in_a_jpeg_leaves_the_rest_as_it_was() -> None:
    """The segment lies behind the others of its kind, so that JFIF and EXIF are still where programs look first."""
    exif = Image.Exif()
    exif[0x0110] = "Model 1"
    plain = photo(exif=exif, icc_profile=b"profile", xmp=b"packet")
    data = iptc.embedded(plain, iim((2, 5, b"odd")))
    assert iptc.embedded(plain, b"") == plain
    at = data.index(b"\xff\xed")
    assert at > data.index(b"ICC_PROFILE")
    assert data[:at] + data[at + len(data) - len(plain) :] == plain
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert image.info["photoshop"] == {0x0404: iim((2, 5, b"odd"))}
        assert image.getexif()[0x0110] == "Model 1"


def test_the_block_is_found_among_the_resources_of_a_tiff() -> None:
    """Names and odd lengths between the resources do not hide it."""
    named = b"8BIM\x03\xed\x04name\0" + (3).to_bytes(4, "big") + b"odd\0"
    assert iptc.resource(resource(0x0425, b"digest!") + named + resource(0x0404, b"block")) == b"block"
    assert iptc.resource(resource(0x0425, b"digest")) == b""
    assert iptc.resource(b"8BIM\x04\x04\0\0\0\0") == b""


@given(st.binary(max_size=200), st.booleans())
@settings(deadline=None, max_examples=200)
def test_any_bytes_are_a_block_or_none(data: bytes, start: bool) -> None:
    """No data are too odd to be looked at, and what is kept of them is whole."""
    kept = iptc.read((iim((2, 5, b"t")) if start else b"") + data)
    assert iptc.read(kept) == kept
    iptc.texts(kept)
    iptc.moment(kept)
    iptc.resource(data)
    assert kept or not start
