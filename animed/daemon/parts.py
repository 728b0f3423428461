"""Builds the daemon's parts from a configuration, and takes them down again in order."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from animed.daemon.apart import Apart
from animed.daemon.arrivals import Arrivals
from animed.daemon.backlog import Backlog
from animed.daemon.desk import Desk
from animed.daemon.faults import Faults
from animed.daemon.gate import Gate
from animed.daemon.hooks import Hooks
from animed.daemon.inbox import Inbox
from animed.daemon.iothread import IoThread
from animed.daemon.journal import Journal
from animed.daemon.mailbox import Mailbox
from animed.daemon.originals import Originals
from animed.daemon.photos import Photos
from animed.daemon.placing import Placing
from animed.daemon.presence import Presence
from animed.daemon.recipes import temp_prefix
from animed.daemon.reload import Reloader, Renewal
from animed.daemon.report import Reporter
from animed.daemon.reports import Reports
from animed.daemon.setup import Candidate, Setup, candidate_of
from animed.engine.pool import Pool
from animed.errors import ConfigError
from animed.opening import Identity
from animed.schedule.batcher import Batcher
from animed.schedule.ledger import FILE_NAME, Ledger
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from structlog.typing import FilteringBoundLogger

    from animed.config import Config
    from animed.config.models import LoggingConfig
    from animed.daemon.iothread import Answer, Ended
    from animed.daemon.validation import Validated
    from animed.engine.plan import Plan
    from animed.intake.watch import Hint
    from animed.service.control import ControlServer
    from animed.service.sdnotify import Notifier

    Post = Answer | Ended | Validated | tuple[str, Hint]


@dataclass(slots=True)
class Parts:
    """Everything that the loop runs."""

    config: Config
    log: FilteringBoundLogger
    plan: Plan
    pool: Pool
    mailbox: Mailbox[Post]
    desk: Desk
    backlog: Backlog
    faults: Faults
    originals: Originals
    placing: Placing
    photos: Photos
    arrivals: Arrivals
    notifier: Notifier
    gate: Gate
    hooks: Hooks
    reports: Reports
    reloader: Reloader = field(init=False)
    control: ControlServer | None = None

    def is_through(self) -> bool:
        """Say whether a single pass has nothing left that could be done now."""
        waiting = self.desk.journal.blocked or len(self.backlog.retries) > 0 or self.placing.busy or self.originals.busy
        waiting = waiting or self.hooks.busy or self.reports.busy
        if waiting or any(self._is_moving(inbox) for inbox in self.desk.inboxes.values()):
            return False
        return all(not self.desk.inbox_of(key).health.draws for key in self.desk.actives)

    def _is_moving(self, inbox: Inbox) -> bool:
        """Say whether an inbox may still bring photos: an unavailable one does not."""
        if inbox.state == "unavailable":
            return False  # and one that hangs may never have been opened
        if not (inbox.opened and inbox.output_opened and inbox.scanned):
            return True
        scans = inbox.scans.wanted or inbox.scans.running
        return scans or (inbox.dirty and inbox.health.draws) or inbox.settling.pending > 0


@dataclass(frozen=True, slots=True)
class Again:
    """How a running service reads its configuration again, and has its log follow."""

    load: Callable[[], Config]  # called in a thread of its own
    set_logging: Callable[[LoggingConfig], None]


def _never() -> Config:
    raise ConfigError("a single pass keeps its configuration")


ONCE: Final = Again(_never, lambda _logging: None)


@contextlib.contextmanager
def assembled(
    config: Config, log: FilteringBoundLogger, notifier: Notifier,
    *, again: Again = ONCE, once: bool = False, system: System = REAL,
) -> Iterator[Parts]:  # fmt: skip
    """Give the parts, and close what they hold at the end. The caller holds the state folder's lock.

    Every system call on a photo's way, in the workers too, goes through `system`. Raises StyleError, ConfigError or
    LedgerError.
    """
    with contextlib.ExitStack() as stack:
        path = os.fspath(config.state_dir / FILE_NAME)
        ledger = stack.enter_context(Ledger.open(path, system=system))
        mailbox: Mailbox[Post] = Mailbox()
        stack.callback(mailbox.close)
        candidate = partial(candidate_of, instance=ledger.instance, run=secrets.token_hex(3), once=once, system=system)
        first, prefix, outputs = candidate(config), temp_prefix(ledger.instance), set[Identity]()

        def make(setup: Setup) -> Inbox:
            name, post = setup.config.name, mailbox.post
            # Another system than the real one stays in this process, where whoever made it can watch it.
            thread = IoThread(name, post, runner=Apart() if system is REAL else None, system=system)
            hints = partial(_post_hint, post, name)
            return Inbox(setup, thread=thread, hints=hints, log=log, temp_prefix=prefix, outputs=outputs)

        inboxes = {name: make(setup) for name, setup in first.setups.items()}
        reporter = Reporter(log, {name: inbox.root for name, inbox in inboxes.items()})
        journal = Journal(log, Presence(path).missing)
        desk = Desk(ledger, journal, reporter, inboxes, first.policies, time.time, system=system)
        yield _wire(
            first=first, log=log, pool=Pool(first.plan, first.spec), mailbox=mailbox, desk=desk, notifier=notifier,
            gate=Gate(config, desk, log, once=once),
            renewal=Renewal(lambda: candidate(again.load()), make, again.set_logging),
        )  # fmt: skip


def _wire(
    *,
    first: Candidate,
    log: FilteringBoundLogger,
    pool: Pool,
    mailbox: Mailbox[Post],
    desk: Desk,
    notifier: Notifier,
    gate: Gate,
    renewal: Renewal,
) -> Parts:
    config, batch = first.config, first.config.batch
    backlog = Backlog(desk, Batcher(batch.max_size, batch.max_wait, config.limits.backlog))
    originals = Originals(desk, desk.ledger.instance)
    faults = Faults(desk, backlog, originals)
    placing = Placing(desk, faults, originals)
    photos = Photos(desk, backlog, pool, placing, faults, gate=gate)
    arrivals = Arrivals(desk, backlog, faults, placing, originals)
    hooks, reports = Hooks(log, config), Reports(desk)
    desk.reporter.listeners += [hooks, reports]
    for inbox in desk.inboxes.values():
        placing.prepare(inbox)
    parts = Parts(
        config=config,
        log=log,
        plan=first.plan,
        pool=pool,
        mailbox=mailbox,
        desk=desk,
        backlog=backlog,
        faults=faults,
        originals=originals,
        placing=placing,
        photos=photos,
        arrivals=arrivals,
        notifier=notifier,
        gate=gate,
        hooks=hooks,
        reports=reports,
    )
    parts.reloader = Reloader(parts, first, renewal)
    return parts


def _post_hint(post: Callable[[Post], None], inbox: str, hint: Hint) -> None:
    post((inbox, hint))
