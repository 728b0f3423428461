"""The types of configuration keys: what is accepted, how it is kept, and how it is written back.

A validator raises `refused(...)`, which carries the sentence about what is accepted to the report.
"""

from __future__ import annotations

import difflib
import json
import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from animed.config import units
from animed.template import FIELDS, TemplateError
from animed.template import Template as NameTemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic.json_schema import JsonSchemaValue

T = TypeVar("T")

NOT_AVAILABLE: Final = "not available in this version"
NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_SHOWN: Final = 80
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_SPECIAL: Final = frozenset({"true", "false", "null"})
_EXTENSION: Final = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """The validation context of a file: relative paths start at `base`, `~` is the home of `environ`."""

    base: Path
    environ: Mapping[str, str]


def refused(accepted: str, *, hint: str = "") -> PydanticCustomError:
    """Return the error of a value that cannot be used."""
    return PydanticCustomError("refused", "{accepted}", {"accepted": accepted, "hint": hint})


def near(word: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known word, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {found[0]}?" if found else ""


@dataclass(frozen=True, slots=True)
class Only:
    """Accept no value but the built ones: the others belong to features that are not built yet."""

    built: tuple[object, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Look at the value before the type's own rules do."""
        return core_schema.no_info_before_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Show editors what may be chosen today."""
        return {**handler(schema), "enum": [list(value) if isinstance(value, tuple) else value for value in self.built]}

    def check(self, value: object) -> object:
        """Return the value if it is one of the built ones, with the same type."""
        kept = tuple(value) if isinstance(value, list) else value
        if not any(type(kept) is type(allowed) and kept == allowed for allowed in self.built):
            raise refused(f"{' or '.join(map(written, self.built))}; any other value is {NOT_AVAILABLE}")
        return kept


def only(*built: object) -> Only:
    """Mark a key that accepts these values alone."""
    return Only(built)


def written(value: object) -> str:
    """Write a value as it stands in the file, cut where it gets long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    bare = value if isinstance(value, str) and _WORD.fullmatch(value) and value not in _SPECIAL else text
    return bare if len(bare) <= _SHOWN else f"{bare[:_SHOWN]}…"


def _parsed(parse: Callable[[object], T]) -> BeforeValidator:
    """Make a validator of a parser from `units`."""

    def check(value: object) -> T:
        try:
            return parse(value)
        except ValueError as error:
            raise refused(str(error)) from error

    return BeforeValidator(check)


def _auto(parse: Callable[[object], T], accepted: str) -> BeforeValidator:
    """Make a validator that reads the word auto as None; a bare null stays an error in a file."""

    def check(value: object, info: ValidationInfo) -> T | None:
        if value == "auto" or (value is None and info.context is None):
            return None
        try:
            return parse(value)
        except ValueError as error:
            raise refused(f"auto, or {accepted}") from error

    return BeforeValidator(check)


def _count(value: object) -> int:
    """Return a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError
    return value


def _some_bytes(value: object) -> int:
    """Return a size above nothing."""
    size = units.parse_size(value)
    if not size:
        raise ValueError
    return size


def _or_auto(write: Callable[[Any], object]) -> PlainSerializer:
    """Write None as the word auto."""
    return PlainSerializer(lambda value: "auto" if value is None else write(value))


def _mode(value: object, info: ValidationInfo) -> int | None:
    """Read octal digits; in a program (no context) a number is already the bits."""
    if value is None or (info.context is None and isinstance(value, int)):
        return value
    try:
        return units.parse_mode(value)
    except ValueError as error:
        raise refused(f"null, or {error}") from error


def _in_context(value: object, info: ValidationInfo) -> Path:
    """Read a folder in the context of a file, if there is one."""
    return folder(value, info.context if isinstance(info.context, Reading) else None)


def folder(value: object, reading: Reading | None) -> Path:
    """Return an absolute path: `~` is a home, and a relative path starts at the base of the reading.

    Raises what `refused` returns for anything else; without a reading the path must be absolute.
    """
    if not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value):
        raise refused("the path of a folder, as text")
    path = _at_home(str(value), reading.environ if reading else os.environ)
    if reading is None and not os.path.isabs(path):
        raise refused("an absolute path")
    return Path(reading.base if reading else "/", path)


def _at_home(text: str, environ: Mapping[str, str]) -> str:
    """Replace a leading `~` or `~user`."""
    if not text.startswith("~"):
        return text
    first, _, rest = text.partition("/")
    try:
        home = (first == "~" and environ.get("HOME")) or _home_of(first[1:])
    except KeyError as error:
        raise refused(f"a path whose {first} is the home of a user of this system") from error
    return os.path.join(home, rest) if rest else home


def _home_of(user: str) -> str:
    """Return the home of a user (of the running one if the name is empty); KeyError if there is none."""
    return (pwd.getpwnam(user) if user else pwd.getpwuid(os.getuid())).pw_dir


def _name(value: str) -> str:
    """Refuse a name that could not be part of a file name."""
    if not NAME.fullmatch(value) or value in {".", ".."}:
        raise refused("letters, digits, dot, underscore and hyphen")
    return value


def _style(value: str) -> str:
    """Refuse what cannot be the name of a style; `from-folder` lets folders name it."""
    return _name(value)


def _template(value: str) -> str:
    """Refuse a template that would not name one file per photo in one folder."""
    try:
        NameTemplate.parse(value)
    except TemplateError as error:
        fields = ", ".join(f"{{{field}}}" for field in FIELDS)
        accepted = f"a file name that contains {{stem}} or {{counter}}, without a slash; its fields are {fields}"
        raise refused(accepted, hint=(near(error.field, FIELDS) if error.field else "") or str(error)) from error
    return value


def _listed(value: object) -> object:
    """Take a YAML list for a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _extensions(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return extensions in lower case, without a dot and without repeats."""
    bare = [value.lower().removeprefix(".") for value in values]
    if not bare or not all(_EXTENSION.fullmatch(value) for value in bare):
        raise refused("a list of at least one extension, each of letters and digits, such as [jpg, png]")
    return tuple(dict.fromkeys(bare))


def _group(value: object) -> object:
    """Take a numeric group id as text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _json(kinds: list[str], note: str, **more: object) -> WithJsonSchema:
    """Describe to editors what the file may hold."""
    return WithJsonSchema({"type": kinds, "examples": note.split(), **more})


_write = PlainSerializer
Duration = Annotated[
    float,
    _parsed(units.parse_duration),
    _write(units.format_duration),
    _json(["string", "number"], "5s 10m", minimum=0),
]
Positive = Annotated[Duration, Field(gt=0)]
Size = Annotated[
    int, _parsed(units.parse_size), _write(units.format_size), _json(["string", "integer"], "500MB 1GiB", minimum=0)
]
Percent = Annotated[
    float, _parsed(units.parse_percent), _write(units.format_percent), _json(["string", "number"], "50% 100%")
]
AutoCount = Annotated[
    int | None,
    _auto(_count, "a whole number of at least 1"),
    _or_auto(int),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]}),
]
AutoSize = Annotated[
    int | None,
    _auto(_some_bytes, units.SIZE),
    _or_auto(units.format_size),
    _json(["string", "integer"], "auto 2GiB", minimum=1),
]
Bits = Annotated[
    int | None,
    BeforeValidator(_mode),
    _write(lambda bits: None if bits is None else units.format_mode(bits)),
    _json(["string", "integer", "null"], "0644 0755"),
]
Folder = Annotated[Path, BeforeValidator(_in_context), _write(str), WithJsonSchema({"type": "string"})]
Name = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9._-]+$"})]
StyleName = Annotated[str, AfterValidator(_style)]
Template = Annotated[str, AfterValidator(_template)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed), _write(list)]
Extensions = Annotated[Texts, AfterValidator(_extensions)]
Group = Annotated[str | None, BeforeValidator(_group)]
