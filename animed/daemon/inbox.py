"""One inbox as the main loop sees it: its health, its watch, its scans, and what is settling in it.

It blocks nowhere: what touches a file system is asked of its I/O thread. What it finds goes to a sink, downstream.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from animed.daemon.health import ScanClock
from animed.daemon.iothread import SILENCE_S, SLOW_S
from animed.daemon.looking import OpenRoot, RootFound, Scan, ScanEnded, StartWatch, StatPaths, StopWatch
from animed.daemon.putting import OpenOutput, OutputFound
from animed.daemon.settling import Settling, is_doubtful, sort_out
from animed.daemon.standing import Standing
from animed.daemon.watching import Watching
from animed.delivery.portable import PLAIN
from animed.intake.scan import Scanner
from animed.intake.watch import WatchLimitError
from animed.records import PhotoKey, PlaceFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

    from animed.daemon.health import State
    from animed.daemon.iothread import Answer, IoThread, Request, Slices
    from animed.daemon.setup import Setup
    from animed.daemon.sink import Sink
    from animed.errors import PlaceError, PlaceRole
    from animed.intake.watch import Hint
    from animed.opening import Identity
    from animed.records import FileStat

IDENTITY_S: Final = 30.0  # seconds between two looks at whether the root is still the same folder
_QUIET_RULES: Final = ("builtin:", "hidden", "conflict-copy")


class Inbox:
    """The main loop's side of an inbox."""

    def __init__(
        self,
        setup: Setup,
        *,
        thread: IoThread,
        hints: Callable[[Hint], None],
        log: FilteringBoundLogger,
        temp_prefix: str,
        outputs: set[Identity],
    ) -> None:
        config, rules, impatient = setup.config, setup.rules, setup.impatient
        self.setup = setup
        self.config = config
        self.name = config.name
        self.root = os.fspath(config.path)
        self.output = os.fspath(config.output)
        self.recipes = setup.recipes
        self.delivery = setup.delivery
        self.standing = Standing(log, inbox=self.name, output=self.output, min_free=setup.min_free)
        self.health = self.standing.health
        self.settling = Settling(config, rules, outputs=outputs, impatient=impatient)
        self.watching = Watching(config, rules, hints)
        self.scans = ScanClock(0.0)
        self.dirty = False  # photos did not fit into the backlog: to be scanned again when there is room
        self.sweep: tuple[str, ...] = (self.output,)
        self.opened = False  # the root has been looked at, for better or worse
        self.output_opened = False
        self._scanner = Scanner(self.root, rules, require_marker=config.require_marker, outputs=outputs)
        self.thread = thread
        self._plain_log = log
        self._temp_prefix = temp_prefix
        self.outputs = outputs  # of all inboxes: never taken as input, by whatever path they are reached
        self.output_identity: Identity | None = None
        self.names = PLAIN  # what the output's file system makes of names, once it was looked at
        self.identity: tuple[int, int] | None = None  # of the root: what another folder does not hold is not gone
        self._identity_at, self._opening = 0.0, False
        self.scanned = False  # a scan of the whole inbox has ended
        self._impatient = impatient

    @property
    def _log(self) -> FilteringBoundLogger:
        # Bound anew each time: a bound log keeps the level that was in force when it was bound.
        return self._plain_log.bind(inbox=self.name)

    @property
    def state(self) -> State:
        """Return the state as `status` shows it."""
        return self.health.state

    def start(self) -> None:
        """Look at the root and the output; everything else follows from the answers."""
        self.thread.start()
        self._open_root()
        self._open_output()

    def ask(self, request: Request | Slices) -> None:
        """Ask something of the I/O thread; the answer comes through the mailbox."""
        self.thread.submit(request)

    def stop(self) -> None:
        """Stop watching and scanning; what is being placed goes on."""
        if (watch := self.watching.drop()) is not None:
            self.ask(StopWatch(watch))

    def tick(self, sink: Sink, now: float) -> None:
        """Do what is due."""
        if self.thread.silent_for(now) > SILENCE_S:
            self.suspend(PlaceFault("inbox", errno.ETIMEDOUT, self.root, "the file system does not answer"), now)
            self.health.postpone(now)  # nothing can be looked at: what is due must not wake the loop for ever
            return
        for role in self.health.due(now):
            self._probe(role, sink, now)
        if self.state != "unavailable" and self.opened:
            self._tick_watch(now)
            self._tick_scan(now)
            if (request := self.settling.due(now, self.identity)) is not None:
                self.ask(request)

    def next_deadline(self, now: float) -> float | None:
        """Return when `tick` is to be called next."""
        dues = [self.health.next_due()]
        silent = self.thread.silent_for(now)
        dues += [now + bound - silent + 0.01 for bound in (SLOW_S, SILENCE_S) if 0 < silent <= bound]
        if self.state != "unavailable" and self.opened:
            dues += [self.settling.next_due(), self.scans.next_due(), self.watching.next_check()]
            dues.append(self._identity_at if self.watching.live else None)
        return min((due for due in dues if due is not None), default=None)

    def _tick_watch(self, now: float) -> None:
        if (dead := self.watching.fault(now)) is not None:
            self._log.warning("inbox.degraded", detail=dead, what="watch")
            self.identity = None
            self._open_root()
        elif self.watching.live and now >= self._identity_at:
            self._identity_at = now + IDENTITY_S
            self._open_root()
        elif self.watching.retry_due(now):
            self._renew_watch()

    def _tick_scan(self, now: float) -> None:
        due = self.scans.next_due()
        if due is not None and due <= now:
            self.scans.begin()
            self.dirty = False
            self.ask(Scan(self._scanner))

    def hint(self, path: bytes, now: float, stat: FileStat | None = None) -> None:
        """Look at a path once it is quiet."""
        self.settling.hint(path, now, stat)

    def hinted(self, hint: Hint, sink: Sink, now: float) -> None:
        """Follow up a hint of the watch."""
        if hint.kind == "everything":
            self._log.warning("watch.overflow", detail="the kernel dropped events; the inbox is scanned")
            self.scans.wanted = True
        elif hint.kind == "folder" and not hint.path:
            self._open_root()
        elif hint.kind == "folder":
            self.ask(Scan(self._scanner, hint.path))
        elif (rule := self.settling.judge(hint.path)) is None:
            self.hint(hint.path, now)
        elif not rule.startswith(_QUIET_RULES):
            # What else is ignored may be a temporary file; what stays is told by the next scan.
            sink.ignored(PhotoKey(self.name, hint.path), rule)

    def suspend(self, fault: PlaceFault | PlaceError, now: float) -> None:
        """Suspend a place until a probe finds it well."""
        self.standing.suspend(fault, now)

    def is_short(self, free_bytes: int, now: float) -> bool:
        """Say whether the output's file system has less free than it must keep, and suspend it then."""
        return self.standing.is_short(free_bytes, now)

    def answered(self, answer: Answer, sink: Sink, now: float) -> bool:
        """Take an answer; False when it is not about the inbox itself but about one of its photos."""
        match answer.request:
            case OpenRoot():
                self._root_answered(answer.result, sink, now)
            case OpenOutput():
                self._output_answered(answer.result, sink, now)
            case StartWatch() as request:
                self._watch_answered(request, answer.result, now)
            case Scan() as request:
                self._scan_answered(request, answer.result, sink, now)
            case StatPaths() as request:
                self.standing.faulted(answer.result, now)
                self.scans.doubtful |= is_doubtful(answer.result)
                self.settling.answered(request, answer.result, sink, now)
            case other:
                return isinstance(other, StopWatch)
        return True

    def _root_answered(self, result: object, sink: Sink, now: float) -> None:
        """Take what the root is; a root that came, came back or was replaced is watched and scanned anew."""
        self._opening, first, self.opened = False, not self.opened, True
        if self.standing.faulted(result, now) or not isinstance(result, RootFound):
            return
        trouble = self.health.well("inbox")
        if first or trouble or result.identity != self.identity:
            self.identity, self._identity_at = result.identity, now + IDENTITY_S
            self._watch(result)
            self._log.info("inbox.recovered" if trouble else "inbox.ready", fs=result.fs, watch=self.watching.mode)
            self._came_up(sink, now)

    def _watch(self, found: RootFound) -> None:
        """Watch first, then scan: what comes in between is found by the one or the other."""
        if self.watching.wants_events(found):
            self._renew_watch()
        else:
            self._scan_soon()

    def _renew_watch(self) -> None:
        for request in self.watching.renew():
            self.ask(request)

    def _watch_answered(self, request: StartWatch, result: object, now: float) -> None:
        if isinstance(result, WatchLimitError):
            if self.watching.refused(request.watch, now):
                self._log.warning("watch.fallback", to="poll", detail=str(result))
        elif self.standing.faulted(result, now) or not self.watching.started(request.watch, now):
            return
        self._scan_soon()

    def _scan_soon(self) -> None:
        self.scans.interval = 0.0 if self._impatient else self.watching.interval
        self.scans.wanted = True

    def _output_answered(self, result: object, sink: Sink, now: float) -> None:
        """Take what the output is; once it takes writes, what was left open is resolved."""
        self.output_opened = True
        if self.standing.faulted(result, now) or not isinstance(result, OutputFound):
            return
        self.output_identity, self.names = result.identity, result.names
        self.outputs.add(result.identity)
        if self.is_short(result.free_bytes, now):
            return
        self.sweep = ()
        self.restored("output")
        self._came_up(sink, now)

    def restored(self, role: PlaceRole) -> None:
        """Note that a place does what it should (again)."""
        self.standing.restored(role)

    def _came_up(self, sink: Sink, now: float) -> None:
        if self.health.draws and self.opened and self.output_opened:
            sink.up(self, now)

    def _scan_answered(self, request: Scan, result: object, sink: Sink, now: float) -> None:
        if isinstance(result, tuple):
            self.scans.doubtful |= is_doubtful(result)
            sink.found(self, sort_out(self.name, result, sink), now)
        elif request.below:
            self.standing.faulted(result, now)
        elif self.standing.faulted(result, now) or not isinstance(result, ScanEnded):
            self.scans.end(0.0, now)
        else:
            self._scan_ended(result, sink, now)

    def _scan_ended(self, ended: ScanEnded, sink: Sink, now: float) -> None:
        self.scans.end(ended.cpu_s, now, wall_s=ended.wall_s)
        self.scanned = True
        if ended.identity in {None, self.identity}:
            sink.scanned(self, now)
        else:  # Another folder, or the bare place of a mount: what it does not hold is not gone.
            self._open_root()

    def _open_root(self) -> None:
        if not self._opening:
            self._opening = True
            self.ask(OpenRoot(self.root, self.config.require_marker))

    def _open_output(self) -> None:
        """Make the output only until it was there once: one that has gone since may be a share that comes back."""
        self.ask(OpenOutput(self.delivery, self.sweep, self._temp_prefix, make=bool(self.sweep)))

    def _probe(self, role: PlaceRole, sink: Sink, now: float) -> None:
        """Look whether a suspended place is well again."""
        self.health.troubles[role].backoff.fault(now)
        if role == "inbox":
            self._open_root()
        elif role == "output":
            self._open_output()
        else:
            sink.up(self, now)
