"""The promises to photos, under any order of arrivals, faults, deaths, full disks and restarts."""

from __future__ import annotations

import errno
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from daemon_bench import Bench
from daemon_fakes import open_stages, picture_of, sha_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from animed.daemon.again import Again
from animed.daemon.putting import PutAway
from animed.errors import PlaceError
from animed.records import Failure, Fingerprint, PlaceFault, Sighting

if TYPE_CHECKING:
    from animed.errors import PlaceRole
    from animed.records import Job, Outcome

PATHS: Final = (b"a.jpg", b"a.jpeg", b"b.jpg")  # the first two want one name
CONTENTS: Final = (b"one", b"two", b"far")
LOOKS: Final = {b"one": 0, b"two": 3, b"far": 90}  # bits; up to 10 apart is alike
ENDS: Final = {"done", "duplicate", "skipped", "failed"}
PICK = st.integers(0, 3)
FAULTS = st.sampled_from([None, None, None, "output", "output late", "inbox", "processed", "failed", "ledger"])


class Promises(RuleBasedStateMachine):
    """One inbox, three paths, two contents, and all that can go wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.before = open_stages()
        self.contents: dict[bytes, bytes] = {}  # the last content that was written under each path
        self.changes: Counter[bytes] = Counter()  # how often that was another one than before
        self.writes: Counter[bytes] = Counter()
        self.mtime = 1
        self.asked: list[Job] = []  # photos in workers whose looks were told

    @initialize(
        conflict=st.sampled_from(["suffix", "overwrite", "skip", "fail"]),
        originals=st.sampled_from(["keep", "move", "delete"]),
        failed=st.sampled_from(["leave", "move"]),
        backlog=st.sampled_from([2, 100]),
        dedupe=st.sampled_from(["content", "similar", "similar"]),
    )
    def open(self, conflict: str, originals: str, failed: str, backlog: int, dedupe: str) -> None:
        """Start with one photo that is done."""
        self.run = Bench(
            Path(self.folder.name), on_conflict=conflict, originals=originals, failed=failed, backlog=backlog,
            attempts=2, batch=2, poll_interval=5.0, dedupe=dedupe, similar_distance=10,
        )  # fmt: skip
        self.write(b"a.jpg", b"one", at_once=True, fault=None)
        self.run.draw_all()

    # What users do.

    @rule(path=st.sampled_from(PATHS), content=st.sampled_from(CONTENTS), at_once=st.booleans(), fault=FAULTS)
    def write(self, path: bytes, content: bytes, at_once: bool, fault: str | None) -> None:
        """Write a file, as new or over another, that may be complete at once; a place may fail before it is read."""
        run = self.run
        self.mtime += 1
        self.writes[path] += 1
        self.changes[path] += self.contents.get(path) != content
        self.contents[path] = content
        run.world.write(path, content, mtime_ns=self.mtime)
        if at_once and run.state() != "unavailable":
            run.inbox.settling._settler.discard(path)
            run.parts.arrivals.settled(Sighting(run.key(path), run.world.photos[path][1], run.now), run.now)
            run.tick()
        else:
            run.inbox.hint(path, run.now)
        self.break_a_place(fault)

    @rule(path=st.sampled_from(PATHS), what=st.sampled_from(["photo", "picture", "name"]))
    def meddle(self, path: bytes, what: str) -> None:
        """Delete a photo, or a finished picture, or put a file of somebody else under a picture's name."""
        row, world = self.run.row(path), self.run.world
        if what == "photo" and world.photos.pop(path, None) is not None:
            self.run.inbox.hint(path, self.run.now)
        elif what == "picture" and row is not None and row.status == "done" and row.output is not None:
            world.pictures.pop(row.output, None)
        elif what == "name":
            world.pictures.setdefault(b"/out/phone/a.cel.jpg", picture_of(b"foreign").staged)

    @rule(path=st.sampled_from(PATHS), how=st.sampled_from(["forget", "retry"]))
    def ask(self, path: bytes, how: str) -> None:
        """Let a photo be treated as never seen, or have it drawn anew."""
        if self.run.store.full:
            return
        again = Again(self.run.desk, self.run.parts.backlog, lambda: self.run.now)
        if how == "forget":
            count = again.forget({"it": self.run.key(path)})["forgotten"]
        else:
            count = len(self.run.ledger.requeue([self.run.key(path)]))
            again._look([self.run.key(path)] * count)
        self.changes[path] += count
        self.writes[path] += count

    @rule(closed=st.booleans())
    def pause(self, closed: bool) -> None:
        """Let the service pause, or go on."""
        (self.run.parts.gate.pause if closed else self.run.parts.gate.resume)(self.run.now)

    # What workers do.

    @precondition(lambda self: any(self._asks(job) for job in self.run.pool.jobs))
    @rule(pick=PICK)
    def tell_looks(self, pick: int) -> None:
        """Say what a photo looks like that a worker has loaded, and be told to draw it, or to forget it."""
        asking = [job for job in self.run.pool.jobs if self._asks(job)]
        job = asking[pick % len(asking)]
        content, stat = self.run.world.photos.get(job.key.path, (b"", None))
        if stat is not None and stat.same_file(job.stat):
            self.asked.append(job)
            looks = (1 << LOOKS[content]) - 1
            self.run.event(self.run.pool.looks(job, Fingerprint(looks, looks, bytes([128] * 8))))

    def _asks(self, job: Job) -> bool:
        task = [task for task in self.run.pool.tasks if task.path == job.key.path][-1]
        self.asked = [each for each in self.asked if any(each is one for one in self.run.pool.jobs)]
        return task.compare and not any(each is job for each in self.asked)

    # What workers do with photos that they are to draw, or that are too plain to be compared.

    @precondition(lambda self: self.run.pool.jobs)
    @rule(pick=PICK, fault=FAULTS)
    def draw(self, pick: int, fault: str | None = None) -> None:
        """End a photo as a worker would that finds it unchanged, changed, or gone; a place may fail after that."""
        job = self._job(pick)
        stat = self.run.world.stat(job.key.path)
        if stat is None:
            self._end(job, Failure("vanished", ""))
        elif not stat.same_file(job.stat):
            self._end(job, Failure("changed", ""))
        else:
            assert job.sha256 == sha_of(self.run.world.photos[job.key.path][0])
            self.run.draw(job)
        self.break_a_place(fault)

    @precondition(lambda self: self.run.pool.jobs)
    @rule(pick=PICK, how=st.sampled_from(["truncated", "not_an_image", "out_of_memory", "place", "death"]))
    def end_badly(self, pick: int, how: str) -> None:
        """Fail with a photo, meet a full output, or die with all that the worker holds."""
        job = self._job(pick)
        if how == "death":
            self.run.event(self.run.pool.die(job))
        elif how == "place":
            self._end(job, PlaceFault("output", errno.ENOSPC, "/out", "full"))
        else:
            self._end(job, Failure(how, "made up"))

    # What disks do.

    @rule(what=FAULTS)
    def break_a_place(self, what: str | None) -> None:
        """Let a disk fail, or fill up."""
        world = self.run.world
        if what is None:
            return
        if what == "ledger":
            self.run.store.full = True
        elif what == "inbox":
            world.break_inbox()
        elif what in {"processed", "failed"}:
            role: PlaceRole = "processed" if what == "processed" else "failed"
            world.faults[PutAway] = PlaceError(role, errno.EIO, "/shelf", "broken")
        else:
            world.break_output(late=what == "output late")

    @rule()
    def heal(self) -> None:
        """End the faults of all disks."""
        self.run.world.heal()
        self.run.store.full = False

    # How time goes.

    @rule(count=st.integers(1, 4))
    def answer(self, count: int) -> None:
        """Let the disk answer some requests, and the loop turn."""
        for _ in range(count):
            self.run.step()
        self.run.tick()

    @rule(seconds=st.sampled_from([0.6, 2.0, 20.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.run.run(seconds)

    @rule(in_order=st.booleans())
    def restart(self, in_order: bool) -> None:
        """Stop the service in order, or kill it, and start it again."""
        if in_order:
            self._stop()
        self.run.restart(start=False)
        self.run.inbox.start()

    @rule(quality=st.sampled_from([92, 50]), output=st.sampled_from(["/out/phone", "/moved"]))
    def reload(self, quality: int, output: str) -> None:
        """Take a configuration with another recipe, or another output, or the same."""
        self.run.reload(self.run.changed(quality=quality, output=Path(output)))

    def _stop(self) -> None:
        self.run.daemon._drain(None, self.run.now)
        while self.run.pool.jobs or self.run.thread.requests:
            if any(self._asks(job) for job in self.run.pool.jobs):
                self.tell_looks(0)
            if self.run.pool.jobs:
                self.draw(0)
            self.run.step()
        if not self.run.desk.journal.blocked:
            assert self.run.daemon._is_over()
            assert not self.run.desk.actives

    # The promises.

    @invariant()
    def nothing_is_held_for_nobody(self) -> None:
        """Each open stage belongs to a photo on its way."""
        held = sum(active.fd is not None for active in self.run.desk.actives.values())
        assert open_stages() - self.before == held

    @invariant()
    def no_photo_is_drawn_twice_at_once(self) -> None:
        """No photo is in two workers, and each that is in one is known to be on its way."""
        keys = [job.key for job in self.run.pool.jobs]
        assert len(keys) == len(set(keys))
        assert set(keys) <= set(self.run.desk.actives)

    @invariant()
    def batches_add_up(self) -> None:
        """Each open batch waits for photos that are on their way."""
        open_in = Counter(active.batch for active in self.run.desk.actives.values() if active.batch)
        assert {n: t.size - sum(t.ended.values()) for n, t in self.run.desk.batches.items()} == open_in

    @invariant()
    def one_picture_at_most(self) -> None:
        """Each version of a photo has one picture at most."""
        assert Counter(self.run.world.givers) <= self.changes

    def teardown(self) -> None:
        """End all faults, and see that all promises were kept."""
        try:
            if hasattr(self, "run"):
                self._settle()
                self._judge()
                self.run.crash()
        finally:
            self.folder.cleanup()

    def _settle(self) -> None:
        """End all faults, and let everything come to its end."""
        run = self.run
        run.world.heal()
        run.store.full = False
        run.parts.gate.resume(run.now)
        for _ in range(12):
            run.run(70)
            while run.pool.jobs:
                self.draw(0)
                run.turn()
        run.inbox.scans.wanted = True
        run.run(3)

    def _judge(self) -> None:
        run = self.run
        assert run.inbox.state == "ready"
        assert run.inbox.config == run.config.inboxes[0]
        assert not run.parts.reloader.turnover.busy
        assert run.is_clean()
        assert not run.desk.relook
        assert not run.desk.left
        busy = [run.desk.journal.blocked, run.parts.placing.busy, run.parts.originals.busy, run.inbox.dirty]
        assert not any(busy)
        assert len(run.parts.backlog.retries) == len(run.parts.backlog.batcher) == 0
        assert open_stages() == self.before
        for path, (content, stat) in run.world.photos.items():
            row = run.row(path)
            assert row is not None
            assert row.status in ENDS, path
            assert row.same_stat(stat)
            assert row.original_pending is None
            assert row.sha256 == sha_of(content) or row.status == "failed"
            picture = run.world.pictures.get(row.output or b"")
            if row.status in {"done", "duplicate"} and picture == row.staged and picture is not None:
                assert picture.sha256 in self._pictures_of(content)
        assert Counter(name for name, _ in run.outcomes()) <= self._allowed()

    def _pictures_of(self, content: bytes) -> set[str]:
        """Return the pictures that a photo may have: its own, and those of photos that look like it."""
        similar = self.run.config.inboxes[0].dedupe == "similar"
        alike = {each for each in CONTENTS if similar and abs(LOOKS[each] - LOOKS[content]) <= 10}
        return {picture_of(each).staged.sha256 for each in {content, *alike}}

    def _allowed(self) -> Counter[str]:
        """Return how many outcomes each file name may have: one for each time that it was written."""
        allowed: Counter[str] = Counter()
        for path, count in self.writes.items():
            allowed[Path(path.decode()).name] += count
        return allowed

    def _job(self, pick: int) -> Job:
        return self.run.pool.jobs[pick % len(self.run.pool.jobs)]

    def _end(self, job: Job, outcome: Outcome) -> None:
        self.run.event(self.run.pool.finish(job, outcome))


TestPromises = Promises.TestCase
TestPromises.settings = settings(
    deadline=None, max_examples=150, stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
