"""A worker's signs of life: what its steps say themselves, and processor time where a library lets nothing be said.

A picture of 100 million pixels is encoded or decoded by one call that takes half a minute, and on a busy machine many
times that. Who computes is not hung. So while such a call is under way a thread looks at the processor time of the
process, and says that it lives for as long as that goes on; up to what the size of the picture may take, because a
library that turns in a circle computes as well. Without such a call the thread sleeps, and nothing wakes it.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Processor time that one step may take, seconds, and the same for a million pixels: the slowest of all that was
# measured (docs/performance.md) takes a tenth of it, and processors that are ten times slower draw no photos.
ALLOWED_S: Final = 60.0
ALLOWED_A_MEGAPIXEL_S: Final = 5.0
# What a look must find to count. Smaller than what the busiest machine leaves to a worker between two looks; what it
# finds less is kept until the next.
LEAST_S: Final = 0.01


class Pulse:
    """Sends signs of life, at most one in an interval; for any number of threads."""

    def __init__(
        self,
        send: Callable[[], None],
        *,
        every: float,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] | None = None,
    ) -> None:
        """`every` is the interval, seconds; `spent` tells the processor time of this process without `look`'s own."""
        self._send = send
        self._every = every
        self._clock = clock
        self._spent = spent or _spent_by_others
        self._sent_at = clock()
        self._lock = threading.Lock()
        self._efforts: dict[Effort, float] = {}  # until which processor time each may take
        self._seen = 0.0  # processor time when life was last seen
        self._some = threading.Event()

    def start(self) -> None:
        """Start the thread that looks."""
        threading.Thread(target=self._look_on, name="pulse", daemon=True).start()

    def beat(self) -> None:
        """Say that work goes on, unless that was said just now."""
        now = self._clock()
        if now - self._sent_at >= self._every:
            self._sent_at = now
            self._send()

    def said(self) -> None:
        """Note that the worker has said something else."""
        self._sent_at = self._clock()

    @contextmanager
    def step(self) -> Iterator[Effort]:
        """Give a step what it shows its life by; what it has announced is over when the step is."""
        effort = Effort(self)
        try:
            yield effort
        finally:
            with self._lock:
                self._efforts.pop(effort, None)

    def announce(self, effort: Effort, pixels: int) -> None:
        """Begin to look after a step that works on so many pixels."""
        with self._lock:
            now = self._spent()
            self._efforts[effort] = now + ALLOWED_S + ALLOWED_A_MEGAPIXEL_S * pixels / 1e6
            if not self._some.is_set():
                self._seen = now
        self._some.set()

    def look(self) -> None:
        """Beat if processor time has passed since the last look that found some, within what a step may take."""
        with self._lock:
            now = self._spent()
            if not any(now < until for until in self._efforts.values()):
                self._some.clear()
                return
            alive = now - self._seen >= LEAST_S
            if alive:
                self._seen = now
        if alive:
            self.beat()

    def _look_on(self) -> None:
        while True:
            self._some.wait()
            time.sleep(self._every)
            self.look()


class Effort:
    """How one step of a photo shows that it goes on."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    def beat(self) -> None:
        """Say that the step goes on."""
        self._pulse.beat()

    def announce(self, pixels: int) -> None:
        """Say that calls follow in which nothing can be said, and how many pixels they work on."""
        self._pulse.announce(self, pixels)


def _spent_by_others() -> float:
    """Return the processor time that this process has taken, without the calling thread's."""
    return time.process_time() - time.thread_time()
