"""What a file is by its content, never by its name, and whether its end is there.

The name is heard in one case only: camera raw files that are TIFF files to look at.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, cast

from animed.errors import PhotoError
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["jpeg", "png", "webp", "tiff", "bmp", "gif", "avif"]

HEAD: Final = 4096  # bytes that are enough to tell the kind

_SUPPORTED: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
)
_UNSUPPORTED: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", "pdf"),
    (b"%!PS", "eps"),
    (b"\xc5\xd0\xd3\xc6", "eps"),
    (b"8BPS", "psd"),
    (b"\xff\x0a", "jxl"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "jxl"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "jp2"),
    (b"\xff\x4f\xff\x51", "jp2"),
    (b"FUJIFILMCCD-RAW", "raf"),
    (b"IIRO", "orf"),
    (b"IIRS", "orf"),
    (b"MMOR", "orf"),
    (b"IIU\x00", "rw2"),
    (b"II\x1a\x00\x00\x00HEAPCCDR", "crw"),
    (b"\x00MRM", "mrw"),
    (b"FOVb", "x3f"),
    (b"II\xbc\x01", "jxr"),
    (b"\x00\x00\x01\x00", "ico"),
    (b"gimp xcf", "xcf"),
    (b"v/1\x01", "exr"),
    (b"#?RADIANCE", "hdr"),
    (b"qoif", "qoi"),
    (b"DDS ", "dds"),
    (b"\x89JNG", "jng"),
    (b"\x8aMNG", "mng"),
    (b"OggS", "ogg"),
    (b"FLV\x01", "flv"),
    (b"\x00\x00\x01\xba", "mpg"),
    (b"\x00\x00\x01\xb3", "mpg"),
)
_TIFF: Final = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
_RAW_SUFFIXES: Final = frozenset(
    {b"3fr", b"arw", b"cr2", b"dcr", b"dng", b"erf", b"iiq", b"kdc", b"mef", b"mos", b"nef", b"nrw", b"pef", b"sr2"}
    | {b"srf", b"srw"}
)
_DNG_VERSION: Final = 50706  # the tag that makes a TIFF a DNG
_HEIC: Final = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_HEIF: Final = frozenset({b"mif1", b"mif2", b"msf1"})
_AVIF: Final = frozenset({b"avif", b"avis"})
_NETPBM: Final = frozenset(b"1234567")


def identify(head: bytes, name: bytes = b"") -> Kind:
    """Return the kind of a photo by its first `HEAD` bytes or more.

    Raise PhotoError: `empty`, `unsupported:KIND` for other pictures and videos, `not_an_image` for all else.
    """
    if not head:
        raise PhotoError(Reason.EMPTY, "the file has no content")
    for magic, kind in _SUPPORTED:
        if head.startswith(magic):
            return kind
    found = _riff(head) or _tiff(head, name) or _boxed(head) or _foreign(head)
    if found in {"webp", "tiff", "avif"}:
        return cast("Kind", found)
    if found:
        raise PhotoError(f"{Reason.UNSUPPORTED}:{found}", f"{found} files cannot be read")
    raise PhotoError(Reason.NOT_AN_IMAGE, "the content is of no known picture format")


def ends_early(kind: Kind, data: bytes) -> bool:
    """Say whether the file's own structure reaches beyond its last byte, or lacks the mark of its end."""
    if kind == "jpeg":
        return not _jpeg_ends(data)
    if kind == "png":
        return b"IEND" not in data
    if kind == "gif":
        return not data.rstrip(b"\x00").endswith(b";")
    return _declared_end(kind, data) > len(data)


def hollow(kind: Kind, data: bytes) -> bool:
    """Say whether a JPEG was allocated in full but not yet written to its end: zeros where the end mark should be.

    Such a file decodes without complaint to a picture that is grey in its lower part.
    """
    return kind == "jpeg" and data.endswith(bytes(512)) and not _jpeg_ends(data)


def _riff(head: bytes) -> str:
    """Tell the kinds of RIFF apart."""
    if not head.startswith(b"RIFF"):
        return ""
    return {b"WEBP": "webp", b"AVI ": "avi"}.get(head[8:12], "")


def _tiff(head: bytes, name: bytes) -> str:
    """Tell photos in TIFF from camera raw files in TIFF, whose first picture is a thumbnail."""
    if not head.startswith(_TIFF):
        return ""
    if head[8:10] == b"CR":
        return "cr2"
    suffix = name.rpartition(b".")[2].lower()
    if suffix in _RAW_SUFFIXES:
        return suffix.decode()
    return "dng" if _DNG_VERSION in _first_tags(head) else "tiff"


