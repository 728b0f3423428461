"""Kernel limits, lost events and dead watches: an inbox that hears nothing any more notices it and goes on."""

from __future__ import annotations

import errno
import os
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
from live_inbox import LiveInbox, living
from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, WatchDescriptor

from animed.daemon import watching
from animed.intake.inotify import Reader
from animed.intake.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from watchdog.observers.inotify_c import CallbackId, Mask, WatchCallback

    from animed.intake.watch import Hint

CHECK_S = watching.CHECK_S


def watch_of(live: LiveInbox) -> Watch:
    """Return the watch in force."""
    assert live.inbox.watching.watch is not None
    return live.inbox.watching.watch


def mode(live: LiveInbox) -> str:
    """Return how the inbox is watched."""
    return live.inbox.watching.mode


def kill(live: LiveInbox, thread: str) -> Watch:
    """End one of the watch's threads, as an error in it would; return the watch."""
    watch = watch_of(live)
    victim = {"reader": watch._reader, "emitter": watch._emitter, "observer": watch._observer}[thread]
    assert victim is not None
    victim.stop()
    victim.join(30)
    assert not victim.is_alive()
    return watch


@pytest.mark.parametrize("thread", ["reader", "emitter", "observer"])
def test_an_inbox_outlives_each_thread_of_its_watch(tmp_path: Path, thread: str) -> None:
    """A dead thread is told, watched anew and scanned; what came meanwhile and what comes later are both found."""
    with living(tmp_path) as live:
        live.ready()
        dead = kill(live, thread)
        missed = live.write("missed.jpg")
        live.skip(CHECK_S)
        live.until(lambda: watch_of(live) is not dead and live.inbox.watching.live)
        live.until(lambda: missed in live.taken)
        told = [line for line in live.log.lines if line.get("what") == "watch"]
        assert [line["event"] for line in told] == ["inbox.degraded"]
        assert live.log.names()[-1] == "inbox.ready"
        scans = live.finds.scans
        later = live.write("later.jpg")
        live.until(lambda: later in live.taken)
        assert live.finds.scans == scans, "the second photo was found by a scan, not by the new watch"
        assert live.inbox.state == "ready"


def test_a_watch_that_dies_again_and_again_is_renewed_ever_more_seldom(tmp_path: Path) -> None:
    """Deaths in a row double the wait before the next look, up to a bound; a watch that lives resets it."""
    with living(tmp_path) as live:
        live.ready()
        waits = []
        for _ in range(4):
            dead, began = kill(live, "emitter"), live.now()
            due = live.inbox.watching.next_check()
            assert due is not None
            waits.append(round((due - began) / CHECK_S))
            live.skip(due - began)
            live.until(lambda dead=dead: watch_of(live) is not dead and live.inbox.watching.live)  # type: ignore[misc]  # the default binds the loop's value
        assert waits == [1, 2, 4, 8]
        live.skip(20 * CHECK_S)
        live.until(lambda: live.inbox.watching.next_check() is not None and live.inbox.watching.live)
        live.turn()
        due = live.inbox.watching.next_check()
        assert due is not None
        assert due - live.now() <= CHECK_S


def test_a_hint_that_cannot_be_taken_costs_a_watch_and_no_photo(tmp_path: Path) -> None:
    """An error in what takes the events ends the watch's thread; the death is noticed, and the photo is found."""
    poison: list[Hint] = []
    delivered: list[Hint] = []

    def deliver(hint: Hint) -> None:
        if hint.path == b"poison.jpg" and not poison:
            poison.append(hint)
            raise RuntimeError("poison")
        delivered.append(hint)

    quiet = threading.excepthook
    threading.excepthook = lambda _args: None  # The thread's end is the point, not its traceback.
    try:
        with living(tmp_path, deliver=deliver) as live:
            live.ready()
            path = live.write("poison.jpg")
            live.until(lambda: poison and watch_of(live).health() is not None)
            live.skip(CHECK_S)
            live.until(lambda: path in live.taken)
            live.until(lambda: live.inbox.watching.live and watch_of(live).health() is None)
            live.write("next.jpg")
            live.until(lambda: b"next.jpg" in {hint.path for hint in delivered})
    finally:
        threading.excepthook = quiet


class Cramped(Reader):
    """A reader whose kernel has no room for a single watch."""

    code = errno.ENOSPC

    def _add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
        raise OSError(self.code, os.strerror(self.code))


