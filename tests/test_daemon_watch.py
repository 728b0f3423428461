"""How an inbox is watched: watch first and scan then, fall back to polling, follow hints."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from animed.daemon.looking import OpenRoot, RootFound, Scan, ScanEnded, StartWatch, StopWatch
from animed.daemon.putting import OpenOutput, OutputFound
from animed.errors import PlaceError
from animed.intake.filesystem import InotifyLimits
from animed.intake.scan import Ignored, Unreadable
from animed.intake.watch import Hint, WatchLimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

NATIVE = RootFound((1, 1), "ext4", polled=False)
LIMIT = WatchLimitError(errno.ENOSPC, "/in/phone", InotifyLimits(8192, 128, 16384))
GONE = PlaceError("inbox", errno.ENOENT, "/in/phone", "gone")


def events(run: Bench) -> list[str]:
    return [name for name in run.log.names() if name.startswith(("inbox.", "watch.", "disk."))]


def opened(run: Bench) -> Bench:
    """Open root and output of an inbox that is watched natively, up to its first scan's request."""
    run.inbox.start()
    run.answer(OpenRoot, NATIVE)
    run.answer(OpenOutput, OutputFound(10**12, (1, 1)))
    run.answer(StartWatch, None)
    run.inbox.watching.live = False  # No threads stand behind the made-up watch: nothing is to look at them.
    run.tick()
    return run


def mode(run: Bench) -> str:
    return run.inbox.watching.mode


def hint(run: Bench, kind: str, path: bytes = b"") -> None:
    run.inbox.hinted(Hint(kind, path), run.parts.arrivals, run.now)  # type: ignore[arg-type]  # one of its words


def test_an_inbox_is_watched_first_and_scanned_then(bench: Callable[..., Bench]) -> None:
    """No scan before the watch lives: what comes in between is found by the one or the other."""
    run = bench(start=False, watch="native")
    run.inbox.start()
    run.answer(OpenRoot, NATIVE)
    run.answer(OpenOutput, OutputFound(10**12, (1, 1)))
    run.tick()
    assert not run.thread.of(Scan)
    run.answer(StartWatch, None)
    run.inbox.watching.live = False
    run.tick()
    assert len(run.thread.of(Scan)) == 1
    assert mode(run) == "native"


@pytest.mark.parametrize(
    ("watch", "polled", "expected"),
    [("auto", False, "native"), ("auto", True, "poll"), ("native", True, "native"), ("poll", False, "poll")],
)
def test_the_kind_of_watch_follows_the_file_system(
    bench: Callable[..., Bench], watch: str, polled: bool, expected: str
) -> None:
    """`auto` polls where changes can go unreported; what was asked for by name is done."""
    run = bench(start=False, watch=watch)
    run.inbox.start()
    run.answer(OpenRoot, RootFound((1, 1), "nfs", polled))
    assert mode(run) == expected
    assert bool(run.thread.of(StartWatch)) == (expected == "native")


def test_a_replaced_root_is_watched_and_scanned_anew(bench: Callable[..., Bench]) -> None:
    """Another folder under the root's name: the old watch is stopped, another started, then a scan."""
    run = opened(bench(start=False, watch="native"))
    run.answer(Scan, ScanEnded(0.0))
    hint(run, "folder")
    run.answer(OpenRoot, RootFound((1, 2), "ext4", polled=False))
    assert len(run.thread.of(StopWatch)) == len(run.thread.of(StartWatch)) == 1
    run.answer(StartWatch, None)
    run.inbox.watching.live = False
    run.tick()
    assert len(run.thread.of(Scan)) == 1


def test_the_same_root_again_changes_nothing(bench: Callable[..., Bench]) -> None:
    """A look that finds the same folder starts no watch and no scan."""
    run = opened(bench(start=False, watch="native"))
    run.answer(Scan, ScanEnded(0.0))
    hint(run, "folder")
    hint(run, "folder")
    assert len(run.thread.of(OpenRoot)) == 1
    run.answer(OpenRoot, NATIVE)
    run.tick()
    assert run.thread.requests == []


