"""The operator's manual speaks of everything that the service says, and of nothing that it does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import pytest

from animed.daemon import health, status
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP: Final = Path(__file__).parent.parent
MANUAL: Final = (TOP / "docs" / "operations.md").read_text()
EVENT: Final = re.compile(
    r"(daemon|inbox|file|batch|worker|watch|disk|config|original|place|library|ledger|log|hook|report)\.[a-z_]+"
)
FILES: Final = re.compile(r"\.(yaml|db|txt|json|py)$")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in a module, but for what its docstrings say."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def events() -> set[str]:
    """Return the events that the source names in full."""
    found = set()
    for module in (TOP / "animed").rglob("*.py"):
        names = {text for text in texts(ast.parse(module.read_text())) if EVENT.fullmatch(text)}
        found |= {name for name in names if not FILES.search(name)}
    return found


def told(heading: str) -> set[str]:
    """Return what the first column of the table under a heading names."""
    section = MANUAL.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_event_is_explained() -> None:
    """The table of messages names the events that the source names, and no other."""
    assert told("Messages") == events()


def test_every_reason_is_explained() -> None:
    """The table of failures names the reasons that there are."""
    reasons = {value for name, value in vars(Reason).items() if name.isupper()}
    assert {name.partition(":")[0] for name in told("Failures")} == reasons


@pytest.mark.parametrize("states", [status.State, health.State])
def test_every_state_is_explained(states: object) -> None:
    """Each state of the service, and of an inbox, stands in the tables of states."""
    assert set(get_args(states)) <= told("States")