def out_of_instances() -> Reader:
    """Fail as a kernel without a free inotify instance does."""
    raise OSError(errno.EMFILE, "inotify instance limit reached")


@pytest.mark.parametrize(
    ("reader", "sysctl"),
    [(Cramped, "fs.inotify.max_user_watches"), (out_of_instances, "fs.inotify.max_user_instances")],
)
def test_without_room_in_the_kernel_the_inbox_is_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Callable[[], Reader], sysctl: str
) -> None:
    """One message names the sysctl; photos are found by polling, and the watch comes when there is room again."""
    monkeypatch.setattr(watching, "Watch", partial(Watch, reader=reader))
    with living(tmp_path, poll_interval=10.0) as live:
        live.ready()
        assert mode(live) == "poll"
        for name in ("a.jpg", "b.jpg"):
            live.write(name)
            live.skip(10.0)
            live.until(lambda name=name: name.encode() in live.taken)  # type: ignore[misc]  # the default binds the loop's value
        live.skip(watching.RETRY_S)
        live.turn()
        (told,) = live.log.events("watch.fallback")
        assert sysctl in told["detail"]
        assert live.inbox.state == "ready"
        monkeypatch.setattr(watching, "Watch", Watch)
        live.skip(2 * watching.RETRY_S)
        live.until(lambda: live.inbox.watching.live)
        assert mode(live) == "native"


def test_an_overflow_of_the_queue_is_made_good(tmp_path: Path) -> None:
    """Events that the kernel dropped (descriptor -1) are counted, told, and made good by a scan of everything."""
    with living(tmp_path) as live:
        live.ready()
        scans = live.finds.scans
        reader = watch_of(live)._reader
        assert reader is not None
        reader.handle_event(InotifyEvent(WatchDescriptor(-1), InotifyConstants.IN_Q_OVERFLOW, 0, b""))
        live.until(lambda: live.log.events("watch.overflow"))
        live.until(lambda: live.finds.scans > scans)
        assert watch_of(live).overflows == 1


def test_an_inbox_starts_and_stops_fifty_times(tmp_path: Path) -> None:
    """Fifty starts and stops, some in mid-start, raise nothing and leave no thread and no descriptor."""
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for number in range(50):
        with living(tmp_path) as live:
            if number % 10 == 0:
                live.ready()
            elif number % 2:
                live.turn()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


def test_a_stop_with_an_event_in_hand_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An emitter that is stopped before, or while, it waits for an event says nothing and raises nothing."""
    with living(tmp_path) as live:
        live.ready()
        emitter = watch_of(live)._emitter
        assert emitter is not None
    emitter.queue_events(1.0)
    for _ in range(10):
        with living(tmp_path) as live:
            live.ready()
            live.write("a.jpg")
            (live.root / "a.jpg").unlink()  # Removals are held back for half a second.
    assert caplog.records == []


def test_a_root_that_is_replaced_is_watched_anew(tmp_path: Path) -> None:
    """Another folder under the inbox's name, by rename or by removal, is found out, watched and scanned."""
    with living(tmp_path) as live:
        live.ready()
        live.root.rename(tmp_path / "old")
        live.root.mkdir()
        first = live.write("first.jpg")
        live.skip(31)  # A root that is only renamed is found out by its number, which is looked at every half minute.
        live.until(lambda: first in live.taken)
        live.until(lambda: live.inbox.watching.live)
        second = live.write("second.jpg")
        live.until(lambda: second in live.taken)
        (tmp_path / "old" / "stranger.jpg").write_bytes(b"not ours any more")
        last = live.write("last.jpg")
        live.until(lambda: last in live.taken)
        assert b"stranger.jpg" not in live.taken


def test_a_share_that_goes_and_comes_back_is_watched_again(tmp_path: Path) -> None:
    """While the root is away the inbox is unavailable; when it is back it is scanned, and watched as before."""
    with living(tmp_path) as live:
        live.ready()
        live.root.rename(tmp_path / "away")
        live.skip(31)
        live.until(lambda: live.inbox.state == "unavailable")
        (tmp_path / "away" / "meanwhile.jpg").write_bytes(b"photo")
        (tmp_path / "away").rename(live.root)
        live.skip(61)
        live.until(lambda: b"meanwhile.jpg" in live.taken)
        live.until(lambda: live.inbox.watching.live)
        later = live.write("later.jpg")
        live.until(lambda: later in live.taken)
        assert live.log.events("inbox.unavailable", "inbox.recovered")
        assert live.inbox.state == "ready"
