"""Decides when a path has stopped changing. Pure: the clock and every stat are arguments, nothing is read here.

A path is complete when nothing hinted at it for `stable_for`, and two stats at least min(1 s, stable_for) apart agree
on size, mtime, inode and device, and the size is not 0. The mtime is only ever compared with the other stat's, never
with the clock: sync tools set mtimes that are years old, and cameras set mtimes in the future.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.opening import Kind, kind_of

if TYPE_CHECKING:
    from animed.records import FileStat

_LONGEST_GAP: Final = 1.0  # seconds between the two stats that must agree, where stable_for allows it
_LONGEST_PAUSE: Final = 30.0  # seconds between two looks at a file that stays empty
_PATIENCE: Final = 5.0  # quiet times (and at least seconds) of writing before a file is reported as waiting
_SLACK: Final = 64  # stale heap items that are not worth a rebuild


@dataclass(frozen=True, slots=True)
class Settled:
    """Complete: regular, not empty, quiet, and seen twice with this stat. The settler has let go of it."""

    path: bytes
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Waiting:
    """Still changing, or empty: worth one line for people. Returned once; the path stays pending."""

    path: bytes
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Not complete after `stable_max`: returned once, the path stays pending.

    From an impatient settler: not complete (or of size 0) at its one comparison, and let go of.
    """

    path: bytes
    stat: FileStat
    since: float  # when it was first hinted at


@dataclass(frozen=True, slots=True)
class Empty:
    """Quiet and 0 bytes for `stable_max`. The settler has let go of it."""

    path: bytes
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Vanished:
    """Gone. `seen` says whether it was there at an earlier look: a hint of a deletion alone is no lost photo."""

    path: bytes
    seen: bool


@dataclass(frozen=True, slots=True)
class NotRegular:
    """A link, folder, FIFO, socket or device: never taken. The settler has let go of it."""

    path: bytes
    rule: Kind


Verdict = Settled | Waiting | Unsettled | Empty | Vanished | NotRegular


@dataclass(slots=True)
class _Entry:
    """What is known of one pending path."""

    armed_at: float  # when it was first hinted at
    changed_at: float  # the last hint, or the last look that saw a change
    milestone: float  # when to look even if the hints never pause
    stat: FileStat | None = None  # the first of the two stats
    stat_at: float = 0.0
    empty_since: float = math.inf
    pause: float = 0.0  # pause between looks at a quiet empty file; 0 = not one
    look_at: float = 0.0  # the end of that pause
    asked_at: float | None = None  # when `due` handed it out; None = not out, or hinted at since
    queued_at: float | None = None  # the time of its live item in the heap
    seen: bool = False
    waiting: bool = False  # Waiting was said
    overdue: bool = False  # Unsettled was said

    def sample(self, stat: FileStat, now: float) -> None:
        """Take `stat` as the first of the two."""
        self.stat, self.stat_at, self.seen, self.pause = stat, now, True, 0.0
        self.empty_since = math.inf if stat.size else min(self.empty_since, now)

    def rest(self, now: float, shortest: float) -> None:
        """Look again at a quiet empty file after a pause that doubles each time."""
        self.pause = min(max(2 * self.pause, shortest), _LONGEST_PAUSE)
        self.look_at = now + self.pause


@dataclass(frozen=True, slots=True)
class _Look:
    """One answer to `due`, compared with the look before."""

    stat: FileStat
    now: float
    changed: bool = False  # it differs from the look before
    complete: bool = False  # quiet, and the same as a look that is old enough
    compared: bool = False  # there was a look before that is old enough
    restless: bool = True  # hinted at, or seen changing, less than `stable_for` before


