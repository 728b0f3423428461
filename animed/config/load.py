"""From the file, the environment and the command line to one `Config`, or to every problem at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from animed.config import locate
from animed.config.environment import Assignment, assignments
from animed.config.explain import explain, unknown_hint
from animed.config.fields import Reading, folder, written
from animed.config.models import Config, HooksConfig, InboxConfig
from animed.config.overlap import overlaps
from animed.config.problems import ConfigProblemsError, Loc, Problem, Told, dotted
from animed.config.yaml_text import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_COMMAND_LINE: Final = "command line"
Tree = dict[str, object]


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    overrides: Mapping[str, object] = _NOTHING,
) -> Config:
    """Return the configuration; ConfigError lists every problem, one per line.

    `overrides` come from the command line and win: dotted keys such as `logging.level`, and `inboxes.KEY` for every
    inbox. Relative paths, wherever they stand, start at the folder of the file. Touches the file system to compare
    real paths, so a share that hangs can hold it up.
    """
    source = locate.find(path, environ=environ, cwd=cwd)
    document = parse(locate.read(source))
    if not isinstance(document.value, dict):
        raise ConfigProblemsError(document.problems, path=str(source))
    reading = _Load(Reading(source.absolute().parent, environ), dict(document.lines), list(document.problems))
    config = reading.run(document.value, overrides, source.absolute())
    if config is None or reading.problems:
        raise ConfigProblemsError(reading.problems, path=str(source))
    return config


def find_state_dir(path: Path | None = None, *, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the state folder of a configuration that may have problems; None where it cannot be told.

    A service can be asked even when its file has become wrong. Raises ConfigError where there is no file.
    """
    source = locate.find(path, environ=environ, cwd=cwd)
    document = parse(locate.read(source))
    if not isinstance(document.value, dict):
        return None
    reading = _Load(Reading(source.absolute().parent, environ), {}, [])
    return reading.state_dir({"state_dir": document.value.get("state_dir")})


