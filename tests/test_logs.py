"""Log lines: their form, what is dropped when the reader is slow, and the ways a stream can end."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from animed import logs

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVEL = {"levelno": logging.WARNING, "levelname": "WARNING"}
MOMENT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


class Terminal(io.StringIO):
    """A stream in memory that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class Gate(io.StringIO):
    """A stream whose reader can stop reading."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.blocked = threading.Event()

    def write(self, text: str) -> int:
        """Block while the gate is closed."""
        if not self.open.is_set():
            self.blocked.set()
        assert self.open.wait(30)
        return super().write(text)


class Full(io.StringIO):
    """A stream on a disk that is full for a while."""

    full = True

    def write(self, text: str) -> int:
        """Fail as a full disk does."""
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@contextmanager
def logging_to(stream: Any, level: str = "info", form: logs.Format = "json") -> Iterator[logs.LogWriter]:
    """Configure logging for one test, and take it away again."""
    writer = logs.configure(level, form, stream=stream, clock=lambda: MOMENT)
    try:
        yield writer
    finally:
        writer.close()
        structlog.reset_defaults()


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def stopped(capacity: int) -> tuple[Gate, logs.LogWriter]:
    """Return a writer that is stuck in its first line, with an empty queue."""
    gate = Gate()
    writer = logs.LogWriter(gate, clock=lambda: MOMENT, capacity=capacity)
    writer.put('{"event": "first"}', level="info")
    assert gate.blocked.wait(30)
    return gate, writer


def test_a_line_is_one_json_object_with_time_level_and_event_first() -> None:
    """A line begins with timestamp (UTC, milliseconds, Z), level and event, and then has its fields."""
    stream = io.StringIO()
    with logging_to(stream):
        structlog.get_logger().info("file.done", inbox="phone", width=3)
    assert list(lines_of(stream)[0].items()) == [
        ("timestamp", "2026-03-01T12:00:00.123Z"),
        ("level", "info"),
        ("event", "file.done"),
        ("inbox", "phone"),
        ("width", 3),
    ]


@pytest.mark.parametrize(
    ("form", "stream", "readable"),
    [
        ("auto", io.StringIO(), False),
        ("auto", Terminal(), True),
        ("console", io.StringIO(), True),
        ("json", Terminal(), False),
    ],
)
def test_auto_asks_the_stream(form: logs.Format, stream: io.StringIO, readable: bool) -> None:
    """Format auto writes JSON unless the stream is a terminal; the other two do as they say."""
    with logging_to(stream, form=form):
        structlog.get_logger().info("daemon.ready")
    assert stream.getvalue().startswith("{") is not readable
    assert "daemon.ready" in stream.getvalue()


def test_level_filters_and_can_be_changed_while_running() -> None:
    """Lines below the level are not written, and `apply` changes it for loggers that are already in use."""
    stream = io.StringIO()
    with logging_to(stream) as writer:
        logger = structlog.get_logger()
        logger.debug("one")
        logs.apply(writer, "debug", "json")
        logger.debug("two")
    assert [line["event"] for line in lines_of(stream)] == ["two"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=80)
@given(value=_VALUES)
def test_any_value_makes_one_line_of_valid_json_in_utf8(value: object) -> None:
    """Whatever a field holds, also lone surrogates, bytes and numbers without end, the line is strict JSON in UTF-8."""
    stream = io.StringIO()
    with logging_to(stream):
        structlog.get_logger().info("event", value=value)
    text = stream.getvalue()
    assert text.count("\n") == 1
    json.loads(text.encode(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize("lone", [chr(0xD800), chr(0xDCFF), f"a{chr(0xDFFF)}b"])
def test_lone_surrogates_become_escapes(lone: str) -> None:
    """A lone surrogate, whether of a file name or not, comes out as a visible escape."""
    stream = io.StringIO()
    with logging_to(stream):
        structlog.get_logger().info("event", value=lone)
    assert "\\" in lines_of(stream)[0]["value"]


def test_a_terminal_is_not_steered_by_a_file_name() -> None:
    """Readable lines escape control characters, so that a name can neither colour nor forge a line."""
    stream = io.StringIO()
    with logging_to(stream, form="console"):
        structlog.get_logger().info("file.done", path="a\x1b[2J\nforged\u202e", more=["\x07"])
    assert stream.getvalue().count("\n") == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(stream.getvalue())


@settings(deadline=None, max_examples=80)
@given(raw=st.binary(min_size=1))
def test_path_fields_keep_every_byte(raw: bytes) -> None:
    """A path that is UTF-8 is one field as it is; any other has its raw bytes beside it in base64."""
    fields = logs.path_fields(raw, "output")
    if "output_b64" in fields:
        assert base64.b64decode(fields["output_b64"]) == raw
        assert "\\x" in fields["output"]
    else:
        assert fields == {"output": raw.decode()}


def test_path_fields_take_text() -> None:
    """A path as text with surrogate escapes gives the same fields as its bytes."""
    assert logs.path_fields(os.fsdecode(b"/a/\xff")) == {"path": "/a/\\xff", "path_b64": "L2Ev/w=="}


def test_messages_of_libraries_become_lines_without_tracebacks() -> None:
    """Warnings and errors of libraries are lines with their logger's name, and an exception is one field."""
    stream = io.StringIO()
    with logging_to(stream) as writer:
        library = logging.getLogger("some.library")
        library.info("hidden")
        library.warning("seen %d", 5)
        # Given to the handler itself: the test runner's own handler refuses arguments that do not fit.
        logs._Library(writer).emit(
            logging.makeLogRecord({"msg": "bad %d", "args": ("x",), "name": library.name, **LEVEL})
        )
        library.error("caught", exc_info=OSError(5, "broken"))
    found = lines_of(stream)
    assert [(line["event"], line["level"], line["message"]) for line in found] == [
        ("library.message", "warning", "seen 5"),
        ("library.message", "warning", "bad %d"),
        ("library.message", "error", "caught"),
    ]
    assert {line["logger"] for line in found} == {"some.library"}
    assert found[2]["error"] == "OSError: [Errno 5] broken"
    assert "Traceback" not in stream.getvalue()


