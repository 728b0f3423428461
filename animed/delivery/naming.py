"""What a picture is called: pure text work, no look at any disk.

A name is a sequence of candidates; whoever places the picture takes the first one that is free. Names are bytes,
because a photo's name need not be UTF-8, and are kept as they are wherever the file system of the output can take
them (`portable.NameRules`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from animed.delivery.moment import EPOCH
from animed.delivery.portable import COMPONENT_BYTES, PLAIN, NameRules, shortened
from animed.template import DATE_FIELDS, Part, Template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

Layout = Literal["mirror", "flat", "date"]

_LONGEST_EXTENSION: Final = 32  # what follows the last dot of a longer "extension" is part of the name
_BETWEEN: Final = b"_"  # what becomes of the slashes of a folder in a name


@dataclass(frozen=True, slots=True)
class Subject:
    """What names are made of: a photo, and the picture that there is of it."""

    path: bytes  # of the photo, below its inbox
    style: str
    ext: str  # of the picture, with its dot
    inbox: str = ""
    when: datetime = EPOCH  # the photo was taken, by the clock on the wall


def split(path: bytes) -> list[bytes]:
    """Take a relative path apart. ValueError for what is not a plain path below a root."""
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} or b"\0" in part for part in parts):
        raise ValueError(f"not a plain relative path: {path!r}")
    return parts


def candidates(subject: Subject, *, template: str, layout: Layout, rules: NameRules = PLAIN) -> Iterator[bytes]:
    """Yield output paths for a photo, best first: `a.cel.jpg`, `a.cel-2.jpg`, `a.cel-3.jpg` … without end.

    The counter is empty for the first, then "-2", "-3" …; it stands where the template has {counter}, else before the
    last {ext}, or at the end where there is none. Raises TemplateError.
    """
    *folders, name = split(subject.path)
    plan = Template.parse(template)
    values = {
        "stem": os.path.splitext(name)[0],
        "folder": _BETWEEN.join(folders),
        "style": os.fsencode(subject.style),
        "inbox": os.fsencode(subject.inbox),
        "ext": os.fsencode(subject.ext),
        **_dates(subject.when),
    }
    above = [rules.fit(folder) for folder in _folders(layout, folders, subject.when)]
    for counter in count(1):
        yield b"/".join([*above, _render(plan, values | {"counter": _counter(counter)}, rules)])


def numbered(name: bytes, counter: int, *, room: int = COMPONENT_BYTES) -> bytes:
    """Return a file's own name with a counter before its extension: `a.jpg`, `a-2.jpg`, `a-3.jpg` (in `room` bytes)."""
    stem, ext = os.path.splitext(name)
    if len(ext) > _LONGEST_EXTENSION:
        stem, ext = name, b""
    tail = _counter(counter) + ext
    return shortened(stem, room - len(tail)) + tail


def _folders(layout: Layout, folders: Sequence[bytes], when: datetime) -> Sequence[bytes]:
    """Return the folders of a picture: the photo's own, none, or the year and the month when it was taken."""
    if layout == "date":
        return [b"%04d" % when.year, b"%02d" % when.month]
    return folders if layout == "mirror" else []


def _dates(when: datetime) -> dict[str, bytes]:
    """Return the fields of a date: the year has four digits, the others two."""
    return {field: b"%0*d" % (4 if field == "year" else 2, getattr(when, field)) for field in DATE_FIELDS}


def _render(plan: Template, values: Mapping[str, bytes], rules: NameRules) -> bytes:
    # A leading dot would hide the picture, and some names are those of devices: one byte is kept for what goes before.
    texts = _fitted([_text(part, values) for part in plan.parts], plan.parts, rules.limit - 1)
    name = b"".join(texts)
    return rules.fit(b"_" + name if name.startswith(b".") else name)


def _text(part: Part, values: Mapping[str, bytes]) -> bytes:
    return values[part.text] if part.is_field else os.fsencode(part.text)


def _fitted(texts: list[bytes], parts: Sequence[Part], room: int) -> list[bytes]:
    """Cut the texts that can be cut until all fit the room; the longest are cut, to one length."""
    cuttable = [index for index, part in enumerate(parts) if part.can_be_cut]
    room -= sum(len(text) for text, part in zip(texts, parts, strict=True) if not part.can_be_cut)
    for left, index in zip(range(len(cuttable), 0, -1), sorted(cuttable, key=lambda at: len(texts[at])), strict=True):
        texts[index] = shortened(texts[index], room // left)
        room -= len(texts[index])
    return texts


def _counter(counter: int) -> bytes:
    return b"" if counter == 1 else b"-%d" % counter
