"""What a file is by its content, never by its name.

The name is heard in one case only: camera raw files that are TIFF files to look at.
"""

from __future__ import annotations

from typing import Final, Literal, cast

from animed.errors import PhotoError
from animed.imaging import ifd
from animed.imaging.blocks import number
from animed.records import Reason

# `heic` is every HEIF but AVIF, whatever its codec; `raw` is what cameras write without developing it.
Kind = Literal["jpeg", "png", "webp", "tiff", "bmp", "gif", "avif", "heic", "raw"]

HEAD: Final = 4096  # bytes that are enough to tell the kind

_SUPPORTED: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
)
_RAW: Final[tuple[tuple[bytes, str], ...]] = (
    (b"FUJIFILMCCD-RAW", "raf"),
    (b"IIRO", "orf"),
    (b"IIRS", "orf"),
    (b"MMOR", "orf"),
    (b"IIU\x00", "rw2"),
    (b"II\x1a\x00\x00\x00HEAPCCDR", "crw"),
    (b"\x00MRM", "mrw"),
    (b"FOVb", "x3f"),
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
    (b"II\xbc\x01", "jxr"),
    (b"\x00\x00\x01\x00", "ico"),
    (b"gimp xcf", "xcf"),
    (b"v/1\x01", "exr"),
    (b"#?RADIANCE", "hdr"),
    (b"qoif", "qoi"),
    (b"DDS ", "dds"),
    (b"\x8bJNG", "jng"),
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
    if camera(head, name):
        return "raw"
    found = _riff(head) or ("tiff" if head.startswith(_TIFF) else "") or _boxed(head) or _foreign(head)
    if found in {"webp", "tiff", "avif", "heic"}:
        return cast("Kind", found)
    if found:
        raise PhotoError(f"{Reason.UNSUPPORTED}:{found}", f"{found} files cannot be read")
    raise PhotoError(Reason.NOT_AN_IMAGE, "the content is of no known picture format")


def _riff(head: bytes) -> str:
    """Tell the kinds of RIFF apart."""
    if not head.startswith(b"RIFF"):
        return ""
    return {b"WEBP": "webp", b"AVI ": "avi"}.get(head[8:12], "")


def camera(head: bytes, name: bytes = b"") -> str:
    """Return which camera's raw format a file is ("dng", "cr2", …); empty for other files.

    Many are TIFF files to look at, whose first picture is a thumbnail: these are told by a tag or by their name.
    """
    for magic, kind in _RAW:
        if head.startswith(magic):
            return kind
    if head[4:12] == b"ftypcrx ":
        return "cr3"
    if not head.startswith(_TIFF):
        return ""
    if head[8:10] == b"CR":
        return "cr2"
    suffix = name.rpartition(b".")[2].lower()
    if suffix in _RAW_SUFFIXES:
        return suffix.decode()
    tags = (slot.tag for slot in ifd.slots(head, ifd.first(head)))  # as far as the head holds them
    return "dng" if _DNG_VERSION in tags else ""


def _boxed(head: bytes) -> str:
    """Tell the kinds of the ISO base media format (HEIF, AVIF, CR3, MP4, QuickTime) by their brands."""
    if head[4:8] != b"ftyp":
        return "mov" if head[4:8] in {b"moov", b"mdat", b"wide", b"pnot"} else ""
    major = head[8:12]
    end = min(number(">I", head, 0), len(head), HEAD)
    brands = {major, *(head[at : at + 4] for at in range(16, end, 4))}
    if major in _HEIC:
        return "heic"
    if brands & _AVIF:
        return "avif"
    if brands & (_HEIC | _HEIF):
        return "heic"
    return {b"qt  ": "mov"}.get(major, "mp4")


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
