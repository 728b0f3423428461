"""Turns the kernel's file events into hints. A hint is never the truth: it says where to look.

Three threads (reader, emitter, dispatcher) wait without a timeout, so that an idle inbox costs nothing. Any of them
can end while the others live on: ask `health`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver

from animed.errors import AnimedError, PlaceError
from animed.intake.filesystem import InotifyLimits, inotify_limits
from animed.intake.inotify import LIMITS, Emitter, Reader
from animed.intake.scan import root_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.intake.rules import Rules

# Without the kinds "opened" and "closed without a write" the kernel does not even report that we read a photo.
_EVENTS: Final[list[type[FileSystemEvent]]] = [
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
]


@dataclass(frozen=True, slots=True)
class Hint:
    """Where to look: one file, a folder and everything below it, or (events were lost) everything.

    "folder" with the path b"" is the root itself: it was removed, ask `root_identity`.
    """

    kind: Literal["file", "folder", "everything"]
    path: bytes = b""


class WatchLimitError(AnimedError):
    """The kernel has no room for the watches that are needed; scan regularly instead."""

    def __init__(self, code: int, root: str, limits: InotifyLimits) -> None:
        name, value = _limit_of(code, limits)
        now = "" if value is None else f" (now {value})"
        super().__init__(
            f"the inbox cannot be watched: {os.strerror(code)}",
            remedy=f"raise {name}{now}, or set watch: poll",
            path=root,
        )
        self.code = code


class Watch:
    """Watches one inbox from `start` to `stop`; a new one is needed to watch again.

    `sink` gets every hint, in watchdog's threads: it must only append to a deque and wake the loop, and never raise.
    Hints of files are not judged; folders that `rules` ignore are not watched. `reader` makes the inotify reader.
    """

    def __init__(
        self, root: str, sink: Callable[[Hint], None], *, rules: Rules, reader: Callable[[], Reader] = Reader
    ) -> None:
        self._root = root
        self._real = root
        self._sink = sink
        self._rules = rules
        self._make_reader = reader
        self._reader: Reader | None = None
        self._observer: BaseObserver | None = None
        self._emitter: Emitter | None = None
        self.overflows = 0

    def start(self) -> None:
        """Watch the whole tree; returns when every folder is watched, so that a scan afterwards misses nothing.

        Raises WatchLimitError (no room for the watches), PlaceError (the root cannot be watched).
        """
        root_identity(self._root)
        self._real = os.path.realpath(self._root)  # A watch on a link would watch the link itself.
        try:
            self._start()
        except OSError as error:
            self.stop()
            code = error.errno or errno.EIO
            if code in LIMITS:
                raise WatchLimitError(code, self._root, inotify_limits()) from error
            raise PlaceError("inbox", code, self._root, f"the inbox cannot be watched: {os.strerror(code)}") from error
        except RuntimeError as error:  # The system has no room for the threads.
            self.stop()
            raise WatchLimitError(errno.EMFILE, self._root, inotify_limits()) from error

    def stop(self) -> None:
        """Stop watching, and wait until the threads have ended. Safe to call twice, and after a failed start."""
        observer, self._observer = self._observer, None
        reader, self._reader = self._reader, None
        if observer is not None:
            observer.stop()
            if observer.ident is not None:
                observer.join()
        if reader is not None:
            reader.stop()
            if reader.ident is not None:
                reader.join()
            reader.release()

    def health(self) -> str | None:
        """Return what has died, or None. Then `stop`, make a new watch, `start` it, and scan."""
        emitter = self._emitter
        if self._observer is None or self._reader is None or emitter is None or emitter.group is None:
            return "the watch was not started"
        threads = {"observer": self._observer, "emitter": emitter, "inotify reader": self._reader}
        dead = [name for name, thread in threads.items() if not thread.is_alive()]
        if dead:
            return f"thread ended: {', '.join(dead)}"
        if not emitter.group.watches_root:
            return "the root is watched no more: it was removed or unmounted"
        if emitter.group.limit:
            return str(WatchLimitError(emitter.group.limit, self._root, inotify_limits()))
        return None

    @property
    def watched(self) -> int:
        """Count the folders that are watched."""
        return 0 if self._emitter is None or self._emitter.group is None else self._emitter.group.watched

    def _start(self) -> None:
        self._reader = self._make_reader()
        self._reader.start()
        self._observer = BaseObserver(
            Emitter, inotify_fd=self._reader, prune=self._is_pruned, overflowed=self._report_overflow
        )
        self._observer.schedule(_Handler(self._real, self._sink), self._real, recursive=True, event_filter=_EVENTS)
        self._emitter = next(emitter for emitter in self._observer.emitters if isinstance(emitter, Emitter))
        self._observer.start()
        limit = 0 if self._emitter.group is None else self._emitter.group.limit
        if limit:
            raise OSError(limit, os.strerror(limit), self._root)

    def _is_pruned(self, path: bytes) -> bool:
        return self._rules.judge(_below(os.fsencode(self._real), path), is_dir=True) is not None

    def _report_overflow(self) -> None:
        self.overflows += 1
        self._sink(Hint("everything"))


class _Handler(FileSystemEventHandler):
    """Hands every event on as hints, and does nothing else."""

    def __init__(self, root: str, sink: Callable[[Hint], None]) -> None:
        self._root = os.fsencode(root)
        self._sink = sink

    def dispatch(self, event: FileSystemEvent) -> None:
        """Hint at the source and the destination. What watchdog makes up for a moved folder, its hint covers."""
        if event.is_synthetic:
            return
        if not event.is_directory:
            self._hint("file", event.src_path, event.dest_path)
        elif not isinstance(event, DirDeletedEvent):
            self._hint("folder", event.dest_path or event.src_path)
        elif os.fsencode(event.src_path) == self._root:
            self._sink(Hint("folder"))

    def _hint(self, kind: Literal["file", "folder"], *paths: bytes | str) -> None:
        for path in paths:
            if path:
                self._sink(Hint(kind, _below(self._root, os.fsencode(path))))


def _below(root: bytes, path: bytes) -> bytes:
    return path.removeprefix(root).lstrip(b"/")


def _limit_of(code: int, limits: InotifyLimits) -> tuple[str, int | None]:
    if code == errno.ENOSPC:
        return "the sysctl fs.inotify.max_user_watches", limits.max_user_watches
    return "the sysctl fs.inotify.max_user_instances (or the limit of open files)", limits.max_user_instances
