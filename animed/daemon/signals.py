"""Signals are only recorded when they arrive; the loop acts on them when it turns."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the interpreter has written the signal's number to the wake-up descriptor already."""


class Signals:
    """Collects signals through the interpreter's wake-up descriptor, and gives the old handlers back."""

    def __init__(self, watched: Iterable[signal.Signals] = WATCHED) -> None:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        self._write.setblocking(False)  # noqa: FBT003 - the same
        self._old_fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._old = {number: signal.signal(number, _ignore) for number in watched}

    def fileno(self) -> int:
        """Return the descriptor that is readable when a signal has come."""
        return self._read.fileno()

    def drain(self) -> list[signal.Signals]:
        """Take the signals that have come, in order; others than the watched ones are dropped."""
        try:
            numbers = self._read.recv(4096)
        except BlockingIOError:
            return []
        return [signal.Signals(number) for number in numbers if number in self._old]

    def close(self) -> None:
        """Put the old handlers back."""
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_fd)
        self._read.close()
        self._write.close()


def die_by(number: signal.Signals) -> None:
    """End this process by the signal that asked it to stop, so that its exit status tells the truth."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
