"""A file that is not there to its end gives no picture, wherever it was cut."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photo_files import dng, heic, mosaic, noise, oriented, saved, scene

from animed.errors import PhotoError
from animed.imaging import ends
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted

if TYPE_CHECKING:
    from numpy.typing import NDArray

WANTED = Wanted(max_pixels=10**7, max_edge=160)


@cache
def samples() -> dict[str, bytes]:
    image, other = noise(160, 128), noise(160, 128, seed=2)
    grey, sheet = image.convert("L"), image.convert("1")
    plain = {f"{form} plain": saved(image, form) for form in ("jpeg", "png", "webp", "tiff", "bmp", "gif", "avif")}
    packed = {f"tiff {name}": saved(image, "tiff", compression=name) for name in ("tiff_lzw", "jpeg", "packbits")}
    moving = {f"{form} moving": saved(image, form, save_all=True, append_images=[other]) for form in ("gif", "png")}
    return {
        **plain,
        **packed,
        **moving,
        "jpeg progressive": saved(image, "jpeg", progressive=True),
        "jpeg grey": saved(grey, "jpeg"),
        "jpeg thumbnail": saved(image, "jpeg", exif=oriented(6), comment=saved(scene(16, 16), "jpeg")),
        "mpo": saved(image, "MPO", save_all=True, append_images=[other]),
        "webp lossless": saved(image, "webp", lossless=True, exif=oriented(6)),
        "tiff fax": saved(sheet, "tiff", compression="group4"),
        "tiff big": saved(image, "tiff", big_tiff=True, compression="tiff_lzw"),
        "tiff pages": saved(image, "tiff", save_all=True, append_images=[other]),
        "heic": heic(image),
        "heic tiles": heic(noise(300, 200), tile_size=128),
        "heic several": heic(other, image, exif=oriented(6), primary_index=1),
    }


@cache
def whole(name: str) -> NDArray[np.uint8]:
    result = decode(samples()[name], WANTED)
    assert isinstance(result, Decoded)
    return result.pixels


def drawn(data: bytes) -> NDArray[np.uint8] | str:
    """Return the pixels of a picture, or the reason why there is none."""
    try:
        result = decode(data, WANTED)
    except PhotoError as error:
        return error.reason
    assert isinstance(result, Decoded)
    return result.pixels


@given(name=st.sampled_from(sorted(samples())), part=st.floats(0, 1))
@settings(deadline=None, max_examples=250)
def test_a_cut_file_gives_its_whole_picture_or_none(name: str, part: float) -> None:
    """What is missing behind a complete picture is no loss; any other cut is truncated, from the first bytes on."""
    data = samples()[name]
    cut = int(part * (len(data) - 1))
    result = drawn(data[:cut])
    if isinstance(result, str):
        assert result == "truncated" or cut < 16
    else:
        assert np.array_equal(result, whole(name))


@pytest.mark.parametrize("name", sorted(samples()))
def test_a_file_that_lacks_its_last_quarter_is_truncated(name: str) -> None:
    """The worst place to be cut, for a picture is nearly all there; the second picture of a file is no loss."""
    data = samples()[name]
    if name in {"mpo", "tiff pages"}:
        data = data[: len(data) // 2]
    assert drawn(data[: len(data) * 3 // 4]) == "truncated"


@pytest.mark.parametrize("name", sorted(set(samples()) - {"bmp plain", "tiff plain", "tiff pages"}))
def test_a_file_whose_second_half_is_still_zeros_is_truncated(name: str) -> None:
    """A file that was allocated before it was written; without compression, zeros could be a photo's black."""
    data = samples()[name]
    half = len(data) // (4 if name == "mpo" else 2)
    assert drawn(data[:half] + bytes(len(data) - half)) == "truncated"


@pytest.mark.parametrize("name", ["jpeg plain", "png plain", "webp plain", "heic", "avif plain", "gif plain"])
def test_what_follows_a_complete_file_is_no_fault(name: str) -> None:
    """Zeros and other bytes behind the end do no harm."""
    for tail in (bytes(5000), b"trailer of a camera" * 30):
        assert np.array_equal(drawn(samples()[name] + tail), whole(name))


