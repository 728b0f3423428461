"""When a path has stopped changing."""

from __future__ import annotations

import stat as modes
from dataclasses import replace

import pytest

from animed.intake.settle import Empty, NotRegular, Settled, Settler, Unsettled, Vanished, Verdict, Waiting
from animed.records import FileStat

PATH = b"holiday/a.jpg"
FILE = FileStat(size=10, mtime_ns=1, ctime_ns=1, inode=7, device=1, mode=modes.S_IFREG | 0o644)


def drive(settler: Settler, until: float, stat: FileStat | None, now: float = 0.0) -> list[tuple[float, Verdict]]:
    """Answer every question with `stat` until that time; return what the settler said, and when."""
    said: list[tuple[float, Verdict]] = []
    while (at := settler.next_due()) is not None and at <= until:
        now = max(now, at)
        for path in settler.due(now):
            verdict = settler.observe(path, stat, now)
            if verdict is not None:
                said.append((now, verdict))
    return said


def test_a_quiet_file_settles_after_the_quiet_time_with_two_stats() -> None:
    """An event alone costs two stats a second apart, and the file settles exactly when it has been quiet enough."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 100.0)
    assert settler.next_due() == 101.0
    assert settler.due(100.9) == []
    assert settler.due(101.0) == [PATH]
    assert settler.observe(PATH, FILE, 101.0) is None
    assert settler.due(101.9) == []
    assert settler.due(102.0) == [PATH]
    assert settler.observe(PATH, FILE, 102.0) == Settled(PATH, FILE)
    assert settler.pending == 0
    assert settler.next_due() is None


def test_a_scanned_file_costs_one_more_stat() -> None:
    """The stat of the scan is the first of the two."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 100.0, stat=FILE)
    assert settler.due(101.9) == []
    assert settler.due(102.0) == [PATH]
    assert settler.observe(PATH, FILE, 102.0) == Settled(PATH, FILE)


def test_two_stats_in_the_same_moment_are_one() -> None:
    """After a late first look the second stat still comes a second later: a paused writer is given that much."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0)
    assert settler.due(50.0) == [PATH]
    settler.observe(PATH, FILE, 50.0)
    assert settler.due(50.9) == []
    assert settler.next_due() == 51.0
    # A scan's stat that comes in while the answer is on its way is too young to be the other one.
    settler.hint(b"other", 0.0)
    assert settler.due(50.0) == [b"other"]
    settler.hint(b"other", 50.0, stat=FILE)
    assert settler.observe(b"other", FILE, 50.0) is None
    assert b"other" in settler


def test_no_quiet_time_still_takes_two_stats() -> None:
    """With `stable_for: 0` a file settles at once, after two looks."""
    settler = Settler(0.0, 600.0)
    settler.hint(PATH, 5.0)
    assert drive(settler, 5.0, FILE) == [(5.0, Settled(PATH, FILE))]


def test_a_scan_that_sees_nothing_new_restarts_nothing() -> None:
    """A poll every second cannot keep a file with a quiet time of five seconds from settling."""
    settler = Settler(5.0, 600.0)
    for second in range(5):
        settler.hint(PATH, float(second), stat=FILE)
    assert drive(settler, 5.0, FILE) == [(5.0, Settled(PATH, FILE))]


def test_a_hint_restarts_the_quiet_time() -> None:
    """The quiet time counts from the last hint."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0, stat=FILE)
    settler.hint(PATH, 1.5)
    assert drive(settler, 10.0, FILE) == [(3.5, Settled(PATH, FILE))]


@pytest.mark.parametrize("field_name", ["size", "mtime_ns", "inode", "device"])
def test_every_field_counts(field_name: str) -> None:
    """Two stats that differ in size, mtime, inode or device are two files; the quiet time starts again."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0, stat=replace(FILE, **{field_name: 99}))
    assert drive(settler, 9.0, FILE) == [(2.0, Waiting(PATH, FILE)), (4.0, Settled(PATH, FILE))]


def test_an_answer_that_a_hint_has_overtaken_is_asked_for_again() -> None:
    """Neither "gone" nor "the same" counts when the file was touched while the stat was on its way."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0, stat=FILE)
    for stat in (None, FILE):
        (path,) = settler.due(settler.next_due() or 0.0)
        settler.hint(path, 5.0)
        assert settler.observe(path, stat, 5.0) is None
        assert settler.next_due() is not None
    assert PATH in settler


