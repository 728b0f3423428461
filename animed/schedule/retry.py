"""Whether, when and how a photo or a place is tried again.

Pure: time is an argument (`time.monotonic()` seconds), and nothing here touches a file.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from animed.records import Reason

if TYPE_CHECKING:
    from animed.records import Job, PhotoKey

# Another try reads the same bytes and meets the same policy: it cannot end differently.
PERMANENT: Final = frozenset({Reason.EMPTY, Reason.NOT_AN_IMAGE, Reason.UNSUPPORTED, Reason.TOO_LARGE, Reason.CONFLICT})
# The worker died or fell silent: the photo is a suspect, and so is the one that shared the worker with it.
CRASHES: Final = frozenset({Reason.WORKER_CRASHED, Reason.TIMEOUT})

_SPARE = 16  # dead heap entries that are not worth a clean-up


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds that grow by a factor up to a limit.

    With delay 5, factor 3, max_delay 900: 5, 15, 45, 135, 405, 900, 900, …
    """

    delay: float
    factor: float
    max_delay: float

    def __post_init__(self) -> None:
        """Refuse a series that shrinks or runs backwards."""
        if not (self.delay >= 0 and self.max_delay >= 0 and self.factor >= 1):
            raise ValueError(f"delays must be at least 0 and the factor 1: {self}")

    def delay_for(self, attempt: int) -> float:
        """Return how long to wait after try number `attempt` (1 = the first)."""
        if attempt < 1:
            raise ValueError(f"tries are counted from 1, not {attempt}")
        if self.delay == 0:
            return 0.0
        try:
            return min(self.delay * float(self.factor) ** (attempt - 1), self.max_delay)
        except OverflowError:  # The power of a late try is no float any more, and long past the limit.
            return self.max_delay


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a photo is tried (`attempts`, all tries counted), and how many workers it may kill alone."""

    attempts: int
    crash_attempts: int
    backoff: Backoff

    @classmethod
    def impatient(cls, stable_for: float, attempts: int, crash_attempts: int) -> RetryPolicy:
        """Return the policy of a single pass: one more try after `stable_for` seconds, never a longer wait."""
        return cls(min(attempts, 2), crash_attempts, Backoff(stable_for, 1, stable_for))


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `after_s` seconds, with these counters."""

    after_s: float
    attempt: int  # the number of the next try
    crashes: int
    alone: bool

    def job(self, job: Job) -> Job:
        """Return the job of the next try."""
        return replace(job, attempt=self.attempt, crashes=self.crashes, alone=self.alone)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Record the photo as failed, after this many tries."""

    attempts: int
    crashes: int


Verdict = Retry | GiveUp


def decide(reason: str, policy: RetryPolicy, *, attempt: int, crashes: int, alone: bool) -> Verdict:
    """Say what becomes of a photo whose try number `attempt` (1 = the first) ended with `reason`.

    `alone`: nothing else was in the worker. A reason that is not known here counts as one that may pass:
    the number of tries bounds it.
    """
    kind = reason.partition(":")[0]
    if kind in PERMANENT:
        return GiveUp(attempt, crashes)
    if kind in CRASHES:
        return _after_crash(policy, attempt=attempt, crashes=crashes, alone=alone)
    if attempt >= policy.attempts:
        return GiveUp(attempt, crashes)
    # A photo that once killed a worker stays a suspect, and memory that ran out may do for one photo alone.
    suspect = crashes > 0 or kind == Reason.OUT_OF_MEMORY
    return Retry(policy.backoff.delay_for(attempt), attempt + 1, crashes, suspect)


def _after_crash(policy: RetryPolicy, *, attempt: int, crashes: int, alone: bool) -> Verdict:
    """Run a suspect alone at no cost; count only crashes that the photo caused for certain."""
    if not alone:
        return Retry(0.0, attempt, crashes, alone=True)
    crashes += 1
    if crashes >= policy.crash_attempts:
        return GiveUp(attempt, crashes)
    return Retry(policy.backoff.delay_for(crashes), attempt, crashes, alone=True)


class PlaceBackoff:
    """When a suspended place is probed: 1, 2, 4, … 60 s after each fault in a row; a success resets it."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self._backoff = backoff or Backoff(1, 2, 60)
        self._faults = 0
        self._next: float | None = None

    @property
    def suspended(self) -> bool:
        """Say whether the place waits for a probe."""
        return self._next is not None

    @property
    def next_due(self) -> float | None:
        """Return when the next probe is due, or None when the place is well."""
        return self._next

    def fault(self, now: float) -> float:
        """Note a fault, and return when to probe; photos that fail together count as one fault."""
        if self._next is None or now >= self._next:
            self._faults += 1
            self._next = now + self._backoff.delay_for(self._faults)
        return self._next

    def due(self, now: float) -> bool:
        """Say whether it is time to probe."""
        return self._next is not None and now >= self._next

    def reset(self) -> None:
        """Note a success: the next fault starts the series again."""
        self._faults = 0
        self._next = None


class RetryQueue:
    """Jobs that wait for their next try, by photo; each step costs O(log n)."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PhotoKey]] = []
        self._jobs: dict[PhotoKey, tuple[int, Job]] = {}
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, key: PhotoKey) -> bool:
        return key in self._jobs

    def get(self, key: PhotoKey) -> Job | None:
        """Return the job of a photo that waits here."""
        return self._jobs.get(key, (0, None))[1]

    def add(self, job: Job, due_at: float) -> None:
        """Let a job wait until `due_at`, in place of an earlier one of the same photo."""
        self.discard(job.key)
        self._tickets += 1
        self._jobs[job.key] = (self._tickets, job)
        heapq.heappush(self._heap, (due_at, self._tickets, job.key))

    def due(self, now: float) -> list[Job]:
        """Take out the jobs whose time has come, the longest due first."""
        jobs = []
        while (next_due := self.next_due()) is not None and next_due <= now:
            jobs.append(self._jobs.pop(heapq.heappop(self._heap)[2])[1])
        return jobs

    def next_due(self) -> float | None:
        """Return when the next job is due, or None when none waits."""
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def discard(self, key: PhotoKey) -> Job | None:
        """Take out the job of a photo, and return it."""
        _, job = self._jobs.pop(key, (0, None))
        # Dead entries far from their time must not pile up.
        if len(self._heap) > 2 * len(self._jobs) + _SPARE:
            self._heap = [entry for entry in self._heap if self._is_live(entry)]
            heapq.heapify(self._heap)
        return job

    def drop(self, inbox: str) -> None:
        """Take out all jobs of an inbox."""
        for key in [key for key in self._jobs if key.inbox == inbox]:
            self.discard(key)

    def clear(self) -> list[Job]:
        """Take out all jobs, in the order in which they were added."""
        jobs = [job for _, job in self._jobs.values()]
        self._heap.clear()
        self._jobs.clear()
        return jobs

    def _is_live(self, entry: tuple[float, int, PhotoKey]) -> bool:
        _, ticket, key = entry
        return self._jobs.get(key, (0, None))[0] == ticket
