"""A worker's own stdout and stderr as lines: joined, cut when endless, counted when there are too many."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Final, Literal

MAX_LINE: Final = 4 * 1024  # bytes; with LINES_A_WINDOW it bounds what one program can put into the log
READ: Final = 64 * 1024
READS_A_TURN: Final = 4  # so that a worker that never stops talking cannot hold the loop
WINDOW: Final = 10.0  # seconds
LINES_A_WINDOW: Final = 200
ALIKE_A_WINDOW: Final = 5  # that differ in digits only: libraries complain of each tag and each row of an odd photo
_DIGITS: Final = re.compile(rb"[0-9]+")


class Lines:
    """Cut a stream of bytes into lines, at most LINES_A_WINDOW of them, ALIKE_A_WINDOW of a sort, in WINDOW seconds."""

    def __init__(self) -> None:
        self._rest = b""
        self._window_at = float("-inf")
        self._admitted: Counter[bytes] = Counter()  # in this window, by what they are without digits
        self._dropped = 0

    def feed(self, data: bytes, now: float) -> list[str]:
        """Take bytes in, give whole lines out; an endless line comes in pieces of MAX_LINE bytes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        lines = [piece for line in whole for piece in _pieces(line)]
        while len(self._rest) > MAX_LINE:
            lines.append(self._rest[:MAX_LINE])
            self._rest = self._rest[MAX_LINE:]
        return self._admit(lines, now)

    def end(self) -> list[str]:
        """Give out what is left when the stream is over: the unfinished line and the count of what was dropped."""
        rest, self._rest = self._rest, b""
        return self._report_dropped() + [_text(piece) for piece in _pieces(rest) if piece]

    def _admit(self, lines: list[bytes], now: float) -> list[str]:
        admitted: list[str] = []
        if lines and now - self._window_at >= WINDOW:
            self._window_at = now
            self._admitted.clear()
            admitted = self._report_dropped()
        for line in lines:
            sort = _DIGITS.sub(b"", line)
            if self._admitted.total() >= LINES_A_WINDOW or self._admitted[sort] >= ALIKE_A_WINDOW:
                self._dropped += 1
                continue
            self._admitted[sort] += 1
            admitted.append(_text(line))
        return admitted

    def _report_dropped(self) -> list[str]:
        dropped, self._dropped = self._dropped, 0
        return [f"… {dropped} more lines were dropped"] if dropped else []


class Output:
    """One output pipe of a worker. The descriptor must not block; it belongs to the process handle."""

    def __init__(self, fd: int, stream: Literal["stdout", "stderr"]) -> None:
        self.fd = fd
        self.stream = stream
        self.open = True
        self._lines = Lines()

    def read(self, now: float) -> list[str]:
        """Return the lines that are there now; at the end of the stream, the rest too."""
        lines: list[str] = []
        for _ in range(READS_A_TURN if self.open else 0):
            try:
                data = os.read(self.fd, READ)
            except BlockingIOError:
                break
            if not data:
                return lines + self.finish()
            lines += self._lines.feed(data, now)
        return lines

    def finish(self) -> list[str]:
        """Declare the stream over and return the rest of it."""
        self.open = False
        return self._lines.end()


def _pieces(line: bytes) -> list[bytes]:
    return [line[at : at + MAX_LINE] for at in range(0, len(line), MAX_LINE)] or [b""]


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "backslashreplace")
