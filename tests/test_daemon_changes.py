"""What a new configuration changes: pure, and complete over every key that there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.config import Config, InboxConfig
from animed.config.models import Part
from animed.daemon.changes import INBOX_TO_WORKERS, SECTIONS, Changes, changes, inbox_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

# A value that differs from the default, for the keys of which the default says nothing about it.
OTHERS: dict[str, Any] = {
    "output_format": "png", "watch": "off", "on_conflict": "skip", "originals": "move", "failed": "copy",
    "animated": "skip", "dedupe": "path", "layout": "flat", "style": "other", "output_name": "{stem}{ext}",
    "processed_dir": Path("/elsewhere"), "failed_dir": Path("/elsewhere"), "path": Path("/elsewhere"),
    "output": Path("/elsewhere"), "state_dir": Path("/elsewhere"), "styles_dir": Path("/elsewhere"),
}  # fmt: skip


def inbox(name: str = "phone", **keys: object) -> InboxConfig:
    """Return an inbox with some keys; values are taken as they are, as those of keys to come would be."""
    return InboxConfig(name=name, path=Path("/in", name), output=Path("/out", name)).model_copy(update=keys)


def config(*inboxes: InboxConfig, **sections: object) -> Config:
    whole = Config(state_dir=Path("/state"), styles_dir=Path("/styles"), inboxes=inboxes or (inbox(),))
    return whole.model_copy(update=sections)


def leaves(model: type[Part], above: str = "") -> Iterator[str]:
    """Yield every single key of a part of the configuration."""
    for key, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Part):
            yield from leaves(info.annotation, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def other(key: str, value: object) -> object:
    """Return another value for a key."""
    if key in OTHERS:
        return OTHERS[key]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return (*value, "more") if isinstance(value, tuple) else "other"


def altered(part: Part, path: str) -> Part:
    """Return a part in which one key differs."""
    key, _, rest = path.partition(".")
    value = getattr(part, key)
    return part.model_copy(update={key: altered(value, rest) if rest else other(key, value)})


def test_every_key_has_its_effect() -> None:
    """Each key outside the inboxes is in the table, and nothing else is: a new key must say what it asks for."""
    assert set(leaves(Config)) - {"inboxes"} == set(SECTIONS)
    assert set(leaves(InboxConfig)) >= INBOX_TO_WORKERS


@pytest.mark.parametrize("key", sorted(SECTIONS))
def test_one_changed_key_is_named_and_followed(key: str) -> None:
    """One key outside the inboxes that differs is named alone, with what it asks for."""
    new = altered(config(), key)
    assert isinstance(new, Config)
    named = () if SECTIONS[key] == "nothing" else (key,)
    restart = (key,) if SECTIONS[key] == "restart" else ()
    assert changes(config(), new) == Changes(named, (), (), restart, workers=SECTIONS[key] == "workers")


@pytest.mark.parametrize("key", sorted(set(leaves(InboxConfig)) - {"name"}))
def test_one_changed_key_of_an_inbox_is_named(key: str) -> None:
    """One key of an inbox that differs is named by its inbox, and no other inbox with it."""
    new = altered(inbox(), key)
    assert isinstance(new, InboxConfig)
    assert inbox_keys(inbox(), new) == (key,)
    found = changes(config(inbox(), inbox("camera")), config(new, inbox("camera")))
    assert found == Changes((f"inboxes.phone.{key}",), (), (), (), workers=key in INBOX_TO_WORKERS)


def test_a_new_name_is_another_inbox() -> None:
    """An inbox with another name is one that went and one that came."""
    found = changes(config(inbox("a"), inbox("b")), config(inbox("b"), inbox("c")))
    assert (found.keys, found.added, found.removed) == ((), ("c",), ("a",))


names = st.lists(st.sampled_from("abcd"), unique=True, min_size=1)
configs = st.builds(
    lambda chosen, quality, edge: config(*(inbox(name, quality=quality, max_edge=edge) for name in chosen)),
    names, st.integers(1, 3), st.sampled_from([64, 128]),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(configs, configs)
def test_changes_are_nothing_exactly_where_nothing_differs(old: Config, new: Config) -> None:
    """Nothing differs from itself; there and back name the same keys; added and removed change places."""
    nothing = Changes((), (), (), (), workers=False)
    assert changes(old, old) == nothing
    there, back = changes(old, new), changes(new, old)
    assert sorted(there.keys) == sorted(back.keys)
    assert (set(there.added), set(there.removed)) == (set(back.removed), set(back.added))
    same = {each.name: each for each in old.inboxes} == {each.name: each for each in new.inboxes}
    assert (there == nothing) == same