def test_a_run_length_coded_bitmap_without_its_last_rows_is_truncated() -> None:
    """What is missing of a packed BMP would be black, and its library says nothing."""
    rows = b"".join(bytes([64, 255 - row]) + b"\x00\x00" for row in range(48))
    palette = b"".join(bytes([grey, grey, grey, 0]) for grey in range(256))
    header = b"".join(
        number.to_bytes(size, "little")
        for number, size in (
            *((40, 4), (64, 4), (48, 4), (1, 2), (8, 2), (1, 4), (len(rows) + 2, 4), (0, 4), (0, 4), (256, 4), (0, 4)),
        )
    )
    offset = 14 + len(header) + len(palette)
    size = (offset + len(rows) + 2).to_bytes(4, "little")
    data = b"BM" + size + bytes(4) + offset.to_bytes(4, "little") + header + palette + rows + b"\x00\x01"
    picture = drawn(data)
    assert not isinstance(picture, str)
    assert picture.min() >= 200
    assert drawn(data[:-90]) == "truncated"


def test_a_cut_raw_file_is_truncated() -> None:
    """The sensor's data stand last, and the file says how many there are."""
    pytest.importorskip("rawpy", reason="the extra raw is not installed")
    data = dng(mosaic(noise(64, 48)))
    for cut in (40, 1000, len(data) // 2, len(data) - 200):
        with pytest.raises(PhotoError) as caught:
            decode(data[:cut], WANTED, name=b"photo.dng")
        assert caught.value.reason == "truncated"


@pytest.mark.parametrize("kind", ["png", "webp"])
def test_a_long_rest_that_was_never_written_is_truncated(kind: str) -> None:
    """However many zeros follow, they are no blocks of which there are too many: the file may still be completed."""
    data = samples()[f"{kind} plain"]
    at = data.index(b"IDAT") - 4 if kind == "png" else 12
    unwritten = data[:at] + bytes(4 << 20)
    if kind == "webp":
        unwritten = unwritten[:4] + (len(unwritten) - 8).to_bytes(4, "little") + unwritten[8:]
    assert drawn(unwritten) == "truncated"


@pytest.mark.parametrize("size", [600, 5000, 2 << 20])
def test_zeros_in_the_last_notes_of_a_webp_are_padding(size: int) -> None:
    """Programs leave room behind EXIF and XMP; the picture stands before them. Notes of nothing but zeros are none."""
    plain = saved(noise(160, 128), "webp", exif=oriented(1))
    for name in (b"EXIF", b"XMP "):
        notes = b"Exif\0\0II*\0\x08\0\0\0".ljust(size, b"\0")
        longer = plain + name + len(notes).to_bytes(4, "little") + notes
        padded = longer[:4] + (len(longer) - 8).to_bytes(4, "little") + longer[8:]
        assert np.array_equal(drawn(padded), drawn(plain))
        assert drawn(padded.replace(notes, bytes(size))) == "truncated"
        assert drawn(padded[:-size] + bytes(size)) == "truncated"


@pytest.mark.parametrize("kind", ["jpeg", "png", "gif", "webp", "heic"])
def test_zeros_behind_the_end_do_not_make_damage_a_missing_end(kind: str) -> None:
    """A damaged file is not told to be copied again for what stands behind its own end."""
    data = bytearray(samples()["heic"] if kind == "heic" else samples()[f"{kind} plain"])
    where = {"jpeg": b"\xff\xc0", "png": b"IHDR", "gif": b",", "webp": b"VP8 ", "heic": b"pitm"}[kind]
    at = data.index(where) + len(where)
    data[at : at + 16] = b"\xff" * 16 if kind != "jpeg" else data[at : at + 2] + b"\x09" + data[at + 3 : at + 16]
    plain = drawn(bytes(data))
    assert isinstance(plain, str)
    assert plain != "truncated"
    assert drawn(bytes(data) + bytes(5000)) == plain


def test_a_black_bitmap_with_an_odd_head_is_not_truncated() -> None:
    """Zeros are its pixels; what is refused stands in its head, which is there."""
    head = struct.pack("<IiiHHIIiiII", 40, 16, 16, 1, 8, 0, 0, 0, 0, 0xFFFFFFFF, 0)
    data = b"BM" + struct.pack("<IHHI", 2054, 0, 0, 54) + head + bytes(2000)
    assert drawn(data) == "unsupported:bmp"
    assert drawn(data[:14] + bytes(2040)) == "truncated"


def test_a_raw_file_that_is_no_tiff_is_left_to_its_decoder() -> None:
    """A CRW begins with the letters of a TIFF and is none: where a TIFF lists its directories it has other things."""
    assert not ends.ends_early("raw", b"II\x1a\x00\x00\x00HEAPCCDR" + bytes(range(256)) * 8)
