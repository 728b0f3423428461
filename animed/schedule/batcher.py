"""The bounded backlog: jobs wait here until a batch of them is due or a worker is free.

Pure: time is an argument (`time.monotonic()` seconds). The backlog holds paths only; the inbox is the durable queue.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

from animed.records import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.records import Job, PhotoKey, Recipe

_SPARE = 16  # dead heap entries that are not worth a clean-up


class _Entry(NamedTuple):
    """A job in line: the first two fields order it, and the ticket is unique, so that jobs are never compared."""

    settled_at: float
    ticket: int
    job: Job


class _Lane:
    """The jobs of one inbox under one recipe, first settled first; each step costs O(log n)."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._live: dict[PhotoKey, int] = {}

    def __len__(self) -> int:
        return len(self._live)

    def put(self, job: Job, ticket: int) -> None:
        """Take a job in line; its key must not be in line yet."""
        self._live[job.key] = ticket
        heapq.heappush(self._heap, _Entry(job.settled_at, ticket, job))

    def head(self) -> _Entry:
        """Return the entry that is next; the lane must not be empty."""
        while not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0]

    def pop(self) -> Job:
        """Take out the job that is next; the lane must not be empty."""
        job = self.head().job
        heapq.heappop(self._heap)
        del self._live[job.key]
        return job

    def discard(self, key: PhotoKey) -> None:
        """Take a job out of line, wherever it stands."""
        del self._live[key]
        # Dead entries are dropped when they surface; a lane that nobody takes from must not gather them without end.
        if len(self._heap) > 2 * len(self._live) + _SPARE:
            self._heap = [entry for entry in self._heap if self._is_live(entry)]
            heapq.heapify(self._heap)

    def entries(self) -> list[_Entry]:
        """Return what is in line, in no order."""
        return [entry for entry in self._heap if self._is_live(entry)]

    def _is_live(self, entry: _Entry) -> bool:
        return self._live.get(entry.job.key) == entry.ticket


class _Group(NamedTuple):
    """What waits under one recipe, over all inboxes that are not held."""

    photos: int
    oldest: float


