"""The template of an output name: which fields may stand in it, and what is wrong with one that cannot be used."""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

DATE_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")
FIELDS: Final = ("stem", "style", "ext", *DATE_FIELDS, "counter", "inbox", "folder")
LEAST: Final = 12  # bytes that a field keeps which has to be cut: one of its own, a mark, ten digits of a digest

# The bytes that a field may need at most; the others can be cut down to LEAST. A counter has up to eight digits.
_FIXED: Final = {"ext": 5, "counter": 9, "year": 4, **dict.fromkeys(DATE_FIELDS[1:], 2)}
_MOST: Final = 110  # bytes: with what may be put before a name this fits the shortest limit that is kept to


class TemplateError(ValueError):
    """A template cannot be used; the text says why. `field` is the unknown field that it names, if that is it."""

    def __init__(self, why: str, *, field: str | None = None) -> None:
        super().__init__(why)
        self.field = field


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a template: `text` as it stands, or the name of a field."""

    text: str
    is_field: bool

    @property
    def can_be_cut(self) -> bool:
        """Say whether it is a field of any length, of which LEAST bytes will do."""
        return self.is_field and self.text not in _FIXED


@dataclass(frozen=True, slots=True)
class Template:
    """An output name, taken apart. One of its parts is the field counter, also where the text names none."""

    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Take a template apart; raises TemplateError.

        Without {counter} of its own the counter goes before the last {ext}, or to the end where there is none.
        """
        return _parsed(text)

    @property
    def dated(self) -> bool:
        """Say whether a name depends on when the photo was taken."""
        return any(part.is_field and part.text in DATE_FIELDS for part in self.parts)


@lru_cache(maxsize=64)
def _parsed(text: str) -> Template:
    parts = _parts(text)
    fields = [part.text for part in parts if part.is_field]
    if any("/" in part.text or "\0" in part.text for part in parts):
        raise TemplateError("a name holds no slash; sub-folders come from `layout`")
    if not {"stem", "counter"} & set(fields):
        raise TemplateError("it would give every photo the same name")
    if fields.count("counter") > 1:
        raise TemplateError("{counter} may stand in it once")
    if "counter" not in fields:
        parts.insert(_place_of_counter(parts), Part("counter", is_field=True))
    if sum(map(_least, parts)) > _MOST:
        raise TemplateError("it is too long: some file systems take names of 143 bytes at most")
    return Template(tuple(parts))


def _parts(text: str) -> list[Part]:
    try:
        found = list(string.Formatter().parse(text))
    except ValueError as error:
        raise TemplateError(str(error)) from error
    parts: list[Part] = []
    for literal, field, spec, conversion in found:
        parts += [Part(literal, is_field=False)] if literal else []
        if field is None:
            continue
        if field not in FIELDS:
            raise TemplateError(f"{{{field}}} is unknown", field=field)
        if spec or conversion:
            raise TemplateError("a field takes no format")
        parts.append(Part(field, is_field=True))
    return parts


def _place_of_counter(parts: list[Part]) -> int:
    ends = [index for index, part in enumerate(parts) if part.is_field and part.text == "ext"]
    return ends[-1] if ends else len(parts)


def _least(part: Part) -> int:
    return _FIXED.get(part.text, LEAST) if part.is_field else len(part.text.encode("utf-8", "surrogateescape"))
