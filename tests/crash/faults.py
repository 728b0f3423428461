"""What is done to the service and to its places: the hands that carry a plan out."""

from __future__ import annotations

import heapq
import os
import signal
import time
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Final

from .ground import INBOXES, MARKED
from .plan import queue_length
from .settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ground import Ground
    from .plan import Step
    from .service import Service
    from .story import Story

_LEFT: Final = (0, 0, 4_096, 16_384, 65_536)  # bytes that a full disk has still free
_JUMPS: Final = (-86_400, -3_600, -30, 30, 3_600, 86_400 * 400)
_BUSY_S: Final = 30.0  # how long a kill waits for the service to do something
_READY_S: Final = 45.0  # the same for a reload, which needs a service that is up
_ANSWER_S: Final = 60.0
_RESTART_S: Final = 1.0  # between two restarts of a service that ends by itself, as a service manager would wait


class Faults:
    """Carries out a plan, keeps the service alive, and heals what is due."""

    def __init__(self, ground: Ground, service: Service, story: Story, *, say: Callable[[str], None]) -> None:
        self._ground, self._service, self._story, self._say = ground, service, story, say
        self.counts: Counter[str] = Counter()
        self.settings = Settings()
        self.unanswered = 0  # reloads that nothing was said of
        self._heals: list[tuple[float, int, str, Callable[[], None]]] = []
        self._tickets = count()
        self._offset = 0
        self._restart_at = 0.0
        self._healing = False

    def configure(self, settings: Settings) -> None:
        """Write a configuration."""
        self.settings = settings
        self._replace_config(settings.text(self._ground))

    def do(self, step: Step) -> None:
        """Carry out one step, and what falls due before it."""
        self.wait(step.pause)
        done: bool = getattr(self, step.kind)(step)
        self.counts[step.kind if done else f"{step.kind} (came to nothing)"] += 1

    def wait(self, seconds: float) -> None:
        """Let time pass; heal what is due, and start the service again where it has ended by itself."""
        end = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            while self._heals and self._heals[0][0] <= now:
                self._end(heapq.heappop(self._heals))
            if not self._service.runs() and now >= self._restart_at:
                self._note("restart", f"the service had ended with {self._service.life.status}")
                self._restart_at = now + _RESTART_S
                self._service.start()
            if now >= end:
                return
            time.sleep(min(0.1, end - now))

    def heal(self) -> None:
        """End all faults; what cannot be ended without the service is left to the end of the run."""
        self._healing = True
        while self._heals:
            self._end(heapq.heappop(self._heals))
        self._ground.heal()

    def _note(self, kind: str, text: str = "") -> None:
        self._story.fault(f"{kind} {text}".strip())
        self._say(f"{self._story.now():8.2f} {kind} {text}".rstrip())

    def _hold(self, step: Step, heal: Callable[[], None]) -> None:
        heapq.heappush(self._heals, (time.monotonic() + step.hold, next(self._tickets), step.kind, heal))

    def _end(self, entry: tuple[float, int, str, Callable[[], None]]) -> None:
        self._note(f"end of {entry[2]}")
        entry[3]()

    # Deaths.

    def _restart(self, step: Step) -> None:
        if step.dice.random() < 0.4:
            self.configure(Settings.drawn(step.dice))
        time.sleep(step.dice.choice((0, 0, 0.5, 1.5)))
        self._service.start()

    def kill(self, step: Step) -> bool:
        """Kill -9 at any moment, while it starts too."""
        self._note("kill", f"life {self._service.life.number}")
        self._service.kill()
        self._restart(step)
        return True

    def kill_busy(self, step: Step) -> bool:
        """Kill -9 just after something happened to a photo."""
        before = self._outcomes()
        busy = self._wait(lambda: self._outcomes() > before, _BUSY_S)
        time.sleep(step.dice.choice((0, 0, 0.002, 0.01, 0.05)))
        self.kill(step)
        return busy

    def _outcomes(self) -> int:
        return self._service.life.count("file.done", "file.duplicate", "file.failed")

    def _wait(self, test: Callable[[], bool], seconds: float) -> bool:
        """Wait for something that the service may do; False when it does not, or is dead."""
        end = time.monotonic() + seconds
        while self._service.runs() and time.monotonic() < end:
            if test():
                return True
            time.sleep(0.003)
        return False

    def kill_worker(self, step: Step) -> bool:
        """Kill -9 of a worker, while it starts too."""
        workers = self._service.workers()
        if not workers and self._wait(lambda: bool(self._service.workers()), _BUSY_S):
            workers = self._service.workers()
        self._note("kill_worker", f"{workers}")
        try:
            for pid in workers[:1]:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return bool(workers)

    def term(self, step: Step) -> bool:
        """Stop it in order, and start it again."""
        self._note("term", f"life {self._service.life.number}")
        self._service.stop()
        self._restart(step)
        return True

    def term_twice(self, step: Step) -> bool:
        """Stop it, and lose patience."""
        self._note("term_twice", f"life {self._service.life.number}")
        self._service.stop(again_after=step.dice.choice((0.0, 0.05, 0.5)))
        self._restart(step)
        return True

    # Places.

    def fill_output(self, step: Step) -> bool:
        """Fill the disk that pictures and moved originals go to."""
        return self._fill("output", step)

    def fill_state(self, step: Step) -> bool:
        """Fill the disk of the ledger."""
        return self._fill("state", step)

    def _fill(self, which: str, step: Step) -> bool:
        if which in self._ground.ballast or (which == "output" and self._ground.read_only):
            return False
        self._note(f"fill_{which}")
        self._ground.fill(which, leave=step.dice.choice(_LEFT))
        self._service.runs()  # notes that this life has met a full disk
        self._hold(step, lambda: self._ground.empty(which))
        return True

    def read_only(self, step: Step) -> bool:
        """Turn the outputs read-only."""
        if self._ground.read_only or "output" in self._ground.ballast:
            return False
        sealed = self._ground.seal()
        self._note("read_only", "" if sealed else "was refused: the disk is busy")
        if sealed:
            self._hold(step, self._ground.unseal)
        return sealed

    def unmount(self, step: Step) -> bool:
        """Unmount an inbox."""
        there = [name for name in INBOXES if name not in self._ground.away]
        if not there:
            return False
        name = step.dice.choice(there)
        self._note("unmount", name)
        if name not in MARKED:
            # Without a marker an empty folder is an empty inbox: what failed is forgotten, and fails once more.
            self._story.out_of_sight(name)
        self._ground.take_away(name)
        self._hold(step, lambda: self._ground.bring_back(name))
        return True

    # Time and events.

    def clock(self, step: Step) -> bool:
        """Let the wall clock jump, forwards or back."""
        self._offset += step.dice.choice(_JUMPS)
        self._note("clock", f"{self._offset:+} s")
        self._ground.clock.write_text(str(self._offset))
        return True

    def overflow(self, step: Step) -> bool:
        """Make more events than the kernel keeps, while the service cannot read them."""
        inbox = step.dice.choice(INBOXES)
        self._note("overflow", inbox)
        self._service.freeze()
        self._ground.storm(inbox, (queue_length() or 0) // 2)
        self._service.thaw()
        return True

    def freeze(self, step: Step) -> bool:
        """Let the service stand still for a while: its threads, not its workers."""
        self._note("freeze", f"{step.hold / 3:.1f} s")
        self._service.freeze()
        time.sleep(step.hold / 3)
        self._service.thaw()
        return True

    # Questions and orders.

    def rescan(self, step: Step) -> bool:
        """Ask for a scan."""
        return self._signal(signal.SIGUSR1)

    def dump(self, step: Step) -> bool:
        """Ask for the state in the log."""
        return self._signal(signal.SIGUSR2)

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal; before it has begun its work, the service would die of it, as any program would."""
        begun = self._service.runs() and self._service.life.count("daemon.starting") > 0
        if begun:
            self._note(number.name)
            self._service.signal(number)
        return begun

    def pause(self, step: Step) -> bool:
        """Pause the drawing for a while; a pause outlives the service."""
        if not self._is_ready() or self._service.call("pause").returncode:
            return False
        self._note("pause")
        self._hold(step, lambda: self._resume(step))
        return True

    def _resume(self, step: Step) -> None:
        status = self._service.call("resume").returncode
        self._note("resume", f"exit status {status}")
        if status and not self._healing:
            self._hold(step, lambda: self._resume(step))  # nobody answers just now

    def reload(self, step: Step) -> bool:
        """Change the configuration of the running service."""
        self.configure(Settings.drawn(step.dice))
        return self._reload("config.reloaded")

    def reload_invalid(self, step: Step) -> bool:
        """Offer a configuration that cannot be used: the service must refuse it and go on."""
        good = self.settings.text(self._ground)
        bad = step.dice.choice((good + "\nunknown: key\n", "version: [1\n", good.replace("quality: ", "quality: 5")))
        if self._is_ready():  # a service that starts by itself just then must not find it
            self._replace_config(bad)
            done = self._reload("config.rejected")
            self._replace_config(good)
        else:
            done = False
        return done

    def _is_ready(self) -> bool:
        return self._wait(lambda: self._service.life.count("daemon.ready") > 0, _READY_S)

    def _reload(self, answer: str) -> bool:
        """Ask for it, and wait for this answer."""
        before = self._service.life.count(answer)
        if not (self._is_ready() and self._signal(signal.SIGHUP)):
            return False
        answered = self._wait(lambda: self._service.life.count(answer) > before, _ANSWER_S)
        if not answered and self._service.runs():
            self.unanswered += 1
            self._note("reload", f"was not answered with {answer} within {_ANSWER_S:.0f} s")
        return answered

    def _replace_config(self, text: str) -> None:
        new = self._ground.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self._ground.config)
