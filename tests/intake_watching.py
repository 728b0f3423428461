"""A watched folder for tests, with the real inotify."""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from animed.intake.inotify import Reader
from animed.intake.rules import Rules
from animed.intake.scan import Found, Scanner
from animed.intake.watch import Hint, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RULES = Rules(extensions=["jpg"])
PATIENCE = 30.0  # seconds; only ever waited for when something is broken


class Inbox:
    """A watched folder, and the hints it gave."""

    def __init__(self, root: Path, reader: Callable[[], Reader] = Reader) -> None:
        self.root = root
        self.hints: deque[Hint] = deque()
        self.watch = Watch(str(root), self.hints.append, rules=RULES, reader=reader)
        self._fences = count()

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Wait until it is so."""
        deadline = time.monotonic() + PATIENCE
        while not wanted():
            assert time.monotonic() < deadline, f"no such hint among {list(self.hints)}"
            time.sleep(0.01)

    def collect(self) -> set[tuple[str, bytes]]:
        """Return all hints of what was done before now: events come in order, so a last one closes the row."""
        fence = f"fence{next(self._fences)}.jpg"
        (self.root / fence).touch()
        self.wait(lambda: Hint("file", fence.encode()) in list(self.hints))
        found: set[tuple[str, bytes]] = {
            (hint.kind, hint.path) for hint in self.hints if not hint.path.startswith(b"fence")
        }
        self.hints.clear()
        return found

    def covered(self) -> set[bytes]:
        """Return the photos that the hints lead to, as a reader of hints finds them."""
        paths = set()
        for kind, path in self.collect():
            if kind == "folder":
                paths |= {e.path for e in Scanner(str(self.root), RULES).scan(path) if isinstance(e, Found)}
            else:
                paths.add(path)
        return {path for path in paths if (self.root / os.fsdecode(path)).is_file() and b"fence" not in path}


@contextmanager
def watching(root: Path, reader: Callable[[], Reader] = Reader) -> Iterator[Inbox]:
    """Watch a folder for the length of a test."""
    inbox = Inbox(root, reader)
    inbox.watch.start()
    try:
        yield inbox
    finally:
        inbox.watch.stop()
