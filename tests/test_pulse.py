"""Signs of life while a library computes: who computes is not hung, who stands still or turns in a circle is."""

from __future__ import annotations

import itertools
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from engine_fakes import PATIENCE, FakePipeline, job, plan, spec, task_maker
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.engine.events import PhotoFinished, WorkerTimeout
from animed.engine.protocol import Beat, Channel, Result, Started, Stop
from animed.engine.pulse import ALLOWED_A_MEGAPIXEL_S, ALLOWED_S, LEAST_S, Pulse
from animed.engine.worker import Link, Loop
from animed.records import Picture, Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine_fakes import Driver

    from animed.engine.protocol import Life

MEGAPIXEL = 1_000_000
SILENT_S = 3.0  # in which even a busy machine leaves a worker a hundredth of a second


class Body:
    """A process without a system: its clocks are set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spent = 0.0
        self.beats = 0
        self.pulse = Pulse(self._beat, every=1.0, clock=lambda: self.now, spent=lambda: self.spent)

    def _beat(self) -> None:
        self.beats += 1

    def look(self, *, computed: float) -> bool:
        """Let two seconds pass, of which some were computed, and look; say whether there was a sign of life."""
        before = self.beats
        self.now += 2.0
        self.spent += computed
        self.pulse.look()
        return self.beats > before


def test_who_computes_lives_and_who_stands_still_does_not() -> None:
    """A sign of life is sent after each look that finds processor time, and none where nothing was computed."""
    body = Body()
    with body.pulse.step() as effort:
        effort.announce(100 * MEGAPIXEL)
        assert [body.look(computed=time) for time in (1.0, 0.0, 0.0, 0.5)] == [True, False, False, True]


def test_little_is_not_nothing() -> None:
    """On a machine so busy that a look finds less than it must, what was found adds up."""
    body = Body()
    with body.pulse.step() as effort:
        effort.announce(MEGAPIXEL)
        assert [body.look(computed=LEAST_S * 0.4) for _ in range(6)] == [False, False, True, False, False, True]


def test_who_turns_in_a_circle_is_hung_in_the_end() -> None:
    """Processor time counts up to what so many pixels may take, and no longer."""
    body = Body()
    with body.pulse.step() as effort:
        effort.announce(10 * MEGAPIXEL)
        alive = [body.look(computed=1.0) for _ in range(200)]
    assert alive.index(False) == ALLOWED_S + ALLOWED_A_MEGAPIXEL_S * 10 - 1
    assert not any(alive[alive.index(False) :])


def test_nothing_counts_outside_of_what_was_announced() -> None:
    """Before a step announces anything, and after its end, however it ends, processor time says nothing."""
    body = Body()
    assert not body.look(computed=1.0)
    step = body.pulse.step()
    effort = step.__enter__()
    assert not body.look(computed=1.0)
    effort.announce(MEGAPIXEL)
    assert body.look(computed=1.0)
    assert not step.__exit__(RuntimeError, RuntimeError("broken"), None)
    assert not body.look(computed=1.0)


def test_two_steps_are_looked_after_at_once() -> None:
    """The loader decodes beside the encoder: life goes on until the last of both is over."""
    body = Body()
    with body.pulse.step() as one:
        one.announce(MEGAPIXEL)
        with body.pulse.step() as other:
            other.announce(MEGAPIXEL)
            assert body.look(computed=1.0)
        assert body.look(computed=1.0)
    assert not body.look(computed=1.0)


@given(st.lists(st.floats(0, 3), max_size=60))
@settings(deadline=None, max_examples=60)
def test_signs_are_sent_once_in_an_interval(steps: list[float]) -> None:
    """However often a step says that it goes on, at most one sign is sent in an interval."""
    body = Body()
    sent = []
    for step in steps:
        body.now += step
        before = body.beats
        body.pulse.beat()
        if body.beats > before:
            sent.append(body.now)
    assert all(late - early >= 1.0 for early, late in itertools.pairwise(sent))
    assert len(sent) >= sum(steps) // 4


class Computing(FakePipeline):
    """Takes processor time while it loads and while it encodes, until somebody has heard of it."""

    def __init__(self, heard: threading.Event) -> None:
        super().__init__()
        self.heard = heard

    def load(self, task: Task, life: Life) -> Any:
        """Compute until a sign of life was heard."""
        life.announce(MEGAPIXEL)
        self._compute()
        return super().load(task, life)

    def finish(self, task: Task, drawn: Any, life: Life) -> tuple[Picture, int | None]:
        """As `load`."""
        life.announce(MEGAPIXEL)
        self._compute()
        return super().finish(task, drawn, life)

    def _compute(self) -> None:
        self.heard.clear()
        end = time.monotonic() + PATIENCE
        while not self.heard.is_set() and time.monotonic() < end:
            sum(range(1000))
        assert self.heard.is_set()


def test_a_worker_beats_while_a_library_loads_and_encodes(tmp_path: Path) -> None:
    """A step that says nothing itself is heard of while it computes, in the loader's thread and in the main one."""
    here, there = Channel.pair()
    here.settimeout(PATIENCE)
    parent, heard = Channel(here), threading.Event()
    parent.send(task_maker(job("ok.jpg"), str(tmp_path))(7, 1))
    parent.send(Stop())
    loop = Loop(Computing(heard), Link(Channel(there)), beat_every=0.01)
    loop.start()
    worker = threading.Thread(target=loop.run)
    worker.start()
    kinds: list[type] = []
    descriptor = None
    while Result not in kinds:
        received = parent.receive()
        assert received is not None
        message, descriptor = received
        kinds.append(type(message))
        if kinds[-1] is Beat:
            heard.set()
    worker.join(PATIENCE)
    assert Beat in kinds[: kinds.index(Started)]
    assert Beat in kinds[kinds.index(Started) :]
    assert descriptor is not None
    os.close(descriptor)
    here.close()
    there.close()


@pytest.mark.parametrize(("name", "dies"), [("busy.jpg", False), ("stuck.jpg", True)])
def test_silence_means_hung_and_computing_does_not(drive: Callable[..., Driver], name: str, *, dies: bool) -> None:
    """A real worker that encodes for longer than it may be silent ends its photo; one that waits for ever is ended."""
    driver = drive(plan(), replace(spec(timeout=SILENT_S), factory="test_pulse:make"))
    driver.submit(name)
    if dies:
        driver.next(WorkerTimeout)
        return
    outcome = driver.next(PhotoFinished).outcome
    assert isinstance(outcome, Picture)
    assert not any(isinstance(event, WorkerTimeout) for event in driver.events)


class Slow(FakePipeline):
    """Encodes for twice as long as a worker may be silent, or never."""

    def finish(self, task: Task, drawn: Any, life: Life) -> tuple[Picture, int | None]:
        """Compute, or wait."""
        life.announce(MEGAPIXEL)
        if drawn == "stuck":
            time.sleep(3600)
        end = time.monotonic() + 2 * SILENT_S
        while time.monotonic() < end:
            sum(range(1000))
        return super().finish(task, drawn, life)


def make() -> Slow:
    """Be the factory."""
    return Slow()
