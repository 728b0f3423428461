"""EXIF data: what describes the photo is kept byte by byte, the rest goes, and nothing that is broken spreads."""

from __future__ import annotations

import struct
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_files import (
    COLOUR_SPACE,
    EXIF,
    GPS,
    HEIGHT,
    IFD1,
    MAKE,
    MAKER_NOTE,
    MODEL,
    ORIENTATION,
    TAKEN,
    UNIQUE,
    WIDTH,
    opened,
    parsed,
    photo,
    picture,
    record,
)
from photo_files import decoded

from animed.imaging import exif, ifd
from animed.imaging.exif import Frame

FRAME = Frame(40, 30)
USER_COMMENT, LENS = 0x9286, 0xA434


def test_how_a_tiff_stores_its_pixels_is_not_kept() -> None:
    """Strips, compression and depth of a TIFF describe the file, not the photo."""
    kept = parsed(decoded(photo("tiff", exif=record())).notes.exif)
    assert kept[MODEL] == "Model 1"
    assert not {256, 257, 258, 259, 262, 273, 277, 278, 279} & set(kept)


def test_the_thumbnail_is_dropped() -> None:
    """A thumbnail of the photo in its picture would show the photo in every file browser."""
    blob = with_thumbnail(record().tobytes())
    assert parsed(blob).get_ifd(IFD1)
    data = picture(photo(exif=blob))
    assert opened(data).getexif()[MODEL] == "Model 1"
    assert not opened(data).getexif().get_ifd(IFD1)
    assert b"the thumbnail" not in data


def with_thumbnail(blob: bytes) -> bytes:
    """Chain a second directory, which holds a thumbnail, to the main one of big-endian EXIF bytes."""
    tiff = bytearray(blob[6:])
    count = struct.unpack_from(">H", tiff, 8)[0]
    start = len(tiff) + len(tiff) % 2
    struct.pack_into(">I", tiff, 10 + 12 * count, start)
    tiff += bytes(start - len(tiff))
    thumbnail = b"\xff\xd8 the thumbnail \xff\xd9"
    tiff += struct.pack(">HHHIIHHIII", 2, 0x0201, 4, 1, start + 30, 0x0202, 4, 1, len(thumbnail), 0) + thumbnail
    return blob[:6] + bytes(tiff)


def test_what_is_true_of_the_photo_alone_is_dropped() -> None:
    """The maker's note (previews, what ties a Live Photo to its video) and the photo's identity do not go along."""
    blob = record()
    note = b"Apple iOS\0\0\x01MM" + b"ContentIdentifier 1234-5678"
    blob[EXIF] = {**blob[EXIF], MAKER_NOTE: note, UNIQUE: "0123456789abcdef" * 2, LENS: "Lens 50mm"}
    data = picture(photo(exif=blob))
    detail = opened(data).getexif().get_ifd(EXIF)
    assert detail[LENS] == "Lens 50mm"
    assert not {MAKER_NOTE, UNIQUE} & set(detail)
    assert b"ContentIdentifier" not in data


@pytest.mark.parametrize("order", ["<", ">"])
def test_values_stay_the_bytes_that_they_were(order: Literal["<", ">"]) -> None:
    """Odd texts, fractions without a denominator and either byte order come out as they went in."""
    comment = b"UNICODE\0" + "注釈".encode("utf-16-le")
    tree = ifd.Tree(
        order,
        {MAKE: ifd.Entry(ifd.ASCII, 7, "Zürich".encode()), 0x011A: ifd.Entry(5, 1, struct.pack(order + "II", 72, 0))},
        {USER_COMMENT: ifd.Entry(ifd.UNDEFINED, len(comment), comment), 0x829A: ifd.Entry(5, 1, bytes(8))},
        {1: ifd.Entry(ifd.ASCII, 2, b"N\0"), 29: ifd.text("2024:05:17")},
    )
    kept = ifd.parse(exif.prepare(exif.read(ifd.parse(ifd.serialise(tree))), FRAME, gps=True))
    assert kept is not None
    assert kept.order == order
    assert kept.main.items() >= tree.main.items()
    assert kept.detail.items() >= tree.detail.items()
    assert kept.place == tree.place


def test_a_broken_entry_costs_no_other() -> None:
    """An entry whose value lies outside the data, or of a kind that does not exist, is left out alone."""
    entries = [
        struct.pack("<HHII", MAKE, 2, 4, int.from_bytes(b"Mkr\0", "little")),
        struct.pack("<HHII", MODEL, 2, 400, 9999),
        struct.pack("<HHII", 0x013B, 99, 1, 0),
        struct.pack("<HHII", 0x8298, 2, 0xFFFFFFFF, 8),
        struct.pack("<HHII", EXIF, 4, 1, 0xFFFFFFF0),
        struct.pack("<HHII", GPS, 4, 1, 8),
    ]
    data = b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries) + bytes(4)
    assert dict(parsed(exif.read(ifd.parse(data)))) == {MAKE: "Mkr"}


