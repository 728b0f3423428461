"""What commands print, on a terminal and in a pipe."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.commands.output import called, counted, duration, say_json, say_table, shown, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (18_725, "5 h 12 min"),
        (183_601, "2 d 3 h"),
    ],
)
def test_times_are_said_in_two_units(seconds: float | None, text: str) -> None:
    """A time has its two largest units, rounded to whole seconds first."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 29, "1.5 GiB"), (1 << 51, "2048.0 TiB")],
)
def test_sizes_have_binary_units(count: int, text: str) -> None:
    """A size has the largest unit that it fills, and the largest of all beyond that."""
    assert size(count) == text


def test_a_hint_names_the_configuration_that_was_named() -> None:
    """A command that is recommended can be typed as it stands, also where -c was given and the path has a space."""
    assert called("failed", None) == "animed failed"
    assert called("failed", Path("my photos.yaml")) == "animed failed -c 'my photos.yaml'"


def test_numbers_go_with_their_nouns() -> None:
    """One is singular, everything else plural."""
    assert [counted(count, "photo") for count in (0, 1, 2)] == ["0 photos", "1 photo", "2 photos"]
    assert counted(2, "inbox", "inboxes") == "2 inboxes"


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=40))
def test_a_path_cannot_play_tricks(path: bytes) -> None:
    """Whatever a name holds, it is shown on one line of printable characters."""
    text = shown(path)
    assert text.isprintable()
    assert text.encode("utf-8").decode() == text


def test_escapes_can_be_told_apart() -> None:
    """Control characters, and bytes that are not UTF-8, are escaped; letters of all languages stay."""
    assert shown(b"a\x1b[31m\n\xff") == r"a\x1b[31m\n\xff"
    assert shown("Größe 漢字.jpg") == "Größe 漢字.jpg"


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe no cell is cut or wrapped, however long, and no line ends in blanks; markup is plain text."""
    long = "/photos/" + "x" * 5000
    say_table(("N", "PATH"), [("1", long), ("22", "[bold]y")], right=("N",))
    assert capsys.readouterr().out == f" N  PATH\n 1  {long}\n22  [bold]y\n"


def test_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is escaped so that any pipe can carry it, and reads back the same."""
    value = {"path": "Größe \udcff", "number": math.pi}
    say_json(value)
    said = capsys.readouterr().out
    assert said.isascii()
    assert json.loads(said) == value