def test_a_watch_that_does_not_fit_gives_way_to_polling(bench: Callable[..., Bench]) -> None:
    """The fallback is told once; the watch is tried again, later each time, and takes over when it fits."""
    run = bench(start=False, watch="native", poll_interval=7200.0)
    run.inbox.start()
    run.answer(OpenRoot, NATIVE)
    run.answer(OpenOutput, OutputFound(10**12, (1, 1)))
    run.answer(StartWatch, LIMIT)
    assert mode(run) == "poll"
    waits, last = [], run.now
    for _ in range(8):
        while not run.thread.of(StartWatch):
            run._answer_all()
            due = run.inbox.next_deadline(run.now)
            assert due is not None
            run.now = max(due, run.now + 0.001)
            run.tick()
        waits.append(round(run.now - last))
        last = run.now
        run.answer(StartWatch, LIMIT)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert events(run).count("watch.fallback") == 1
    run.now += 3600
    run.tick()
    run.answer(StartWatch, None)
    run.inbox.watching.live = False
    assert mode(run) == "native"


def test_an_answer_about_an_older_watch_is_not_taken(bench: Callable[..., Bench]) -> None:
    """Only the watch that is in force says whether watching works."""
    run = bench(start=False, watch="native")
    run.inbox.start()
    run.answer(OpenRoot, NATIVE)
    run.inbox._renew_watch()
    run.answer(StartWatch, LIMIT)
    assert mode(run) == "native"
    assert not run.log.events("watch.fallback")


def test_lost_events_lead_to_a_scan(bench: Callable[..., Bench]) -> None:
    """After an overflow everything is scanned, whatever the interval."""
    run = opened(bench(start=False, watch="native"))
    run.answer(Scan, ScanEnded(0.0))
    run.now += 1
    hint(run, "everything")
    run.tick()
    assert len(run.thread.of(Scan)) == 1
    assert events(run)[-1] == "watch.overflow"


def test_a_changed_folder_is_scanned_alone(bench: Callable[..., Bench]) -> None:
    """A folder that came leads to a scan of it, which does not count as one of the inbox."""
    run = opened(bench(start=False, watch="native"))
    hint(run, "folder", b"album")
    scans = run.thread.of(Scan)
    assert [scan.below for scan in scans] == [b"", b"album"]
    run.thread.requests.remove(scans[0])
    run.answer(Scan, ScanEnded(0.0))
    assert run.inbox.scans.running
    assert not run.inbox.scanned


@pytest.mark.parametrize(
    ("path", "taken", "told"),
    [
        (b"a.jpg", True, False),
        (b"a.txt", False, True),
        (b"private/a.jpg", False, True),
        (b".a.jpg", False, False),
        (b"a.jpg.part", False, False),
    ],
)
def test_hints_are_judged_by_the_rules(bench: Callable[..., Bench], path: bytes, taken: bool, told: bool) -> None:
    """Only what may be a photo is looked at; of the rest, what may be a temporary file is not told."""
    run = opened(bench(start=False, watch="native", ignore=("private/",)))
    hint(run, "file", path)
    assert (path in run.inbox.settling) == taken
    assert bool(run.log.events("file.ignored")) == told


def test_a_scan_tells_what_it_leaves_out_once(bench: Callable[..., Bench]) -> None:
    """Each path and rule is logged once, however often it is scanned."""
    run = opened(bench(start=False, watch="native"))
    scan = run.thread.of(Scan)[0]
    for _ in range(2):
        entries = (Ignored(b"x.txt", "extension"), Unreadable(b"sub", errno.EACCES))
        run.inbox._scan_answered(scan, entries, run.parts.arrivals, run.now)
    assert [line["rule"] for line in run.log.events("file.ignored")] == ["extension", "unreadable:EACCES"]


def test_a_scan_that_fails_suspends_the_inbox(bench: Callable[..., Bench]) -> None:
    """A scan that ends in a fault is no empty inbox, and is not running any more."""
    run = opened(bench(start=False, watch="native"))
    run.answer(Scan, GONE)
    assert run.state() == "unavailable"
    assert not run.inbox.scans.running
    assert not run.inbox.scanned


def test_a_stopped_inbox_lets_go_of_its_watch(bench: Callable[..., Bench]) -> None:
    """At the end the watch is stopped by the thread that may block."""
    run = opened(bench(start=False, watch="native"))
    run.inbox.stop()
    assert len(run.thread.of(StopWatch)) == 1
    run.inbox.stop()
    assert len(run.thread.of(StopWatch)) == 1