def test_texts_that_a_camera_left_blank_are_dropped() -> None:
    """A title of spaces would stand in galleries as an empty line."""
    tree = ifd.Tree("<", {0x010E: ifd.Entry(ifd.ASCII, 4, b"   \0"), MAKE: ifd.text("Maker")})
    assert dict(parsed(exif.read(ifd.parse(ifd.serialise(tree))))) == {MAKE: "Maker"}


def test_a_record_that_is_too_long_loses_its_longest_values() -> None:
    """One JPEG segment holds 64 KiB: the longest value goes, date and camera stay, in every format alike."""
    tree = ifd.Tree(
        "<",
        {MAKE: ifd.text("Maker"), 0x010E: ifd.text("t" * 40_000)},
        {TAKEN: ifd.text("2024:05:06 07:08:09"), USER_COMMENT: ifd.Entry(ifd.UNDEFINED, 50_000, b"c" * 50_000)},
    )
    kept = exif.read(ifd.parse(ifd.serialise(tree)))
    assert len(exif.prepare(kept, FRAME, gps=True)) <= exif.MAX_BYTES
    assert len(parsed(kept)[0x010E]) == 40_000
    assert dict(parsed(kept).get_ifd(EXIF)) == {TAKEN: "2024:05:06 07:08:09"}


def test_many_entries_that_share_their_bytes_stay_small() -> None:
    """A small file whose entries all claim the same large value does not become a large record."""
    value = b"v" * 60_000
    entries = b"".join(struct.pack("<HHII", 0x829A + n, 7, len(value), 8 + 2 + 12 + 4 + 6 + 6000) for n in range(500))
    main = struct.pack("<HHHIII", 1, EXIF, 4, 1, 26, 0)
    data = b"II*\0" + struct.pack("<I", 8) + main + struct.pack("<H", 500) + entries + bytes(4) + value
    assert len(exif.read(ifd.parse(data))) <= exif.MAX_BYTES


def test_a_photo_without_exif_says_who_drew_it() -> None:
    """The picture of a photo without EXIF carries the program's name and its own size, no more."""
    assert exif.read(ifd.parse(b"")) == b""
    kept = parsed(exif.prepare(b"", Frame(7, 5), gps=True))
    assert (kept[0x0131], kept[ORIENTATION]) == (exif.SOFTWARE, 1)
    assert (kept.get_ifd(EXIF)[WIDTH], kept.get_ifd(EXIF)[HEIGHT]) == (7, 5)
    assert GPS not in kept


def test_colours_that_are_not_srgb_are_not_called_so() -> None:
    """A picture that keeps its photo's own profile is uncalibrated for EXIF."""
    assert parsed(exif.prepare(b"", Frame(7, 5, srgb=False), gps=True)).get_ifd(EXIF)[COLOUR_SPACE] == 65535
    assert parsed(exif.prepare(b"", Frame(7, 5), gps=True)).get_ifd(EXIF)[COLOUR_SPACE] == 1


def test_an_orientation_is_noticed_and_goes() -> None:
    """The record says whether the photo was turned; what is kept of it does not turn the picture again."""
    blob = record().tobytes()
    assert exif.turned(ifd.parse(blob))
    assert not exif.turned(ifd.parse(b""))
    assert ORIENTATION not in parsed(exif.read(ifd.parse(blob)))
    assert ORIENTATION not in parsed(exif.prepare(exif.read(ifd.parse(blob)), Frame(4, 3, upright=False), gps=True))


ENTRIES = st.dictionaries(
    st.integers(0, 0xFFFF).filter(lambda tag: tag not in {EXIF, GPS}),
    st.binary(min_size=1, max_size=40).map(lambda value: ifd.Entry(ifd.UNDEFINED, len(value), value)),
    max_size=12,
)


@given(st.builds(ifd.Tree, st.sampled_from(["<", ">"]), ENTRIES, ENTRIES, ENTRIES))
@settings(deadline=None, max_examples=200)
def test_what_is_written_is_read_back(tree: ifd.Tree) -> None:
    """Writing and reading are inverse."""
    assert ifd.parse(ifd.serialise(tree)) == tree


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"II*\0", b"MM\0*", b"Exif\0\0II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"])
)
@settings(deadline=None, max_examples=300)
def test_any_bytes_are_exif_or_none(data: bytes, start: bytes) -> None:
    """No data are too odd to be read, and what is kept of them can be written."""
    kept = exif.read(ifd.parse(start + data))
    exif.moments(kept)
    exif.turned(ifd.parse(start + data))
    assert dict(parsed(exif.prepare(kept, FRAME, gps=True)))[ORIENTATION] == 1
