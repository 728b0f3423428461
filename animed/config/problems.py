"""What is wrong with a configuration: every problem with its place, and one error that lists them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

Loc = tuple[str | int, ...]
Told = tuple[Loc, str, str, str]  # where, what was got, what is accepted, a hint


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: where it is, what was found there, what would do, and a hint where there is one."""

    path: str  # dotted, such as inboxes[0].stable_for; empty for the file as a whole
    got: str
    accepted: str
    hint: str = ""
    line: int | None = None  # of the file, from 1
    origin: str = ""  # the environment variable or `command line`, where the value is not from the file

    def __str__(self) -> str:
        """Return one line for people."""
        line = f"line {self.line}: " if self.line is not None else ""
        path = f"{self.path}" + (f" ({self.origin})" if self.origin else "")
        text = f"{line}{path}: got {self.got}; accepted: {self.accepted}" if path else f"{line}{self._whole()}"
        whole = " ".join((f"{text} ({self.hint})" if self.hint else text).split())
        return whole.encode("utf-8", "backslashreplace").decode()

    def _whole(self) -> str:
        """Describe a fault of the whole file."""
        return f"got {self.got}; accepted: {self.accepted}"


class ConfigProblemsError(ConfigError):
    """Every problem of one configuration; its text has one line for each."""

    def __init__(self, problems: Iterable[Problem], *, path: str = "") -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0)))
        count = len(self.problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{count} problem{'' if count == 1 else 's'} in the configuration{lines}", path=path)

    def __reduce__(self) -> tuple[type[ConfigProblemsError], tuple[tuple[Problem, ...]], dict[str, str]]:
        """Travel through a pipe with every problem."""
        return type(self), (self.problems,), {"path": self.path}


def dotted(loc: Loc) -> str:
    """Write a location as users read it: `inboxes[0].preserve.gps`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return text.removeprefix(".")
