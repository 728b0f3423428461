"""The daemon's parts wired as in the service, on a real ledger and fakes for all that blocks."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from daemon_fakes import FakeNotifier, FakePool, FakeThread, ListLog, SickStore, picture_of, staged_fd
from daemon_world import World

from animed.config import Config, InboxConfig
from animed.config.models import BatchConfig, LimitsConfig, ScheduleConfig
from animed.daemon import parts
from animed.daemon.desk import Desk
from animed.daemon.gate import Gate
from animed.daemon.inbox import Inbox
from animed.daemon.iothread import Answer, Ended
from animed.daemon.journal import Journal
from animed.daemon.loop import Daemon
from animed.daemon.mailbox import Mailbox
from animed.daemon.putting import Delivery
from animed.daemon.recipes import Recipes, stage_of, temp_prefix
from animed.daemon.reload import Renewal
from animed.daemon.report import Reporter
from animed.daemon.setup import Candidate, Setup
from animed.daemon.validation import Validated
from animed.intake.rules import Rules
from animed.records import DetectorFile, Failure, PhotoKey, Recipe, Sighting, WeightsFile
from animed.schedule.ledger import FILE_NAME, Ledger
from animed.schedule.retry import Backoff, RetryPolicy

if TYPE_CHECKING:
    from animed.errors import AnimedError
    from animed.opening import Identity
    from animed.records import Fingerprint, Job, Outcome
    from animed.schedule.rows import Row

RECIPE = Recipe("cel", "aa", "half_pixel", 1.0, 64, "same", 92, exif=True, gps=True)
WALL = 1_000_000.0
_ENDS = {"file.done", "file.duplicate", "file.skipped", "file.failed"}


class Bench:
    """A daemon of one inbox or more that a test drives step by step. Times are seconds on a made-up clock."""

    def __init__(
        self,
        folder: Path,
        *,
        world: World | None = None,
        now: float = 100.0,
        names: tuple[str, ...] = ("phone",),
        workers: int = 2,
        attempts: int = 3,
        backlog: int = 100,
        batch: int = 8,
        once: bool = False,
        start: bool = True,
        active: tuple[str, ...] = (),
        pace: int = 0,
        **keys: Any,
    ) -> None:
        self.now, self.once, self.workers, self.attempts, self.folder = now, once, workers, attempts, folder
        self.jump = 0.0  # by how many seconds the wall clock was set since the start
        self.log, self.notifier = ListLog(), FakeNotifier()
        self.levels: list[str] = []  # of the log, as a reload sets them
        self.outputs: set[Identity] = set()
        self.worlds = {name: world or World() for name in names}
        settings: dict[str, Any] = {"watch": "poll", "stable_for": 0.5, "rescan_interval": 0} | keys
        self.config = Config(
            state_dir=folder,
            styles_dir=folder,
            inboxes=tuple(
                InboxConfig(name=name, path=Path("/in", name), output=Path("/out", name), **settings) for name in names
            ),
            batch=BatchConfig(max_size=batch),
            limits=LimitsConfig(backlog=backlog, min_free=1000, images_per_minute=pace),
            schedule=ScheduleConfig.model_validate({"active": active}),
        )
        self.recipes: Recipes | None = None  # of all inboxes, where the configuration is not to decide
        self._open()
        if start:
            self.start()

    def _open(self) -> None:
        """Make the parts, as a process that starts does."""
        store = SickStore.open(str(self.folder / FILE_NAME), create=True)
        assert isinstance(store, SickStore)
        self.store = store
        store.hurry()
        self.ledger = Ledger(store)
        self.pool = FakePool(self.workers)
        self.threads: dict[str, FakeThread] = {}
        self.loads: list[int] = []  # checks of the configuration that were begun
        self.first = self.candidate(self.config)
        self.desk = self._desk()
        self.parts = self._wire()
        self.daemon = Daemon(self.parts, once=self.once, clock=lambda: self.now)

    def _desk(self) -> Desk:
        log: Any = self.log
        inboxes = {name: self._make(setup) for name, setup in self.first.setups.items()}
        policies = self.first.policies
        reporter = Reporter(log, {name: inbox.root for name, inbox in inboxes.items()})
        return Desk(self.ledger, Journal(log), reporter, inboxes, policies, lambda: WALL + self.now + self.jump)

    def candidate(self, config: Config, *, weights: str = "aa", detector: str = "") -> Candidate:
        """Return a configuration made ready; `weights` is the digest of the style's weights, `detector` of that."""
        plan: Any = None
        spec: Any = config.workers
        return Candidate(
            config,
            setups={inbox.name: self._setup(config, inbox, weights) for inbox in config.inboxes},
            policies={inbox.name: RetryPolicy(self.attempts, 2, Backoff(5, 3, 900)) for inbox in config.inboxes},
            weights=(WeightsFile("cel", "/cel", weights, "half_pixel"),),
            plan=plan,
            spec=spec,
            detector=DetectorFile("/faces", detector) if detector else None,
        )

    def _setup(self, config: Config, inbox: InboxConfig, weights: str) -> Setup:
        rules = Rules(extensions=inbox.extensions, ignore=inbox.ignore)
        recipe = replace(RECIPE, quality=inbox.quality, weights_sha256=weights)
        recipes = self.recipes or Recipes({recipe.style: recipe})
        delivery = Delivery(str(inbox.output), stage_of(inbox, "inst", "run"), None, None)
        return Setup(inbox, recipes, delivery, rules, min_free=config.limits.min_free, impatient=self.once)

    def _make(self, setup: Setup) -> Inbox:
        name = setup.config.name
        self.threads[name] = FakeThread()
        self.worlds.setdefault(name, World())
        thread: Any = self.threads[name]
        log: Any = self.log
        return Inbox(
            setup, thread=thread, hints=lambda _hint: None, log=log, temp_prefix=temp_prefix("inst"),
            outputs=self.outputs,
        )  # fmt: skip

    def _wire(self) -> parts.Parts:
        log: Any = self.log
        pool: Any = self.pool
        notifier: Any = self.notifier
        gate = Gate(self.config, self.desk, log, once=self.once)
        self.mailbox: Mailbox[Any] = Mailbox()
        renewal = Renewal(self._no_load, self._make, lambda logging: self.levels.append(logging.level))
        made = parts._wire(
            first=self.first, log=log, pool=pool, mailbox=self.mailbox, desk=self.desk, notifier=notifier, gate=gate,
            renewal=renewal,
        )  # fmt: skip
        validation: Any = SimpleNamespace(start=self.loads.append)
        made.reloader._validation = validation
        return made

    def _no_load(self) -> Candidate:
        raise AssertionError("the bench reads no configuration")

    def changed(self, *, sections: dict[str, Any] | None = None, **keys: Any) -> Config:
        """Return a configuration that differs in these keys of the first inbox, and in these sections."""
        first = self.config.inboxes[0].model_copy(update=keys)
        update = {"inboxes": (first, *self.config.inboxes[1:]), **(sections or {})}
        return self.config.model_copy(update=update)

    def hup(self) -> int:
        """Ask for a reload as the signal does, and return the number of the check that is under way."""
        self.daemon._signalled(signal.SIGHUP, self.now)
        return self.loads[-1]

    def check_ends(self, number: int, outcome: Candidate | AnimedError) -> None:
        """Let a check of the configuration end."""
        self.mailbox.post(Validated(number, outcome))
        self.daemon.incoming.posts(self.now)

    def reload(self, config: Config, *, weights: str = "aa", detector: str = "") -> None:
        """Take a new configuration, and nothing more; the configuration of the next restart is this one."""
        self.check_ends(self.hup(), self.candidate(config, weights=weights, detector=detector))
        self.config = config

    # What there is.

    @property
    def inbox(self) -> Inbox:
        """The first inbox."""
        return next(iter(self.desk.inboxes.values()))

    @property
    def thread(self) -> FakeThread:
        """The first inbox's I/O thread."""
        return next(iter(self.threads.values()))

    @property
    def world(self) -> World:
        """The first inbox's disk."""
        return next(iter(self.worlds.values()))

    def state(self) -> str:
        """Return the first inbox's state."""
        return self.inbox.state

    def key(self, path: bytes = b"a.jpg") -> PhotoKey:
        """Return a photo's key in the first inbox."""
        return PhotoKey(self.inbox.name, path)

    def row(self, path: bytes = b"a.jpg") -> Row | None:
        """Return what the ledger knows of a photo."""
        return self.ledger.get(self.key(path))

    def status(self, path: bytes = b"a.jpg") -> str | None:
        """Return a photo's status in the ledger."""
        row = self.row(path)
        return None if row is None else row.status

    def names(self) -> list[str]:
        """Return the pictures that were ever placed, in order, below the first output."""
        return [name.decode().removeprefix(f"/out/{self.inbox.name}/") for name in self.world.placed]

    def outcomes(self) -> list[tuple[str, str]]:
        """Return (file name, outcome) in the order of the log."""
        lines = [line for line in self.log.lines if line["event"] in _ENDS]
        return [(Path(line["path"]).name, line.get("reason") or line["event"][5:]) for line in lines]

    # What happens.

    def start(self) -> None:
        """Look at the folders and scan."""
        for inbox in self.desk.inboxes.values():
            inbox.start()
        self.turn()

    def answer(self, kind: type, result: Any, *, inbox: str | None = None) -> Any:
        """Answer the oldest request of a kind, and return it."""
        name = inbox or self.inbox.name
        request = self.threads[name].of(kind)[0]
        self.threads[name].requests.remove(request)
        self.daemon.incoming.answered(Answer(name, request, result), self.now)
        return request

    def tick(self) -> None:
        """Let the loop turn once."""
        self.daemon._tick(self.now)

    def turn(self) -> None:
        """Let the loop turn, and the disks answer, until nothing moves."""
        self.tick()
        while any(thread.moves for thread in self.threads.values()):
            self._answer_all()
            self.tick()

    def step(self) -> bool:
        """Let the first disk answer its oldest request; say whether there was one."""
        if not self.thread.requests:
            self._end(self.inbox.name, self.thread)
            self.daemon.incoming.posts(self.now)
            return False
        request = self.thread.requests.pop(0)
        for result in self.world.answers(request):
            self.daemon.incoming.answered(Answer(self.inbox.name, request, result, self.thread), self.now)
        return True

    def _answer_all(self) -> None:
        for name, thread in list(self.threads.items()):
            if thread.silence:
                continue
            requests, thread.requests = thread.requests, []
            for request in requests:
                for result in self.worlds[name].answers(request):
                    self.daemon.incoming.answered(Answer(name, request, result, thread), self.now)
            self._end(name, thread)
        self.daemon.incoming.posts(self.now)

    def _end(self, name: str, thread: FakeThread) -> None:
        """Let a thread end that was told to and has nothing left to do."""
        if thread.moves and not thread.requests:
            thread.ended = True
            self.mailbox.post(Ended(name, asked=True, origin=thread))

    def run(self, seconds: float) -> None:
        """Let time pass, turning whenever something is due."""
        end = self.now + seconds
        self.turn()
        while (due := self.daemon._next_deadline(self.now)) is not None and due <= end:
            self.now = max(due, self.now + 0.001)
            self.turn()
        self.now = max(self.now, end)
        self.turn()

    def sight(self, path: bytes = b"a.jpg", content: bytes = b"photo", *, mtime_ns: int = 1) -> None:
        """Let a photo appear, settle, and go as far as it can without a worker's answer."""
        stat = self.world.write(path, content, mtime_ns=mtime_ns)
        self.parts.arrivals.settled(Sighting(self.key(path), stat, self.now), self.now)
        self.turn()

    def event(self, event: Any) -> None:
        """Take an event of the pool."""
        self.daemon.incoming.pool_events([event], self.now)

    def draw(self, job: Job | None = None, *, name: str | None = None, ext: str = ".jpg", taken: str = "") -> Job:
        """Let a worker finish a photo (the first there is), and nothing more."""
        job = job or self.pool.jobs[0]
        content = self.worlds[job.key.inbox].photos.get(job.key.path, (b"gone", None))[0]
        fd = staged_fd() if name is None else None
        self.event(self.pool.finish(job, replace(picture_of(content, name=name, ext=ext), taken=taken), fd))
        return job

    def load(self, fingerprint: Fingerprint, path: bytes) -> None:
        """Let a worker say what a photo in it looks like, and everything follow."""
        self.looks(fingerprint, path)
        self.turn()

    def looks(self, fingerprint: Fingerprint, path: bytes) -> None:
        """Let a worker say what a photo in it looks like."""
        job = next(job for job in self.pool.jobs if job.key.path == path)
        self.event(self.pool.looks(job, fingerprint))

    def draw_all(self) -> None:
        """Let the workers draw until nothing is left to draw."""
        self.turn()
        while self.pool.jobs:
            self.draw()
            self.turn()

    def end(self, outcome: Outcome, job: Job | None = None) -> Job:
        """Let a worker end a photo some other way, and everything follow."""
        job = job or self.pool.jobs[0]
        self.event(self.pool.finish(job, outcome))
        self.turn()
        return job

    def fail(self, reason: str, job: Job | None = None) -> Job:
        """Let a worker fail with a photo."""
        return self.end(Failure(reason, "made up"), job)

    def die(self, job: Job | None = None, cause: str = "SIGKILL") -> None:
        """Let the worker of a photo die."""
        self.event(self.pool.die(job or self.pool.jobs[0], cause))
        self.turn()

    def is_clean(self) -> bool:
        """Say whether nothing is on its way and nothing was left behind."""
        twins = self.parts.photos._twins.values()
        waiting = any(each._contents or each._leaders for each in twins) or len(self.parts.photos._similar) > 0
        return not (self.desk.actives or self.desk.batches or waiting or self.pool.jobs)

    def crash(self) -> None:
        """End as kill -9 would: descriptors are gone, the ledger is what was committed."""
        for active in self.desk.actives.values():
            active.drop_stage(self.desk.system)
        self.close()

    def restart(self, *, start: bool = True) -> None:
        """End as kill -9 would, and start with new parts on the same ledger."""
        self.crash()
        self._open()
        if start:
            self.start()

    def close(self) -> None:
        """Give back what the process holds."""
        self.mailbox.close()
        self.ledger.close()
