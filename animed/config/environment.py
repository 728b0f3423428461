"""Settings from environment variables: `ANIMED_SECTION__KEY`, and `ANIMED_INBOXES` as JSON.

An unknown variable that begins with ANIMED_ is a problem, so that a slip of the pen is never silent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_origin

from animed.config.fields import near, written
from animed.config.models import Config, InboxConfig, Part
from animed.config.problems import Loc, Problem
from animed.config.programs import Words
from animed.config.yaml_text import scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PREFIX: Final = "ANIMED_"
FILE: Final = "ANIMED_CONFIG"
_INBOXES: Final = "ANIMED_INBOXES"
_BOOLS: Final = {
    **dict.fromkeys(("0", "false", "no", "off", ""), False),
    **dict.fromkeys(("1", "true", "yes", "on"), True),
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """A value for one key, and where it was said."""

    loc: Loc
    value: object
    origin: str


def assignments(environ: Mapping[str, str]) -> tuple[list[Assignment], list[Problem]]:
    """Return what the environment sets, in the order of names, and every variable that is wrong."""
    known = dict(_known())
    found: list[Assignment] = []
    problems: list[Problem] = []
    for name in sorted(key for key in environ if key.startswith(PREFIX) and key != FILE):
        if name not in known and name != _INBOXES:
            problems.append(_unknown(name, known))
            continue
        loc, kind = known.get(name, (("inboxes",), dict))
        try:
            found.append(Assignment(loc, _read(environ[name], kind), name))
        except ValueError as error:
            problems.append(Problem(name, written(environ[name]), str(error)))
    return found, problems


def _known() -> Iterator[tuple[str, tuple[Loc, Any]]]:
    """Yield each variable with the key that it sets and the type of that key."""
    yield from _names(Config, ())
    yield from _names(InboxConfig, ("defaults",))


def _names(model: type[Part], loc: Loc) -> Iterator[tuple[str, tuple[Loc, Any]]]:
    """Yield the variables of one part of the configuration."""
    for key, info in model.model_fields.items():
        place = (*loc, key)
        if isinstance(info.annotation, type) and issubclass(info.annotation, Part):
            yield from _names(info.annotation, place)
        elif place not in {("inboxes",), ("source",)}:
            yield PREFIX + "__".join(map(str, place)).upper(), (place, info.annotation)


def _unknown(name: str, known: Mapping[str, object]) -> Problem:
    """Describe a variable that sets nothing."""
    accepted = "ANIMED_SECTION__KEY of a known key"
    inner = sorted(key for key in known if key.startswith(f"{name}__"))
    if inner:
        return Problem(name, "an unknown variable", accepted, hint=f"its keys are set one by one, such as {inner[0]}")
    # A key without its section, or of one inbox: the last word says which is meant.
    last = name.upper().removeprefix(PREFIX).rpartition("__")[2]
    homes = [key for key in known if key.endswith((f"{PREFIX}{last}", f"__{last}"))] if last else []
    nearest = f"did you mean {homes[0]}?" if len(homes) == 1 else near(name.upper(), [*known, _INBOXES, FILE])
    return Problem(name, "an unknown variable", accepted, hint=nearest)


def _read(text: str, kind: Any) -> object:
    """Return the value of a variable as its key wants it; ValueError says what is accepted."""
    if kind is bool:
        if text.strip().lower() not in _BOOLS:
            raise ValueError("true or false (also 1, 0, yes, no, on, off)")
        return _BOOLS[text.strip().lower()]
    if kind is dict or get_origin(kind) is tuple or (kind == Words and text.startswith("[")):
        return _json(text, '[{"name": "phone", …}]' if kind is dict else '["one", "two"]')
    if kind in {str, Path, Words}:
        return None if text == "null" else text
    return scalar(text.strip()) if text else text


def _json(text: str, example: str) -> object:
    """Return a JSON value; ValueError for anything else, and for a key that stands twice."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON such as {example}; {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("JSON that is not nested so deeply") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; ValueError if a key stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"each key once; {twice} stands twice")
    return found


def _no_constant(word: str) -> object:
    """Refuse what is no JSON number."""
    raise ValueError(f"JSON; {word} is no number")
