"""What commands print: text, tables and JSON on stdout, notes on stderr."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from animed.errors import visible
from animed.records import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_UNBOUNDED = 100_000  # columns; wider than any row
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def say(text: str) -> None:
    """Print one line on stdout."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """Print one line on stderr, or more, for people who read the rest through a pipe."""
    safe = "\n".join(visible(line) for line in text.split("\n"))
    sys.stderr.write(f"animed: {safe}\n")


def say_json(value: Any) -> None:
    """Print a value as JSON; what is not ASCII is escaped, so that any pipe can carry it."""
    say(json.dumps(value, indent=2))


def shown(path: bytes | str) -> str:
    """Return a path that cannot play tricks on a terminal: control characters and what is not UTF-8 are escaped."""
    return visible(printable(path))


def say_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print rows under heads; in a pipe nothing is cut or wrapped, and the columns named in `right` are numbers."""
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _UNBOUNDED)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as captured:
        console.print(table)
    say("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")))


def called(command: str, config_file: Path | None) -> str:
    """Return a command as a person types it who named this configuration on the command line."""
    return f"animed {command}" + (f" -c {shlex.quote(shown(str(config_file)))}" if config_file else "")


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 photo, 2 photos."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def duration(seconds: float | None) -> str:
    """Return a time as people say it: 42 s, 3 min 20 s, 5 h 12 min, 2 d 3 h; a dash where there is none."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {small_unit}"
    return f"{whole} s"


def size(count: float) -> str:
    """Return a number of bytes with a binary unit."""
    amount = float(count)
    for unit in _UNITS:
        if abs(amount) < 1024 or unit == _UNITS[-1]:  # noqa: PLR2004 -- the units are binary
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
