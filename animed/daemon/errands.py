"""Draws photos given by their paths, through the same workers and the same delivery, without inbox, lock or ledger.

Nothing else is going on, so the calling thread may block on the file systems of the photos.
"""

from __future__ import annotations

import os
import secrets
import select
import time
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from animed.daemon.demands import demand_extras, detector_of
from animed.daemon.faults import crash_reason
from animed.daemon.recipes import names_of, recipe_of, stage_of, task_of
from animed.daemon.workforce import plan_of, spec_of
from animed.delivery.examine import examine
from animed.delivery.faults import NameRefused
from animed.delivery.moment import EPOCH
from animed.delivery.publish import Placed, discard, place
from animed.engine import events
from animed.engine.pool import Pool
from animed.errors import AnimedError, PhotoError, PlaceError, WorkersError
from animed.intake.filesystem import fs_type
from animed.opening import NotRegularError, kind_of, lstat_beneath
from animed.records import Failure, Job, PhotoKey, Picture, PlaceFault, Reason, Skip
from animed.schedule.retry import GiveUp, RetryPolicy, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from animed.catalog import Style
    from animed.config import Config, InboxConfig
    from animed.delivery.portable import NameRules
    from animed.delivery.publish import Taken
    from animed.engine.events import PoolEvent
    from animed.records import Outcome, Recipe, Stage, Task

MOST_BOOTS: Final = 3
_ATTEMPTS: Final = RetryPolicy.impatient(0.0, attempts=1, crash_attempts=2)  # only a dead worker is worth another try


@dataclass(frozen=True, slots=True)
class Errand:
    """One photo to draw: how the inbox-like settings are, and where it lies below their root."""

    settings: InboxConfig  # its path is the photo's folder, its output the picture's
    path: bytes  # below settings.path


@dataclass(frozen=True, slots=True)
class Drawn:
    """How an errand ended: with a picture's full path, or with a reason."""

    errand: Errand
    picture: Picture | None = None
    output: bytes = b""
    reason: str = ""
    detail: str = ""
    place: str = ""  # the role of the folder that failed; the photos of other folders are drawn all the same