def test_a_path_is_out_once() -> None:
    """What was handed out is not handed out again before it is answered, and another hint heals a lost answer."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0, stat=FILE)
    assert settler.due(2.0) == [PATH]
    assert settler.due(99.0) == []
    assert settler.next_due() is None
    settler.hint(PATH, 100.0, stat=FILE)
    assert settler.due(102.0) == [PATH]


def test_an_empty_file_fails_after_its_time_and_not_sooner() -> None:
    """0 bytes for `stable_max` is Empty; it is said once before that the file waits; looks get rarer."""
    empty = replace(FILE, size=0)
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0, stat=empty)
    looks = 0
    said: list[tuple[float, Verdict]] = []
    while (at := settler.next_due()) is not None:
        for path in settler.due(at):
            looks += 1
            verdict = settler.observe(path, empty, at)
            said += [(at, verdict)] if verdict else []
    assert said == [(2.0, Waiting(PATH, empty)), (600.0, Empty(PATH, empty))]
    assert looks < 30


def test_an_empty_file_that_is_filled_settles() -> None:
    """A placeholder of 0 bytes is not held against the file that it becomes."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0, stat=replace(FILE, size=0))
    assert [type(verdict) for _, verdict in drive(settler, 300.0, replace(FILE, size=0))] == [Waiting]
    settler.hint(PATH, 301.0)
    assert drive(settler, 400.0, FILE, now=301.0) == [(303.0, Settled(PATH, FILE))]


def test_gone_says_whether_it_was_ever_there() -> None:
    """A hint of a deletion alone is not a lost photo."""
    settler = Settler(2.0, 600.0)
    settler.hint(b"never", 0.0)
    settler.hint(b"was", 0.0, stat=FILE)
    said = {verdict for _, verdict in drive(settler, 9.0, None)}
    assert said == {Vanished(b"never", seen=False), Vanished(b"was", seen=True)}
    assert settler.pending == 0


@pytest.mark.parametrize(
    ("mode", "rule"),
    [
        (modes.S_IFLNK, "symlink"),
        (modes.S_IFIFO, "fifo"),
        (modes.S_IFSOCK, "socket"),
        (modes.S_IFCHR, "device"),
        (modes.S_IFDIR, "directory"),
    ],
)
def test_what_is_not_regular_is_let_go_of(mode: int, rule: str) -> None:
    """Anything but a regular file is named and forgotten."""
    settler = Settler(2.0, 600.0)
    settler.hint(PATH, 0.0)
    ((_, verdict),) = drive(settler, 9.0, replace(FILE, mode=mode))
    assert isinstance(verdict, NotRegular)
    assert verdict.rule == rule
    assert settler.pending == 0


def test_an_endless_writer_is_reported_twice_and_never_dropped() -> None:
    """Where hints never pause a file is Waiting, then Unsettled after `stable_max`, each once, and settles at last."""
    settler = Settler(2.0, 60.0)
    said: list[tuple[float, Verdict]] = []
    now = 0.0
    for tick in range(400):
        now = tick * 0.5
        settler.hint(PATH, now)
        for path in settler.due(now):
            verdict = settler.observe(path, replace(FILE, size=tick + 1), now)
            said += [(now, verdict)] if verdict else []
    assert [(at, type(verdict)) for at, verdict in said] == [(10.0, Waiting), (60.0, Unsettled)]
    assert drive(settler, 999.0, FILE, now=now) == [(now + 2.0, Settled(PATH, FILE))]


def test_a_late_look_is_no_reproach() -> None:
    """A file that was only looked at late (a slow share) is not called waiting or unsettled."""
    settler = Settler(2.0, 60.0)
    settler.hint(PATH, 0.0)
    said = []
    for now in (500.0, 501.0, 502.0):
        said += [settler.observe(path, FILE, now) for path in settler.due(now)]
    assert said == [None, Settled(PATH, FILE)]


def test_impatience_lets_go_at_the_first_comparison() -> None:
    """An impatient settler settles what is complete, and reports and drops what changes, is empty or is written."""
    settler = Settler(2.0, 600.0, impatient=True)
    changed, empty = replace(FILE, size=99), replace(FILE, size=0)
    settler.hint(b"complete", 0.0, stat=FILE)
    settler.hint(b"changing", 0.0, stat=FILE)
    settler.hint(b"empty", 0.0, stat=empty)
    settler.hint(b"written", 0.0)
    settler.hint(b"event", 0.0)
    answers = {b"complete": FILE, b"changing": changed, b"empty": empty, b"written": FILE, b"event": FILE}
    said = []
    for now in (1.0, 2.0):
        settler.hint(b"written", now)
        said += [settler.observe(path, answers[path], now) for path in settler.due(now)]
    verdicts = {verdict.path: verdict for verdict in said if verdict is not None}
    assert verdicts == {
        b"complete": Settled(b"complete", FILE),
        b"event": Settled(b"event", FILE),
        b"changing": Unsettled(b"changing", changed, 0.0),
        b"empty": Unsettled(b"empty", empty, 0.0),
        b"written": Unsettled(b"written", FILE, 0.0),
    }
    assert settler.pending == 0


def test_ten_thousand_pending_paths_cost_little() -> None:
    """Hinting again and again, and letting go, leaves no pile of stale entries behind."""
    settler = Settler(2.0, 600.0)
    names = [b"%d.jpg" % number for number in range(10_000)]
    for round_ in range(5):
        for name in names:
            settler.hint(name, float(round_))
    assert len(settler._heap) <= 2 * len(names) + 100
    assert len(settler.due(99.0, limit=500)) == 500
    for name in names:
        assert settler.discard(name)
    assert not settler.discard(names[0])
    assert len(settler._heap) <= 100
