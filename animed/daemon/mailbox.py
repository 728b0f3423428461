"""How the other threads reach the main loop: they post, it wakes and drains."""

from __future__ import annotations

import os
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue of values with a descriptor that the loop can wait on."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def fileno(self) -> int:
        """Return the descriptor that is readable while something waits here."""
        return self._fd

    def post(self, item: T) -> None:
        """Add a value and wake the loop; safe from any thread, never blocks, never raises."""
        self._items.append(item)
        os.eventfd_write(self._fd, 1)

    def drain(self) -> list[T]:
        """Take what has come, in order."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return []
        return [self._items.popleft() for _ in range(len(self._items))]

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
