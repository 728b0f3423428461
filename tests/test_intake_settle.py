"""When a path has stopped changing: a simulated day of writers against the settler."""

from __future__ import annotations

import stat as modes
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


# A simulated day. Times are multiples of 1/8 s, so that floats are exact.


@dataclass
class Disk:
    """One path whose owner does things to it; every operation changes the stat."""

    stat: FileStat | None = None
    touched: list[float] = field(default_factory=list)
    serial: int = 0

    def act(self, name: str, now: float) -> None:
        """Do one thing to the path."""
        self.serial += 1
        self.touched.append(now)
        before = self.stat or replace(FILE, size=0, inode=1000 + self.serial)
        mtime = {"old": 5, "future": 2**62}.get(name, 0) + self.serial
        match name:
            case "write":
                self.stat = replace(before, size=before.size + 10, mtime_ns=mtime)
            case "truncate":
                self.stat = replace(before, size=0, mtime_ns=mtime)
            case "replace":
                self.stat = replace(FILE, inode=1000 + self.serial, mtime_ns=1)
            case "delete":
                self.stat = None
            case _:
                self.stat = replace(before, mtime_ns=mtime)


@dataclass
class Inbox:
    """The caller's part: it passes hints on, stats slowly, and remembers what is done with."""

    settler: Settler
    disk: Disk
    latency: float
    known: set[FileStat | None] = field(default_factory=set)
    asked: list[tuple[float, FileStat | None]] = field(default_factory=list)
    said: list[tuple[float, float, Verdict]] = field(default_factory=list)

    def poll(self, now: float) -> None:
        """Scan the folder once."""
        if self.disk.stat is not None and self.disk.stat not in self.known:
            self.settler.hint(PATH, now, stat=self.disk.stat)

    def tick(self, now: float) -> None:
        """Stat what is due, and hand on the stats that have come back."""
        self.asked += [(now, self.disk.stat) for _ in self.settler.due(now)]
        while self.asked and self.asked[0][0] + self.latency <= now:
            began, stat = self.asked.pop(0)
            verdict = self.settler.observe(PATH, stat, now)
            if isinstance(verdict, Settled | Empty):
                self.known.add(verdict.stat)
            if verdict is not None:
                self.said.append((began, now, verdict))


OPERATIONS = st.sampled_from(["write", "write", "truncate", "old", "future", "replace", "delete"])
DAYS = st.lists(st.tuples(st.integers(1, 64), OPERATIONS), min_size=1, max_size=12)


def live(
    day: list[tuple[int, str]], settler: Settler, *, events: bool, poll: int, latency: int
) -> tuple[Disk, list[tuple[float, float, Verdict]]]:
    """Run a day and two minutes after it in steps of 1/8 s; return the disk and (asked, answered, verdict) in order."""
    inbox = Inbox(settler, Disk(), latency / 8)
    plan: dict[int, list[str]] = {}
    at = 0
    for pause, operation in day:
        at += pause
        plan.setdefault(at, []).append(operation)
    for tick in range(at + 8 * 120):
        for operation in plan.get(tick, []):
            inbox.disk.act(operation, tick / 8)
            if events:
                settler.hint(PATH, tick / 8)
        if poll and tick % poll == 0:
            inbox.poll(tick / 8)
        inbox.tick(tick / 8)
    return inbox.disk, inbox.said


@settings(deadline=None, max_examples=3000)
@given(DAYS, st.sampled_from([0.5, 2.0, 5.0]), st.booleans(), st.integers(0, 3))
def test_a_day_of_writers(day: list[tuple[int, str]], stable_for: float, events: bool, latency: int) -> None:
    """Nothing settles within `stable_for` of a write; what stops changing settles once, in bounded time, as it is."""
    settler = Settler(stable_for, 30.0)
    poll = 0 if events else 16
    disk, said = live(day, settler, events=events, poll=poll, latency=latency)
    settled = [(began, ended, verdict) for began, ended, verdict in said if isinstance(verdict, Settled)]
    for began, _, _ in settled:
        assert not [at for at in disk.touched if began - stable_for < at < began]
    last = disk.touched[-1]
    final = [(ended, verdict) for _, ended, verdict in settled if ended > last]
    if disk.stat is not None and disk.stat.size:
        assert [verdict.stat for _, verdict in final] == [disk.stat]
        assert final[0][0] <= last + 2 * stable_for + poll / 8 + 2 + 4 * latency / 8
    elif disk.stat is not None:
        assert final == []
        assert [verdict for _, _, verdict in said if isinstance(verdict, Empty)][-1].stat == disk.stat
    else:
        assert final == []
    assert settler.pending == 0
    assert settler.next_due() is None


@settings(deadline=None, max_examples=60)
@given(DAYS, st.integers(0, 3))
def test_an_impatient_day_ends(day: list[tuple[int, str]], latency: int) -> None:
    """An impatient settler lets go of every path soon, whatever its writer does."""
    settler = Settler(2.0, 600.0, impatient=True)
    disk, said = live(day, settler, events=True, poll=0, latency=latency)
    assert settler.pending == 0
    assert len(said) <= len(disk.touched)
    assert not [verdict for _, _, verdict in said if isinstance(verdict, Waiting | Empty)]
