"""docs/formats.md lists the formats and reasons that there are, and no other."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Final, get_args

import pytest

from animed.config import InboxConfig
from animed.daemon.recipes import likely_ext
from animed.imaging import encode, sniff
from animed.records import SUFFIXES, OutputFormat, Reason

TOP: Final = Path(__file__).parent.parent
PAGE: Final = (TOP / "docs" / "formats.md").read_text()


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def first(heading: str) -> list[str]:
    return [row[0].strip("`") for row in rows(heading)]


def test_every_format_of_photos_is_listed() -> None:
    """The table of photos names each kind that content is known by, once."""
    assert sorted(first("Photos")) == sorted(get_args(sniff.Kind))


def test_every_ending_is_listed() -> None:
    """The endings in the table are those that `extensions` has by itself."""
    endings = {ending for row in rows("Photos") for ending in re.findall(r"\w+", row[1])}
    assert endings == set(InboxConfig.model_fields["extensions"].default)


def test_every_format_of_pictures_is_listed() -> None:
    """The table of pictures has each format with its ending, and they are what the configuration takes."""
    assert {row[0].strip("`"): row[1] for row in rows("Pictures")} == dict(SUFFIXES)
    assert set(first("Pictures")) == set(get_args(OutputFormat)) - {"same"}


@pytest.mark.parametrize("kind", get_args(sniff.Kind))
def test_the_ending_of_a_picture_is_foreseen(kind: sniff.Kind) -> None:
    """By a photo's name the daemon expects the ending that a worker gives to the picture of its kind."""
    (endings,) = (re.findall(r"\w+", row[1]) or ["dng"] for row in rows("Photos") if row[0] == f"`{kind}`")
    inbox = InboxConfig.model_validate({"name": "phone", "path": Path("/in"), "output": Path("/out")})
    foreseen = {likely_ext(inbox, f"a/photo.{ending}".encode()) for ending in endings}
    assert foreseen == {SUFFIXES[encode.output_format(kind, "same")]}


@pytest.mark.parametrize("kind", get_args(sniff.Kind))
def test_what_same_makes_of_a_format(kind: sniff.Kind) -> None:
    """The sentence about `same` names each kind beside what becomes of it."""
    (sentence,) = re.findall(r"`output_format: same` keeps (.*?)\. Pictures", section("Pictures"), re.DOTALL)
    kept, _, changed = sentence.partition(";")
    made = encode.output_format(kind, "same")
    if made == kind:
        assert kind in re.findall(r"\w+", kept)
    else:
        (part,) = (part for part in re.split(r",(?= tiff)", changed) if re.search(rf"\b{kind}\b", part))
        assert part.split()[-1] == made


def test_every_reason_is_listed() -> None:
    """The table of reasons names each one, with when it comes and what to do."""
    found = {name.partition(":")[0] for name in first("Reasons")}
    assert found == {value for name, value in vars(Reason).items() if name.isupper()}
    assert all(len(row) == 3 and all(row) for row in rows("Reasons"))


def test_every_kind_that_is_refused_is_listed() -> None:
    """The list of other kinds has those that the source tells apart, in order."""
    (sentence,) = re.findall(r"What `unsupported:` names besides: (.*)\.", section("Photos"))
    listed = re.findall(r"`(\w+)`", sentence)
    assert listed == sorted(listed)
    tree = ast.parse(inspect.getsource(sniff))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert set(listed) <= texts
    assert {kind for _, kind in sniff._UNSUPPORTED} <= set(listed)
