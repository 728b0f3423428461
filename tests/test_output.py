"""Whatever a worker writes becomes whole lines of bounded length and number."""

from __future__ import annotations

import os
import string

from hypothesis import given
from hypothesis import strategies as st

from animed.engine.output import ALIKE_A_WINDOW, LINES_A_WINDOW, MAX_LINE, WINDOW, Lines, Output


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
    found = lines.feed(_different(LINES_A_WINDOW + 7), 0.0)
    assert len(found) == LINES_A_WINDOW
    assert lines.feed(b"b\n", WINDOW) == ["… 7 more lines were dropped", "b"]


def test_lines_that_differ_in_numbers_only_are_told_a_few_times() -> None:
    """A library that complains of every tag of one odd photo does not fill the log, and hides nothing else."""
    lines = Lines()
    complaints = b"".join(b"tag %d is not read\n" % number for number in range(200))
    found = lines.feed(complaints + b"something else\n", 0.0)
    assert found == [*(f"tag {number} is not read" for number in range(ALIKE_A_WINDOW)), "something else"]
    assert lines.feed(b"tag 7 is not read\n", WINDOW) == ["… 195 more lines were dropped", "tag 7 is not read"]


def test_the_end_tells_everything() -> None:
    """The end gives out the unfinished line and the count of what was dropped."""
    lines = Lines()
    lines.feed(_different(LINES_A_WINDOW + 1) + b"rest", 0.0)
    assert lines.end() == ["… 1 more lines were dropped", "rest"]


def _different(count: int) -> bytes:
    letters = string.ascii_letters
    return b"".join(f"{letters[n // 50]}{letters[n % 50]}\n".encode() for n in range(count))


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