def _first_tags(head: bytes) -> Iterator[int]:
    """Yield the tags of the first directory of a classic TIFF, as far as the head holds them."""
    if b"+" in head[:4]:
        return  # BigTIFF counts in other widths, and no camera writes it.
    order = "<" if head.startswith(b"II") else ">"
    start = _number(order + "I", head, 4)
    for index in range(min(_number(order + "H", head, start), 512)):
        yield _number(order + "H", head, start + 2 + 12 * index)


def _boxed(head: bytes) -> str:
    """Tell the kinds of the ISO base media format (HEIF, AVIF, CR3, MP4, QuickTime) by their brands."""
    if head[4:8] != b"ftyp":
        return "mov" if head[4:8] in {b"moov", b"mdat", b"wide", b"pnot"} else ""
    major = head[8:12]
    end = min(_number(">I", head, 0), len(head))
    brands = {major, *(head[at : at + 4] for at in range(16, end, 4))}
    if major in _HEIC:
        return "heic"
    if brands & _AVIF:
        return "avif"
    if brands & (_HEIC | _HEIF):
        return "heic" if brands & _HEIC else "heif"
    return {b"crx ": "cr3", b"qt  ": "mov"}.get(major, "mp4")


def _foreign(head: bytes) -> str:
    """Name a format that animed knows of but does not read."""
    for magic, kind in _UNSUPPORTED:
        if head.startswith(magic):
            return kind
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "webm" if b"webm" in head[:64] else "mkv"
    if len(head) > 2 and head[0:1] == b"P" and head[1] in _NETPBM and head[2:3].isspace():  # noqa: PLR2004 - "P6\n"
        return "pnm"
    return "svg" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"<svg" in head else ""


def _declared_end(kind: Literal["webp", "bmp", "avif", "tiff"], data: bytes) -> int:
    """Return where a file ends by the sizes that it gives."""
    if kind == "webp":
        return _number("<I", data, 4) + 8
    if kind == "bmp":
        return _number("<I", data, 2)
    return _boxes_end(data) if kind == "avif" else _tiff_directory_end(data)


def _jpeg_ends(data: bytes) -> bool:
    """Walk the segments up to the picture's own scan, then look for its end: thumbnails have ends of their own."""
    at = 2
    while data[at : at + 1] == b"\xff":
        marker = data[at + 1 : at + 2]
        if marker == b"\xda":
            return data.find(b"\xff\xd9", at) >= 0
        # A marker may be preceded by any number of fill bytes.
        at += 1 if marker == b"\xff" else 2 + _number(">H", data, at + 2)
    return data.find(b"\xff\xd9", at) >= 0


def _boxes_end(data: bytes) -> int:
    """Return where the last top-level box ends by its own word."""
    at = 0
    while at + 8 <= len(data):
        size = _number(">I", data, at)
        if size == 1:
            size = _number(">Q", data, at + 8)
        if size < 8:  # noqa: PLR2004 - 0 means "to the end of the file", and less than a header is nonsense
            return len(data)
        at += size
    return at


def _tiff_directory_end(data: bytes) -> int:
    """Return where the first directory of a classic TIFF and the strips or tiles that it lists end."""
    if b"+" in data[:4]:
        return 0  # BigTIFF: the decoder's own word has to do.
    order = "<" if data.startswith(b"II") else ">"
    start = _number(order + "I", data, 4)
    count = _number(order + "H", data, start)
    end = start + 2 + 12 * count
    offsets: list[int] = []
    sizes: list[int] = []
    for entry in islice(range(start + 2, end, 12), 512):
        tag = _number(order + "H", data, entry)
        if tag in {273, 324}:  # StripOffsets, TileOffsets
            offsets = _numbers(order, data, entry)
        elif tag in {279, 325}:  # StripByteCounts, TileByteCounts
            sizes = _numbers(order, data, entry)
    return max([end, *(offset + size for offset, size in zip(offsets, sizes, strict=False))])


def _numbers(order: str, data: bytes, entry: int) -> list[int]:
    """Return the values of a SHORT or LONG directory entry."""
    kind, width = ("H", 2) if _number(order + "H", data, entry + 2) == 3 else ("I", 4)  # noqa: PLR2004 - SHORT
    count = min(_number(order + "I", data, entry + 4), len(data) // width)
    at = entry + 8 if count * width <= 4 else _number(order + "I", data, entry + 8)  # noqa: PLR2004 - fits in place
    return [_number(order + kind, data, at + width * index) for index in range(count)]


def _number(layout: str, data: bytes, at: int) -> int:
    """Read a number; 0 where the data end before it, so that a walk through broken data just comes to its end."""
    size = struct.calcsize(layout)
    if at < 0 or at + size > len(data):
        return 0
    return int(struct.unpack_from(layout, data, at)[0])