class Settler:
    """Holds the pending paths of one inbox. Times are seconds of one monotonic clock.

    Protocol: `hint` a path; when `next_due` has come take `due`, stat each path that it returns, and `observe` every
    answer before the next `due`. An answer that a newer hint has overtaken is not used, and asked for again. An
    `impatient` settler never waits for `stable_max`: what is not complete at its one comparison goes.
    """

    def __init__(self, stable_for: float, stable_max: float, *, impatient: bool = False) -> None:
        self._stable_for = stable_for
        self._stable_max = max(stable_max, stable_for)
        self._gap = min(_LONGEST_GAP, stable_for)
        self._patience = _PATIENCE * max(1.0, stable_for)
        self._impatient = impatient
        self._entries: dict[bytes, _Entry] = {}
        self._heap: list[tuple[float, bytes]] = []

    @property
    def pending(self) -> int:
        """Count the paths that are neither settled nor let go of."""
        return len(self._entries)

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def hint(self, path: bytes, now: float, *, stat: FileStat | None = None) -> None:
        """(Re)arm a path. With `stat` (from a scan) nothing restarts unless it differs from the last one known."""
        entry = self._entries.get(path)
        if entry is None:
            entry = self._entries[path] = _Entry(now, now, math.inf if self._impatient else now + self._patience)
        elif stat is None or (entry.stat is not None and not entry.stat.same_file(stat)):
            self._disturb(entry, now)
        if stat is not None and entry.stat is None:
            entry.sample(stat, now)
        self._queue(path, entry)

    def due(self, now: float, limit: int = 1000) -> list[bytes]:
        """Return at most `limit` paths that need a stat now. Each is out until `observe`, or the next hint."""
        found: list[bytes] = []
        while len(found) < limit and self._heap and self._heap[0][0] <= now:
            at, path = heapq.heappop(self._heap)
            entry = self._entries.get(path)
            if entry is None or entry.queued_at != at:
                continue
            entry.queued_at = None
            if self._due_at(entry) > now:
                self._queue(path, entry)
            else:
                entry.asked_at = now
                found.append(path)
        return found

    def next_due(self) -> float | None:
        """Return when `due` should be called next (never too late, at times too early), or None to wait for hints."""
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def observe(self, path: bytes, stat: FileStat | None, now: float) -> Verdict | None:
        """Take the answer for a path that `due` returned (`stat` None = gone). None = nothing to say yet.

        A stat that failed for another reason is answered by another `hint`.
        """
        entry = self._entries.get(path)
        if entry is None:
            return None
        verdict = self._answer(path, entry, stat, now=now)
        if self._is_final(verdict):
            self.discard(path)
        else:
            self._pass_milestone(entry, now)
            self._queue(path, entry)
        return verdict

    def _answer(self, path: bytes, entry: _Entry, stat: FileStat | None, *, now: float) -> Verdict | None:
        asked_at, entry.asked_at = entry.asked_at, None
        if asked_at is None:  # A hint has overtaken the answer: it may describe what was there before.
            return None if stat is None or kind_of(stat.mode) else self._report(path, entry, _Look(stat, now))
        if stat is None:
            return Vanished(path, entry.seen)
        kind = kind_of(stat.mode)
        if kind is not None:
            return NotRegular(path, kind)
        return self._judge(path, entry, self._look(entry, stat, asked_at=asked_at, now=now))

    def quiet(self, path: bytes, now: float) -> tuple[float, float] | None:
        """Return for how long a pending path has been quiet, and in how long it is looked at; None for any other."""
        entry = self._entries.get(path)
        return None if entry is None else (now - entry.changed_at, max(0.0, self._due_at(entry) - now))

    def discard(self, path: bytes) -> bool:
        """Let go of a path; say whether it was pending."""
        known = self._entries.pop(path, None) is not None
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._heap = [item for item in self._heap if self._is_live(item)]
            heapq.heapify(self._heap)
        return known

    def _disturb(self, entry: _Entry, now: float) -> None:
        """Start the quiet time again. An impatient settler keeps its one date, and will find it not quiet."""
        entry.changed_at = now
        if not self._impatient:
            entry.asked_at, entry.stat, entry.pause = None, None, 0.0

    def _look(self, entry: _Entry, stat: FileStat, *, asked_at: float, now: float) -> _Look:
        """Compare an answer with the look before. The stat was taken no sooner than `asked_at`."""
        before = entry.stat
        same = before is not None and before.same_file(stat)
        restless = asked_at < entry.changed_at + self._stable_for
        compared = before is not None and asked_at >= entry.stat_at + self._gap
        changed = before is not None and not same
        return _Look(
            stat,
            now,
            changed=changed,
            complete=same and compared and not restless,
            compared=compared and asked_at >= entry.armed_at + self._stable_for,
            restless=restless or changed,
        )

    def _judge(self, path: bytes, entry: _Entry, look: _Look) -> Verdict | None:
        if look.complete and look.stat.size:
            return Settled(path, look.stat)
        if self._impatient and look.compared:
            return Unsettled(path, look.stat, entry.armed_at)
        if look.complete and look.now >= entry.empty_since + self._stable_max:
            return Empty(path, look.stat)
        if look.complete:
            entry.rest(look.now, max(self._stable_for, 0.1))
        elif entry.stat is None or look.changed:
            entry.sample(look.stat, look.now)
            entry.changed_at = look.now if look.changed else entry.changed_at
        return None if self._impatient else self._report(path, entry, look)

    def _report(self, path: bytes, entry: _Entry, look: _Look) -> Waiting | Unsettled | None:
        """Say once that a path waits, and once that it has waited too long."""
        age = look.now - entry.armed_at
        if look.restless and age >= self._stable_max and not entry.overdue:
            entry.overdue = entry.waiting = True
            return Unsettled(path, look.stat, entry.armed_at)
        notable = look.changed or look.complete or (look.restless and age >= self._patience)
        if notable and not entry.waiting:
            entry.waiting = True
            return Waiting(path, look.stat)
        return None

    def _is_final(self, verdict: Verdict | None) -> bool:
        return not (verdict is None or isinstance(verdict, Waiting) or self._stays(verdict))

    def _stays(self, verdict: Verdict) -> bool:
        return isinstance(verdict, Unsettled) and not self._impatient

    def _pass_milestone(self, entry: _Entry, now: float) -> None:
        """Move on to the next date at which to look although hints never pause."""
        if now >= entry.milestone:
            last = entry.armed_at + self._stable_max
            entry.milestone = last if now < last else math.inf

    def _due_at(self, entry: _Entry) -> float:
        quiet_at = (entry.armed_at if self._impatient else entry.changed_at) + self._stable_for
        if entry.stat is None:
            at = max(quiet_at - self._gap, entry.armed_at)
        else:
            at = max(quiet_at, entry.stat_at + self._gap)
        if entry.pause:
            at = max(at, min(entry.look_at, entry.empty_since + self._stable_max))
        return min(at, entry.milestone)

    def _queue(self, path: bytes, entry: _Entry) -> None:
        """Keep exactly one live heap item per path; a date that moved later is found out when the item comes up."""
        at = self._due_at(entry)
        if entry.queued_at is None or at < entry.queued_at:
            entry.queued_at = at
            heapq.heappush(self._heap, (at, path))

    def _is_live(self, item: tuple[float, bytes]) -> bool:
        entry = self._entries.get(item[1])
        return entry is not None and entry.queued_at == item[0]
