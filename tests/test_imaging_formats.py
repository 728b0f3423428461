"""Photos as programs, phones and scanners write them: each sort of each format comes out right."""

from __future__ import annotations

import io
import struct
from typing import Any, Literal

import numpy as np
import pillow_heif
import pytest
from photo_files import decoded, heic, noise, oriented, saved, scene, turned
from picture_writers import Tiff, box, long, png, segment, short, tiff
from PIL import Image

from animed.errors import PhotoError
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted
from animed.records import Skip


def outcome(data: bytes, animated: Literal["first", "skip"] = "first") -> str:
    try:
        result = decode(data, Wanted(max_pixels=10**8, max_edge=512, animated=animated))
    except PhotoError as error:
        return error.reason
    return "skipped" if isinstance(result, Skip) else "done"


def differs(result: Decoded, expected: Image.Image) -> float:
    assert result.pixels.shape[:2] == expected.size[::-1]
    return float(np.abs(result.pixels.astype(int) - np.asarray(expected.convert("RGB")).astype(int)).mean())


MARK = b"\x01\x12\x00\x03\x00\x00\x00\x01\x00%c"  # the orientation in EXIF


# ---- HEIC ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(1, 9))
def test_the_boxes_of_a_heic_turn_it_and_not_its_exif(turn: int) -> None:
    """A phone writes the orientation twice, as boxes and as EXIF: one counts, so EXIF alone turns nothing."""
    upright = scene()
    assert differs(decoded(heic(turned(upright, turn), exif=oriented(turn))), upright) < 8
    marked = heic(upright, exif=oriented(1)).replace(b"\x01\x12\x00\x03\x00\x00\x00\x01\x00\x01", MARK % turn)
    assert MARK % turn in marked
    assert differs(decoded(marked), upright) < 8


def test_a_heic_of_many_tiles_is_one_picture() -> None:
    """Phones store a photo as a grid of small ones; the seams do not show, and the last tiles are cut to size."""
    assert differs(decoded(heic(scene(700, 520), tile_size=256), max_edge=700), scene(700, 520)) < 3


def test_the_primary_picture_of_a_heic_is_drawn() -> None:
    """A file of several pictures says which one it shows; that need not be the first, and is no animation."""
    data = heic(noise(64, 64), scene(), primary_index=1)
    assert differs(decoded(data), scene()) < 8
    assert outcome(data, "skip") == "done"


@pytest.mark.parametrize("bits", [10, 12])
def test_deep_heic_is_scaled_not_clipped(bits: int) -> None:
    """The middle of 10 or 12 bits is the middle of 8, in colour and in grey."""
    pillow_heif.options.SAVE_HDR_TO_12_BIT = bits == 12
    for mode, shape in (("RGB;16", (32, 32, 3)), ("I;16", (32, 32))):
        target = io.BytesIO()
        middle = np.full(shape, 32768, np.uint16)
        pillow_heif.encode(mode, (32, 32), middle.tobytes(), target, quality=95)
        assert abs(float(decoded(target.getvalue()).pixels.mean()) - 128) < 2
    pillow_heif.options.SAVE_HDR_TO_12_BIT = False


def test_a_heic_keeps_its_words() -> None:
    """EXIF of a HEIC reaches the picture."""
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    assert b"Maker" in decoded(heic(scene(), exif=exif.tobytes())).notes.exif


def test_a_moving_heif_is_an_animation() -> None:
    """A sequence is skipped where animations are; of one with a still picture that is drawn otherwise."""
    data = heic(scene()) + box(b"moov", box(b"mvhd", bytes(100)))
    assert outcome(data, "skip") == "skipped"
    assert differs(decoded(data), scene()) < 8
    assert outcome(heic(scene()).replace(b"ftypheic", b"ftyphevc"), "skip") == "skipped"


def test_what_phones_append_to_a_heic_is_no_fault() -> None:
    """Trailers that are no boxes, and the film of a moving photo, stand behind the picture."""
    assert outcome(heic(scene()) + b"\x00\x00\x10\x00SEFT" + bytes(200)) == "done"
    film = box(b"ftyp", b"mp42") + box(b"mdat", bytes(5000))
    assert outcome(heic(scene()) + box(b"mpvd", film)) == "done"
    assert outcome(heic(scene()) + film) == "done"


def test_a_heif_of_a_codec_that_is_not_there_is_unsupported() -> None:
    """A sound file that cannot be read says so; it is neither damaged nor cut."""
    assert outcome(heic(scene()).replace(b"hvc1", b"vvc1").replace(b"hvcC", b"vvcC")) == "unsupported:heic"


def test_avif_is_turned_by_its_boxes_only() -> None:
    """XMP that repeats the orientation of an AVIF does not turn it."""
    words = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    assert differs(decoded(saved(scene(), "avif", xmp=words)), scene()) < 8


# ---- JPEG ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("L", {}),
        ("RGB", {"progressive": True}),
        ("RGB", {"subsampling": "4:1:1"}),
        ("RGB", {"keep_rgb": True}),
        ("CMYK", {}),
        ("CMYK", {"progressive": True}),
    ],
)
def test_jpeg_of_every_sort(mode: str, options: dict[str, Any]) -> None:
    """Grey, progressive, four colours, plain RGB: the picture is the one that went in."""
    image = scene().convert(mode)
    assert differs(decoded(saved(image, "jpeg", quality=95, **options)), image) < 8


