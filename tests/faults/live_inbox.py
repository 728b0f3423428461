"""One inbox of the daemon with its real thread, its real watch and real folders; only the loop is the test's.

The clock is the real one and a made-up rest, so that a test need not wait for what is due in five minutes.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from daemon_bench import RECIPE
from daemon_fakes import ListLog

from animed.config import InboxConfig
from animed.daemon.inbox import Inbox
from animed.daemon.iothread import Answer, IoThread
from animed.daemon.mailbox import Mailbox
from animed.daemon.putting import Delivery
from animed.daemon.recipes import Recipes, stage_of, temp_prefix
from animed.daemon.setup import Setup
from animed.intake.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from animed.intake.scan import Found
    from animed.intake.watch import Hint
    from animed.records import PhotoKey, Sighting
    from animed.system import System

PATIENCE = 60.0  # seconds; only ever waited for when something is broken


class Fence:
    """A request that touches nothing: when it is answered, those before it were."""

    def run(self, beat: Callable[[], None], system: System) -> None:
        """Answer."""


class Finds:
    """Takes what the inbox finds, and remembers what is known already."""

    def __init__(self) -> None:
        self.settled_paths: list[bytes] = []
        self.left_out: list[tuple[bytes, str]] = []
        self.scans = 0
        self._known: dict[bytes, tuple[int, int]] = {}

    def found(self, inbox: Inbox, entries: list[Found], now: float) -> None:
        """Let settle what is new."""
        for entry in entries:
            if self._known.get(entry.path) != (entry.stat.size, entry.stat.mtime_ns):
                inbox.hint(entry.path, now, entry.stat)

    def settled(self, sighting: Sighting, now: float) -> None:
        """Take each version of a photo once."""
        path, version = sighting.key.path, (sighting.stat.size, sighting.stat.mtime_ns)
        if self._known.get(path) != version:
            self._known[path] = version
            self.settled_paths.append(path)

    def ignored(self, key: PhotoKey, rule: str) -> None:
        """Keep what is left out."""
        self.left_out.append((key.path, rule))

    def scanned(self, inbox: Inbox, now: float) -> None:
        """Count."""
        self.scans += 1

    def empty(self, sighting: Sighting, now: float) -> None:
        """Do nothing."""

    def vanished(self, key: PhotoKey, now: float, *, seen: bool) -> None:
        """Do nothing."""

    def waiting(self, key: PhotoKey) -> None:
        """Do nothing."""

    def up(self, inbox: Inbox, now: float) -> None:
        """Do nothing."""


class LiveInbox:
    """The inbox below `root`, and a loop that turns when the test says so."""

    def __init__(self, root: Path, *, deliver: Callable[[Hint], None] | None = None, **keys: Any) -> None:
        self.root, self.output = root / "inbox", root / "outbox"
        for folder in (self.root, self.output):
            folder.mkdir(exist_ok=True)
        self.skipped = 0.0
        self._passed: list[Fence] = []
        self.log = ListLog()
        self.finds = Finds()
        self._mailbox: Mailbox[Any] = Mailbox()
        settings: dict[str, Any] = {"watch": "native", "stable_for": 0.2, "rescan_interval": 300.0} | keys
        config = InboxConfig(name="phone", path=self.root, output=self.output, **settings)
        rules = Rules(extensions=config.extensions, ignore=config.ignore)
        delivery = Delivery(str(self.output), stage_of(config, "inst", "run"), None, None)
        log: Any = self.log
        self.inbox = Inbox(
            Setup(config, Recipes({RECIPE.style: RECIPE}), delivery, rules, min_free=0),
            thread=IoThread("phone", self._mailbox.post, clock=self.now),
            hints=deliver or partial(self._mailbox.post), log=log, temp_prefix=temp_prefix("inst"), outputs=set(),
        )  # fmt: skip
        self.inbox.start()

    def now(self) -> float:
        """Return the time of this inbox's world."""
        return time.monotonic() + self.skipped

    @property
    def taken(self) -> list[bytes]:
        """Return the photos that were complete, in order."""
        return self.finds.settled_paths

    def turn(self) -> None:
        """Take in what has come, and do what is due."""
        for post in self._mailbox.drain():
            if isinstance(post, Answer) and isinstance(post.request, Fence):
                self._passed.append(post.request)
            elif isinstance(post, Answer):
                self.inbox.answered(post, self.finds, self.now())
            else:
                self.inbox.hinted(post, self.finds, self.now())
        self.inbox.tick(self.finds, self.now())

    def until(self, condition: Callable[[], object]) -> None:
        """Turn until a condition holds."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, (self.taken, self.log.lines)
            self.turn()
            time.sleep(0.005)

    def ready(self) -> None:
        """Wait until the inbox is watched and its first scan is over."""
        self.until(lambda: self.finds.scans and (self.inbox.watching.live or self.inbox.watching.mode != "native"))

    def skip(self, seconds: float) -> None:
        """Let time pass in which nothing happens: what was asked of the thread before has been answered and taken."""
        fence = Fence()
        self.inbox.ask(fence)
        self.until(lambda: fence in self._passed and not self.inbox.scans.running)
        self.skipped += seconds

    def write(self, name: str, content: bytes = b"photo") -> bytes:
        """Put a photo into the inbox, and return its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name.encode()

    def close(self) -> None:
        """Leave no thread and no descriptor."""
        self.inbox.stop()
        self.inbox.thread.stop()
        assert self.inbox.thread.join(PATIENCE)
        self._mailbox.close()


@contextmanager
def living(root: Path, **keys: Any) -> Iterator[LiveInbox]:
    """Run an inbox for the length of a test."""
    live = LiveInbox(root, **keys)
    try:
        yield live
    finally:
        live.close()
