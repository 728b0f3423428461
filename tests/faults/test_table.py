"""The table of known faults tells the truth: no case is missing, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).resolve().parent
LATER: Final = "with the feature"
CASES: Final = [
    *(1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18),
    *(20, 21, 22, 23, 24, 25, 27, 28, 29, 30),
    *(31, 32, 33, 34, 35, 36, 38, 39, 41, 42, 43, 44, 46, 48, 50),
    *(51, 52, 53, 54, 55, 56, 57, 59, 61, 62, 63),
    *(64, 65, 67, 68, 69, 70, 71, 72, 73, 74, 76, 77),
    *(78, 79, 80, 82, 83, 84, 85),
    *(86, 87, 88, 89, 90, 91, 93, 95, 96, 97),
    *(98, 99, 100, 101, 102, 103, 104, 105, 107, 108, 109, 110),
    *(111, 112, 113, 115, 117, 118, 119, 121),
    *(123, 125, 126, 127, 129, 130, 131, 132, 133, 134),
    *(135, 137, 138, 139, 140, 141, 142, 143, 144, 146, 147, 149, 150, 151, 153, 154, 155),
]


def rows() -> list[list[str]]:
    """Return the cells of each case."""
    lines = (HERE / "README.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if re.match(r"\| \d+ \|", line)]


def number_of(row: list[str]) -> int:
    return int(row[0])


@cache
def functions(file: Path) -> frozenset[str]:
    """Return the names of the tests in a file; none where there is no such file."""
    if not file.exists():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def missing(row: list[str]) -> list[str]:
    """Return the tests that a case names and that are not there."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row[2])
    return [f"{file}::{name}" for file, name in named if name not in functions(HERE.parent / file)]


def test_every_case_is_in_the_table_once() -> None:
    """The table has the cases of the list, in their order."""
    assert [number_of(row) for row in rows()] == CASES


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_case_has_its_test(row: list[str]) -> None:
    """A case names its report, tests that exist, and what they found; one whose feature is to come says so."""
    case, report, tests, found = row
    assert report, case
    assert found, case
    if LATER not in found:
        assert "::" in tests, case
        assert missing(row) == []


def test_every_test_here_is_in_the_table() -> None:
    """No test of this folder is left over."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    every = {
        f"faults/{file.name}::{name}"
        for file in HERE.glob("test_*.py")
        if file != Path(__file__)
        for name in functions(file)
        if name.startswith("test_")
    }
    assert sorted(name for name in every if f"`{name}`" not in text) == []
