"""Watching real folders with the real inotify."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
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
from animed.intake.rules import Rules
from animed.intake.scan import Found, Scanner
from animed.intake.watch import Hint, Watch, WatchLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    inbox = Inbox(root, reader)
    inbox.watch.start()
    try:
        yield inbox
    finally:
        inbox.watch.stop()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make an inbox, and a place outside it on the same file system."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def test_every_way_to_arrive_is_hinted_at(root: Path) -> None:
    """Write, append, hard link, rename in, rename inside, a changed mtime and a removal all give a hint."""
    outside = root.parent / "outside"
    for name in ("h.jpg", "r.jpg"):
        (outside / name).write_bytes(b"photo")
    (root / "old.jpg").write_bytes(b"photo")
    with watching(root) as inbox:
        steps: list[tuple[Callable[[], object], set[bytes]]] = [
            (lambda: (root / "w.jpg").write_bytes(b"photo"), {b"w.jpg"}),
            (lambda: (root / "h.jpg").hardlink_to(outside / "h.jpg"), {b"h.jpg"}),
            (lambda: (outside / "r.jpg").rename(root / "r.jpg"), {b"r.jpg"}),
            (lambda: (root / "w.jpg").rename(root / "v.jpg"), {b"w.jpg", b"v.jpg"}),
            (lambda: os.utime(root / "old.jpg", (1, 1)), {b"old.jpg"}),
            (lambda: (root / "old.jpg").chmod(0o600), {b"old.jpg"}),
            ((root / "v.jpg").unlink, {b"v.jpg"}),
            (lambda: os.mkfifo(root / "f.jpg"), {b"f.jpg"}),
        ]
        for step, expected in steps:
            step()
            assert inbox.collect() == {("file", path) for path in expected}
        assert inbox.watch.health() is None


def test_reading_gives_no_hint(root: Path) -> None:
    """Opening, reading, listing and closing give no hint at all: our own work never wakes us."""
    (root / "x").mkdir()
    (root / "x" / "a.jpg").write_bytes(b"photo")
    with watching(root) as inbox:
        (root / "x" / "a.jpg").read_bytes()
        list(Scanner(str(root), RULES).scan())
        assert inbox.collect() == set()


def test_names_are_bytes(root: Path) -> None:
    """A name that is not UTF-8, with a newline, comes as it is, in a folder of that kind too."""
    full = os.fsencode(root) + b"/d\xfe"
    os.mkdir(full)
    with watching(root) as inbox:
        os.close(os.open(full + b"/\xff\n.jpg", os.O_CREAT | os.O_WRONLY))
        assert inbox.collect() == {("file", b"d\xfe/\xff\n.jpg")}


def test_a_tree_made_in_a_hurry_is_covered(root: Path) -> None:
    """Folders made deep at once, and files written into them at once, are all led to."""
    with watching(root) as inbox:
        for number in range(20):
            deep = root / f"n{number}" / "b" / "c"
            deep.mkdir(parents=True)
            for photo in range(5):
                (deep / f"{photo}.jpg").write_bytes(b"photo")
        wanted = {b"n%d/b/c/%d.jpg" % (number, photo) for number in range(20) for photo in range(5)}
        assert inbox.covered() == wanted
        assert inbox.watch.watched == 61
        assert inbox.watch.health() is None


def test_a_folder_that_is_moved_in_is_covered_for_good(root: Path) -> None:
    """What a moved-in folder holds is led to, and what is written into it later as well."""
    (root.parent / "outside" / "trip" / "day").mkdir(parents=True)
    (root.parent / "outside" / "trip" / "day" / "1.jpg").write_bytes(b"photo")
    with watching(root) as inbox:
        (root.parent / "outside" / "trip").rename(root / "trip")
        assert inbox.covered() == {b"trip/day/1.jpg"}
        (root / "trip" / "day" / "2.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"trip/day/2.jpg")}
        (root / "trip").rename(root / "voyage")
        assert inbox.covered() == {b"voyage/day/1.jpg", b"voyage/day/2.jpg"}
        (root / "voyage" / "day" / "3.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"voyage/day/3.jpg")}


def test_moving_out_and_back_confuses_nothing(root: Path) -> None:
    """A folder that leaves, is replaced, comes back under another name and is removed keeps the reader alive."""
    outside = root.parent / "outside"
    (root / "d" / "e").mkdir(parents=True)
    with watching(root) as inbox:
        (root / "d").rename(outside / "d")
        (root / "d").mkdir()
        (root / "d" / "1.jpg").write_bytes(b"photo")
        assert inbox.covered() == {b"d/1.jpg"}
        (outside / "d").rename(root / "back")
        (root / "back" / "e" / "2.jpg").write_bytes(b"photo")
        assert inbox.covered() == {b"back/e/2.jpg"}
        (root / "back" / "e" / "3.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"back/e/3.jpg")}
        for name in ("d/1.jpg", "back/e/2.jpg", "back/e/3.jpg"):
            (root / name).unlink()
        for name in ("d", "back/e", "back"):
            (root / name).rmdir()
        inbox.collect()
        assert inbox.watch.health() is None
        assert inbox.watch.watched == 1


def test_churn_kills_no_thread(root: Path) -> None:
    """Folders made, moved over each other and removed as fast as possible leave all threads alive and hearing."""
    with watching(root) as inbox:
        for number in range(200):
            (root / "a" / "b").mkdir(parents=True)
            (root / "a").rename(root / f"m{number % 3}")
            (root / f"m{number % 3}" / "b").rename(root / "c")
            (root / "c").rmdir()
            (root / f"m{number % 3}").rmdir()
        inbox.collect()
        assert inbox.watch.health() is None
        (root / "a").mkdir()
        inbox.collect()
        (root / "a" / "x.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"a/x.jpg")}


def test_ignored_folders_are_not_watched(root: Path) -> None:
    """Folders that the rules ignore take no watch, whether they are there before or come later, and give no hint."""
    deep = Path(*["d"] * 20)
    for name in ("@eaDir/a/b", ".stversions/x", "photos/@eaDir/c", deep):
        (root / name).mkdir(parents=True)
    with watching(root) as inbox:
        assert inbox.watch.watched == 1 + 1 + 16
        (root / "new" / "@eaDir").mkdir(parents=True)
        inbox.collect()
        assert inbox.watch.watched == 1 + 1 + 16 + 1
        (root / "@eaDir" / "a" / "x.jpg").write_bytes(b"thumb")
        (root / "new" / "@eaDir" / "x.jpg").write_bytes(b"thumb")
        assert inbox.collect() == set()


def test_links_are_not_watched(root: Path) -> None:
    """A link to a folder outside brings in nothing; a root that is a link is followed."""
    (root / "link").symlink_to(root.parent / "outside")
    (root.parent / "way").symlink_to(root)
    with watching(root.parent / "way") as inbox:
        assert inbox.watch.watched == 1
        (root.parent / "outside" / "x.jpg").write_bytes(b"photo")
        assert inbox.collect() == set()


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
