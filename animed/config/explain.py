"""From a refused value to a problem that a user can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from animed.config.fields import near, written
from animed.config.models import FOUND, Config, InboxConfig, Part
from animed.config.yaml_text import scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic import ValidationError

    from animed.config.problems import Loc, Told

_ACCEPTED: Final[Mapping[str, str]] = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "text in Unicode",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "missing": "a value: this key is required",
}
_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_YES_NO: Final = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def explain(error: ValidationError, at: Loc) -> Iterator[Told]:
    """Yield each fault below `at`, in words."""
    for fault in error.errors(include_url=False):
        if fault["type"] == "default_factory_not_called":
            continue  # It follows from another fault, which is told.
        loc: Loc = (*at, *fault["loc"])
        got = fault["input"]
        if fault["type"] == "extra_forbidden":
            yield loc, "an unknown key", _keys_text(loc), unknown_hint(loc)
        elif fault["type"] == "missing":
            yield loc, "nothing", _ACCEPTED["missing"], ""
        else:
            context = fault.get("ctx", {})
            yield loc, _shown(got), _accepted(fault["type"], context, fault["msg"]), _hint(fault["type"], context, got)


def model_at(loc: Loc) -> type[Part]:
    """Return the part of the configuration that a key at this place belongs to."""
    model: type[Part] = Config
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        if model is Config and part in {"inboxes", "defaults"}:
            model = InboxConfig
        elif part in model.model_fields:
            inner = model.model_fields[part].annotation
            model = inner if isinstance(inner, type) and issubclass(inner, Part) else model
    return model


def known_keys(loc: Loc) -> list[str]:
    """Return the keys that may stand beside a key at this place."""
    keys = list(model_at(loc).model_fields)
    return [*(key for key in keys if key not in FOUND), "defaults"] if model_at(loc) is Config else keys


def unknown_hint(loc: Loc) -> str:
    """Return the nearest known key at this place, or where a key of that name belongs."""
    word = str(loc[-1])
    elsewhere = [section for section, keys in _homes() if word in keys and model_at(loc) is not _model_of(section)]
    if elsewhere:
        homes = ["each inbox" if section == "inboxes" else section for section in elsewhere]
        return f"{word} is a key of {' and of '.join(homes)}"
    return near(word, known_keys(loc))


def _homes() -> Iterable[tuple[str, list[str]]]:
    """Yield each section that has keys, with their names."""
    for section in Config.model_fields:
        model = _model_of(section)
        if model is not None:
            yield section, list(model.model_fields)


def _model_of(section: str) -> type[Part] | None:
    """Return the part that a top-level key holds, if it holds one."""
    if section == "inboxes":
        return InboxConfig
    inner: Any = Config.model_fields[section].annotation
    return inner if isinstance(inner, type) and issubclass(inner, Part) else None


def _keys_text(loc: Loc) -> str:
    """Name the keys that are known at a place, unless they are too many to read."""
    keys = known_keys(loc)
    return f"one of {', '.join(keys)}" if len(keys) <= 15 else "a known key"  # noqa: PLR2004 - what fits a line.


def _accepted(kind: str, context: Mapping[str, Any], message: str) -> str:
    """Say what would have done."""
    if kind == "refused":
        return str(context["accepted"])
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    if kind in _LIMITS:
        words, key = _LIMITS[kind]
        return f"{words} {context[key]:g}" if isinstance(context[key], float) else f"{words} {context[key]}"
    return _ACCEPTED.get(kind, message)


def _hint(kind: str, context: Mapping[str, Any], got: object) -> str:
    """Return a hint for a value that is nearly right."""
    if kind == "refused":
        return str(context["hint"])
    if kind == "literal_error":
        words = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return "write off" if got is False and "off" in words else near(str(got).lower(), words)
    if kind in {"model_type", "tuple_type"} and got is None:
        return "remove the key, or give it a value"
    if kind == "string_type":
        return "quote it" if isinstance(got, (bool, int, float)) else ""
    return _unquoted(kind, got.strip()) if isinstance(got, str) else ""


def _unquoted(kind: str, got: str) -> str:
    """Return a hint for text where a number or a truth value should stand."""
    if kind == "bool_type":
        word = _YES_NO.get(got.lower(), got.lower())
        return f"write {word}" if word in {"true", "false"} else ""
    return (
        "write it without quotes"
        if kind in {"int_type", "float_type"} and isinstance(scalar(got), (int, float))
        else ""
    )


def _shown(value: object) -> str:
    """Write what was found, without the contents of what is long."""
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) and value else written(value)
