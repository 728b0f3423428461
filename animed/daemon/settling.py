"""The paths of one inbox that are not complete yet, and the stats that they wait for."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from animed.daemon.looking import StatPaths
from animed.errors import AnimedError
from animed.intake.scan import Found, Ignored, Unreadable
from animed.intake.settle import Empty, NotRegular, Settled, Settler, Unsettled, Vanished, Waiting
from animed.records import PhotoKey, Sighting
from animed.system import DENIED

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from animed.config import InboxConfig
    from animed.daemon.looking import Look
    from animed.daemon.sink import Sink
    from animed.intake.rules import Rules
    from animed.intake.scan import Entry
    from animed.intake.settle import Verdict
    from animed.opening import Identity
    from animed.records import FileStat

_LASTING: Final = DENIED | {errno.ENAMETOOLONG}  # told once; a change of rights is an event of its own
_AT_ONCE: Final = 256  # paths in one request: placing a picture waits for no more than these


class Settling:
    """Asks for one set of stats at a time, so that a slow share is not asked faster than it answers."""

    def __init__(self, config: InboxConfig, rules: Rules, *, outputs: AbstractSet[Identity], impatient: bool) -> None:
        self._inbox = config.name
        self._root = str(config.path)
        self._rules = rules
        self._outputs = outputs
        self._settler = Settler(config.stable_for, config.stable_max, impatient=impatient)
        self._asked = False

    @property
    def pending(self) -> int:
        """Count the paths that are not complete."""
        return self._settler.pending

    def __contains__(self, path: bytes) -> bool:
        """Say whether a path is not complete yet."""
        return path in self._settler

    def quiet(self, path: bytes, now: float) -> tuple[float, float] | None:
        """Return for how long a path that is not complete has been quiet, and in how long it is looked at again."""
        return self._settler.quiet(path, now)

    def judge(self, path: bytes) -> str | None:
        """Return the rule that leaves a file out, or None."""
        return self._rules.judge(path, is_dir=False)

    def hint(self, path: bytes, now: float, stat: FileStat | None) -> None:
        """Look at a path once it is quiet."""
        self._settler.hint(path, now, stat=stat)

    def due(self, now: float, known: Identity | None = None) -> StatPaths | None:
        """Return the request for the stats that are due below the known root, unless one is under way."""
        if self._asked or not (paths := self._settler.due(now, _AT_ONCE)):
            return None
        self._asked = True
        return StatPaths(self._root, tuple(paths), self._outputs, known)

    def next_due(self) -> float | None:
        """Return when stats are due; None while some are under way."""
        return None if self._asked else self._settler.next_due()

    def answered(self, request: StatPaths, result: object, sink: Sink, now: float) -> None:
        """Take the stats, or the fault of the place that kept them from being taken."""
        self._asked = False
        if isinstance(result, AnimedError):
            for path in request.paths:
                self._settler.hint(path, now)
        elif isinstance(result, tuple):
            for path, seen in result:
                self._observe(path, seen, sink, now)

    def _observe(self, path: bytes, seen: Look, sink: Sink, now: float) -> None:
        if isinstance(seen, str):
            # As gone as a photo; unless a hint has overtaken this answer: then it is looked at again.
            if self._settler.observe(path, None, now) is not None and seen != "directory":
                sink.ignored(PhotoKey(self._inbox, path), seen)
        else:
            self._tell(self._settler.observe(path, seen, now), sink, now)

    def _tell(self, verdict: Verdict | None, sink: Sink, now: float) -> None:
        if verdict is None:
            return
        key = PhotoKey(self._inbox, verdict.path)
        match verdict:
            case Settled(stat=stat):
                sink.settled(Sighting(key, stat, now), now)
            case Empty(stat=stat):
                sink.empty(Sighting(key, stat, now), now)
            case NotRegular(rule="directory"):
                pass
            case NotRegular(rule=rule):
                sink.ignored(key, rule)
            case Vanished(seen=seen):
                sink.vanished(key, now, seen=seen)
            case Waiting() | Unsettled():
                sink.waiting(key)


def sort_out(inbox: str, entries: tuple[Entry, ...], sink: Sink) -> list[Found]:
    """Return the files among a scan's entries, and tell of what is left out."""
    for entry in entries:
        if not isinstance(entry, Found):
            sink.ignored(PhotoKey(inbox, entry.path), rule_of(entry))
    return [entry for entry in entries if isinstance(entry, Found)]


def is_doubtful(result: object) -> bool:
    """Say whether an answer of a scan, or of stats, left something out for a reason that may pass by itself."""
    return isinstance(result, tuple) and any(
        (isinstance(part, Unreadable) and part.code not in _LASTING)
        or (isinstance(part, tuple) and isinstance(part[1], str) and _may_pass(part[1]))
        for part in result
    )


def _may_pass(rule: str) -> bool:
    """Say whether a rule is that of a fault that may pass."""
    kind, _, code = rule.partition(":")
    return kind == "unreadable" and code not in {errno.errorcode[number] for number in _LASTING}


def rule_of(entry: Ignored | Unreadable) -> str:
    """Return the rule under which a scanned path is left out; what cannot be looked at is named with its error."""
    if isinstance(entry, Ignored):
        return entry.rule
    return f"unreadable:{errno.errorcode.get(entry.code, entry.code)}"
