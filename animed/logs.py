"""Log lines: structured, to one stream, and never in the way of the main loop.

Lines go into a bounded queue that one thread writes out. When the reader of the stream is slow, lines are given up in
the order of what they are worth: debug lines once the queue is half full, info lines once it is nine tenths full, and
outcomes of photos, warnings and errors only when it is full and a short wait has not helped. What was given up is
counted, and `log.dropped` says so as soon as the reader has caught up.
"""

from __future__ import annotations

import base64
import functools
import json
import logging
import math
import os
import select
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

import structlog

from animed.records import printable

Format = Literal["auto", "console", "json"]
Fields = MutableMapping[str, Any]
Render = Callable[[Fields], str]
Clock = Callable[[], datetime]

OUTCOMES: Final = frozenset({"file.done", "file.duplicate", "file.skipped", "file.failed"})
_now: Final = functools.partial(datetime.now, UTC)
CAPACITY: Final = 10_000  # lines
_PATIENCE_S: Final = 0.05  # the longest that one line may hold up its caller
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class LogWriter:
    """The queue of lines and the thread that writes them.

    `put` may be called from any thread. `render` makes a line of fields, and can be replaced. After `close` nothing
    more is written.
    """

    def __init__(self, stream: TextIO, *, clock: Clock = _now, capacity: int = CAPACITY) -> None:
        self.stream = stream
        self.clock = clock
        self.render = _renderer("json", stream, clock)
        self._write = _sink(stream)
        self._capacity = capacity
        self._lines: deque[str] = deque()
        self._changed = threading.Condition()
        self._dropped: Counter[str] = Counter()
        self._writing = False
        self._stuck = False  # A wait for room was in vain, and nothing was written since.
        self._closing = False
        self._gone = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def put(self, line: str, *, level: str, outcome: bool = False) -> None:
        """Queue one line, or count it as dropped."""
        kind = "important" if outcome or _LEVELS[level] >= _LEVELS["warning"] else level
        share = {"debug": 0.5, "info": 0.9}.get(kind, 1.0)
        room = max(1, int(self._capacity * share))
        with self._changed:
            if kind == "important" and not self._stuck and not self._gone and len(self._lines) >= room:
                self._stuck = not self._changed.wait_for(lambda: len(self._lines) < room or self._gone, _PATIENCE_S)
            if self._gone or self._closing:
                return
            if len(self._lines) >= room:
                self._dropped[kind] += 1
                return
            self._lines.append(line)
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until every line is written, at most so many seconds; say whether that was reached."""
        with self._changed:
            return self._changed.wait_for(lambda: self._gone or not (self._lines or self._writing), timeout)

    def close(self, timeout: float = 2.0) -> bool:
        """Write what is left, end the thread, and take the routing of library messages away."""
        _unroute(self)
        done = self.flush(timeout)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout if done else 0)
        return done

    @property
    def dropped(self) -> int:
        """Return how many lines were given up and not yet told of."""
        with self._changed:
            return self._dropped.total()

    def _run(self) -> None:
        """Write lines as they come; asleep while there are none."""
        while (line := self._next()) is not None:
            error: Exception | None = None
            try:
                self._write(f"{line}\n")
            except (OSError, ValueError) as caught:  # ValueError is what a closed stream raises.
                error = caught
            gone = isinstance(error, (ValueError, ConnectionError))
            # A reader that left ends all writing; anything else, such as a full disk, costs this line.
            self._written(lost=error is not None and not gone, gone=gone)

    def _next(self) -> str | None:
        """Return the next line, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closing or self._gone)
            if self._gone or not self._lines:
                return None
            self._writing = True
            return self._lines.popleft()

    def _written(self, *, lost: bool, gone: bool) -> None:
        """Account for one line, and tell of dropped ones when there is room again."""
        with self._changed:
            self._writing, self._stuck, self._gone = False, False, gone
            if lost:
                self._dropped["lost"] += 1
            elif self._dropped and len(self._lines) < max(1, self._capacity // 2):
                counts, self._dropped = self._dropped, Counter()
                self._lines.append(self.render({"event": "log.dropped", "level": "warning", **counts}))
            if gone:
                self._lines.clear()
            self._changed.notify_all()


def configure(level: str, format: Format, *, stream: TextIO, clock: Clock = _now) -> LogWriter:  # noqa: A002 - the key's name.
    """Send what structlog and the logging of libraries say to the stream; returns the writer, to be closed at exit."""
    writer = LogWriter(stream, clock=clock)
    apply(writer, level, format)
    return writer


def apply(writer: LogWriter, level: str, format: Format) -> None:  # noqa: A002 - the key's name.
    """Set level and format, also while running; loggers that were made before follow."""
    writer.render = _renderer(format, writer.stream, writer.clock)
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.format_exc_info, _handover],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _Output(writer),
        cache_logger_on_first_use=False,
    )
    _unroute(None)
    logging.getLogger().addHandler(_Library(writer))
    logging.captureWarnings(capture=True)


