"""The whole way of a photo in one process: real files, real ledger, real pool and pipes, and a clock that tests turn.

Only the threads, the processes and the network are left out: requests run in line, a worker is a few steps of the
real pipeline, and the picture is the photo (strength 0). Every system call goes through one `FaultySystem`.
"""

from __future__ import annotations

import hashlib
import io
import os
import queue
import select
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from daemon_fakes import FakeNotifier, ListLog
from delivery_fakes import tree
from engine_fakes import FakeProcess, Unheard
from fault_system import FaultySystem
from PIL import Image

from animed.config import Config, InboxConfig
from animed.config.models import BatchConfig, LimitsConfig
from animed.daemon import parts
from animed.daemon.desk import Desk
from animed.daemon.gate import Gate
from animed.daemon.inbox import Inbox
from animed.daemon.iothread import IoThread, Slices
from animed.daemon.journal import Journal
from animed.daemon.loop import Daemon
from animed.daemon.mailbox import Mailbox
from animed.daemon.putting import Delivery
from animed.daemon.recipes import Recipes, stage_of, temp_prefix
from animed.daemon.reload import Renewal
from animed.daemon.report import Reporter
from animed.daemon.setup import Candidate, Setup
from animed.engine.pipeline import Pipeline
from animed.engine.plan import Plan
from animed.engine.pool import Pool
from animed.engine.protocol import Channel, Looks, Ready, Result, Started, Verdict, WorkerSpec
from animed.engine.worker import attempt
from animed.intake.rules import Rules
from animed.records import Fingerprint, Outcome, PhotoKey, Recipe, Task
from animed.schedule.ledger import FILE_NAME, Ledger
from animed.schedule.retry import Backoff, RetryPolicy
from animed.schedule.store import LedgerError, Store
from animed.style.runtime import Precision
from animed.system import STARVED

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from animed.engine.protocol import Message
    from animed.schedule.rows import Row

RECIPE = Recipe("cel", "aa", "half_pixel", 0.0, 64, "same", 92, exif=True, gps=True)
WALL = 1_000_000.0
ENDS = ("file.done", "file.duplicate", "file.skipped", "file.failed")