def test_garbage_behind_a_jpeg_is_no_fault() -> None:
    """Trailers of cameras, the film of a motion photo, zeros of a copy program: the picture is complete before them."""
    data = saved(scene(), "jpeg")
    for tail in (b"\x00" * 4096, b"SEFH" + bytes(range(256)), box(b"ftyp", b"mp42") + box(b"mdat", bytes(9000)), data):
        assert np.array_equal(decoded(data + tail).pixels, decoded(data).pixels)


def test_an_mpo_is_its_first_picture_whatever_its_index_says() -> None:
    """Views and gain maps behind the first picture are left alone, a damaged index of them too; it is no animation."""
    data = saved(scene(), "MPO", save_all=True, append_images=[noise(80, 60)])
    assert outcome(data, "skip") == "done"
    assert differs(decoded(data), scene()) < 8
    at = data.index(b"MPF\x00")
    assert differs(decoded(data[:at] + b"MPF\x00" + b"\xff" * 40 + data[at + 44 :]), scene()) < 8


def test_a_jpeg_of_twelve_bits_is_unsupported() -> None:
    """A sort of JPEG that is not read is named, not called damaged."""
    data = bytearray(saved(scene(), "jpeg"))
    data[data.index(b"\xff\xc0") + 4] = 12
    assert outcome(bytes(data)) == "unsupported:jpeg"


def test_a_jpeg_whose_exif_is_in_many_pieces_opens() -> None:
    """EXIF of more than one segment is read or left out; the photo is drawn."""
    data = saved(scene(), "jpeg")
    piece = segment(0xE1, b"Exif\x00\x00" + oriented(1)[6:] + bytes(9000))
    assert outcome(data[:2] + piece * 3 + data[2:]) == "done"


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (2000, 100), (3, 65_000)])
def test_full_size_is_the_size_of_the_file(size: tuple[int, int]) -> None:
    """A picture that is to have its photo's size gets all its pixels, however small or long it is."""
    result = decoded(saved(scene(*size), "jpeg"), max_edge=64, full=True)
    assert result.photo.shape == (size[1], size[0], 3)
    assert (result.width, result.height) == size
    assert max(result.pixels.shape) <= 64


# ---- PNG -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("depth", [8, 16])
def test_png_of_every_depth(colour: int, channels: int, depth: int) -> None:
    """Grey, RGB, with and without alpha, of 8 and 16 bits: the middle is the middle."""
    values = np.full((8, 8, channels), 1 << (depth - 1), np.uint16 if depth == 16 else np.uint8)
    if channels in {2, 4}:
        values[..., -1] = (1 << depth) - 1
    assert abs(float(decoded(png(values, colour, depth)).pixels.mean()) - 128) <= 1


# ---- TIFF ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        *({"compression": name} for name in ("tiff_lzw", "tiff_deflate", "packbits", "jpeg", "tiff_adobe_deflate")),
        {"big_tiff": True},
        {"compression": "tiff_lzw", "tiffinfo": {317: 2}},
    ],
)
def test_tiff_of_every_packing(options: dict[str, Any]) -> None:
    """However a TIFF is packed, the picture is the one that went in."""
    assert differs(decoded(saved(scene(), "tiff", **options)), scene()) < 8


def test_a_fax_is_read() -> None:
    """Black and white of Group 4."""
    assert differs(decoded(saved(scene().convert("1"), "tiff", compression="group4")), scene().convert("1")) < 1


@pytest.mark.parametrize("mark", [{254: long(1)}, {254: long(4)}, {255: short(2)}])
def test_a_tiff_whose_first_page_is_a_thumbnail_is_its_photo(mark: dict[int, tuple[int, bytes, int]]) -> None:
    """A page that says that it is reduced, or a mask, is passed over; where all are, the first is drawn."""
    small = Tiff(2, tags=mark), np.asarray(noise(16, 12))
    large = Tiff(2), np.asarray(scene())
    assert differs(decoded(tiff(small, large)), scene()) < 1
    assert differs(decoded(tiff(small, small)), noise(16, 12)) < 1
    assert outcome(tiff(small, large), "skip") == "done"


def test_a_deep_tiff_is_scaled_not_clipped() -> None:
    """16 bits of three channels become 8."""
    assert decoded(Tiff(2, bits=16).write(np.full((8, 16, 3), 32768))).pixels.mean() == 128


def test_a_tiff_packed_in_a_way_that_is_not_there_is_unsupported() -> None:
    """A packing that the library was built without is named."""
    assert outcome(Tiff(2, tags={259: short(50001)}).write(np.asarray(scene()))) == "unsupported:tiff"


# ---- What libraries say ----------------------------------------------------------------------------------------------


def test_warnings_of_libraries_are_printed_and_never_raised(recwarn: pytest.WarningsRecorder) -> None:
    """Python's warnings are errors in this run, and yet an odd file is drawn; what was said is not swallowed."""
    exif = b"Exif\x00\x00II*\x00\x08\x00\x00\x00" + struct.pack("<H", 9) + struct.pack("<HHII", 0x010F, 2, 99, 70000)
    assert outcome(saved(scene(), "jpeg", exif=exif)) == "done"
    assert [str(warning.message) for warning in recwarn]


def test_what_a_c_library_prints_does_not_stop_the_photo(capfd: pytest.CaptureFixture[str]) -> None:
    """Libtiff writes to the process's stderr, which a worker's pipe takes into the log; nothing is on stdout."""
    data = bytearray(saved(scene().convert("1"), "tiff", compression="group4"))
    data[8:40] = b"\x55" * 32
    assert outcome(bytes(data)) in {"done", "not_an_image"}
    assert not capfd.readouterr().out
