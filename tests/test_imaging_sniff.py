"""The kind of a file is what its bytes say, and a file that ends early is told from a damaged one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_files import noise, saved

from animed.errors import PhotoError
from animed.imaging import ends, sniff

FORMATS = ["jpeg", "png", "webp", "tiff", "bmp", "gif", "avif", "heic"]


def written(form: str) -> bytes:
    return saved(noise(64, 48), form)


def boxed(major: bytes, *brands: bytes) -> bytes:
    body = major + bytes(4) + b"".join(brands)
    return struct.pack(">I", 8 + len(body)) + b"ftyp" + body + bytes(32)


@pytest.mark.parametrize("form", FORMATS)
def test_a_photo_is_known_by_its_content_whatever_its_name(form: str) -> None:
    """Every supported format is told from its first bytes, under the name of another one too."""
    assert sniff.identify(written(form)[: sniff.HEAD], b"holiday.mp4") == form


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (boxed(b"qt  "), "mov"),
        (boxed(b"isom", b"mp41"), "mp4"),
        (b"\x00\x00\x00\x08wide\x00\x00\x00\x00mdat", "mov"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", "webm"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x88matroska", "mkv"),
        (b"RIFF\x00\x00\x00\x00AVI LIST", "avi"),
        (b"%PDF-1.7", "pdf"),
        (b"8BPS\x00\x01", "psd"),
        (b"\x8bJNG\r\n\x1a\n", "jng"),
        (b"\x8aMNG\r\n\x1a\n", "mng"),
        (b"\xff\x0a\xfa\x7f", "jxl"),
        (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "jxl"),
        (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "jp2"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg">', "svg"),
        (b"\xef\xbb\xbf<svg>", "svg"),
        (b"P6\n640 480\n255\n", "pnm"),
    ],
)
def test_other_pictures_and_videos_are_named(head: bytes, kind: str) -> None:
    """What animed does not read but people drop in is reported as unsupported, with its kind."""
    with pytest.raises(PhotoError) as caught:
        sniff.identify(head)
    assert caught.value.reason == f"unsupported:{kind}"


def test_an_avif_with_a_general_brand_is_an_avif() -> None:
    """The major brand may be the general one of still pictures: the compatible brands decide."""
    assert sniff.identify(boxed(b"mif1", b"mif1", b"avif", b"miaf")) == "avif"


@pytest.mark.parametrize("brands", [(b"heic",), (b"mif1", b"heic"), (b"mif1", b"mif1"), (b"msf1", b"hevc"), (b"hevc",)])
def test_every_heif_but_avif_is_a_heic(brands: tuple[bytes, ...]) -> None:
    """Whatever brand a HEIF gives first, it is one kind."""
    assert sniff.identify(boxed(*brands)) == "heic"


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (boxed(b"crx ", b"crx ", b"isom"), "cr3"),
        (b"II*\x00\x10\x00\x00\x00CR\x02\x00", "cr2"),
        (b"IIRO\x08\x00\x00\x00", "orf"),
        (b"IIU\x00\x08\x00\x00\x00", "rw2"),
        (b"FUJIFILMCCD-RAW 0201", "raf"),
        (b"II\x1a\x00\x00\x00HEAPCCDR", "crw"),
    ],
)
def test_a_raw_file_is_known_by_its_first_bytes(head: bytes, form: str) -> None:
    """What a camera wrote without developing it is one kind, and its format is told."""
    assert sniff.identify(head) == "raw"
    assert sniff.camera(head) == form


@pytest.mark.parametrize("suffix", ["nef", "ARW", "dng", "pef"])
def test_a_raw_file_in_tiff_clothes_is_known_by_its_name(suffix: str) -> None:
    """A camera raw file that looks like a TIFF is not drawn from its thumbnail."""
    name = f"DSC_0001.{suffix}".encode()
    assert sniff.identify(written("tiff"), name) == "raw"
    assert sniff.camera(written("tiff"), name) == suffix.lower()
    assert sniff.identify(written("jpeg"), name) == "jpeg"


def test_a_dng_is_known_by_its_version_tag() -> None:
    """A DNG that lost its name is still told from a TIFF."""
    head = b"II*\x00\x08\x00\x00\x00" + struct.pack("<HHHII", 1, 50706, 1, 4, 0x401)
    assert sniff.identify(head, b"photo.tif") == "raw"
    assert sniff.camera(head, b"photo.tif") == "dng"


@pytest.mark.parametrize("head", [b"Dear diary", b"\x00" * 64, b"PK\x03\x04", b"RIFF\x00\x00\x00\x00WAVE", b"<html>"])
def test_anything_else_is_no_picture(head: bytes) -> None:
    """Text, archives, sound and zeros are not_an_image."""
    with pytest.raises(PhotoError) as caught:
        sniff.identify(head)
    assert caught.value.reason == "not_an_image"


def test_no_content_is_empty() -> None:
    """A file of 0 bytes has a reason of its own."""
    with pytest.raises(PhotoError) as caught:
        sniff.identify(b"")
    assert caught.value.reason == "empty"


@pytest.mark.parametrize("form", FORMATS)
def test_whole_files_do_not_end_early_and_cut_ones_do(form: str) -> None:
    """The structure of each format tells whether its end is there."""
    data = written(form)
    kind = sniff.identify(data)
    assert not ends.ends_early(kind, data)
    assert ends.ends_early(kind, data[: len(data) * 2 // 3])


def test_the_end_of_a_thumbnail_is_not_the_end_of_the_photo() -> None:
    """An end mark inside the EXIF segment does not make a cut JPEG whole."""
    data = written("jpeg")
    segment = b"Exif\x00\x00" + b"\xff\xd8\xff\xda\x00\x02\xff\xd9"
    carried = data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]
    assert not ends.ends_early("jpeg", carried)
    assert ends.ends_early("jpeg", carried[:-200])


def test_a_jpeg_whose_rest_is_still_zeros_is_hollow() -> None:
    """A file that was allocated in full before its content came is told from a whole one, padded or not."""
    data = written("jpeg")
    half = len(data) // 2
    assert ends.hollow("jpeg", data[:half] + bytes(len(data) - half + 512))
    assert not ends.hollow("jpeg", data)
    assert not ends.hollow("jpeg", data + bytes(4096))


@given(data=st.binary(max_size=300), form=st.sampled_from(FORMATS), cut=st.integers(0, 400))
@settings(deadline=None, max_examples=150)
def test_no_bytes_upset_the_sniffer(data: bytes, form: str, cut: int) -> None:
    """Whatever follows a format's first bytes, the answer is a kind or a PhotoError, and the end is yes or no."""
    whole = written(form)[:cut] + data
    try:
        kind = sniff.identify(whole)
    except PhotoError:
        return
    assert ends.ends_early(kind, whole) in {True, False}
