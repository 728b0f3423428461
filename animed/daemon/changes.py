"""What a new configuration changes, and what follows from each key. Pure: two configurations in, a value out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from animed.config.models import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from animed.config import Config, InboxConfig

Effect = Literal["nothing", "restart", "workers", "styles", "told"]

# What a changed key asks for. Every key of the configuration stands here.
#   nothing   it decides nothing
#   restart   the service has to be started anew: the whole reload is refused
#   workers   the workers are replaced one by one
#   styles    the styles are looked up anew; their digests say whether inboxes and workers change
#   told      those who live long are told, and act on it from then on
_TABLE: Final[Mapping[str, Mapping[str, Effect]]] = {
    "": {
        "version": "nothing",
        "source": "nothing",
        "unheeded": "nothing",
        "state_dir": "restart",
        "styles_dir": "styles",
    },
    "batch": {"max_size": "told", "max_wait": "told"},
    "workers": {
        "count": "workers",
        "threads": "workers",
        "device": "workers",
        "precision": "workers",
        "nice": "workers",
        "timeout": "workers",
        "boot_timeout": "workers",
        "stop_timeout": "told",
        "max_images": "workers",
        "max_memory": "workers",
        "cpu_share": "workers",
        "styles_in_memory": "workers",
        "preload": "workers",
        "idle_unload": "workers",
    },
    "retry": {"attempts": "told", "delay": "told", "factor": "told", "max_delay": "told", "crash_attempts": "told"},
    "limits": {"min_free": "told", "backlog": "told", "images_per_minute": "told"},
    "schedule": {"active": "told"},
    "hooks": {"on_success": "told", "on_failure": "told", "on_batch": "told", "timeout": "told"},
    "logging": {"level": "told", "format": "told"},
}
SECTIONS: Final[Mapping[str, Effect]] = {
    f"{section}.{key}" if section else key: effect for section, keys in _TABLE.items() for key, effect in keys.items()
}

# Any changed key of an inbox renews that inbox alone. These change what every worker is made for besides.
INBOX_TO_WORKERS: Final = frozenset({"max_edge", "output_size", "dedupe"})


@dataclass(frozen=True, slots=True)
class Changes:
    """How a new configuration differs from the one in force."""

    keys: tuple[str, ...]  # dotted, an inbox's keys by its name: workers.count, inboxes.phone.quality
    added: tuple[str, ...]  # inboxes
    removed: tuple[str, ...]
    restart: tuple[str, ...]  # keys that a running service cannot follow
    workers: bool  # the workers are to be replaced


def changes(old: Config, new: Config) -> Changes:
    """Compare two configurations."""
    before, after = ({inbox.name: inbox for inbox in config.inboxes} for config in (old, new))
    sections = [key for key in _differences(_sections(old), _sections(new)) if SECTIONS[key] != "nothing"]
    inner = {name: inbox_keys(before[name], after[name]) for name in after if name in before}
    added = tuple(name for name in after if name not in before)
    removed = tuple(name for name in before if name not in after)
    edges = _edges(old) != _edges(new)
    return Changes(
        keys=(*sections, *(f"inboxes.{name}.{key}" for name, keys in inner.items() for key in keys)),
        added=added,
        removed=removed,
        restart=tuple(key for key in sections if SECTIONS[key] == "restart"),
        workers=edges or any(SECTIONS[key] == "workers" for key in sections),
    )


def inbox_keys(old: InboxConfig, new: InboxConfig) -> tuple[str, ...]:
    """Return the keys in which two set-ups of one inbox differ."""
    return tuple(_differences(_leaves(dict(old), ""), _leaves(dict(new), "")))


def _edges(config: Config) -> frozenset[Any]:
    """Return what of all inboxes every worker is made for."""
    return frozenset(getattr(inbox, key) for inbox in config.inboxes for key in INBOX_TO_WORKERS)


def _sections(config: Config) -> dict[str, object]:
    return dict(_leaves({key: value for key, value in config if key != "inboxes"}, ""))


def _leaves(values: Mapping[str, object], above: str) -> dict[str, object]:
    """Return each single key with its value, dotted."""
    found: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, Part):
            found |= _leaves(dict(value), f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    return (key for key, value in new.items() if old[key] != value)