def test_close_takes_the_library_handler_away() -> None:
    """After close, the root logger is as it was before."""
    before = list(logging.getLogger().handlers)
    with logging_to(io.StringIO()):
        assert len(logging.getLogger().handlers) == len(before) + 1
    assert logging.getLogger().handlers == before


def test_debug_goes_first_then_info_and_outcomes_last() -> None:
    """With a blocked reader, debug stops at half the queue, info at nine tenths, and outcomes fill it."""
    gate, writer = stopped(100)
    for number in range(100):
        writer.put(f'{{"event": "debug{number}"}}', level="debug")
    for number in range(100):
        writer.put(f'{{"event": "info{number}"}}', level="info")
    for number in range(20):
        writer.put(f'{{"event": "done{number}"}}', level="info", outcome=True)
    assert writer.dropped == 50 + 60 + 10
    gate.open.set()
    assert writer.close(30)
    found = lines_of(gate)
    events = [line["event"] for line in found]
    assert [sum(event.startswith(kind) for event in events) for kind in ("debug", "info", "done")] == [50, 40, 10]
    told = next(line for line in found if line["event"] == "log.dropped")
    assert (told["debug"], told["info"], told["important"], told["level"]) == (50, 60, 10, "warning")


def test_a_blocked_reader_costs_one_short_wait_not_one_per_line() -> None:
    """When a wait for room was in vain, further lines do not wait again until something was written."""
    gate, writer = stopped(1)
    writer.put('{"event": "fills"}', level="error")
    writer.put('{"event": "waits"}', level="error")
    assert writer._stuck
    for _ in range(10_000):
        writer.put('{"event": "more"}', level="error")
    assert writer.dropped == 10_001
    gate.open.set()
    assert writer.close(30)


def test_flush_says_whether_everything_was_written() -> None:
    """Flush returns False when the time is over first, and True once all lines are out."""
    gate, writer = stopped(10)
    assert not writer.flush(0.01)
    gate.open.set()
    assert writer.flush(30)
    assert writer.close(30)


def test_a_reader_that_left_ends_writing_but_not_the_program() -> None:
    """EPIPE stops all writing: later lines and flush neither fail nor wait."""
    reader, end = os.pipe()
    os.close(reader)
    with open(end, "w", encoding="utf-8") as stream:
        writer = logs.LogWriter(stream)
        for _ in range(20_000):
            writer.put("x" * 100, level="error")
        assert writer.flush(30)
        assert writer.close(30)
        writer.put("after", level="error")
    assert writer.dropped == 0


def test_a_full_disk_costs_lines_and_is_told_of() -> None:
    """ENOSPC loses lines, which are counted, and writing goes on when there is room again."""
    stream = Full()
    writer = logs.LogWriter(stream, clock=lambda: MOMENT)
    writer.put("lost", level="info")
    assert writer.flush(30)
    assert writer.dropped == 1
    stream.full = False
    writer.put('{"event": "kept"}', level="info")
    assert writer.close(30)
    assert [line["event"] for line in lines_of(stream)] == ["kept", "log.dropped"]
    assert lines_of(stream)[1]["lost"] == 1


def test_a_descriptor_that_does_not_block_gets_whole_lines() -> None:
    """Lines larger than a pipe arrive whole through a descriptor in non-blocking mode."""
    reader, end = os.pipe()
    os.set_blocking(end, False)
    sent = [json.dumps({"event": "long", "text": str(number) * 200_000}) for number in range(3)]
    got: list[bytes] = []

    def read() -> None:
        with open(reader, "rb") as source:
            got.extend(source.read().splitlines())

    thread = threading.Thread(target=read)
    with open(end, "w", encoding="utf-8") as stream:
        writer = logs.LogWriter(stream)
        for line in sent:
            writer.put(line, level="info")
        thread.start()
        assert writer.close(60)
    thread.join(60)
    assert [line.decode() for line in got] == sent


def test_a_line_that_was_cut_does_not_spoil_the_next(tmp_path: Any) -> None:
    """After a write that failed in the middle, the next line begins on a line of its own."""
    with open(tmp_path / "log", "w", encoding="utf-8") as stream:
        sink = logs._Descriptor(stream.fileno())
        sink._torn = True
        sink.write("next\n")
        sink.write("last\n")
    assert (tmp_path / "log").read_text().splitlines() == ["", "next", "last"]
