"""IPTC-IIM, the titles and keywords that agencies and older programs write: read out of a photo, written into a JPEG.

Datasets are 0x1C, record, number, length, value. Only whole ones are carried over, and of those none that hold a
preview or sound. In a JPEG they lie in an APP13 segment, as a resource of Photoshop's.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from animed.imaging import blocks, taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.imaging.taken import Moment

MAX_READ: Final = 2**20  # bytes that are looked at
MAX_WRITTEN: Final = 60_000  # bytes: what fits into one JPEG segment, with room for its head

TITLE: Final = 5
KEYWORDS: Final = 25
DATE: Final = 55
TIME: Final = 60
CREATOR: Final = 80
CITY: Final = 90
STATE: Final = 95
COUNTRY: Final = 101
HEADLINE: Final = 105
CREDIT: Final = 110
SOURCE: Final = 115
COPYRIGHT: Final = 116
CAPTION: Final = 120

_MARK: Final = 0x1C
_CHARSET: Final = (1, 90)
_UTF8: Final = b"\x1b%G"
_APPLICATION: Final = 2  # the record that describes the photo
# Content location code and name, city, sub-location, province, country code and name.
_PLACE: Final = frozenset({26, 27, CITY, 92, STATE, 100, COUNTRY})
# ObjectDataPreview and what sound and raster captions are made of; digests and identifiers of the photo's file.
_NOT_KEPT: Final = frozenset({125, 150, 151, 152, 153, 154, 187, 188, 200, 201, 202})
_RESOURCE: Final = b"8BIM\x04\x04\0\0"
RESOURCE_NUMBER: Final = 0x0404  # IPTC-NAA, among the resources of Photoshop
_RESOURCES: Final = 1000
_PHOTOSHOP: Final = b"Photoshop 3.0\0"
_APPLICATION_SEGMENTS: Final = range(0xE0, 0xF0)


class DataSet(NamedTuple):
    """One value of an IIM block."""

    record: int
    number: int
    value: bytes


def read(block: bytes) -> bytes:
    """Return the datasets of an IIM block that describe the photo, as a block; empty where there are none."""
    kept = [each for each in _datasets(block[:MAX_READ]) if (each.record, each.number) == _CHARSET or _describes(each)]
    return _written(kept) if any(each.record == _APPLICATION for each in kept) else b""


def without_place(block: bytes) -> bytes:
    """Return a block without its datasets that name places."""
    return _written([each for each in _datasets(block) if each.record != _APPLICATION or each.number not in _PLACE])


def texts(block: bytes) -> dict[int, list[str]]:
    """Return the texts of a block by the number of their dataset."""
    sets = list(_datasets(block))
    utf8 = any((each.record, each.number) == _CHARSET and each.value == _UTF8 for each in sets)
    found: dict[int, list[str]] = {}
    for each in sets:
        if each.record == _APPLICATION and (text := _text(each.value, utf8=utf8)):
            found.setdefault(each.number, []).append(text)
    return found


def moment(block: bytes) -> Moment | None:
    """Return when the photo was taken, by a block."""
    found = texts(block)
    return taken.parse_iptc(found.get(DATE, [""])[0], found.get(TIME, [""])[0])


def embedded(jpeg: bytes, block: bytes) -> bytes:
    """Return a JPEG with a block in it, behind the application segments that it has."""
    if not block:
        return jpeg
    padded = block + bytes(len(block) % 2)
    body = _PHOTOSHOP + _RESOURCE + struct.pack(">I", len(block)) + padded
    segment = b"\xff\xed" + struct.pack(">H", 2 + len(body)) + body
    at = next(block.start for block in blocks.jpeg_segments(jpeg) if block.name[0] not in _APPLICATION_SEGMENTS)
    return jpeg[:at] + segment + jpeg[at:]


def resource(data: bytes) -> bytes:
    """Return the IIM block out of Photoshop's resources, as a TIFF holds them; empty where there is none.

    It is looked for among the first 1000: Photoshop has fewer numbers for them.
    """
    at = 0
    for _ in range(_RESOURCES):
        if data[at : at + 4] != b"8BIM" or at + 12 > len(data):
            break
        number, name = struct.unpack_from(">HB", data, at + 4)
        start = at + 7 + name + (1 - name % 2)
        if start + 4 > len(data):
            break
        size = int(struct.unpack_from(">I", data, start)[0])
        if number == RESOURCE_NUMBER:
            return data[start + 4 : start + 4 + size]
        at = start + 4 + size + size % 2
    return b""


def unswapped(block: bytes) -> bytes:
    """Return an IIM block whose bytes programs may have turned around in fours, because they took them for numbers."""
    if block[:1] == bytes([_MARK]) or block[3:4] != bytes([_MARK]):
        return block
    return b"".join(block[at : at + 4][::-1] for at in range(0, len(block), 4))


def _datasets(block: bytes) -> Iterator[DataSet]:
    """Yield the datasets of a block up to the first that is no whole one."""
    at = 0
    while at + 5 <= len(block) and block[at] == _MARK:
        record, number, size = struct.unpack_from(">BBH", block, at + 1)
        # A size beyond 32767 announces a longer length field: nothing that describes a photo is so long.
        if size > 0x7FFF or at + 5 + size > len(block):  # noqa: PLR2004 - see above
            return
        yield DataSet(record, number, block[at + 5 : at + 5 + size])
        at += 5 + size


def _written(sets: list[DataSet]) -> bytes:
    """Write datasets, as many as fit, the shortest first where not all do; their order stays."""
    room = MAX_WRITTEN
    fitting = set()
    for index in sorted(range(len(sets)), key=lambda each: len(sets[each].value)):
        room -= 5 + len(sets[index].value)
        if room < 0:
            break
        fitting.add(index)
    return b"".join(
        struct.pack(">BBBH", _MARK, each.record, each.number, len(each.value)) + each.value
        for index, each in enumerate(sets)
        if index in fitting
    )


def _describes(each: DataSet) -> bool:
    """Say whether a dataset describes the photo."""
    return each.record == _APPLICATION and each.number not in _NOT_KEPT


def _text(value: bytes, *, utf8: bool) -> str:
    """Return the characters of a value; without a word about the charset it is UTF-8 if it can be."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("utf-8" if utf8 else "latin-1", "replace")
    return text.strip("\0 \r\n")
