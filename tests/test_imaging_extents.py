"""Directories of tags: what they list is read once, in few steps, and from small files never much."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from photo_files import noise, saved, scene
from picture_writers import Tiff, short, tiff
from work_steps import within

from animed.errors import PhotoError
from animed.imaging import ends, extents, ifd, limits, sniff
from animed.imaging.decode import decode
from animed.imaging.decoded import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 100_000  # steps of the interpreter
MANY = 1 << 20  # values, as many as none of the steps may be for
ENTRY = "<HHII"


def directory(*entries: tuple[int, int, int, int], follows: int = 0) -> bytes:
    """Return a directory of (tag, kind, number of values, value or offset)."""
    body = b"".join(struct.pack(ENTRY, *entry) for entry in entries)
    return struct.pack("<H", len(entries)) + body + struct.pack("<I", follows)


def classic(*entries: tuple[int, int, int, int], tail: bytes = b"", follows: int = 0) -> bytes:
    return b"II*\0" + struct.pack("<I", 8) + directory(*entries, follows=follows) + tail


def big(*entries: tuple[int, int, int, int], tail: bytes = b"") -> bytes:
    body = b"".join(struct.pack("<HHQQ", *entry) for entry in entries)
    return b"II+\0" + struct.pack("<HHQQ", 8, 0, 16, len(entries)) + body + bytes(8) + tail


@pytest.mark.parametrize(("write", "data_at"), [(classic, 8 + 2 + 5 * 12 + 4), (big, 16 + 8 + 5 * 20 + 8)])
def test_of_equal_tags_the_first_counts(write: Callable[..., bytes], data_at: int) -> None:
    """Whoever reads a directory sees the same values, in classic TIFF and in BigTIFF."""
    entries = ((259, 3, 1, 7), (259, 3, 1, 5), (273, 4, 3, data_at), (279, 4, 3, data_at), (273, 4, 1, 9))
    data = write(*entries, tail=struct.pack("<III", 10, 20, 30))
    found = extents.first(data)
    assert found.compression == 7
    assert found.numbers[273] == (10, 20, 30)
    assert found.strips_end == 60
    assert [slot.tag for slot in ifd.slots(data, ifd.first(data))] == [259, 273, 279]
    assert found.values_end == len(data) == data_at + 12


def test_exif_takes_the_first_of_equal_tags_too() -> None:
    """The EXIF data of a picture are those that a viewer of its photo sees."""
    tree = ifd.parse(classic((0x0112, 3, 1, 6), (0x0112, 3, 1, 1)))
    assert tree is not None
    assert tree.number(0x0112) == 6


@pytest.mark.parametrize("tag", [330, 273, 513])
def test_values_are_not_read_again_for_each_entry_that_names_them(tag: int) -> None:
    """Entries that share a value of megabytes cost a step each, and its numbers none."""
    data = classic(*[(tag, 4, MANY, 0)] * 512, tail=bytes(4 * MANY))
    assert len(within(FEW, lambda: extents.first(data)).numbers[tag]) == MANY


def test_numbers_that_are_not_there_are_not_read() -> None:
    """A directory may claim what it likes: what counts is the bytes behind it."""
    data = classic((273, 4, 0xFFFFFFFF, 8 + 2 + 12 + 4), tail=struct.pack("<II", 1, 2))
    assert extents.first(data).numbers[273] == (1, 2)
    assert extents.first(classic((273, 4, 2, 0xFFFFFFF0))).numbers[273] == ()
    assert ends.ends_early("tiff", data)


def sharing(number: int) -> bytes:
    """Return directories in a chain that all list the same numbers."""
    at = 8 + number * (2 + 2 * 12 + 4)
    chain = [
        directory((254, 4, 1, 1), (330, 4, MANY, at), follows=8 + index * (2 + 2 * 12 + 4))
        for index in range(1, number + 1)
    ]
    return b"II*\0" + struct.pack("<I", 8) + b"".join(chain) + bytes(4 * MANY)


def test_directories_that_share_what_they_list_are_too_large() -> None:
    """A file of four megabytes does not list sixty million numbers, for a camera's format or for a TIFF's pages."""
    data = sharing(64)
    for call in (lambda: list(extents.all_of(data)), lambda: limits.header("tiff", data, 10**6)):
        with pytest.raises(PhotoError) as caught:
            within(FEW, call)
        assert caught.value.reason == "too_large"


def test_a_directory_of_thousands_of_entries_is_too_large() -> None:
    """No library is given what would keep it busy; a directory that a lost file lacks is not counted."""
    many = classic(*((tag, 3, 1, 1) for tag in range(10_000)))
    with pytest.raises(PhotoError, match="10000 entries of a directory in a tiff file, limit 512"):
        within(FEW, lambda: limits.header("tiff", many, 10**6))
    limits.header("tiff", many[:5000], 10**6)


def test_what_follows_the_page_in_full_size_does_not_matter() -> None:
    """Some programs leave rubbish where the offset of the next page is: nobody goes there."""
    rubbish = struct.pack("<H", 9999) + b"\1" * 12 * 9999
    entries = [(256, 4, 1, 8), (257, 4, 1, 8)]
    where = 8 + 2 + len(entries) * 12 + 4
    limits.header("tiff", classic(*entries, tail=rubbish, follows=where), 10**6)
    limits.header("tiff", classic((254, 4, 1, 2), *entries, tail=bytes(12) + rubbish, follows=where + 24), 10**6)
    limits.header("tiff", classic((254, 4, 1, 1), *entries, tail=bytes(300_000)), 10**6)
    with pytest.raises(PhotoError):
        limits.header("tiff", classic((254, 4, 1, 1), *entries, tail=bytes(12) + rubbish, follows=where + 24), 10**6)


def test_pages_thumbnails_and_tiles_are_within_the_limits() -> None:
    """Whatever programs write passes."""
    wanted = Wanted(max_pixels=10**7, max_edge=160)
    thumbnail = (Tiff(2, tags={254: short(1)}), np.asarray(scene(8, 8)))
    decode(tiff(thumbnail, (Tiff(2), np.asarray(scene()))), wanted)
    for packed in (None, "tiff_lzw"):
        decode(saved(noise(500, 4000), "tiff", compression=packed, strip_size=500), wanted)


def test_a_file_of_brands_is_no_long_list() -> None:
    """The kind of a file of boxes is told by its first bytes, however long it says that its list is."""
    data = struct.pack(">I", 16 * MANY) + b"ftyp" + b"abcd" * (4 * MANY)
    with pytest.raises(PhotoError) as caught:
        within(FEW, lambda: sniff.identify(data))
    assert caught.value.reason == "unsupported:mp4"


def bitmap(body: bytes, rows: int) -> bytes:
    return (
        b"BM"
        + struct.pack("<IIIIiiHHIIIIII", 54 + len(body), 0, 54, 40, 8, rows, 1, 8, 1, len(body), 0, 0, 0, 0)
        + body
    )


def test_the_runs_of_a_bitmap_are_no_steps() -> None:
    """Runs are passed over together, steps that lead nowhere are too large, and what is missing is still missed."""
    runs = b"\x01a" * MANY
    assert not within(FEW, lambda: ends.unfinished_runs(bitmap(runs + b"\0\1", 9)))
    assert within(FEW, lambda: ends.unfinished_runs(bitmap(runs + b"\0\0", 9)))
    assert not ends.unfinished_runs(bitmap((b"\x08a\0\0" * 4 + b"\0\x03abc\0\0\2\0\1") * 3, 15))
    with pytest.raises(PhotoError, match="marks between the runs"):
        ends.unfinished_runs(bitmap(b"\0\2\0\0" * (1 << 21) + b"\0\1", 9))
