"""A simulated day of writers against the settler: times are multiples of 1/8 s, so that floats are exact."""

from __future__ import annotations

import stat as modes
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from animed.intake.settle import Empty, Settled, Settler, Verdict, Waiting
from animed.records import FileStat

PATH = b"holiday/a.jpg"
FILE = FileStat(size=10, mtime_ns=1, ctime_ns=1, inode=7, device=1, mode=modes.S_IFREG | 0o644)


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
        # One set of stats at a time, as the service asks: an answer must not be taken for that of a later question.
        if not self.asked:
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


@settings(deadline=None, max_examples=150)
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
    # Without events a write between the stat and its answer cannot be known yet: the next poll brings it.
    final = [(ended, verdict) for began, ended, verdict in settled if began >= last]
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
