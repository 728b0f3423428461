"""What a picture is called: pure text work, no look at any disk.

A name is a sequence of candidates; whoever places the picture takes the first one that is free. Names are bytes,
because a photo's name need not be UTF-8, and no component exceeds the 255 bytes that common file systems allow.
"""

from __future__ import annotations

import hashlib
import os
import string
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

Layout = Literal["mirror", "flat"]

COMPONENT_BYTES: Final = 255
_DIGEST_DIGITS: Final = 10
_LEAST_STEM: Final = 1 + 1 + _DIGEST_DIGITS  # one byte of the stem, the mark, the digest
_LONGEST_EXTENSION: Final = 32  # what follows the last dot of a longer "extension" is part of the name


@dataclass(frozen=True, slots=True)
class _Template:
    """An output name, taken apart: bytes around the stem; `at` is where the counter goes, as a part's index."""

    parts: tuple[bytes | None, ...]  # None stands for the stem
    at: int  # the counter goes before parts[at]


def split(path: bytes) -> list[bytes]:
    """Take a relative path apart. ValueError for what is not a plain path below a root."""
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} or b"\0" in part for part in parts):
        raise ValueError(f"not a plain relative path: {path!r}")
    return parts


def candidates(path: bytes, *, template: str, style: str, ext: str, layout: Layout) -> Iterator[bytes]:
    """Yield output paths for a photo, best first: `a.cel.jpg`, `a.cel-2.jpg`, `a.cel-3.jpg` … without end.

    `ext` is the picture's extension with its dot. `template` may hold {stem}, {style} and {ext}; the counter goes
    before {ext}, or to the end where there is none. Raises ConfigError when the template cannot make a name.
    """
    *folders, name = split(path)
    stem = os.path.splitext(name)[0]
    plan = _plan(template, style, ext)
    above = folders if layout == "mirror" else []
    for counter in count(1):
        yield b"/".join([*above, _render(plan, stem, counter)])


def first_free(names: Iterator[bytes], taken: Container[bytes]) -> bytes:
    """Return the first candidate that is not taken."""
    return next(name for name in names if name not in taken)


def numbered(name: bytes, counter: int, *, room: int = COMPONENT_BYTES) -> bytes:
    """Return a file's own name with a counter before its extension: `a.jpg`, `a-2.jpg`, `a-3.jpg` (in `room` bytes)."""
    stem, ext = os.path.splitext(name)
    if len(ext) > _LONGEST_EXTENSION:
        stem, ext = name, b""
    tail = _counter(counter) + ext
    return _fit(stem, room - len(tail)) + tail


def _plan(template: str, style: str, ext: str) -> _Template:
    fields = {"style": os.fsencode(style), "ext": os.fsencode(ext), "stem": None}
    parts: list[bytes | None] = []
    at: int | None = None
    for literal, field, spec, conversion in _fields(template):
        parts.append(os.fsencode(literal))
        if field is None:
            continue
        if field not in fields or spec or conversion:
            raise _unusable(template, "only {stem}, {style} and {ext} may stand in it")
        at = len(parts) if field == "ext" else at
        parts.append(fields[field])
    if any(part is not None and (b"/" in part or b"\0" in part) for part in parts):
        raise _unusable(template, "a name holds no slash; sub-folders come from `layout`")
    if not any(part is None or part for part in parts):
        raise _unusable(template, "it makes an empty name")
    return _Template(tuple(parts), len(parts) if at is None else at)


def _fields(template: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(template))
    except ValueError as error:
        raise _unusable(template, str(error)) from error


def _unusable(template: str, why: str) -> ConfigError:
    return ConfigError(f"output_name {template!r} cannot be used: {why}", remedy='try "{stem}.{style}{ext}"')


def _render(plan: _Template, stem: bytes, counter: int) -> bytes:
    parts = [*plan.parts[: plan.at], _counter(counter), *plan.parts[plan.at :]]
    # A leading dot would hide the picture, so one byte is kept for the mark that goes before it.
    fixed = sum(len(part) for part in parts if part is not None) + 1
    stems = parts.count(None)
    room = (COMPONENT_BYTES - fixed) // max(stems, 1)
    if room < (_LEAST_STEM if stems else 0):
        raise ConfigError("output_name leaves no room for the name of the photo", remedy="shorten output_name")
    short = _fit(stem, room)
    name = b"".join(short if part is None else part for part in parts)
    return b"_" + name if name.startswith(b".") else name


def _counter(counter: int) -> bytes:
    return b"" if counter == 1 else b"-%d" % counter


def _fit(stem: bytes, room: int) -> bytes:
    """Cut a stem to `room` bytes at a character's boundary; a digest of the whole keeps cut names apart."""
    if len(stem) <= room:
        return stem
    mark = b"~" + hashlib.sha256(stem).hexdigest()[:_DIGEST_DIGITS].encode()
    cut = room - len(mark)
    # Bytes 10xxxxxx continue a UTF-8 character: at most three of them can stand before its first byte.
    back = next((step for step in range(4) if stem[cut - step] & 0xC0 != 0x80), 0)  # noqa: PLR2004 - the UTF-8 masks.
    return stem[: max(cut - back, 1)] + mark