def jpeg(number: int) -> bytes:
    """Return a small photo that no other number gives."""
    target = io.BytesIO()
    Image.new("RGB", (9, 6), (number % 251, number // 251 % 251, number // 63_001)).save(target, "jpeg")
    return target.getvalue() + b"%d" % number


def scene(number: int) -> bytes:
    """Return a small photo that no other number gives; 2 and 3, 4 and 5, and so on look alike (up to 1023)."""
    pair, half = divmod(number, 2)
    target = io.BytesIO()
    colour = (40 + 20 * half + 100 * (pair // 256), pair % 16 * 16 + 8, pair // 16 % 16 * 16 + 8)
    Image.new("RGB", (9, 6), colour).save(target, "jpeg")
    return target.getvalue() + b"%d" % number


def pair_of(pixels: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Return what tells the scenes apart that do not look alike."""
    red, green, blue = (int(value) for value in pixels.reshape(-1, 3).mean(axis=0).round())
    return red // 100, green // 16, blue // 16


class InlineThread(IoThread):
    """An I/O thread whose requests run when the world turns."""

    def start(self) -> None:
        """Begin nothing."""

    @property
    def waits(self) -> bool:
        """Say whether a request waits to be run."""
        return not self._requests.empty()

    def work(self) -> bool:
        """Do one request, or one slice of a scan; say whether there was one."""
        try:
            request = self._requests.get_nowait()
        except queue.Empty:
            if self._scans:
                self._go_on()
                return True
            self._beat_at = None
            return False
        if isinstance(request, Slices):
            self._scans.append((request, self._runner.slices(request)))
        elif request is not None:
            self._run(request)
        return True


class InlineWorker(FakeProcess):
    """A worker process that takes its steps when the world turns, and dies as a real one would."""

    def __init__(self, pid: int, pipeline: Pipeline, system: FaultySystem, pause: Callable[[float], None]) -> None:
        super().__init__(pid)
        self.say(Ready("fp32", 1, 0.1, 1))  # before anything can fail: a start that fails half-way is the pool's matter
        self.channel = Channel(self.channel._end, system)
        self.worker = Channel(self.worker._end, system)
        self._pipeline, self._pause = pipeline, pause
        self._asked: tuple[Task, Any] | None = None  # a photo that waits for its verdict
        self._early: deque[Message] = deque()  # came meanwhile

    def signal(self, number: int) -> None:
        """Die by it."""
        super().signal(number)
        self.die(-number)

    def work(self) -> bool:
        """Take one message and do what it says; say whether there was one."""
        if self.code is not None:
            return False
        if self._early and self._asked is None:
            self._take(self._early.popleft())
            return True
        try:
            received = self.worker.receive()
        except BlockingIOError:
            return False
        if received is None:
            self.die(0)
        else:
            self._take(received[0])
        return True

    def _take(self, message: Message) -> None:
        if self._asked is not None:
            self._hear(*self._asked, message)
        elif isinstance(message, Task):
            self._load(message)
        else:
            self.die(0)

    def _hear(self, task: Task, loaded: Any, message: Message) -> None:
        if not isinstance(message, Verdict):
            self._early.append(message)
            return
        assert message.number == task.number
        self._asked = None
        if message.draw:
            self._draw(task, loaded)

    def _load(self, task: Task) -> None:
        loaded = attempt(lambda: self._pipeline.load(task, Unheard()))
        if isinstance(loaded, Outcome):
            self._tell(Result(task.number, loaded))
        elif task.compare:
            self._asked = (task, loaded)
            name = repr(pair_of(loaded.decoded.pixels)).encode()
            hashed = int.from_bytes(hashlib.sha256(name).digest())
            self._tell(Looks(task.number, Fingerprint(hashed, hashed, bytes([128] * 8))))
        else:
            self._draw(task, loaded)

    def _draw(self, task: Task, loaded: Any) -> None:
        self._tell(Started(task.number))
        made = attempt(lambda: self._pipeline.finish(task, self._pipeline.draw(task, loaded, lambda: None), Unheard()))
        outcome, fd = made if isinstance(made, tuple) else (made, None)
        self._tell(Result(task.number, outcome), fd)
        if fd is not None:
            os.close(fd)

    def _tell(self, message: Message, fd: int | None = None) -> None:
        """Send as a worker's link does, but for leaving the process."""
        while self.code is None:
            try:
                self.worker.send(message, () if fd is None else (fd,))
            except OSError as error:
                if error.errno not in STARVED:
                    self.die(0)
                self._pause(0.1)
            else:
                return


class SeamWorld:
    """A daemon with one inbox on real folders below `folder`."""

    def __init__(self, folder: Path, *, attempts: int = 5, **keys: Any) -> None:
        self.folder, self.attempts, self.now, self.system = folder, attempts, 100.0, FaultySystem()
        self.root, self.output = folder / "in", folder / "out"
        for place in (self.root, self.output, self.root / "sub"):
            place.mkdir(exist_ok=True)
        self.log, self.number, self.exits, self.lives = ListLog(), 0, 0, 0
        self.heal_at = float("inf")
        self.workers: list[InlineWorker] = []
        settings: dict[str, Any] = {"watch": "poll", "stable_for": 0.5, "mode": {"file": 0o640, "dir": 0o750}} | keys
        inbox = InboxConfig(name="phone", path=self.root, output=self.output, max_edge=64, **settings)
        self.config = Config(
            state_dir=folder, styles_dir=folder, inboxes=(inbox,), batch=BatchConfig(), limits=LimitsConfig(min_free=0)
        )
        self.is_open = False
        self.open()

    # The life of the service.

    def open(self) -> None:
        """Start as a process does; a ledger that cannot be opened ends it, and whoever started it tries again."""
        try:
            store = Store.open(str(self.folder / FILE_NAME), create=True, system=self.system, pause=self.sleep)
        except LedgerError:
            self.exits += 1
            return
        store._connection.execute("PRAGMA synchronous = OFF")
        try:
            self._assemble(Ledger(store))
        except LedgerError:
            self.exits += 1
            store.close()
            return
        self.is_open = True
        self._go_on(self._begin)

    def _assemble(self, ledger: Ledger) -> None:
        log: Any = self.log
        notifier: Any = FakeNotifier()
        plan = Plan(1, 1, 1, 1 << 40)
        config = self.config.inboxes[0]
        self.ledger, self.mailbox = ledger, Mailbox[Any]()
        self.thread = InlineThread("phone", self.mailbox.post, clock=lambda: self.now, system=self.system)
        prefix, self.lives = temp_prefix(ledger.instance), self.lives + 1
        stage = stage_of(config, ledger.instance, f"life{self.lives}x")  # a start sweeps what others left
        delivery = Delivery(str(self.output), stage, config.mode.dir, os.getgid())
        rules = Rules(extensions=config.extensions)
        setup = Setup(config, Recipes({RECIPE.style: RECIPE}), delivery, rules, min_free=0)
        self.inbox = Inbox(setup, thread=self.thread, hints=lambda _: None, log=log, temp_prefix=prefix, outputs=set())
        reporter = Reporter(log, {"phone": str(self.root)})
        policies = {"phone": RetryPolicy(self.attempts, 2, Backoff(5, 3, 900))}
        inboxes = {"phone": self.inbox}
        self.desk = Desk(ledger, Journal(log), reporter, inboxes, policies, lambda: WALL + self.now, system=self.system)
        spec = WorkerSpec("none:none", system=self.system)
        no: Any = None
        self.parts = parts._wire(
            first=Candidate(self.config, {"phone": setup}, policies, (), plan, spec), log=log,
            pool=Pool(plan, spec, start=self._start_worker), mailbox=self.mailbox, desk=self.desk, notifier=notifier,
            gate=Gate(self.config, self.desk, log, once=False), renewal=Renewal(no, no, no),
        )  # fmt: skip
        self.daemon = Daemon(self.parts, clock=lambda: self.now)

    def _start_worker(self, _spec: WorkerSpec, _threads: int) -> InlineWorker:
        pipeline = Pipeline(cast("Any", {"cel": self}), precision=Precision("float32", "a test"), system=self.system)
        worker = InlineWorker(1000 + len(self.workers), pipeline, self.system, self.sleep)
        self.workers.append(worker)
        return worker

    def _begin(self) -> None:
        self.daemon._start()
        self._turn()

    def close(self) -> None:
        """End as kill -9 would: descriptors are gone, the ledger is what was committed."""
        if not self.is_open:
            return
        self.is_open = False
        for active in self.desk.actives.values():
            active.drop_stage(self.system)
        for post in self.mailbox.drain():
            staged = getattr(post, "result", None)
            if isinstance(staged, tuple) and len(staged) == 2 and isinstance(staged[1], int):
                os.close(staged[1])
        for worker in self.workers:
            for _, fd in _rest(worker.channel):
                os.close(fd)
            worker.close()
        self.workers.clear()
        self.mailbox.close()
        self.ledger.close()

    def restart(self) -> None:
        """End as kill -9 would, and start anew."""
        self.close()
        self.open()

    def die(self) -> None:
        """Kill the worker."""
        for worker in self.workers:
            worker.die(-9)

    # How time goes.

    def sleep(self, seconds: float) -> None:
        """Let time pass in the middle of a turn; faults end when their time is over."""
        self.now += seconds
        self._heal_when_due()

    def run(self, seconds: float) -> None:
        """Let time pass, turning whenever something is due."""
        end = self.now + seconds
        while self.now <= end:
            if not self.is_open:
                self.open()
            self._go_on(self._turn)
            due = self.daemon._next_deadline(self.now) if self.is_open else self.now + 1.0
            self.now = max(min(due or end, self.heal_at), self.now + 0.001)
            self._heal_when_due()
        self._go_on(self._turn)

    def _go_on(self, step: Callable[[], None]) -> None:
        """Take a step; a ledger that cannot be read for long ends the service, and it is started again."""
        if not self.is_open:
            return
        try:
            step()
        except LedgerError as error:
            if not error.full:
                raise
            self.exits += 1
            self.close()

    def _heal_when_due(self) -> None:
        if self.now >= self.heal_at:
            self.heal_at = float("inf")
            self.system.heal()

    def _turn(self) -> None:
        """Turn until nothing moves."""
        moved = True
        while moved:
            moved = self.thread.work()
            for worker in self.workers:
                moved |= worker.work()
            pool = self.parts.pool
            ready = frozenset(select.select(pool.waitables(), [], [], 0)[0]) if pool.waitables() else frozenset()
            self.daemon.incoming.posts(self.now)
            self.daemon.incoming.pool_events(pool.poll(ready, self.now), self.now)
            self.daemon.incoming.pool_events(pool.tick(self.now), self.now)
            self.daemon._tick(self.now)
            moved |= self.thread.waits

    # What there is.

    def write(self, path: str, content: bytes | None = None) -> bytes:
        """Put a photo into the inbox, whole; return its content."""
        self.number += 1
        content = jpeg(self.number) if content is None else content
        beside = self.folder / "new"
        beside.write_bytes(content)
        os.utime(beside, ns=(0, self.number * 10**9))
        beside.rename(self.root / path)
        if self.is_open:
            self.inbox.hint(os.fsencode(path), self.now)
        return content

    def row(self, path: str) -> Row | None:
        """Return what the ledger knows of a photo."""
        return self.ledger.get(PhotoKey("phone", os.fsencode(path)))

    def outcomes(self, path: str) -> list[str]:
        """Return the outcomes of a photo in the order of the log."""
        full = str(self.root / path)
        return [line["event"][5:] for line in self.log.events(*ENDS) if line["path"] == full]

    def pictures(self) -> dict[str, bytes]:
        """Return what is in the output, by its path below it."""
        return tree(self.output)

    def leftovers(self) -> list[str]:
        """Return the hidden and the empty files in all folders."""
        places = ("in", "out", "phone-processed", "phone-failed", "in-processed")
        found = {f"{place}/{name}": data for place in places for name, data in tree(self.folder / place).items()}
        return [name for name, data in found.items() if Path(name).name.startswith(".") or not data]

    def is_settled(self) -> bool:
        """Say whether nothing is on its way, waits, or is out of order."""
        waiting = (
            len(self.parts.backlog.retries)
            + len(self.parts.backlog.batcher)
            + len(self.inbox.settling._settler._entries)
        )
        busy = self.desk.journal.blocked or self.parts.placing.busy or self.parts.originals.busy
        return not (self.desk.actives or self.desk.relook or waiting or busy) and self.inbox.state == "ready"


def _rest(channel: Channel) -> list[tuple[Message, int]]:
    """Return the descriptors that lie unread in a pipe."""
    found: list[tuple[Message, int]] = []
    while True:
        try:
            received = channel.receive()
        except (BlockingIOError, OSError):
            return found
        if received is None:
            return found
        if received[1] is not None:
            found.append((received[0], received[1]))
