"""Ends inboxes that a new configuration changes or removes, and begins their successors and those that are new.

A changed inbox does what a restart of the service would do, for itself alone. First it ends: nothing new is taken from
it, what waits is dropped (it is in the inbox), running photos finish and are placed under the old set-up, and what is
owed to originals is done. Then its successor watches and scans, and finds all that was dropped. So a photo has one
set-up from its first look to its outcome, and nothing has to be translated from the one to the other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from animed.daemon.active import Phase
from animed.daemon.iothread import SILENCE_S
from animed.daemon.putting import Place, PutAway, Resolve, StageCopy
from animed.errors import AnimedError
from animed.system import shut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from structlog.typing import FilteringBoundLogger

    from animed.daemon.inbox import Inbox
    from animed.daemon.iothread import Answer
    from animed.daemon.parts import Parts
    from animed.daemon.recipes import Recipes
    from animed.daemon.setup import Setup


@dataclass(slots=True)
class Leaver:
    """An inbox that ends."""

    inbox: Inbox
    told: bool = False  # its thread was told to end after what is queued
    ended: bool = False  # the thread is over


class Turnover:
    """Brings the inboxes to what is wanted, step by step; what is wanted may change again meanwhile."""

    def __init__(self, parts: Parts, make: Callable[[Setup], Inbox]) -> None:
        self._parts = parts
        self._desk = parts.desk
        self._make = make
        self._log: FilteringBoundLogger = parts.log
        self._wanted: dict[str, Setup] = {name: inbox.setup for name, inbox in parts.desk.inboxes.items()}
        self._leavers: dict[str, Leaver] = {}
        self._unstarted: set[str] = set()
        self._await_workers = False

    @property
    def busy(self) -> bool:
        """Say whether an inbox is ending, or waits to begin."""
        return bool(self._leavers or self._unstarted)

    def turn(self, wanted: Mapping[str, Setup], now: float, *, await_workers: bool) -> None:
        """Begin to bring the inboxes to these set-ups.

        `await_workers`: no inbox begins while a worker that was made for the earlier styles takes photos.
        """
        self._wanted = dict(wanted)
        self._await_workers = self._await_workers or await_workers
        for name, inbox in list(self._desk.inboxes.items()):
            if name not in self._leavers and self._wanted.get(name) != inbox.setup:
                self._end(name, inbox, now)
        self._desk.leaving = {name: self._recipes_to_come(name) for name in self._leavers}
        self.tick(now)

    def tick(self, now: float) -> None:
        """Go on with what has become possible."""
        # What waits for the state folder still belongs to the inbox as it was.
        if self._desk.journal.blocked:
            return
        for name, leaver in list(self._leavers.items()):
            if self._is_over(name, leaver, now):
                del self._leavers[name]
                self._remove(name, leaver.inbox)
        self._begin()

    def next_due(self, now: float) -> float | None:
        """Return when `tick` is to be called next: when patience with a silent thread is over."""
        silences = [leaver.inbox.thread.silent_for(now) for leaver in self._leavers.values()]
        return min((now + SILENCE_S - silent + 0.01 for silent in silences if 0 < silent <= SILENCE_S), default=None)

    def ended(self, thread: object) -> None:
        """Note that an I/O thread is over."""
        for leaver in self._leavers.values():
            if leaver.inbox.thread is thread:
                leaver.ended = True

    # The end of an inbox.

    def _end(self, name: str, inbox: Inbox, now: float) -> None:
        if name in self._unstarted:
            self._unstarted.discard(name)
            self._remove(name, inbox)
            return
        self._leavers[name] = Leaver(inbox)
        self._desk.leaving[name] = self._recipes_to_come(name)
        inbox.stop()
        self._parts.backlog.retries.drop(name)
        self._parts.photos.drop(name, now)

    def _recipes_to_come(self, name: str) -> Recipes | None:
        successor = self._wanted.get(name)
        return None if successor is None else successor.recipes

    def _is_over(self, name: str, leaver: Leaver, now: float) -> bool:
        """Say whether an inbox has ended. One that hangs is left behind, once no worker has a photo of it."""
        thread = leaver.inbox.thread
        moving = any(key.inbox == name for key in (*self._desk.actives, *self._desk.left))
        served = self._parts.placing.serves(name) or self._parts.originals.serves(name)
        if not (leaver.told or moving or served):
            leaver.told = True
            self._parts.reports.part(leaver.inbox, stays=self._reports_stay(name, leaver.inbox))
            thread.stop()
        if leaver.ended:
            return True
        drawn = any(a.phase is Phase.RUNNING for key, a in self._desk.actives.items() if key.inbox == name)
        if drawn or thread.silent_for(now) <= SILENCE_S:
            return False
        self._abandon(name, leaver.inbox, now)
        return True

    def _reports_stay(self, name: str, inbox: Inbox) -> bool:
        """Say whether an inbox that ends has a successor which reports into the same output."""
        successor = self._wanted.get(name)
        if successor is None or successor.config.report == "off":
            return False
        return os.fspath(successor.config.output) == inbox.output

    def _abandon(self, name: str, inbox: Inbox, now: float) -> None:
        """Leave a thread behind that hangs with photos in its hands; `late` takes up what it brings one day."""
        self._log.warning("inbox.unavailable", inbox=name, place=inbox.root, detail="left behind: it does not answer")
        inbox.thread.stop()  # one that comes back ends after what is queued, instead of waiting for ever
        self._parts.placing.forget(name)
        self._parts.originals.hold(name)
        for key, active in list(self._desk.actives.items()):
            if key.inbox == name:
                # The thread may come back and use the descriptor: until then its number must not mean another file.
                # Of a picture that was refused it only looks for the name.
                active.fd = None if active.refusal is None else active.fd
                self._parts.placing.hold(key)
                self._desk.leave(active, "returned", now)

    def is_late(self, answer: Answer) -> bool:
        """Say whether an answer comes from a thread that was left behind."""
        inbox = self._desk.inboxes.get(answer.inbox)
        return inbox is None or (answer.origin is not None and answer.origin is not inbox.thread)

    def late(self, answer: Answer, now: float) -> None:
        """Take back what a thread that was left behind had in its hands, and look at those photos anew."""
        request, result = answer.request, answer.result
        if isinstance(request, Place) and request.fd is not None:
            shut(self._desk.system, request.fd)
        elif isinstance(request, StageCopy) and not isinstance(result, AnimedError) and result[1] is not None:
            shut(self._desk.system, result[1])
        if isinstance(request, PutAway):
            self._parts.originals.release(request.key)
        elif isinstance(request, Place | StageCopy | Resolve):
            self._parts.placing.release(request.row.key if isinstance(request, Resolve) else request.key)
        inbox = self._desk.inboxes.get(answer.inbox)
        if inbox is not None and answer.inbox not in self._desk.leaving and inbox.opened and inbox.health.draws:
            self._parts.arrivals.up(inbox, now)

    def _remove(self, name: str, inbox: Inbox) -> None:
        """Forget an inbox; its photos stay in the ledger."""
        desk = self._desk
        del desk.inboxes[name]
        desk.leaving.pop(name, None)
        desk.relook -= {key for key in desk.relook if key.inbox == name}
        self._parts.backlog.retries.drop(name)
        self._parts.backlog.batcher.release(name)
        self._parts.arrivals.forget(name)
        self._parts.reports.forget(inbox)
        own = inbox.output_identity
        if own is not None and all(other.output_identity != own for other in desk.inboxes.values()):
            inbox.outputs.discard(own)

    # The beginning of an inbox.

    def _begin(self) -> None:
        missing = [setup for name, setup in self._wanted.items() if name not in self._desk.inboxes]
        for setup in missing:
            name = setup.config.name
            inbox = self._desk.inboxes[name] = self._make(setup)
            self._desk.reporter.roots[name] = inbox.root
            self._unstarted.add(name)
        if missing:
            self._put_in_order()
        self._await_workers = self._await_workers and not self._parts.pool.rolled
        for name in [name for name in self._unstarted if self._may_begin(name)]:
            self._unstarted.discard(name)
            self._parts.placing.prepare(self._desk.inboxes[name])
            self._desk.inboxes[name].start()

    def _put_in_order(self) -> None:
        """Let the inboxes stand as in the configuration; those that end stand last."""
        inboxes = self._desk.inboxes
        order = [*(name for name in self._wanted if name in inboxes), *(set(inboxes) - set(self._wanted))]
        for name in order:
            inboxes[name] = inboxes.pop(name)

    def _may_begin(self, name: str) -> bool:
        """Say whether workers can draw for an inbox, and whether no inbox that ends uses one of its places."""
        if self._await_workers:
            return False
        own = list(_places(self._wanted[name]))
        others = [place for leaver in self._leavers.values() for place in _places(leaver.inbox.setup)]
        return not any(_touch(one, other) for one in own for other in others)


def _places(setup: Setup) -> Iterator[str]:
    config = setup.config
    yield from (os.fspath(config.path), os.fspath(config.output))
    yield from (os.fspath(config.processed_dir), os.fspath(config.failed_dir))


def _touch(one: str, other: str) -> bool:
    """Say whether one folder is the other, or lies in it. By name only: this thread asks no file system about them."""
    one, other = (os.path.join(os.path.normpath(place), "") for place in (one, other))
    return one.startswith(other) or other.startswith(one)
