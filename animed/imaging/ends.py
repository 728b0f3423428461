"""Whether the end of a file is there: a photo that is still on its way must not be drawn with its lower part grey.

Each question is answered in a bounded number of steps. Raise PhotoError("too_large") where a file asks for more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from animed.imaging import blocks, extents
from animed.imaging.blocks import number
from animed.imaging.sniff import camera

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from animed.imaging.sniff import Kind

# What stands at the top of a HEIF, AVIF or CR3 file. Phones append things of their own behind the last box.
_BOXES: Final = frozenset(
    {
        b"ftyp",
        b"meta",
        b"mdat",
        b"moov",
        b"moof",
        b"free",
        b"skip",
        b"wide",
        b"uuid",
        b"mpvd",
        b"styp",
        b"sidx",
        b"mfra",
    }
)
_RLE: Final = frozenset({1, 2})  # the compressions of a BMP that end with a mark
_RUNS: Final = re.compile(rb"(?s:[^\0].)*")  # each of a length and a colour; what begins with 0 is no run
_ESCAPES: Final = 1 << 21  # of a BMP that are walked over: ends of rows, steps, and pixels without runs
ZEROS: Final = 512  # bytes; no compressed picture ends with so many
_PADDING: Final = 4608  # what programs leave free behind EXIF, which may be the last thing in a HEIF, and more
_NOTES: Final = frozenset({b"EXIF", b"XMP "})  # what comes last in a WebP
_FRAMES: Final = 1000  # of a GIF that are walked over
_JPEG_IN_TIFF: Final = frozenset({6, 7})


def ends_early(kind: Kind, data: bytes) -> bool:
    """Say whether the file's own structure reaches beyond its last byte, or lacks the mark of its end."""
    return not _COMPLETE[kind](data)


def must_end(kind: Kind) -> bool:
    """Say whether a file of this kind is drawn only if `ends_early` says no.

    Sizes in TIFF and BMP files are often wrong; there the decoder's word that data are missing has to come first.
    """
    return kind not in {"tiff", "bmp"}


def hollow(kind: Kind, data: bytes) -> bool:
    """Say whether a file was allocated in full but not yet written to its end: zeros where its last data should be.

    Such a file may decode without complaint to a picture that is grey in its lower part. Where pictures are not
    compressed, zeros are a photo's black.
    """
    if kind == "jpeg":
        return data.endswith(bytes(ZEROS)) and ends_early(kind, data)
    end, zeros = _data_end(kind, data)
    return end > zeros and data[end - zeros : end] == bytes(zeros)


def unwritten(kind: Kind, data: bytes) -> bool:
    """Say whether zeros may be why a decoder gives up.

    Where a format tells its own end, those behind it are no matter; the pixels of a BMP may be zeros, but not its head.
    """
    if kind == "bmp":
        return number("<I", data, 14) == 0
    return data.endswith(bytes(ZEROS)) if kind in {"tiff", "raw"} else hollow(kind, data)


def _data_end(kind: Kind, data: bytes) -> tuple[int, int]:
    """Return where the compressed data of a picture end, and how many zeros there are too many; 0 for never."""
    if kind == "webp":
        return _webp_data_end(data), ZEROS
    if kind in {"heic", "avif"}:
        return min(len(data), _box_ends(data).get(b"mdat", 0)), _PADDING if b"Exif" in data[:65536] else ZEROS
    if kind == "tiff":
        directory = extents.first(data)
        return (directory.strips_end, ZEROS) if directory.compression in _JPEG_IN_TIFF else (0, 0)
    return 0, 0


def _webp_data_end(data: bytes) -> int:
    """Return how far a WebP must be more than zeros: to its end, or into its last notes, which may be padded."""
    end = min(len(data), number("<I", data, 4) + 8)
    last = blocks.Block(b"", 0, 0)
    for last in blocks.riff_chunks(data):  # noqa: B007 - the last one is what the walk is for
        pass
    whole = last.name in _NOTES and last.end >= end - 1
    return min(end, last.start + 8 + ZEROS) if whole else end


def unfinished_runs(data: bytes) -> bool:
    """Say whether a run-length coded BMP stops before its last row; what is missing would be black."""
    if number("<I", data, 14) < 40 or number("<I", data, 30) not in _RLE:  # noqa: PLR2004 - header size
        return False
    return not _runs_end(data)


