"""Takes a changed configuration while the service runs: checked first, then taken as a whole, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from animed.config import ConfigProblemsError, Problem
from animed.daemon.changes import changes
from animed.daemon.turnover import Turnover
from animed.daemon.validation import Validation
from animed.errors import AnimedError, ConfigError, NotRunningError
from animed.service.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

    from animed.config import Config
    from animed.config.models import LoggingConfig
    from animed.daemon.changes import Changes
    from animed.daemon.inbox import Inbox
    from animed.daemon.parts import Parts
    from animed.daemon.setup import Candidate, Setup
    from animed.daemon.validation import Validated
    from animed.engine.events import PoolEvent

    Answer = dict[str, Any]

PATIENCE_S: Final = 60.0  # a check of the configuration that has not ended by then is given up


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a reload needs from outside."""

    load: Callable[[], Candidate]  # called in a thread of its own; raises AnimedError
    make: Callable[[Setup], Inbox]
    set_logging: Callable[[LoggingConfig], None]


def followers(parts: Parts, renewal: Renewal) -> tuple[Callable[[Config], None], ...]:
    """Return all who live long and are told of a new configuration, in the order in which they are told.

    Inboxes and workers are not among them: they are renewed. Reports follow the inboxes, and `workers.stop_timeout` is
    read from `parts.config`.
    """
    return (
        parts.backlog.configure,
        parts.gate.configure,
        parts.hooks.configure,
        partial(_tell_inboxes, parts),
        lambda config: renewal.set_logging(config.logging),
    )


def _tell_inboxes(parts: Parts, config: Config) -> None:
    for inbox in parts.desk.inboxes.values():
        inbox.standing.min_free = config.limits.min_free


class Reloader:
    """Counts requests, has the configuration checked, and takes it or says why not. Only the main thread calls it."""

    def __init__(self, parts: Parts, current: Candidate, renewal: Renewal) -> None:
        self._parts = parts
        self._log: FilteringBoundLogger = parts.log
        self._current = current
        self._followers = followers(parts, renewal)
        self.turnover = Turnover(parts, renewal.make)
        self._validation = Validation(renewal.load, parts.mailbox.post)
        self._asked = 0  # requests so far
        self._covered = 0  # requests that came before the check that runs, or ran last, was begun
        self._answered = 0  # requests that have their answer
        self._deadline: float | None = None  # of the check that runs
        self._result: Answer | ConfigError = {}

    def request(self, now: float) -> int:
        """Ask for a reload, and return a ticket; while a check runs it is done once more afterwards."""
        self._asked += 1
        if self._deadline is None:
            self._begin(now)
        return self._asked

    def answer(self, arguments: Answer, now: float) -> Answer:
        """Answer the control socket: without a ticket ask for a reload, with one say what came of it.

        Raises ConfigError with what is wrong, RequestError, or NotRunningError while the service stops.
        """
        if self._parts.desk.draining:
            raise NotRunningError("the service is stopping")
        ticket = arguments.get("ticket")
        if ticket is None:
            return {"ticket": self.request(now)}
        if not isinstance(ticket, int) or not 0 < ticket <= self._asked:
            raise RequestError("there is no such ticket")
        if ticket > self._answered:
            return {"ticket": ticket, "pending": True}
        if isinstance(self._result, ConfigError):
            raise self._result
        return {"ticket": ticket, "pending": False, **self._result}

    def tick(self, now: float) -> None:
        """Give up a check that does not end, and go on with the turnover."""
        if self._deadline is not None and now >= self._deadline:
            text = f"the configuration could not be checked within {PATIENCE_S:g} s"
            self._ended(ConfigError(text, remedy="a folder that it names may be on a share that hangs"), now)
        self.turnover.tick(now)

    def next_due(self, now: float) -> float | None:
        """Return when `tick` is to be called next."""
        dues = [self._deadline, self.turnover.next_due(now)]
        return min((due for due in dues if due is not None), default=None)

    def validated(self, post: Validated, now: float) -> list[PoolEvent]:
        """Take what a check came to, unless it comes too late; returns what happens to the workers."""
        if self._deadline is None or post.number != self._covered or self._parts.desk.draining:
            return []
        return self._ended(post.outcome, now)

    def _begin(self, now: float) -> None:
        self._covered = self._asked
        self._deadline = now + PATIENCE_S
        self._parts.notifier.reloading(now)
        self._validation.start(self._covered)

    def _ended(self, outcome: Candidate | AnimedError, now: float) -> list[PoolEvent]:
        self._deadline = None
        self._answered = self._covered
        events = self._reject(outcome) if isinstance(outcome, AnimedError) else self._judge(outcome, now)
        self._parts.notifier.reloaded(self._parts.gate.headline("Waiting for photos"))
        if self._asked > self._covered:
            self._begin(now)
        return events

    def _reject(self, error: AnimedError) -> list[PoolEvent]:
        """Keep everything as it is, and say why."""
        problems = error.problems if isinstance(error, ConfigProblemsError) else ()
        errors = [str(problem) for problem in problems] or [str(error)]
        self._log.error("config.rejected", config=error.path or self._source, errors=errors)
        # Whatever is wrong, it is the configuration that cannot be used: that is its exit status.
        self._result = (
            error if isinstance(error, ConfigError) else ConfigError(error.title, remedy=error.remedy, path=error.path)
        )
        return []

    def _judge(self, candidate: Candidate, now: float) -> list[PoolEvent]:
        found = changes(self._current.config, candidate.config)
        if found.restart:
            return self._reject(ConfigProblemsError(self._unable(candidate.config, found), path=self._source))
        return self._take(candidate, found, now)

    def _unable(self, new: Config, found: Changes) -> list[Problem]:
        """Return what only a restart can change."""
        old = self._current.config
        return [
            Problem(key, str(getattr(new, key)), f"{getattr(old, key)} while the service runs", "restart the service")
            for key in found.restart
        ]

    def _take(self, candidate: Candidate, found: Changes, now: float) -> list[PoolEvent]:
        """Put a valid configuration in force."""
        parts, old = self._parts, self._current
        events: list[PoolEvent] = []
        new_styles = (candidate.weights, candidate.detector) != (old.weights, old.detector)
        renewed = [name for name, setup in candidate.setups.items() if old.setups.get(name, setup) != setup]
        self._result = {
            "changed": list(found.keys), "added": list(found.added), "removed": list(found.removed),
            "renewed": renewed, "workers": found.workers or new_styles,
        }  # fmt: skip
        # Before a new level of the log is in force, which may be one that hides this line.
        self._log.info("config.reloaded", config=self._source, **self._result)
        self._current = candidate
        parts.config = candidate.config
        # A removed inbox still ends under its old one.
        parts.desk.policies = {**parts.desk.policies, **candidate.policies}
        for follow in self._followers:
            follow(candidate.config)
        if found.workers or new_styles:
            parts.plan = candidate.plan
            events += parts.pool.roll(candidate.plan, candidate.spec, now)
        self.turnover.turn(candidate.setups, now, await_workers=new_styles)
        return events

    @property
    def _source(self) -> str:
        return str(self._current.config.source or "")
