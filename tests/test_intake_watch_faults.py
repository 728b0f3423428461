"""Watching real folders when something breaks: lost events, dead threads, full kernels, lost roots; and idling."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest
from intake_watching import PATIENCE, Inbox, watching
from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    Mask,
    WatchCallback,
    WatchDescriptor,
)

from animed.errors import PlaceError
from animed.intake.inotify import Reader
from animed.intake.watch import Hint, WatchLimitError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make an inbox."""
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def test_an_overflow_asks_for_everything(root: Path) -> None:
    """Lost events (descriptor -1) become one hint to look everywhere, and watching goes on, also in new folders."""
    with watching(root) as inbox:
        reader = inbox.watch._reader
        assert reader is not None
        reader.handle_event(InotifyEvent(WatchDescriptor(-1), InotifyConstants.IN_Q_OVERFLOW, 0, b""))
        assert inbox.collect() == {("everything", b"")}
        assert inbox.watch.overflows == 1
        (root / "sub").mkdir()
        inbox.collect()
        (root / "sub" / "x.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"sub/x.jpg")}
        assert inbox.watch.health() is None


def test_a_real_overflow_is_noticed(root: Path) -> None:
    """When the kernel's own queue runs over, the hint to look everywhere comes, and later files are heard of."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 40_000:
        pytest.skip(f"max_queued_events is {limit}: filling the queue would take too long")
    with watching(root) as inbox:
        group = inbox.watch._emitter.group if inbox.watch._emitter else None
        assert group is not None
        with group._lock:  # The reader stands still, as it does on a busy machine.
            for number in range(limit // 2 + 4000):
                os.utime(root, (number, number))
                os.close(os.open(root / f"{number % 100}.jpg", os.O_CREAT | os.O_WRONLY))
        inbox.wait(lambda: Hint("everything") in list(inbox.hints))
        inbox.hints.clear()
        inbox.collect()
        assert inbox.watch.health() is None


@pytest.mark.parametrize("victim", ["inotify reader", "emitter", "observer"])
def test_a_dead_thread_is_noticed(root: Path, victim: str) -> None:
    """Each of the three threads can end while the others live; health names it, and a new watch works."""
    with watching(root) as inbox:
        threads = {
            "inotify reader": inbox.watch._reader,
            "emitter": inbox.watch._emitter,
            "observer": inbox.watch._observer,
        }
        thread = threads[victim]
        assert thread is not None
        assert inbox.watch.health() is None
        thread.stop()
        thread.join(PATIENCE)
        assert victim in (inbox.watch.health() or "")
    with watching(root) as again:
        (root / "x.jpg").touch()
        assert again.collect() == {("file", b"x.jpg")}


def test_a_removed_root_is_noticed(root: Path) -> None:
    """When the root is removed a hint leads to it, and the watch is ill from then on, although a new root appears."""
    with watching(root) as inbox:
        root.rmdir()
        inbox.wait(lambda: Hint("folder", b"") in list(inbox.hints))
        root.mkdir()
        inbox.wait(lambda: inbox.watch.health() is not None)


def test_a_missing_root_cannot_be_watched(root: Path) -> None:
    """Starting on a root that is away, or a file, raises PlaceError and leaves nothing behind."""
    (root.parent / "file").touch()
    for name, code in (("away", errno.ENOENT), ("file", errno.ENOTDIR)):
        watch = Inbox(root.parent / name).watch
        with pytest.raises(PlaceError) as caught:
            watch.start()
        assert (caught.value.role, caught.value.code) == ("inbox", code)
        assert watch.health() is not None
        watch.stop()


class FullReader(Reader):
    """A reader whose kernel has room for `room` watches."""

    room = 1

    def _add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
        if len(self._watch_for_wd) >= self.room:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")
        return super()._add_callback(path, mask, callback, id_)


class EmptyReader(FullReader):
    """A reader whose kernel has no room at all."""

    room = 0


@pytest.mark.parametrize("reader", [FullReader, EmptyReader])
def test_a_full_kernel_is_told_at_the_start(root: Path, reader: type[Reader]) -> None:
    """No room for the root or for any folder below it raises, names the sysctl and its value, and leaves no thread."""
    (root / "a" / "b").mkdir(parents=True)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with pytest.raises(WatchLimitError, match=r"fs\.inotify\.max_user_watches \(now \d+\)"):
        Inbox(root, reader).watch.start()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


def test_a_kernel_that_fills_up_later_is_told_by_health(root: Path) -> None:
    """A new folder that finds no room makes the watch ill, so that the caller can scan instead."""
    with watching(root, FullReader) as inbox:
        assert inbox.watch.health() is None
        (root / "a").mkdir()
        inbox.collect()
        assert "max_user_watches" in (inbox.watch.health() or "")


def test_too_many_instances_is_a_limit_too(root: Path) -> None:
    """EMFILE from the making of the instance is told as the other limit."""

    def refuse() -> Reader:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    with pytest.raises(WatchLimitError, match=r"fs\.inotify\.max_user_instances"):
        Inbox(root, refuse).watch.start()


def test_folders_that_may_not_be_read_are_left_out(root: Path) -> None:
    """Two locked folders, with real rights, are skipped in silence; the rest is watched."""
    for name in ("one", "two", "open"):
        (root / name).mkdir()
    for folder in (root.parent, *root.parent.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o111)
    for name in ("one", "two"):
        (root / name).chmod(0)
    drop = os.geteuid() == 0
    inbox = Inbox(root)
    if drop:
        root.chmod(0o755)
        os.seteuid(65534)
    try:
        inbox.watch.start()
    finally:
        if drop:
            os.seteuid(0)
    try:
        assert inbox.watch.watched == 2
        (root / "open" / "x.jpg").touch()
        assert inbox.collect() == {("file", b"open/x.jpg")}
        assert inbox.watch.health() is None
    finally:
        inbox.watch.stop()


def test_starting_and_stopping_leaves_nothing(root: Path) -> None:
    """Fifty starts and stops, some at once, leave no thread and no descriptor; stopping twice is harmless."""
    (root / "a").mkdir()
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for number in range(50):
        watch = Inbox(root).watch
        watch.start()
        if number % 2:
            (root / "a" / f"{number}.jpg").touch()
        watch.stop()
        watch.stop()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


def test_a_reader_that_never_ran_closes_its_descriptors() -> None:
    """A stop that comes before the reader's first look at its descriptors leaks none; releasing twice is harmless."""
    descriptors = len(os.listdir("/proc/self/fd"))
    reader = Reader()
    reader.stop()
    reader.release()
    reader.release()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_watch_that_goes_twice_does_no_harm(root: Path) -> None:
    """The end of a watch that is not known, or whose folder's name has passed to another watch, is taken in silence."""
    (root / "a").mkdir()
    with watching(root) as inbox:
        group = inbox.watch._emitter.group if inbox.watch._emitter else None
        assert group is not None
        group._active_callbacks_by_watch[WatchDescriptor(998)] = os.fsencode(root / "a")
        for descriptor in (998, 999):
            group.on_watch_deleted(WatchDescriptor(descriptor))
        assert inbox.watch.watched == 2
        (root / "a").rmdir()
        inbox.collect()
        assert inbox.watch.watched == 1
        assert inbox.watch.health() is None


def switches(threads: list[int]) -> int:
    total = 0
    for thread in threads:
        for line in Path(f"/proc/self/task/{thread}/status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def test_an_idle_watch_costs_nothing(root: Path) -> None:
    """In three idle seconds the watch's threads do not wake: no polling hides in them."""
    with watching(root) as inbox:
        inbox.collect()
        time.sleep(0.7)  # A removal is held back for half a second, to pair moves.
        threads = [
            thread.native_id
            for thread in (inbox.watch._reader, inbox.watch._emitter, inbox.watch._observer)
            if thread is not None and thread.native_id is not None
        ]
        assert len(threads) == 3
        before = switches(threads)
        time.sleep(3.0)
        assert switches(threads) - before <= 3
