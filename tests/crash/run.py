"""One run: a ground, a service, writers and faults for a while, then peace, then the verdict."""

from __future__ import annotations

import os
import random
import shlex
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from . import report
from .checker import check
from .evidence import gather, pictures, sha_of
from .faults import Faults
from .ground import FOLDING, INBOXES, Ground
from .plan import plan, possible
from .service import Service
from .settings import Settings
from .story import Story
from .writers import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from .checker import Breach
    from .evidence import Evidence

STILL_S: Final = 240.0  # without any progress, the service has stopped working, however slow the machine is
QUIET_S: Final = 6.0  # longer than a rescan's interval: what is to come has come
_LOOK_S: Final = 1.0
_FOLDING: Final = 0.5  # how often an output folds names
CROWD: Final = 200  # photos that may wait before the writers take a break


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    seconds: float
    seed: int
    keep: bool
    verbose: bool
    mounts: bool
    replay: tuple[str, ...]  # the arguments that give this run again


def run(options: Options) -> int:
    """Run, print what came of it, and return the exit status; leaves nothing behind, unless it is to be looked at."""
    signal.signal(signal.SIGTERM, _interrupt)
    folding = random.Random(f"{options.seed} disk").random() < _FOLDING
    ground = Ground(mounts=options.mounts, disk_mib=64 + round(options.seconds / 60) * 16, folding=folding)
    broken: list[Breach] | None = None
    try:
        broken = Run(options, ground).all()
    finally:
        keep = options.keep or bool(broken) or (broken is None and not _interrupted())
        ground.close(keep=keep)
        if keep:
            report.say(f"everything is kept in {ground.root}")
    return 1 if broken else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _interrupted() -> bool:
    return isinstance(sys.exc_info()[1], KeyboardInterrupt)