@dataclass(slots=True)
class _Load:
    """One reading: what is known of the origin of values, and the problems so far."""

    reading: Reading
    lines: dict[Loc, int]
    problems: list[Problem]
    origins: dict[Loc, str] = field(default_factory=dict)

    def run(self, tree: Tree, overrides: Mapping[str, object], source: Path) -> Config | None:
        """Merge every source, check every part, and return the whole if it can be made."""
        given, wrong = assignments(self.reading.environ)
        self.problems += wrong
        asked = [Assignment(tuple(key.split(".")), value, _COMMAND_LINE) for key, value in overrides.items()]
        for one in (*given, *(one for one in asked if one.loc[0] != "inboxes")):
            self._assign(tree, one)
        defaults = self._defaults(tree.pop("defaults", {}))
        named = tree.pop("inboxes", [])
        inboxes = self._inboxes(named, defaults, [one for one in asked if one.loc[0] == "inboxes"])
        self._folders(tree)
        config = self._whole(tree, inboxes, {"source": source, "unheeded": _unheeded(defaults, named)})
        state_dir = config.state_dir if config else self._state_dir(tree)
        hooks = config.hooks if config else self._hooks(tree)
        programs = [(("hooks", key), Path(command[0])) for key, command in hooks.commands().items()]
        for told in overlaps(((("inboxes", at), inbox) for at, inbox in inboxes), state_dir, programs=programs):
            self._tell(told)
        return config

    def state_dir(self, tree: Tree) -> Path | None:
        """Return the state folder alone, by the same rules; None where it is wrong."""
        for one in assignments(self.reading.environ)[0]:
            if one.loc == ("state_dir",):
                self._assign(tree, one)
        self._folders(tree)
        return self._state_dir(tree)

    def _assign(self, tree: Tree, one: Assignment) -> None:
        """Put one value in place of what stood there; a parent that is no mapping is left for its own problem."""
        inner: object = tree
        for part in one.loc[:-1]:
            inner = inner.setdefault(str(part), {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict):
            return
        inner[str(one.loc[-1])] = one.value
        self.lines = {loc: line for loc, line in self.lines.items() if loc[: len(one.loc)] != one.loc}
        self.origins[one.loc] = one.origin

    def _defaults(self, given: object) -> Tree:
        """Check the keys that stand for every inbox, and return them even if some are wrong."""
        if not isinstance(given, dict):
            self._tell((("defaults",), "no mapping", "a mapping of inbox keys", "remove the key, or give it a value"))
            return {}
        stand_in = {"name": "any", "path": "/", "output": "/", **given}
        self._check_inbox(stand_in, ("defaults",), {})
        return given

    def _inboxes(self, given: object, defaults: Tree, asked: list[Assignment]) -> list[tuple[int, InboxConfig]]:
        """Check each inbox, and return those that are whole enough to be compared."""
        if not isinstance(given, list):
            self._tell((("inboxes",), "no list", "a list; each inbox begins with a hyphen", ""))
            return []
        if not given:
            self._tell((("inboxes",), "no inboxes", "at least one inbox", "`animed config init` shows how"))
        found: list[tuple[int, InboxConfig]] = []
        names: dict[object, int] = {}
        for at, own in enumerate(given):
            loc: Loc = ("inboxes", at)
            if not isinstance(own, dict):
                self._tell((loc, "no mapping", "a mapping with name, path and output", ""))
                continue
            name = own.get("name", defaults.get("name"))
            if isinstance(name, str) and names.setdefault(name, at) != at:
                self._tell(((*loc, "name"), written(name), f"another name than inboxes[{names[name]}] has", ""))
            inbox = self._inbox(own, loc, defaults, asked)
            found += [(at, inbox)] if inbox else []
        return found

    def _inbox(self, own: Tree, loc: Loc, defaults: Tree, asked: list[Assignment]) -> InboxConfig | None:
        """Check one inbox over the defaults."""
        merged, inherited = merge(defaults, own), _inherited(defaults, own)
        for one in asked:
            self._assign(merged, Assignment(one.loc[1:], one.value, one.origin))
            self.origins[(*loc, *one.loc[1:])] = one.origin
            inherited.discard(one.loc[1:])
        return self._check_inbox(merged, loc, {(*loc, *rest): ("defaults", *rest) for rest in inherited})

    def _check_inbox(self, given: Tree, at: Loc, inherited: Mapping[Loc, Loc]) -> InboxConfig | None:
        """Check one inbox; if it is wrong, return it without its wrong keys where that is possible."""
        try:
            return InboxConfig.model_validate(given, context=self.reading)
        except ValidationError as error:
            told = list(explain(error, at))
        for loc, got, accepted, hint in told:
            problem = self._problem(inherited.get(loc, loc), got, accepted, hint)
            shown = replace(problem, path=dotted(loc))
            # A wrong default is told once, where it stands.
            if replace(problem, path=dotted(inherited.get(loc, loc))) not in self.problems:
                self.problems.append(shown)
        wrong = {str(loc[len(at)]) for loc, *_ in told if len(loc) > len(at)}
        return self._salvage({key: value for key, value in given.items() if key not in wrong})

    def _salvage(self, given: Tree) -> InboxConfig | None:
        """Return what is left of an inbox whose problems were told, for the comparison of folders."""
        try:
            return InboxConfig.model_validate(given, context=self.reading)
        except ValidationError as error:
            wrong = {str(loc[0]) for loc, *_ in explain(error, ())}
            kept = {key: value for key, value in given.items() if key not in wrong}
            return self._salvage(kept) if len(kept) < len(given) else None

    def _folders(self, tree: Tree) -> None:
        """Put the folders in place that are not named."""
        if tree.get("state_dir") is None:
            tree["state_dir"] = locate.state_dir(self.reading.environ)
        if tree.get("styles_dir") is None:
            tree["styles_dir"] = locate.styles_dir(self.reading.environ)

    def _whole(self, tree: Tree, inboxes: list[tuple[int, InboxConfig]], found: Tree) -> Config | None:
        """Check everything but the inboxes, and return the whole if it is right; `found` is nobody's to give."""
        for key in found.keys() & tree.keys():
            del tree[key]
            self._tell(((key,), "an unknown key", "a known key", unknown_hint((key,))))
        whole = {**tree, **found, "inboxes": tuple(inbox for _, inbox in inboxes)}
        try:
            return Config.model_validate(whole, context=self.reading)
        except ValidationError as error:
            for told in explain(error, ()):
                if told[0][0] != "inboxes":
                    self._tell(told)
            return None

    def _state_dir(self, tree: Tree) -> Path | None:
        """Return the state folder of a configuration that has problems, if it is right itself."""
        try:
            return folder(tree["state_dir"], self.reading)
        except PydanticCustomError:
            return None  # The problem was told when the whole was checked.

    def _hooks(self, tree: Tree) -> HooksConfig:
        """Return the hooks of a configuration that has problems, if they are right themselves."""
        try:
            return HooksConfig.model_validate(tree.get("hooks", {}), context=self.reading)
        except ValidationError:
            return HooksConfig()  # The problem was told when the whole was checked.

    def _tell(self, told: Told) -> None:
        """Note one problem."""
        self.problems.append(self._problem(*told))

    def _problem(self, loc: Loc, got: str, accepted: str, hint: str) -> Problem:
        """Return a problem with the nearest origin that is known."""
        for end in range(len(loc), -1, -1):
            if loc[:end] in self.origins:
                return Problem(dotted(loc), got, accepted, hint, origin=self.origins[loc[:end]])
            if loc[:end] in self.lines and (end or not loc):
                return Problem(dotted(loc), got, accepted, hint, line=self.lines[loc[:end]])
        return Problem(dotted(loc), got, accepted, hint)


def merge(under: Tree, over: Tree) -> Tree:
    """Return both mappings as one, key by key at every depth; `over` wins."""
    merged = dict(under)
    for key, value in over.items():
        beneath = merged.get(key)
        merged[key] = merge(beneath, value) if isinstance(beneath, dict) and isinstance(value, dict) else value
    return merged


def _unheeded(defaults: Tree, inboxes: object) -> tuple[str, ...]:
    """Return the keys of the defaults that all inboxes override: whoever sets them expects something else."""
    owns = [own for own in inboxes if isinstance(own, dict)] if isinstance(inboxes, list) else []
    heeded = set().union(*(_inherited(defaults, own) for own in owns))
    return tuple(sorted(dotted(loc) for loc in _ends(defaults, ()) if loc not in heeded))


def _ends(tree: Tree, loc: Loc) -> Iterable[Loc]:
    """Yield the places of a tree that hold values."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _ends(value, (*loc, key))
        else:
            yield (*loc, key)


def _inherited(defaults: Tree, own: Tree) -> set[Loc]:
    """Return the places in an inbox whose values come from the defaults."""
    return set(_leaves(defaults, own, ()))


def _leaves(defaults: Tree, own: Tree, loc: Loc) -> Iterable[Loc]:
    """Yield the places that the defaults fill and the inbox does not."""
    for key, value in defaults.items():
        mine = own.get(key)
        if key not in own:
            yield (*loc, key)
        if isinstance(value, dict) and (key not in own or isinstance(mine, dict)):
            yield from _leaves(value, mine if isinstance(mine, dict) else {}, (*loc, key))
