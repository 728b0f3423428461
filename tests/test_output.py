"""Whatever a worker writes becomes whole lines of bounded length and number."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from animed.engine.output import LINES_A_WINDOW, MAX_LINE, WINDOW, Lines, Output


@given(st.lists(st.binary(max_size=20)))
def test_lines_do_not_depend_on_how_they_arrive(pieces: list[bytes]) -> None:
    """The same bytes give the same lines, in one piece or in many."""
    whole, parts = Lines(), Lines()
    expected = whole.feed(b"".join(pieces), 0.0) + whole.end()
    found = [line for piece in pieces for line in parts.feed(piece, 0.0)] + parts.end()
    assert found == expected


def test_an_endless_line_comes_in_pieces() -> None:
    """A line without an end does not grow in memory."""
    lines = Lines()
    found = lines.feed(b"x" * (MAX_LINE + 5), 0.0)
    assert [len(line) for line in found] == [MAX_LINE]
    assert lines.feed(b"y\n", 0.0) == ["xxxxxy"]


def test_a_flood_is_counted_and_told_later() -> None:
    """Beyond the number that a window admits, lines are dropped and their count is told in the next one."""
    lines = Lines()
    found = lines.feed(b"a\n" * (LINES_A_WINDOW + 7), 0.0)
    assert len(found) == LINES_A_WINDOW
    assert lines.feed(b"b\n", WINDOW) == ["… 7 more lines were dropped", "b"]


def test_the_end_tells_everything() -> None:
    """The end gives out the unfinished line and the count of what was dropped."""
    lines = Lines()
    lines.feed(b"a\n" * (LINES_A_WINDOW + 1) + b"rest", 0.0)
    assert lines.end() == ["… 1 more lines were dropped", "rest"]


def test_a_pipe_is_read_until_it_ends() -> None:
    """An output is open until its pipe says that nobody writes any more."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    output = Output(reader, "stderr")
    assert output.read(0.0) == []
    os.write(writer, b"one\r\ntwo")
    assert (output.read(0.0), output.open) == (["one"], True)
    os.close(writer)
    assert (output.read(0.0), output.open) == (["two"], False)
    os.close(reader)
