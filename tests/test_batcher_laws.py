"""The backlog under any sequence of steps, against a plain model: nothing lost, nothing twice, in order, fairly."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from animed.records import FileStat, Job, PhotoKey, Recipe
from animed.schedule.batcher import Batcher

if TYPE_CHECKING:
    from animed.records import Batch

INBOXES = ("import", "phone", "scans")
MAX_SIZE, MAX_WAIT, BACKLOG = 3, 2.0, 12


def job(inbox: str, name: str, *, at: float, style: str) -> Job:
    recipe = Recipe(style, "00" * 32, "half_pixel", 1.0, 1024, "same", 92, exif=True, gps=True)
    return Job(PhotoKey(inbox, name.encode()), FileStat(100, 1, 1, 1, 1, 0o100644), recipe, at)


class Backlog(RuleBasedStateMachine):
    """Any sequence of steps against a plain model: a dict of what must be inside."""

    def __init__(self) -> None:
        super().__init__()
        self.batcher = Batcher(MAX_SIZE, MAX_WAIT, BACKLOG)
        self.inside: dict[PhotoKey, Job] = {}
        self.held: set[str] = set()
        self.now = 0.0
        self.batches = 0
        self.served_since: Counter[str] = Counter()  # photos of others since this inbox was served or had none

    def open_jobs(self) -> list[Job]:
        """Return what could be taken."""
        return [each for each in self.inside.values() if each.key.inbox not in self.held]

    @rule(
        inbox=st.sampled_from(INBOXES),
        name=st.integers(0, 30),
        style=st.sampled_from(["cel", "ink"]),
        back=st.sampled_from([0.0, 0.0, 1.0, 5.0]),
    )
    def add(self, inbox: str, name: int, style: str, back: float) -> None:
        """Take a job in exactly when there is room, or when its photo is inside already."""
        new = job(inbox, f"{name}", at=self.now - back, style=style)
        mine = sum(key.inbox == inbox for key in self.inside)
        room = mine < BACKLOG if inbox in self.held else len(self.open_jobs()) < BACKLOG or mine < MAX_SIZE
        expected = new.key in self.inside or room
        assert self.batcher.add(new, self.now) == expected
        if expected:
            self.inside[new.key] = new

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    @rule(inbox=st.sampled_from(INBOXES), name=st.integers(0, 30))
    def discard(self, inbox: str, name: int) -> None:
        """Lose a photo, and be told whether it was inside."""
        key = PhotoKey(inbox, f"{name}".encode())
        assert self.batcher.discard(key) == (self.inside.pop(key, None) is not None)

    @rule(inbox=st.sampled_from(INBOXES))
    def hold(self, inbox: str) -> None:
        """Suspend an inbox."""
        self.held.add(inbox)
        self.batcher.hold(inbox)

    @rule(inbox=st.sampled_from(INBOXES))
    def release(self, inbox: str) -> None:
        """Let an inbox go on."""
        self.held.discard(inbox)
        self.batcher.release(inbox)

    @rule(idle=st.booleans(), drain=st.booleans())
    def take(self, idle: bool, drain: bool) -> None:
        """Get a batch exactly when a group is due, and one of those."""
        due = self.due(at_once=idle or drain)
        batch = self.batcher.take(self.now, idle=idle, drain=drain)
        assert (batch is not None) == bool(due)
        if batch is None:
            return
        self.batches += 1
        assert batch.number == self.batches
        assert {each.recipe for each in batch.jobs} <= due
        self.check_jobs(batch)
        self.check_fairness(batch, all_due=idle or drain)

    @rule()
    def clear(self) -> None:
        """Get back all that is inside."""
        assert {each.key: each for each in self.batcher.clear()} == self.inside
        self.inside = {}

    def due(self, *, at_once: bool) -> set[Recipe]:
        """Return the recipes that are due."""
        groups: dict[Recipe, list[float]] = {}
        for each in self.open_jobs():
            groups.setdefault(each.recipe, []).append(each.settled_at)
        return {
            recipe
            for recipe, times in groups.items()
            if at_once or len(times) >= MAX_SIZE or self.now >= min(times) + MAX_WAIT
        }

    def check_jobs(self, batch: Batch) -> None:
        """Expect one recipe, as many as fit, each from inside, none before an older one of its inbox."""
        assert len({each.recipe for each in batch.jobs}) == 1
        available = [each for each in self.open_jobs() if each.recipe == batch.jobs[0].recipe]
        assert len(batch.jobs) == min(MAX_SIZE, len(available))
        for each in batch.jobs:
            assert self.inside.pop(each.key) is each
            older = [job for job in self.open_jobs() if (job.key.inbox, job.recipe) == (each.key.inbox, each.recipe)]
            assert all(job.settled_at >= each.settled_at for job in older)

    def check_fairness(self, batch: Batch, *, all_due: bool) -> None:
        """Expect even shares in a batch, and no wait for more than one batch of each other inbox."""
        served = [each.key.inbox for each in batch.jobs]
        spread = Counter(served)
        left = Counter(each.key.inbox for each in self.open_jobs() if each.recipe == batch.jobs[0].recipe)
        for waiting in left:
            assert max(spread.values()) <= spread[waiting] + 1
        for inbox in INBOXES:
            if inbox in served or not any(each.key.inbox == inbox for each in self.open_jobs()) or not all_due:
                self.served_since[inbox] = 0
            else:
                self.served_since[inbox] += len(served)
            assert self.served_since[inbox] <= (len(INBOXES) - 1) * MAX_SIZE

    @invariant()
    def counts_agree(self) -> None:
        """Compare what the backlog says of itself with what is inside."""
        assert len(self.batcher) == len(self.inside)
        assert all(self.batcher.contains(key) for key in self.inside)
        for inbox in INBOXES:
            assert self.batcher.queued(inbox) == sum(key.inbox == inbox for key in self.inside)
        assert self.batcher.below_half == (2 * len(self.open_jobs()) < BACKLOG)

    @invariant()
    def next_due_is_true(self) -> None:
        """Expect the next deadline to have come exactly when a group is due."""
        when = self.batcher.next_due(self.now)
        assert (when is None) == (not self.open_jobs())
        if when is not None:
            assert (when <= self.now) == bool(self.due(at_once=False))


TestBacklog = Backlog.TestCase
TestBacklog.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
