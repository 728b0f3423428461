"""Builds the daemon's parts from a configuration, and takes them down again in order."""

from __future__ import annotations

import contextlib
import grp
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
from animed.daemon.faces import detector_of
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
from animed.daemon.putting import Delivery
from animed.daemon.recipes import recipes_of, stage_of, temp_prefix
from animed.daemon.reload import Reloader, Renewal
from animed.daemon.report import Reporter
from animed.daemon.reports import Reports
from animed.daemon.setup import Candidate, Setup
from animed.daemon.styles import styles_of
from animed.daemon.workforce import plan_of, spec_of
from animed.engine.pool import Pool
from animed.errors import ConfigError
from animed.intake.rules import Rules
from animed.opening import Identity
from animed.schedule.batcher import Batcher
from animed.schedule.ledger import FILE_NAME, Ledger
from animed.schedule.retry import Backoff, RetryPolicy
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from structlog.typing import FilteringBoundLogger

    from animed.catalog import Style
    from animed.config import Config, InboxConfig
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
        config, log, first.plan, pool, mailbox, desk, backlog, faults, originals, placing, photos, arrivals, notifier,
        gate, hooks, reports,
    )  # fmt: skip
    parts.reloader = Reloader(parts, first, renewal)
    return parts


def candidate_of(config: Config, *, instance: str, run: str, once: bool = False, system: System = REAL) -> Candidate:
    """Look up all that follows from a configuration; raises StyleError or ConfigError."""
    styles, detector, the_plan = styles_of(config), detector_of(config), plan_of(config)
    weights = tuple(style.weights_file for style in styles.values())
    return Candidate(
        config,
        setups={
            inbox.name: setup_of(config, inbox, styles, instance=instance, run=run, once=once)
            for inbox in config.inboxes
        },
        policies={inbox.name: _policy(config, inbox, once=once) for inbox in config.inboxes},
        weights=weights,
        plan=the_plan,
        spec=spec_of(config, weights, the_plan, detector=detector, system=system),
        detector=detector,
    )


def _policy(config: Config, inbox: InboxConfig, *, once: bool) -> RetryPolicy:
    retry = config.retry
    if once:
        return RetryPolicy.impatient(inbox.stable_for, retry.attempts, retry.crash_attempts)
    return RetryPolicy(retry.attempts, retry.crash_attempts, Backoff(retry.delay, retry.factor, retry.max_delay))


def setup_of(
    config: Config, inbox: InboxConfig, styles: Mapping[str, Style], *, instance: str, run: str, once: bool = False
) -> Setup:
    """Return what the configuration says of an inbox, made ready; raises ConfigError for a group that is not there."""
    rules = Rules(
        extensions=inbox.extensions,
        ignore=inbox.ignore,
        ignore_conflict_copies=inbox.ignore_conflict_copies,
        recursive=inbox.recursive,
        max_depth=inbox.max_depth,
    )
    stage = stage_of(inbox, instance, run)
    delivery = Delivery(os.fspath(inbox.output), stage, inbox.mode.dir, group_of(inbox))
    return Setup(inbox, recipes_of(inbox, styles), delivery, rules, config.limits.min_free, impatient=once)


def _post_hint(post: Callable[[Post], None], inbox: str, hint: Hint) -> None:
    post((inbox, hint))


def group_of(inbox: InboxConfig) -> int | None:
    """Return the number of the group that pictures are given to; raises ConfigError for one that is not there."""
    group = inbox.mode.group
    if group is None or group.isdecimal():
        return None if group is None else int(group)
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        text = f"inboxes.{inbox.name}.mode.group: there is no group {group!r} on this machine"
        raise ConfigError(text, remedy="make it, or name another") from None