def path_fields(path: bytes | str, key: str = "path") -> dict[str, str]:
    """Return a path as fields of a log line: `path`, and `path_b64` with its raw bytes if it is not UTF-8."""
    raw = path if isinstance(path, bytes) else os.fsencode(path)
    fields = {key: printable(raw)}
    try:
        raw.decode()
    except UnicodeDecodeError:
        fields[f"{key}_b64"] = base64.b64encode(raw).decode()
    return fields


class _Output:
    """What a bound logger writes to: every level ends here."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    def msg(self, fields: Fields) -> None:
        """Render and queue one line."""
        line = self._writer.render(fields)
        self._writer.put(line, level=fields["level"], outcome=fields["event"] in OUTCOMES)

    debug = info = warning = error = critical = msg


class _Library(logging.Handler):
    """Turns warnings and errors of libraries into lines of ours, without tracebacks."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__(logging.WARNING)
        self.writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)  # Its arguments do not fit its text.
        error = record.exc_info[1] if record.exc_info else None
        more = {"error": f"{type(error).__name__}: {error}"} if error else {}
        level = next(word for word, least in reversed(_LEVELS.items()) if record.levelno >= least)
        getattr(structlog.get_logger(), level)("library.message", logger=record.name, message=message, **more)


def _unroute(writer: LogWriter | None) -> None:
    """Take our handlers of a writer (of any, if None) away from the root logger."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if isinstance(handler, _Library)]
    for handler in (handler for handler in ours if writer in {None, handler.writer}):
        root.removeHandler(handler)
        logging.captureWarnings(capture=False)


def _handover(_logger: object, _method: str, fields: Fields) -> tuple[tuple[Fields], dict[str, Any]]:
    """Pass the fields on to the output as they are."""
    return (fields,), {}


def _renderer(format: Format, stream: TextIO, clock: Clock) -> Render:  # noqa: A002 - the key's name.
    """Return what makes a line of fields."""
    readable = format == "console" or (format == "auto" and stream.isatty())
    if not readable:
        return lambda fields: json.dumps(_complete(fields, clock()), ensure_ascii=False)
    colors, plain = stream.isatty() and "NO_COLOR" not in os.environ, structlog.dev.plain_traceback
    # Not sorted: what a person looks for stands first, the inbox, the photo, the picture.
    console = structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False, exception_formatter=plain)
    return lambda fields: str(console(None, "", _visible(_complete(fields, clock()))))


def _complete(fields: Fields, now: datetime) -> dict[str, Any]:
    """Return the fields of a line in order, with the time, as values that JSON can hold."""
    stamp = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    rest = {str(key): _plain(value) for key, value in fields.items() if key not in {"timestamp", "level", "event"}}
    return {"timestamp": stamp, "level": fields["level"], "event": _plain(fields["event"]), **rest}


def _plain(value: object) -> object:
    """Return a value that is valid in JSON and in UTF-8."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(inner) for inner in value]
    return printable(value) if isinstance(value, bytes) else _text(str(value))


def _text(value: str) -> str:
    """Return text without lone surrogates; those that stand for the bytes of a file name become escapes of bytes."""
    try:
        return printable(value)
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")


def _visible(fields: dict[str, Any]) -> dict[str, Any]:
    """Escape what could steer a terminal (the lines of a traceback stay lines); leave out what has no value."""
    return {key: value if key == "exception" else _shown(value) for key, value in fields.items() if value is not None}


def _shown(value: object) -> object:
    """Return a value whose text has no control characters."""
    if isinstance(value, str) and not value.isprintable():
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in value)
    if isinstance(value, list):
        return [_shown(inner) for inner in value]
    return {key: _shown(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _sink(stream: TextIO) -> Callable[[str], None]:
    """Return what writes a line: to the descriptor where there is one, because a stuck buffer cannot be closed."""
    try:
        return _Descriptor(stream.fileno()).write
    except (OSError, ValueError):  # A stream in memory has no descriptor.
        return lambda line: (stream.write(line), stream.flush())[1]


class _Descriptor:
    """Writes whole lines to a file descriptor, which may be one that does not block."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._torn = False  # The last line was cut by an error.

    def write(self, line: str) -> None:
        """Write one line; OSError if that cannot be done."""
        rest = (b"\n" if self._torn else b"") + line.encode("utf-8", "backslashreplace")
        whole = len(rest)
        try:
            while rest:
                rest = rest[self._some(rest) :]
        finally:
            self._torn = 0 < len(rest) < whole or (self._torn and len(rest) == whole)

    def _some(self, data: bytes) -> int:
        """Write as much as fits; 0 after waiting for room."""
        try:
            return os.write(self._number, data)
        except BlockingIOError:
            waiting = select.poll()
            waiting.register(self._number, select.POLLOUT)
            waiting.poll()
            return 0
