"""A picture keeps what describes its photo, and nothing that is no longer true."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from animed.imaging import metadata
from animed.imaging.decode import Decoded, Wanted, decode

ORIENTATION, SOFTWARE, MAKE, MODEL, EXIF, GPS = 0x0112, 0x0131, 0x010F, 0x0110, 0x8769, 0x8825
IFD1, TAKEN, MAKER_NOTE, WIDTH, HEIGHT, COLOUR_SPACE = -1, 0x9003, 0x927C, 0xA002, 0xA003, 0xA001


def record() -> Image.Exif:
    exif = Image.Exif()
    exif[MAKE], exif[MODEL], exif[ORIENTATION], exif[SOFTWARE] = "Maker", "Model 1", 6, "camera 1.0"
    exif[EXIF] = {TAKEN: "2024:05:06 07:08:09", WIDTH: 4000, HEIGHT: 3000, COLOUR_SPACE: 65535}
    exif[GPS] = {1: "N", 2: (48.0, 8.0, 14.0)}
    return exif


def extracted(exif: Image.Exif | bytes, form: str = "jpeg") -> bytes:
    blob = exif if isinstance(exif, bytes) else exif.tobytes()
    target = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(target, form, exif=blob)
    result = decode(target.getvalue(), Wanted(max_pixels=10**6, max_edge=64, animated="first"))
    assert isinstance(result, Decoded)
    return result.notes.exif


def parsed(data: bytes) -> Image.Exif:
    exif = Image.Exif()
    exif.load(data)
    return exif


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "tiff", "avif"])
def test_what_describes_the_photo_is_kept(form: str) -> None:
    """Camera, date and place survive from every format, upright, in sRGB, with the picture's own size."""
    kept = parsed(metadata.prepare(extracted(record(), form), gps=True, width=40, height=30))
    assert (kept[MAKE], kept[MODEL]) == ("Maker", "Model 1")
    assert (kept[ORIENTATION], kept[SOFTWARE]) == (1, "animed")
    detail = kept.get_ifd(EXIF)
    assert detail[TAKEN] == "2024:05:06 07:08:09"
    assert (detail[WIDTH], detail[HEIGHT], detail[COLOUR_SPACE]) == (40, 30, 1)
    assert kept.get_ifd(GPS)[1] == "N"


def test_the_place_is_dropped_on_demand() -> None:
    """Without `gps` nothing of the place is left in the bytes."""
    kept = metadata.prepare(extracted(record()), gps=False, width=40, height=30)
    assert GPS not in parsed(kept)
    assert parsed(kept)[MODEL] == "Model 1"


def test_how_a_tiff_stores_its_pixels_is_not_kept() -> None:
    """Strips, compression and depth of a TIFF describe the file, not the photo."""
    kept = parsed(extracted(record(), "tiff"))
    assert not {256, 257, 258, 259, 262, 273, 277, 278, 279} & set(kept)


def test_the_thumbnail_is_dropped() -> None:
    """A thumbnail of the photo in its picture would show the photo in every file browser."""
    blob = with_thumbnail(record().tobytes())
    assert parsed(blob).get_ifd(IFD1)
    kept = metadata.prepare(extracted(blob), gps=True, width=40, height=30)
    assert parsed(kept)[MODEL] == "Model 1"
    assert not parsed(kept).get_ifd(IFD1)
    assert b"the thumbnail" not in kept


def with_thumbnail(exif: bytes) -> bytes:
    """Chain a second directory, which holds a thumbnail, to the main one of big-endian EXIF bytes."""
    tiff = bytearray(exif[6:])
    count = struct.unpack_from(">H", tiff, 8)[0]
    start = len(tiff) + len(tiff) % 2
    struct.pack_into(">I", tiff, 10 + 12 * count, start)
    tiff += bytes(start - len(tiff))
    thumbnail = b"\xff\xd8 the thumbnail \xff\xd9"
    tiff += struct.pack(">HHHIIHHIII", 2, 0x0201, 4, 1, start + 30, 0x0202, 4, 1, len(thumbnail), 0) + thumbnail
    return exif[:6] + bytes(tiff)


def test_a_record_that_is_too_long_loses_the_makers_note_first() -> None:
    """One JPEG segment holds 64 KiB: the maker's note goes, the rest stays."""
    data = Image.Exif()
    source = record()
    for tag in (MAKE, MODEL):
        data[tag] = source[tag]
    data[EXIF] = {TAKEN: "2024:05:06 07:08:09", MAKER_NOTE: b"x" * 70_000}
    target = io.BytesIO()
    Image.new("RGB", (40, 30)).save(target, "png", exif=data)
    result = decode(target.getvalue(), Wanted(max_pixels=10**6, max_edge=64, animated="first"))
    assert isinstance(result, Decoded)
    kept = metadata.prepare(result.notes.exif, gps=True, width=40, height=30)
    assert len(kept) <= metadata.MAX_BYTES
    assert parsed(kept).get_ifd(EXIF)[TAKEN] == "2024:05:06 07:08:09"
    assert MAKER_NOTE not in parsed(kept).get_ifd(EXIF)


def test_a_makers_note_that_fits_is_kept() -> None:
    """Nothing is dropped without need."""
    exif = record()
    exif[EXIF] = {**exif[EXIF], MAKER_NOTE: b"note"}
    assert parsed(extracted(exif)).get_ifd(EXIF)[MAKER_NOTE] == b"note"


def test_a_photo_without_exif_says_who_drew_it() -> None:
    """The picture of a photo without EXIF carries the program's name and its own size, no more."""
    assert extracted(b"") == b""
    kept = parsed(metadata.prepare(b"", gps=True, width=7, height=5))
    assert dict(kept)[SOFTWARE] == "animed"
    assert GPS not in kept


@given(spots=st.lists(st.tuples(st.integers(6, 250), st.integers(0, 255)), max_size=12), length=st.integers(0, 300))
@settings(deadline=None, max_examples=150)
def test_malformed_exif_never_fails_a_photo(spots: list[tuple[int, int]], length: int) -> None:
    """Whatever is wrong with the EXIF data, the photo decodes and its picture can be written."""
    blob = bytearray(record().tobytes())
    for at, value in spots:
        if at < len(blob):
            blob[at] = value
    exif = extracted(bytes(blob[: max(8, len(blob) - length)]))
    pixels = decode(_picture(exif), Wanted(max_pixels=10**6, max_edge=64, animated="first"))
    assert isinstance(pixels, Decoded)


def _picture(exif: bytes) -> bytes:
    image = Image.new("RGB", (8, 8))
    prepared = metadata.prepare(exif, gps=True, width=8, height=8)
    target = io.BytesIO()
    image.save(target, "jpeg", exif=prepared)
    return target.getvalue()
