"""The daemon's one loop: it waits for pipes, posts, signals and questions, hands them on, and does what is due.

STARTING → RUNNING → DRAINING → STOPPED. The main thread touches no inbox and no output file system.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Final

from animed.daemon import status
from animed.daemon.incoming import Incoming
from animed.daemon.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

    from animed.daemon.parts import Parts
    from animed.daemon.status import State

READY_S: Final = 10.0  # an inbox that has not answered by then does not hold up the service's readiness
KILLING_S: Final = 2.0  # at a stop, for killed workers to end: one that a share holds never does
PLACING_S: Final = 2.0  # at a stop, for pictures that are being placed when the last worker has gone
_WORKING: Final = "Waiting for photos"
STOPPERS: Final = frozenset({signal.SIGTERM, signal.SIGINT})


class Daemon:
    """Runs the parts until a signal, a fault, or (in a single pass) the end of the work."""

    def __init__(self, parts: Parts, *, once: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._parts = parts
        self._log: FilteringBoundLogger = parts.log
        self._once = once
        self.clock = clock
        self.started_at = clock()
        self._state: State = "starting"
        self._told_ready = False
        self._headline = ""
        self.incoming = Incoming(parts, once=once)
        self._stop_by: signal.Signals | None = None
        self._deadline: float | None = None
        self._watchdog_at = 0.0
        self.on_turn: Callable[[], None] = lambda: None

    # The life of the service.

    def run(self) -> signal.Signals | None:
        """Work until the end; returns the signal that asked for it, or None."""
        config = os.fspath(self._parts.config.source or "")
        self._log.info("daemon.starting", pid=os.getpid(), config=config, plan=list(self._parts.plan.reasons))
        self._parts.notifier.status("Loading the network")
        signals = Signals()
        try:
            self._start()
            while not self._is_over():
                self._turn(signals)
            self._shut_down()
        finally:
            self._parts.hooks.close(self.clock())
            self._parts.pool.kill(self.clock())
            signals.close()
        self._log.info("daemon.stopped", uptime_s=round(self.clock() - self.started_at, 1))
        return self._stop_by

    def _start(self) -> None:
        now = self.clock()
        self.incoming.pool_events(self._parts.pool.start(now), now)
        for inbox in self._parts.desk.inboxes.values():
            inbox.start()

    def _turn(self, signals: Signals) -> None:
        """Wait for something to happen, take it in, and do what is due."""
        ready = self._wait(signals)
        now = self.clock()
        for number in signals.drain():
            self._signalled(number, now)
        self.incoming.posts(now)
        self.incoming.pool_events(self._parts.pool.poll(ready, now), now)
        self.incoming.pool_events(self._parts.pool.tick(now), now)
        if self._parts.control is not None:
            self._parts.control.poll(ready, now)
        self._parts.hooks.poll(ready, now)
        self._tick(now)
        self.on_turn()

    def _wait(self, signals: Signals) -> frozenset[int]:
        parts = self._parts
        poller = select.poll()
        control = [] if parts.control is None else parts.control.waitables()
        control += parts.hooks.waitables()
        for fd in (signals.fileno(), parts.mailbox.fileno(), *parts.pool.waitables(), *control):
            poller.register(fd, select.POLLIN)
        deadline = self._next_deadline(self.clock())
        timeout = None if deadline is None else max(0.0, deadline - self.clock()) * 1000
        return frozenset(fd for fd, _ in poller.poll(timeout))

    def _next_deadline(self, now: float) -> float | None:
        parts = self._parts
        dues = [parts.pool.next_deadline(now), parts.desk.journal.next_due(), self._deadline]
        dues.append(parts.hooks.next_deadline(now))
        if not parts.desk.draining:
            dues += [parts.backlog.next_due(), parts.gate.next_due(now), parts.reports.next_due()]
            dues += [parts.reloader.next_due(now), *(inbox.next_deadline(now) for inbox in parts.desk.open_inboxes)]
        if parts.control is not None:
            dues.append(parts.control.next_deadline())
        if parts.notifier.watchdog_interval() is not None:
            dues.append(self._watchdog_at)
        if not self._told_ready and now < self.started_at + READY_S:
            dues.append(self.started_at + READY_S)
        return min((due for due in dues if due is not None), default=None)

    def _tick(self, now: float) -> None:
        parts = self._parts
        parts.desk.journal.tick(now)
        if not parts.desk.draining:
            parts.gate.tick()
            for inbox in parts.desk.open_inboxes:
                inbox.scans.resting = parts.gate.resting
                inbox.tick(parts.arrivals, now)
            parts.backlog.tick(now)
            parts.photos.dispatch(now)
            parts.reloader.tick(now)
        parts.hooks.tick(now)
        self._update_state(now)
        parts.reports.tick(self._state, now)
        self._tell_manager(now)

    def _tell_manager(self, now: float) -> None:
        """Say that the loop turns and no busy worker is silent; an idle service is well."""
        interval = self._parts.notifier.watchdog_interval()
        if interval is not None and now >= self._watchdog_at:
            self._watchdog_at = now + interval
            if not self._parts.pool.silent(now):
                self._parts.notifier.watchdog()

    def _update_state(self, now: float) -> None:
        if self._state == "draining":
            return
        if not self._told_ready and self._is_up(now):
            self._told_ready = True
            self._log.info("daemon.ready", boot_s=round(now - self.started_at, 2))
            self._headline = self._parts.gate.headline(_WORKING)
            self._parts.notifier.ready(self._headline)
        if self._parts.pool.degraded or self._parts.desk.journal.blocked:
            self._state = "degraded"
        elif not self._told_ready:
            self._state = "starting"
        else:
            self._state = "paused" if self._parts.gate.closed else "running"
            self._tell_pause()

    def _tell_pause(self) -> None:
        """Let the service manager show that the service is paused, or is not any more."""
        if (headline := self._parts.gate.headline(_WORKING)) != self._headline:
            self._headline = headline
            self._parts.notifier.status(headline)

    def _is_up(self, now: float) -> bool:
        """Say whether a worker is ready, and every inbox has been looked at or has had its time."""
        opened = all(inbox.opened and inbox.output_opened for inbox in self._parts.desk.inboxes.values())
        return self._parts.pool.ready and (opened or now - self.started_at >= READY_S)

    def _is_over(self) -> bool:
        parts, now = self._parts, self.clock()
        if self._state == "draining":
            late = self._deadline is not None and now >= self._deadline
            return late or (parts.pool.stopped and not parts.desk.actives and not parts.hooks.running)
        if self._once and parts.is_through():
            self._drain(None, now)
        return False

    # A stop, in a fixed order: intake, waiting photos, running photos, pictures being placed, workers, ledger.

    def _drain(self, number: signal.Signals | None, now: float) -> None:
        self._log.info("daemon.stopping", signal=number and number.name)
        self._parts.notifier.stopping()
        self._state, self._stop_by = "draining", number
        self._deadline = now + self._parts.config.workers.stop_timeout
        self._parts.desk.draining = True
        for inbox in self._parts.desk.inboxes.values():
            inbox.stop()
        self._parts.photos.clear(now)
        self._parts.pool.stop(now)
        self._parts.hooks.drain(self._deadline, now)

    def _shut_down(self) -> None:
        """Kill what has not ended in time, and give the I/O threads a moment for the pictures in their hands."""
        now = self.clock()
        self.incoming.pool_events(self._parts.pool.kill(now, patience=KILLING_S), now)
        self._parts.reports.close(finished=self._stop_by is None)
        end = self.clock() + PLACING_S
        for inbox in self._parts.desk.inboxes.values():
            inbox.thread.stop()
        for inbox in self._parts.desk.inboxes.values():
            inbox.thread.join(max(0.0, end - self.clock()))
        self.incoming.posts(self.clock())

    # Signals and questions.

    def _signalled(self, number: signal.Signals, now: float) -> None:
        if number in STOPPERS and self._state == "draining":
            self._deadline = now  # a second one means: at once
        elif number in STOPPERS:
            self._drain(number, now)
        elif number == signal.SIGUSR1:
            self._parts.desk.rescan()
        elif number == signal.SIGUSR2:
            self._dump()
        elif self._state != "draining":
            self._parts.reloader.request(now)

    def _dump(self) -> None:
        """Write the state, and what each thread is doing."""
        stacks = {
            str(ident): [f"{part.filename}:{part.lineno} {part.name}" for part in traceback.extract_stack(frame)]
            for ident, frame in sys._current_frames().items()  # noqa: SLF001 - the only way to see all threads
        }
        self._log.info("daemon.dump", status=self.status(), threads=stacks)

    def status(self) -> dict[str, Any]:
        """Return the live state."""
        parts = self._parts
        return status.report(
            parts.desk, parts.pool, state=self._state, pid=os.getpid(),
            started_at=self.started_at, now=self.clock(), paused=parts.gate.report(),
        )  # fmt: skip
