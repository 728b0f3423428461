"""Walks through the blocks of files: what they yield, and that hostile files cannot make them long."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_files import heic, saved, scene
from picture_writers import chunk, segment
from work_steps import TooMuchWork, within

from animed.errors import PhotoError
from animed.imaging import blocks, ends, heif, limits
from animed.imaging.decode import decode
from animed.imaging.decoded import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.imaging.blocks import Block
    from animed.imaging.sniff import Kind

WANTED = Wanted(max_pixels=10**7, max_edge=160)
WALKS: dict[str, Callable[[bytes], Iterator[Block]]] = {
    "png": blocks.png_chunks,
    "webp": blocks.riff_chunks,
    "heic": blocks.boxes,
    "jpeg": blocks.jpeg_segments,
    "gif": blocks.gif_blocks,
}
FEW = 100_000  # steps of the interpreter, for files in which every byte would be one of them and more
MEBI = 1 << 20


def names(kind: str, data: bytes) -> list[bytes]:
    return [block.name for block in WALKS[kind](data)]


def behind_head(kind: str, filling: bytes) -> bytes:
    """Return a small photo with something between its head and its picture."""
    data = saved(scene(8, 8).convert("P") if kind == "gif" else scene(8, 8), kind)
    at = {"jpeg": 2, "gif": 13 + blocks.gif_palette(data, 10)}[kind]
    return data[:at] + filling + data[at:]


def test_a_block_has_its_name_its_place_and_its_size_with_its_head() -> None:
    """What is yielded of each format follows on one another, from its first block to its end."""
    png, webp, gif = (saved(scene(8, 8), form) for form in ("png", "webp", "gif"))
    for kind, data, first in (("png", png, 8), ("webp", webp, 12), ("heic", heic(scene(64, 64)), 0)):
        at = first
        for block in WALKS[kind](data):
            assert block.start == at
            at = block.end + (block.size % 2 if kind == "webp" else 0)
        assert at == len(data)
    assert names("png", png) == [b"IHDR", b"IDAT", b"IEND"]
    assert names("webp", webp) == [b"VP8 "]
    assert names("gif", gif)[-2:] == [blocks.PICTURE, blocks.TRAILER]


def test_segments_are_yielded_and_what_lies_between_them_is_not() -> None:
    """Fill bytes, marks of restarts and junk are no segments; a scan is its head alone."""
    body = segment(0xE1, b"Exif\0\0") + b"\xff\xff\xff" + segment(0xFE, b"text") + b"junk\xff\x00\xff\xd0"
    data = b"\xff\xd8" + body + segment(0xDA, b"") + b"\x12\xff\x00\xff\xd3\x34\xff\xd9"
    assert names("jpeg", data) == [blocks.EXIF, b"\xfe", blocks.SCAN, blocks.END]


def test_a_box_may_be_of_eight_bytes_more_or_reach_to_the_end() -> None:
    """Both ways to write a size that 32 bits do not hold are known; nonsense ends the walk."""
    data = struct.pack(">I4sQ", 1, b"mdat", 24) + bytes(8) + struct.pack(">I4s", 0, b"free") + bytes(99)
    assert list(blocks.boxes(data)) == [(b"mdat", 0, 24), (b"free", 24, 107)]
    assert list(blocks.boxes(struct.pack(">I4s", 7, b"mdat") + bytes(8))) == [(b"mdat", 0, 16)]


@given(data=st.binary(max_size=200), kind=st.sampled_from(sorted(WALKS)))
@settings(deadline=None, max_examples=200)
def test_every_walk_goes_on(data: bytes, kind: str) -> None:
    """Whatever the bytes are, each block begins behind the one before and within the data."""
    at = -1
    for block in WALKS[kind](data):
        assert at < block.start < len(data)
        assert block.size > 0
        at = block.start


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("png", chunk(b"tEXt")),
        ("webp", b"ABCD" + bytes(4)),
        ("heic", struct.pack(">I4s", 8, b"free")),
        ("jpeg", segment(0xE5, b"")),
        ("gif", b"!\xfe\0"),
    ],
)
def test_a_file_of_empty_blocks_is_not_walked_to_its_end(kind: str, block: bytes) -> None:
    """More blocks than any photo has are too large, after a number of steps that the file does not set."""
    head = {"png": 8, "webp": 12, "heic": 0, "jpeg": 2, "gif": 13}[kind]
    small, large = (bytes(head) + block * number for number in (blocks.MOST, 2 * blocks.MOST))
    assert len(list(WALKS[kind](small))) == blocks.MOST
    met: list[Block] = []
    with pytest.raises(PhotoError, match=f"more than {blocks.MOST} blocks") as caught:
        met.extend(WALKS[kind](large))
    assert caught.value.reason == "too_large"
    assert len(met) == blocks.MOST


def test_a_picture_of_pieces_of_one_byte_is_not_walked_to_its_end() -> None:
    """A GIF's blocks are made of pieces, whose number is limited for all of them together."""
    frame = b",\0\0\0\0\x08\0\x08\0\0\x02" + b"\x01\0" * (blocks.MOST_PIECES // 2 - 1) + b"\x01a\0"
    data = b"GIF89a\x08\0\x08\0\0\0\0"
    assert sum(block.name == blocks.PICTURE for block in blocks.gif_blocks(data + 2 * frame)) == 2
    with pytest.raises(PhotoError, match="pieces in the blocks of a GIF"):
        list(blocks.gif_blocks(data + 3 * frame))


@pytest.mark.parametrize(
    ("kind", "filling"),
    [
        ("jpeg", b"\xff" * (8 * MEBI)),
        ("jpeg", b"junk" * (2 * MEBI)),
        ("jpeg", b"\xff\0" * (4 * MEBI)),
        ("gif", bytes(8 * MEBI)),
        ("gif", b"junk" * (2 * MEBI)),
    ],
)
def test_what_fills_the_room_between_blocks_is_jumped_over(kind: Kind, filling: bytes) -> None:
    """Neither the limits nor the search for the end go byte by byte; libraries do, so that so much is too large."""
    data = behind_head(kind, filling)
    within(FEW, lambda: ends.ends_early(kind, data))
    with pytest.raises(PhotoError, match=r"bytes be(side the picture|tween segments)") as caught:
        within(FEW, lambda: limits.header(kind, data, WANTED.max_pixels))
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize(("kind", "filling"), [("jpeg", b"\xff" * 5000), ("gif", bytes(5000))])
def test_a_little_between_blocks_is_no_fault(kind: str, filling: bytes) -> None:
    """Some programs pad what they write."""
    decode(behind_head(kind, filling), WANTED)


def test_exif_behind_marks_without_a_length_counts(subtests: pytest.Subtests) -> None:
    """Neither junk nor a mark of a restart hides what a library will join piece by piece."""
    much = segment(0xE1, b"Exif\0\0" + bytes(65_000)) * 300
    for hidden in (b"", b"\0", b"\xff\xd0", b"\xff\x01", b"\xff\xd8"):
        with subtests.test(hidden=hidden), pytest.raises(PhotoError, match="bytes of EXIF"):
            limits.header("jpeg", behind_head("jpeg", hidden + much), WANTED.max_pixels)


def test_a_gif_that_is_zeros_to_its_end_is_truncated() -> None:
    """A file that was allocated before it was written may still be completed, however large it will be."""
    data = saved(scene(64, 64), "gif")
    with pytest.raises(PhotoError) as caught:
        decode(data[: len(data) // 2] + bytes(4 * MEBI), WANTED)
    assert caught.value.reason == "truncated"


def test_the_search_for_a_track_ends() -> None:
    """A track is found behind a picture, and empty boxes do not hide from the limit how many they are."""
    assert heif.moving(heic(scene(64, 64)) + struct.pack(">I4s", 8, b"moov"))
    with pytest.raises(PhotoError, match="blocks"):
        heif.moving(struct.pack(">I4s", 8, b"free") * (2 * blocks.MOST))


def test_steps_are_counted() -> None:
    """The count that these tests rest upon sees loops, comprehensions and generators."""
    with pytest.raises(TooMuchWork):
        within(1000, lambda: sum(1 for _ in range(1000)))
    assert within(1000, lambda: sum(range(10**6))) == 499_999_500_000
