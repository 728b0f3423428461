"""watchdog's inotify classes, made fit to run for months.

watchdog 7.1 as it comes watches ignored folders too, hides that the watch limit was reached below the root, keeps a
phantom watch for a folder that may not be read, warns (and, with warnings as errors, kills its reader) when a folder
is found twice, can die of a KeyError when a folder was moved out and another took its name, and logs an error when it
is stopped while it holds an event back.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from watchdog.observers.inotify import InotifyEmitter, InotifyWatchGroup
from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchCallback,
    WatchDescriptor,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import EventQueue, ObservedWatch

LIMITS: Final = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE})
_NO_WATCH: Final = WatchDescriptor(-1)


class Reader(InotifyFD):
    """The thread that reads one inotify instance of our own. `release` after it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._released = False
        os.set_inheritable(self._inotify_fd, False)  # noqa: FBT003  # Takes no keywords.

    def release(self) -> None:
        """Close the descriptors, which the base class forgets when its thread ended before it first read."""
        self._close_resources()

    def _close_resources(self) -> None:
        if not self._released:
            self._released = True
            super()._close_resources()

    def _add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
        """Add or move a watch. Raises OSError, also where the base class is silent about a missing right."""
        watch = self._get_or_create_watch(path, mask)
        if watch.wd == _NO_WATCH:
            del self._watch_for_wd[_NO_WATCH]
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        watch.callbacks[id_] = callback
        return watch.wd


class Group(InotifyWatchGroup):
    """The watches of one tree: of every folder that `prune` (given its full path) does not cut off.

    `limit` is the errno of a watch that the kernel had no room for, else 0. `overflowed` is called when events were
    lost. A folder that appears is reported as one event: its reader must list it, and everything below.
    """

    def __init__(
        self,
        reader: InotifyFD,
        path: bytes,
        *,
        mask: Mask,
        recursive: bool,
        prune: Callable[[bytes], bool],
        overflowed: Callable[[], None],
    ) -> None:
        self._prune = prune
        self._overflowed = overflowed
        self.limit = 0
        super().__init__(reader, path, Mask(mask | InotifyConstants.IN_ONLYDIR), recursive)

    @property
    def watched(self) -> int:
        """Count the folders that are watched."""
        return len(self._active_callbacks_by_watch)

    @property
    def watches_root(self) -> bool:
        """Say whether the root is still watched: an unmount or a removal ends that."""
        return self.path in self._active_callbacks_by_path

    def on_queue_overflow(self) -> None:
        """Watch the tree anew, and pass on that events were lost."""
        super().on_queue_overflow()
        self._overflowed()

    def _recursive_simulate(self, src_path: bytes) -> list[InotifyEvent]:  # noqa: ARG002  # The base class's signature.
        """Make up no events for what a new folder holds: it is listed by whoever hears of the folder."""
        return []

    def _add_all_callbacks(self, path: bytes) -> None:
        if self._watch(path) and self.is_recursive:
            for folder, names, _ in os.walk(path):
                # Each folder is watched before it is listed, so nothing slips in between.
                names[:] = [name for name in names if self._watch(os.path.join(folder, name))]

    def _watch(self, path: bytes) -> bool:
        """Watch one folder; say whether it is watched. Raises OSError for the root only."""
        is_root = path == self.path
        if not is_root and self._prune(path):
            return False
        try:
            descriptor = self._inotify_fd.add_callback(path, self.event_mask, self._callback, self._id)
        except OSError as error:
            if is_root:
                raise
            if error.errno in LIMITS:
                self.limit = error.errno or 0
            return False
        self._adopt(path, descriptor)
        return True

    def _adopt(self, path: bytes, descriptor: WatchDescriptor) -> None:
        """Record a watch, and drop what its path or its folder was known as: folders are moved out, in and over."""
        stale = self._active_callbacks_by_path.get(path)
        if stale is not None and stale != descriptor:
            self._inotify_fd.remove_callbacks([(stale, self._id)])
            self._active_callbacks_by_watch.pop(stale, None)
        former = self._active_callbacks_by_watch.get(descriptor)
        if former is not None:
            self._active_callbacks_by_path.pop(former, None)
        self._active_callbacks_by_path[path] = descriptor
        self._active_callbacks_by_watch[descriptor] = path

    def _remove_watch_internally(self, wd: WatchDescriptor) -> None:
        path = self._active_callbacks_by_watch.pop(wd, None)
        if path is not None and self._active_callbacks_by_path.get(path) == wd:
            del self._active_callbacks_by_path[path]


class Emitter(InotifyEmitter):
    """The thread that turns the events of one tree into watchdog's events. `group` is None until it started."""

    def __init__(
        self,
        event_queue: EventQueue,
        watch: ObservedWatch,
        *,
        timeout: float,
        event_filter: list[type[FileSystemEvent]] | None,
        inotify_fd: InotifyFD,
        prune: Callable[[bytes], bool],
        overflowed: Callable[[], None],
    ) -> None:
        super().__init__(event_queue, watch, timeout=timeout, event_filter=event_filter, inotify_fd=inotify_fd)
        self._prune = prune
        self._overflowed = overflowed
        self.group: Group | None = None

    def on_thread_start(self) -> None:
        """Watch the tree. Raises OSError when the root cannot be watched."""
        self.group = Group(
            self._inotify_fd,
            os.fsencode(self.watch.path),
            mask=self.get_event_mask_from_filter(),
            recursive=self.watch.is_recursive,
            prune=self._prune,
            overflowed=self._overflowed,
        )
        self._inotify = self.group

    def queue_events(self, timeout: float, *, full_events: bool = False) -> None:
        """Queue the next event. A watch that ends while an event is held back is no error, as the base class has it."""
        del timeout  # The base class waits without one, too.
        with self._lock:
            inotify = self._inotify
        event = None if inotify is None else inotify.read_event()
        with self._lock:
            if event is not None and self._inotify is not None:
                self.build_and_queue_event(event, full_events=full_events)