def _jpeg_ends(data: bytes) -> bool:
    """Walk segments and scans to the end mark; thumbnails inside of segments have ends of their own."""
    return any(block.name == blocks.END for block in blocks.jpeg_segments(data))


def _png_ends(data: bytes) -> bool:
    return any(block.name == b"IEND" for block in blocks.png_chunks(data))


def _gif_ends(data: bytes) -> bool:
    """Walk the blocks to the trailer, or to what is no block and follows a picture; of long films, the first part."""
    pictures = 0
    for block in blocks.gif_blocks(data):
        if pictures > _FRAMES:
            return data.rstrip(b"\x00").endswith(b";")
        if block.name == blocks.TRAILER:
            return True
        if block.name == blocks.JUNK:
            return pictures > 0
        pictures += block.name == blocks.PICTURE
    return False


def _webp_ends(data: bytes) -> bool:
    """Hold the container's size against the file; a missing byte of padding at the end is common, and no loss."""
    missing = number("<I", data, 4) + 8 - len(data)
    return missing <= 0 or (missing == 1 and _odd_at_end(data))


def _odd_at_end(data: bytes) -> bool:
    """Say whether the last chunk of a WebP ends with the file, and would have had a byte of padding."""
    return any(block.end == len(data) and block.size % 2 for block in blocks.riff_chunks(data))


def _boxed_ends(data: bytes) -> bool:
    """Walk the boxes that stand at the top; what describes pictures and what holds them must both be there."""
    ends = _box_ends(data)
    return all(end <= len(data) for end in ends.values()) and (b"mdat" in ends or (b"meta" in ends and b"idat" in data))


def _box_ends(data: bytes) -> dict[bytes, int]:
    """Return where the known boxes at the top end by their own word; of several of a name, the first.

    The first of another name is of no format's making, or of a later one's: the walk ends there.
    """
    met = dict[bytes, int]()
    for block in blocks.boxes(data):
        if block.name not in _BOXES:
            break
        met.setdefault(block.name, block.end)
    return met


def _bmp_ends(data: bytes) -> bool:
    return number("<I", data, 2) <= len(data) and not unfinished_runs(data)


def _runs_end(data: bytes) -> bool:
    """Walk the runs of an RLE8 or RLE4 bitmap to its end mark, or to the end of its last row."""
    at, rows = number("<I", data, 10), abs(number("<i", data, 22))
    half = number("<I", data, 30) == 2  # noqa: PLR2004 - RLE4
    for _ in range(_ESCAPES):
        at = found.end() if (found := _RUNS.match(data, at)) else at
        if rows <= 0 or at + 2 > len(data):
            return rows <= 0
        code = data[at + 1]
        at += 2
        if code == 1:
            return True
        if code == 0:
            rows -= 1
        elif code == 2:  # noqa: PLR2004 - a step to the right and up
            rows -= number("B", data, at + 1)
            at += 2
        else:
            size = (code + 1) // 2 if half else code
            at += size + size % 2
    raise blocks.too_many(f"{_ESCAPES} marks between the runs of a bitmap")


def _tiff_ends(data: bytes) -> bool:
    directory = extents.first(data)
    return max(directory.reach, directory.values_end) <= len(data)


def _raw_ends(data: bytes) -> bool:
    """Look at all that the file lists: the sensor's data stand behind thumbnails and previews."""
    form = camera(data)
    if form == "cr3":
        return _boxed_ends(data)
    if form == "raf":
        areas = ((number(">I", data, at), number(">I", data, at + 4)) for at in (84, 92, 100))
        return all(offset + size <= len(data) for offset, size in areas)
    if form == "crw" or data[:2] not in {b"II", b"MM"}:
        return True  # no structure that is known here: the decoder's word has to do
    return all(directory.reach <= len(data) for directory in extents.all_of(data))


_COMPLETE: Final[Mapping[Kind, Callable[[bytes], bool]]] = {
    "jpeg": _jpeg_ends,
    "png": _png_ends,
    "webp": _webp_ends,
    "tiff": _tiff_ends,
    "bmp": _bmp_ends,
    "gif": _gif_ends,
    "avif": _boxed_ends,
    "heic": _boxed_ends,
    "raw": _raw_ends,
}
