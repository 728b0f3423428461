"""YAML text to plain values, with the line of every key.

Scalars follow the core rules of YAML 1.2, less octal: only null, true, false and decimal numbers are special, and
`no`, `22:00` or `0644` come out as written. Every key is text. A key that stands twice is a problem.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from animed.config.fields import written
from animed.config.problems import Loc, Problem, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH: Final = 120
_FOLDED: Final = frozenset("\x85\u2028\u2029\ufeff")
_MOST_NODES: Final = 100_000
_NULL: Final = re.compile(r"~|null|Null|NULL|")
_BOOL: Final = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})|0x[0-9a-fA-F]{1,16}")
# A whole number matches as well: the order of the kinds decides.
_FLOAT: Final = re.compile(
    r"[-+]?(?:(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
_TAG: Final = "tag:yaml.org,2002:"
_PATTERNS: Final = {"null": _NULL, "bool": _BOOL, "int": _INT, "float": _FLOAT}


class CoreLoader(yaml.SafeLoader):
    """A loader that knows no implicit types but those of the core rules."""

    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {  # noqa: RUF012 - the base class has it so.
        None: [(f"{_TAG}{kind}", re.compile(f"(?:{pattern.pattern})$")) for kind, pattern in _PATTERNS.items()]
    }


class CoreDumper(yaml.SafeDumper):
    """A dumper that quotes each text which either set of rules, 1.1 or core, would take for something else."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class has it so.
        **yaml.SafeDumper.yaml_implicit_resolvers,
        None: CoreLoader.yaml_implicit_resolvers[None],
    }

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class passes it.
        """Write equal values out in full each time."""
        return True


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, the line of each key and item, and what was wrong with its form."""

    value: object
    lines: Mapping[Loc, int]
    problems: tuple[Problem, ...]


def parse(text: str) -> Document:
    """Read one YAML document; problems of form come back in it, and `value` is None where nothing can be read."""
    try:
        root = CoreLoader(text).get_single_node()
    except yaml.YAMLError as error:
        return Document(None, {}, (_syntax(error, text),))
    except RecursionError:
        return Document(None, {}, (Problem("", "values that are nested too deeply", "plain YAML"),))
    if root is None:
        return Document(None, {}, (Problem("", "an empty file", "a mapping that begins with inboxes:", line=1),))
    reader = _Reader()
    value = reader.read(root, ())
    if not isinstance(root, yaml.MappingNode) and not reader.problems:
        reader.problems.append(Problem("", _kind(root), "a mapping at the top level", line=_line(root)))
    return Document(value, reader.lines, tuple(reader.problems))


def write(value: object) -> str:
    """Return YAML that `parse` reads back to an equal value."""
    readable = yaml.dump(value, Dumper=CoreDumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
    if not _FOLDED & set(readable):
        return readable
    # The emitter leaves these characters bare, and the scanner folds them like line ends.
    return yaml.dump(value, Dumper=CoreDumper, sort_keys=False, width=_WIDTH, allow_unicode=False)


def scalar(text: str) -> object:
    """Return the value of one plain scalar, as it would come out of a file."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text, 16) if text.startswith("0x") else int(text)
    return float(re.sub(r"\.(?=inf|nan)", "", text.lower())) if _FLOAT.fullmatch(text) else text


@dataclass(slots=True)
class _Reader:
    """Walks the nodes of one document."""

    lines: dict[Loc, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _seen: int = 0

    def read(self, node: yaml.Node, loc: Loc) -> object:
        """Return the value of a node and note its lines."""
        self.lines.setdefault(loc, _line(node))
        self._seen += 1
        if id(node) in self._open or self._seen > _MOST_NODES:
            self._report(node, loc, "aliases without end, or a huge file", "values that are written out")
            return None
        self._open.add(id(node))
        try:
            return self._value(node, loc)
        finally:
            self._open.discard(id(node))

    def _value(self, node: yaml.Node, loc: Loc) -> object:
        """Return the value by the kind of the node."""
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node, loc)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.read(item, (*loc, at)) for at, item in enumerate(node.value) if self._seen <= _MOST_NODES]
        if isinstance(node, yaml.ScalarNode) and node.tag.removeprefix(_TAG) in {*_PATTERNS, "str"}:
            return self._scalar(node, loc)
        self._report(node, loc, f"the tag {node.tag.replace(_TAG, '!!')}", "a value without a tag")
        return None

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> object:
        """Return the value of a scalar, and refuse a tag that its text does not fit."""
        kind = node.tag.removeprefix(_TAG)
        if kind == "str":
            return str(node.value)
        if not _PATTERNS[kind].fullmatch(node.value):
            self._report(node, loc, f"{written(node.value)} under the tag !!{kind}", "a value that fits its tag")
            return None
        return scalar(node.value)

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, object]:
        """Return a mapping whose keys are text, and refuse a key that stands twice."""
        found: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._report(key, loc, f"{_kind(key)} as a key", "keys of plain text")
                continue
            place = (*loc, key.value)
            if key.value in found:
                first = self.lines[place]
                self._report(key, place, f"the key a second time (first on line {first})", "each key once")
                continue
            self.lines[place] = _line(key)
            found[key.value] = self.read(value, place)
            if self._seen > _MOST_NODES:
                break
        return found

    def _report(self, node: yaml.Node, loc: Loc, got: str, accepted: str) -> None:
        """Note a problem of form."""
        self.problems.append(Problem(dotted(loc), got, accepted, line=_line(node)))


def _line(node: yaml.Node) -> int:
    """Return the line of a node, from 1."""
    return int(node.start_mark.line) + 1


def _kind(node: yaml.Node) -> str:
    """Name the kind of a node for people."""
    if isinstance(node, yaml.ScalarNode):
        return f"the value {written(scalar(node.value))}"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _syntax(error: yaml.YAMLError, text: str) -> Problem:
    """Describe text that is no YAML."""
    if isinstance(error, yaml.reader.ReaderError):
        at = text.count("\n", 0, error.position) + 1
        return Problem("", f"the character {error.character!r}", "printable text", line=at)
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem("", str(error), "YAML")
    mark = error.problem_mark or error.context_mark
    place = None if mark is None else int(mark.line) + 1
    if "'\\t'" in (error.problem or ""):
        return Problem("", "a tab", "YAML, which is indented with spaces", line=place)
    column = "" if mark is None else f"column {mark.column + 1}: "
    return Problem("", f"{column}{error.problem or error.context}", "YAML", hint=error.context or "", line=place)