class Errands:
    """Sends photos through a pool and places their pictures, until all have ended."""

    def __init__(self, pool: Pool, recipe: Callable[[InboxConfig], Recipe], instance: str) -> None:
        self._pool = pool
        self._recipe = recipe
        self._instance = instance
        self._waiting: deque[Job] = deque()
        self._errands: dict[PhotoKey, Errand] = {}
        self._boots = 0  # workers that died in a row while none was ready
        self._last_line = ""  # of what workers wrote
        self._rules: dict[str, NameRules] = {}  # by output

    @classmethod
    def of(cls, settings: Config, style: Style) -> Errands:
        """Return one with workers of its own for a style, as many as the settings and the machine allow.

        Raise ConfigError for an extra that is asked for and not there, and with StyleError for a face detector.
        """
        demand_extras(settings)
        plan = plan_of(settings)
        pool = Pool(plan, spec_of(settings, (style.weights_file,), plan, detector=detector_of(settings)))
        return cls(pool, lambda inbox: recipe_of(inbox, style), secrets.token_hex(4))

    def run(self, errands: Iterable[Errand], ended: Callable[[Drawn], None], wait: Callable[[], None]) -> None:
        """Draw all; `ended` takes each outcome, `wait` is called on every turn. Raises WorkersError."""
        for errand in errands:
            self._admit(errand, ended)
        try:
            self._take(self._pool.start(time.monotonic()), ended)
            while self._errands:
                self._turn(ended)
                wait()
        finally:
            self._pool.kill(time.monotonic())

    def _admit(self, errand: Errand, ended: Callable[[Drawn], None]) -> None:
        key = PhotoKey(errand.settings.name, errand.path)
        try:
            stat = lstat_beneath(os.fspath(errand.settings.path), errand.path)
            if (kind := kind_of(stat.mode)) is not None:
                raise NotRegularError(kind)
        except (AnimedError, OSError) as error:
            ended(Drawn(errand, reason=Reason.UNREADABLE, detail=_text(error)))
            return
        self._errands[key] = errand
        self._waiting.append(Job(key, stat, self._recipe(errand.settings), time.monotonic()))

    def _turn(self, ended: Callable[[Drawn], None]) -> None:
        poller = select.poll()
        for fd in self._pool.waitables():
            poller.register(fd, select.POLLIN)
        ready = frozenset(fd for fd, _ in poller.poll(200))
        now = time.monotonic()
        self._take([*self._pool.poll(ready, now), *self._pool.tick(now)], ended)
        while self._waiting and self._pool.submit(
            self._waiting[0], self._task_of(self._waiting[0]), now, queued=len(self._waiting) > 1
        ):
            self._waiting.popleft()

    def _task_of(self, job: Job) -> Callable[[int, int], Task]:
        settings = self._errands[job.key].settings
        stage = stage_of(settings, self._instance, "")
        return lambda number, threads: task_of(job, settings, stage, number=number, threads=threads)

    def _take(self, pool_events: list[PoolEvent], ended: Callable[[Drawn], None]) -> None:
        for event in pool_events:
            match event:
                case events.PhotoFinished():
                    self._finish(event.job, event.outcome, event.fd, ended)
                case events.WorkerStarted():
                    self._boots = 0
                case events.WorkerOutput(line=line):
                    self._last_line = line
                case events.WorkerDied():
                    self._count_boots(event.cause)
                    for job in event.suspects:
                        self._finish(job, Failure(crash_reason(event.cause), event.hint), None, ended)
                case events.WorkersCannotStart():
                    raise WorkersError(event.title, remedy=event.remedy)
                case _:
                    pass

    def _count_boots(self, cause: str) -> None:
        """Give up when workers die one after the other without ever having started: nobody watches to help."""
        self._boots += not self._pool.ready
        if self._boots >= MOST_BOOTS:
            raise WorkersError(f"workers die while they start: {cause}", remedy=self._last_line or "see the log")

    def _finish(self, job: Job, outcome: Outcome, fd: int | None, ended: Callable[[Drawn], None]) -> None:
        errand = self._errands[job.key]
        if isinstance(outcome, Picture):
            drawn = self._place(errand, outcome, fd)
        elif isinstance(outcome, Skip):
            drawn = Drawn(errand, reason="skipped", detail=outcome.cause)
        elif isinstance(outcome, PlaceFault):
            drawn = Drawn(errand, reason=Reason.OUTPUT_DENIED, detail=outcome.detail, place=outcome.role)
        else:
            verdict = decide(outcome.reason, _ATTEMPTS, attempt=1, crashes=job.crashes, alone=job.alone)
            if not isinstance(verdict, GiveUp):
                self._waiting.append(replace(job, crashes=verdict.crashes, alone=verdict.alone))
                return
            drawn = Drawn(errand, reason=outcome.reason, detail=outcome.detail)
        del self._errands[job.key]
        ended(drawn)

    def _place(self, errand: Errand, picture: Picture, fd: int | None) -> Drawn:
        """Give the picture the first name that is free."""
        settings, output = errand.settings, os.fspath(errand.settings.output)
        stage = stage_of(settings, self._instance, "")
        try:
            name = self._name(errand, picture, partial(place, picture.staged, fd, stage=stage, output=output), stage)
            return Drawn(errand, picture, os.path.join(os.fsencode(output), name))
        except PhotoError as error:
            return Drawn(errand, reason=error.reason, detail=error.detail)
        except PlaceError as error:
            return Drawn(errand, reason=Reason.OUTPUT_DENIED, detail=error.detail, place=error.role)
        finally:
            discard(picture.staged, fd, stage=stage)

    def _name(self, errand: Errand, picture: Picture, put: Callable[..., Placed | Taken], stage: Stage) -> bytes:
        """Give the picture the first free name that the file system takes, and return that."""
        settings, rules = errand.settings, self._rules_of(stage)  # whose names tell of no date
        while True:
            names = names_of(settings, errand.path, settings.style, picture.ext, when=EPOCH, rules=rules)
            try:
                return next(name for name in names if isinstance(put(target=name), Placed))
            except NameRefused as error:
                if (stricter := rules.stricter(error.code)) is None:
                    raise
                rules = stricter

    def _rules_of(self, stage: Stage) -> NameRules:
        """Find out once for each output what its file system makes of names."""
        if stage.folder not in self._rules:
            self._rules[stage.folder] = examine(stage, fs_type(stage.folder))
        return self._rules[stage.folder]


def _text(error: AnimedError | OSError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
