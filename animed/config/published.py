"""The three texts about the configuration: the file that ships, its schema, and what is in effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from animed.config.inbox import InboxConfig
from animed.config.models import FOUND, Config
from animed.config.yaml_text import write
from animed.errors import ConfigError

_NULLABLE: Final = {"Config": ("state_dir", "styles_dir"), "InboxConfig": ("processed_dir", "failed_dir")}
_ANY: Final = "/any"
Schema = dict[str, Any]


def default_text() -> str:
    """Return the annotated config.yaml: beside the modules of an installed package, or at the top of a checkout."""
    package = Path(__file__).parent.parent
    for place in (package / "config.yaml", package.parent / "config.yaml"):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise ConfigError("the annotated config.yaml is missing from this installation", remedy="install animed again")


def dump(config: Config) -> str:
    """Return the effective configuration as YAML; `load` makes an equal one of it, but for what only reading finds."""
    return write(config.model_dump(exclude=set(FOUND)))


def schema() -> Schema:
    """Return the JSON Schema of the file as users write it."""
    whole = Config.model_json_schema()
    parts: Schema = whole["$defs"]
    for key in FOUND:
        del whole["properties"][key]
    whole["required"] = ["inboxes"]
    _take_defaults(whole, parts)
    parts["InboxDefaults"] = {**parts["InboxConfig"], "description": "Inbox keys that stand for every inbox."}
    del parts["InboxDefaults"]["required"]
    parts["InboxConfig"]["required"] = ["name", "path"]  # The rest may come from the defaults.
    whole["properties"]["defaults"] = {
        "$ref": "#/$defs/InboxDefaults",
        "title": "Defaults",
        "description": "Any inbox key; it stands for every inbox that does not say otherwise.",
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "title": "animed configuration"}


def _take_defaults(whole: Schema, parts: Schema) -> None:
    """Write each default as it stands in a file."""
    inbox = InboxConfig(name="any", path=Path(_ANY), output=Path(_ANY))
    sample = Config(state_dir=Path(_ANY), styles_dir=Path(_ANY), inboxes=(inbox,))
    for model in (sample, inbox, inbox.preserve, inbox.mode, *(getattr(sample, key) for key in Config.model_fields)):
        name = type(model).__name__
        if name not in {*parts, "Config"}:
            continue
        keys: Schema = (whole if name == "Config" else parts[name])["properties"]
        plain = model.model_dump()
        for key, described in keys.items():
            if "default" in described:
                described["default"] = plain[key]
        for key in _NULLABLE.get(name, ()):
            keys[key] |= {"type": ["string", "null"], "default": None}