class Run:
    """A run on its ground."""

    def __init__(self, options: Options, ground: Ground) -> None:
        self._options, self._ground = options, ground
        self._story = Story()
        self._service = Service(ground, dead=self._look_at_processed)
        self._say: Callable[[str], None] = report.say if options.verbose else _nothing
        self._faults = Faults(ground, self._service, self._story, say=self._say)
        self._writers = [
            Writer(
                name, ground.real / name, ground.outside / name,
                seed=options.seed, story=self._story, in_place=name != "moving", crowded=self._is_crowded,
            )
            for name in INBOXES
        ]  # fmt: skip
        self._crowd, self._counted_at = 0, 0.0
        self._seen: set[str] = set()
        self._moved_early: list[str] = []

    def all(self) -> list[Breach]:
        """Do everything, print the verdict, and return the broken promises."""
        kinds, left_out = possible(self._ground)
        report.say(f"seed {self._options.seed}, {self._options.seconds:.0f} s, in {self._ground.root}")
        if self._ground.folding:
            report.say(f"the output of {FOLDING} folds names, and neither fills nor turns read-only")
        for kind, why in left_out.items():
            report.say(f"left out: {kind} ({why})")
        try:
            self._disturb(kinds)
            unsettled = self._settle()
            evidence = self._conclude(unsettled)
        finally:
            for writer in self._writers:
                writer.end()
            self._service.close()
        breaches = check(self._story, evidence)
        self._story.save(self._ground.logs / "story.json")
        self._tell(evidence, breaches)
        return breaches

    def _disturb(self, kinds: dict[str, int]) -> None:
        """Let writers and faults have their time."""
        self._faults.configure(Settings.drawn(random.Random(f"{self._options.seed} first")))
        self._service.start()
        for writer in self._writers:
            writer.start()
        end = time.monotonic() + self._options.seconds
        for step in plan(self._options.seed, kinds):
            if time.monotonic() >= end:
                break
            self._faults.do(step)
        for writer in self._writers:
            writer.stop()
        for writer in self._writers:
            writer.join()

    def _is_crowded(self) -> bool:
        """Say whether more photos wait than the service could draw in a while; looked at once a second."""
        now = time.monotonic()
        if now >= self._counted_at + _LOOK_S:
            self._counted_at = now
            lasts = [photo.last for photo in list(self._story.photos.values())]
            goods = sum(last is not None and last.content.shape is not None for last in lasts)
            self._crowd = goods - self._drawn()
        return self._crowd > CROWD

    def _drawn(self) -> int:
        return sum(len(files) for name in INBOXES for _, _, files in os.walk(self._ground.output(name)))

    def _settle(self) -> str:
        """End all faults and wait until the service has nothing more to do; return what it still does if that fails."""
        self._faults.heal()
        self._say("all faults have ended")
        still_since, quiet_since, last = time.monotonic(), None, None
        while time.monotonic() - still_since < STILL_S:
            self._faults.wait(_LOOK_S)
            status = self._service.status()
            if status is not None and status["state"] == "paused":
                self._service.call("resume")
            now, seen = time.monotonic(), self._progress(status)
            if seen != last:
                last, still_since, quiet_since = seen, now, None
            if status is None or _what_goes_on(status):
                quiet_since = None
            elif quiet_since is None:
                quiet_since = now
            elif now - quiet_since >= QUIET_S:
                return ""
        status = self._service.status()
        return "nobody answers" if status is None else (_what_goes_on(status) or "it never stayed quiet")

    def _progress(self, status: dict[str, Any] | None) -> object:
        """Return what changes as long as something gets done."""
        return self._drawn(), status and (status["totals"], _what_goes_on(status))

    def _conclude(self, unsettled: str) -> Evidence:
        """Ask the last questions, stop the service, and read what there is."""
        status = self._service.call("status", "--check").returncode
        failed = self._service.failed()
        self._service.stop()
        evidence = gather(self._ground, self._service.lives)
        evidence.unsettled, evidence.check_status = unsettled, status
        evidence.moved_early, evidence.unanswered = self._moved_early, self._faults.unanswered
        for row in failed:
            path = str(row["path"]).removeprefix(f"{self._ground.inbox(row['inbox'])}/")
            evidence.failed.append((row["inbox"], path, str(row["reason"])))
        return evidence

    def _look_at_processed(self) -> None:
        """See, while nobody moves anything, that each original that was moved has its picture."""
        fresh = [path for path in self._ground.processed.rglob("*.*") if path.is_file() and str(path) not in self._seen]
        fresh = [path for path in fresh if not path.name.startswith(".")]
        if not fresh:
            return
        marks = {drawn.mark for drawn in pictures(self._ground.output("moving"), "moving")}
        by_digest = {
            version.content.sha256: version.content.mark
            for photo in list(self._story.photos.values())
            for version in list(photo.versions)
        }
        for path in fresh:
            self._seen.add(str(path))
            if by_digest.get(sha_of(path)) not in marks:
                self._moved_early.append(str(path))

    def _tell(self, evidence: Evidence, breaches: list[Breach]) -> None:
        outcomes = Counter(line.event for line in evidence.outcomes)
        for title, counts in (
            ("faults", self._faults.counts), ("writers", self._story.habits), ("outcomes in the log", outcomes),
        ):  # fmt: skip
            report.say(f"{title}: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
        report.say(report.summary(self._story, evidence))
        for breach in breaches:
            report.say(report.describe(breach, evidence))
        if breaches:
            report.say(report.explained(breaches, self._service, self._ground))
            command = shlex.join(["python", "-m", "tests.crash", *self._options.replay])
            report.say(
                f"{len(breaches)} promises broken. The same story again, but for the system's own timing: {command}"
            )
        else:
            report.say("no promise broken")


def _what_goes_on(status: dict[str, Any]) -> str:
    """Return what a service does that is not at rest; empty for one that is."""
    parts = [] if status["state"] == "running" else [f"state {status['state']}"]
    if status["queue"]["depth"]:
        parts.append(f"{status['queue']['depth']} in the queue")
    parts += [
        ", ".join(f"{key} {inbox[key]}" for key in ("name", "state", "waiting", "queued", "troubles"))
        for inbox in status["inboxes"]
        if inbox["state"] != "ready" or inbox["waiting"] or inbox["queued"]
    ]
    return "; ".join(parts)


def _nothing(text: str) -> None:
    pass