class Batcher:
    """Groups jobs by recipe, deals them out fairly over the inboxes, and bounds how many wait.

    A group is due when it has `max_size` jobs, or `max_wait` seconds after its oldest job settled.
    The inbox that was served longest ago comes first, and inside a batch inboxes alternate: a photo of one
    inbox waits for at most one photo of each other inbox under the same recipe, and one batch of each under others.
    `backlog` bounds the jobs of inboxes that are not held. Beyond it an inbox still gets up to `max_size` in:
    an import that fills the backlog must not shut out the single photo of another inbox.
    """

    def __init__(self, max_size: int, max_wait: float, backlog: int) -> None:
        if max_size < 1 or max_wait < 0 or backlog < 1:
            raise ValueError(f"sizes must be at least 1 and the wait 0: {max_size=}, {max_wait=}, {backlog=}")
        self.max_size = max_size
        self.max_wait = max_wait
        self.backlog = backlog
        # The order of this dict is the rotation: the inbox that was served longest ago stands first.
        self._inboxes: dict[str, dict[Recipe, _Lane]] = {}
        self._recipes: dict[PhotoKey, Recipe] = {}
        self._held: set[str] = set()
        self._tickets = 0
        self._batches = 0

    def __len__(self) -> int:
        return len(self._recipes)

    @property
    def below_half(self) -> bool:
        """Say whether there is room to scan inboxes again that did not fit before."""
        return 2 * self._active() < self.backlog

    def add(self, job: Job, now: float) -> bool:
        """Queue a job, replacing one of the same photo; False when there is no room and the inbox must be rescanned."""
        del now  # A group's age counts from when its photos settled, so that a retry does not wait again.
        inbox = job.key.inbox
        if not self.discard(job.key) and not self._has_room(inbox):
            return False
        self._tickets += 1
        self._inboxes.setdefault(inbox, {}).setdefault(job.recipe, _Lane()).put(job, self._tickets)
        self._recipes[job.key] = job.recipe
        return True

    def take(self, now: float, *, idle: bool, drain: bool = False, only: str | None = None) -> Batch | None:
        """Return the next batch that is due; for a free worker (`idle`) or at shutdown (`drain`) any is.

        With `only` it has photos of that inbox alone.
        """
        recipe = self._choose(now, at_once=idle or drain, only=only)
        if recipe is None:
            return None
        self._batches += 1
        return Batch(self._batches, tuple(self._deal(recipe, only)))

    def next_due(self, now: float) -> float | None:
        """Return when a batch becomes due without a free worker (`now` when one is), or None when nothing waits."""
        times = [self._due_at(group) for group in self._groups().values()]
        return max(now, min(times)) if times else None

    def queued(self, inbox: str) -> int:
        """Return how many photos of an inbox wait."""
        return sum(len(lane) for lane in self._inboxes.get(inbox, {}).values())

    def contains(self, key: PhotoKey) -> bool:
        """Say whether a photo waits here."""
        return key in self._recipes

    def discard(self, key: PhotoKey) -> bool:
        """Take out a photo that is no longer wanted; say whether it was here."""
        recipe = self._recipes.pop(key, None)
        if recipe is None:
            return False
        self._inboxes[key.inbox][recipe].discard(key)
        self._sweep(key.inbox, recipe)
        return True

    def clear(self) -> tuple[Job, ...]:
        """Empty the backlog, and return what was in it, first settled first."""
        entries = [entry for lanes in self._inboxes.values() for lane in lanes.values() for entry in lane.entries()]
        self._inboxes = {inbox: {} for inbox in self._inboxes}
        self._recipes = {}
        return tuple(entry.job for entry in sorted(entries, key=lambda entry: entry[:2]))

    def hold(self, inbox: str) -> None:
        """Suspend an inbox: its jobs stay, are not taken, and leave the room of the backlog to the others."""
        self._held.add(inbox)

    def release(self, inbox: str) -> None:
        """End a suspension: the jobs of the inbox are taken again, in their order."""
        self._held.discard(inbox)

    def _active(self) -> int:
        """Return how many jobs could be taken."""
        return len(self) - sum(self.queued(inbox) for inbox in self._held)

    def _has_room(self, inbox: str) -> bool:
        waiting = self.queued(inbox)
        if inbox in self._held:
            return waiting < self.backlog
        return self._active() < self.backlog or waiting < min(self.max_size, self.backlog)

    def _open(self, only: str | None = None) -> Iterator[tuple[str, dict[Recipe, _Lane]]]:
        """Yield the inboxes that are not held (`only` that one), the one served longest ago first."""
        return (
            (inbox, lanes)
            for inbox, lanes in self._inboxes.items()
            if inbox not in self._held and only in {None, inbox}
        )

    def _groups(self) -> dict[Recipe, _Group]:
        groups: dict[Recipe, _Group] = {}
        for _, lanes in self._open():
            for recipe, lane in lanes.items():
                group = groups.get(recipe, _Group(0, float("inf")))
                groups[recipe] = _Group(group.photos + len(lane), min(group.oldest, lane.head().settled_at))
        return groups

    def _due_at(self, group: _Group) -> float:
        return float("-inf") if group.photos >= self.max_size else group.oldest + self.max_wait

    def _choose(self, now: float, *, at_once: bool, only: str | None) -> Recipe | None:
        """Return the recipe of the oldest due photo of the inbox that was served longest ago."""
        due = {recipe for recipe, group in self._groups().items() if at_once or self._due_at(group) <= now}
        for _, lanes in self._open(only):
            heads = {recipe: lane.head()[:2] for recipe, lane in lanes.items() if recipe in due}
            if heads:
                return min(heads, key=heads.__getitem__)
        return None

    def _deal(self, recipe: Recipe, only: str | None) -> Iterator[Job]:
        """Take up to `max_size` jobs of a recipe, one inbox after the other."""
        for _ in range(self.max_size):
            inbox = next((inbox for inbox, lanes in self._open(only) if recipe in lanes), None)
            if inbox is None:
                return
            job = self._inboxes[inbox][recipe].pop()
            del self._recipes[job.key]
            self._sweep(inbox, recipe)
            self._inboxes[inbox] = self._inboxes.pop(inbox)  # Served: to the end of the rotation.
            yield job

    def _sweep(self, inbox: str, recipe: Recipe) -> None:
        """Drop a lane that has run empty."""
        if not self._inboxes[inbox][recipe]:
            del self._inboxes[inbox][recipe]
