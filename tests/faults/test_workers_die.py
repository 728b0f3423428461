"""Workers that die, hang, start in a forked or a narrow world: the pool recovers, slows down, and says so."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import torch
from engine_fakes import READY, Driver, Workshop, plan, spec

from animed.engine.environment import environment
from animed.engine.events import PhotoFinished, WorkerDied, WorkerOutput, WorkerStarted, WorkerTimeout
from animed.engine.pool import Pool
from animed.records import Picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    """Make fake worker processes, which are freed after the test."""
    made = Workshop()
    yield made
    made.close()


def test_a_worker_that_is_killed_while_it_loads_is_no_restart_storm(workshop: Workshop) -> None:
    """Five deaths at load: ever longer waits, a degraded state, the signal and a word about memory each time."""
    pool = Pool(plan(), spec(), start=workshop)
    pool.start(0.0)
    now, waits = 0.0, []
    for _ in range(5):
        workshop.started[-1].die(-signal.SIGKILL)
        (died,) = [event for event in pool.poll(pool.waitables(), now) if isinstance(event, WorkerDied)]
        assert died.cause == "SIGKILL"
        assert "memory" in died.hint
        assert pool.degraded
        due = pool.next_deadline(now)
        assert due is not None
        waits.append(due - now)
        now = due
        pool.tick(now)
    assert waits == [1, 2, 4, 8, 16]
    assert len(workshop.started) == 6
    workshop.started[-1].say(READY)
    pool.poll(pool.waitables(), now)
    assert not pool.degraded


def test_a_pool_without_workers_is_not_well(workshop: Workshop) -> None:
    """When all workers are dead and none can be started the pool is degraded, and takes no photo."""
    pool = Pool(plan(2), spec(), start=workshop)
    pool.start(0.0)
    for process in workshop.started:
        process.say(READY)
    pool.poll(pool.waitables(), 0.0)
    workshop.errors = [OSError(errno.EAGAIN, "no process")] * 50
    for process in list(workshop.started):
        process.die(-signal.SIGKILL)
    pool.poll(pool.waitables(), 0.0)
    for second in range(1, 20):
        pool.tick(float(second))
    assert pool.degraded
    assert not pool.ready
    assert pool.free == 0
    workshop.errors = []
    pool.tick(1000.0)
    assert len(workshop.started) > 2


def test_a_slow_photo_ends_alone(drive: Callable[..., Driver]) -> None:
    """One worker hangs and is killed for it; the other one draws on, and is not disturbed."""
    driver = drive(plan(2), spec(timeout=2.0))
    driver.until(lambda: driver.pool.free == 4)
    driver.submit("hang.jpg")
    hung = driver.pool.workers[0].pid
    driver.submit("ok-1.jpg", "ok-2.jpg")
    assert driver.next(WorkerTimeout).pid == hung
    died = driver.next(WorkerDied)
    assert (died.pid, died.cause) == (hung, "timeout")
    assert b"hang.jpg" in {job.key.path for job in died.suspects}
    driver.submit("ok-3.jpg")
    driver.until(lambda: not driver.pool.in_flight)
    assert [event.pid for event in driver.events if isinstance(event, WorkerDied)] == [hung]


def test_a_parent_that_uses_threads_starts_workers_all_the_same(drive: Callable[..., Driver]) -> None:
    """Workers are spawned, not forked: what the parent's libraries hold locked does not reach them."""
    torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    driver = drive()
    driver.submit("ok.jpg")
    assert isinstance(driver.next(PhotoFinished).outcome, Picture)
    command = psutil.Process(driver.pool.workers[0].pid).cmdline()
    assert any("spawn_main" in part for part in command)


def test_what_a_worker_says_names_the_worker(drive: Callable[..., Driver]) -> None:
    """A worker's words come as lines with its number, which the photo's own line has as well."""
    driver = drive()
    driver.submit("print.jpg")
    finished = driver.next(PhotoFinished)
    driver.until(lambda: any(isinstance(event, WorkerOutput) for event in driver.events))
    said = driver.next(WorkerOutput)
    assert said.pid == finished.pid == driver.next(WorkerStarted).pid


NARROW = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from animed.engine import machine, plan
of = plan.make(plan.Wishes(None, None, "auto", 256, None), machine.read())
import torch
from animed.style import runtime
runtime.prepare(of.threads)
print(of.count, of.threads, torch.get_num_threads())
"""


@pytest.mark.slow
def test_one_processor_is_one_thread() -> None:
    """In a world of one processor there is one worker, and the network in it uses one thread."""
    done = subprocess.run(
        [sys.executable, "-c", NARROW], capture_output=True, text=True, timeout=100, check=True,
        env=os.environ | environment(threads=1),
    )  # fmt: skip
    assert done.stdout.split() == ["1", "1", "1"]


SANDBOX = """
import ctypes, sys
from animed.engine import pipeline
from animed.errors import WorkersError
from animed.records import WeightsFile
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    sys.exit(77)
try:
    weights = WeightsFile("cel", *sys.argv[1:3], "half_pixel")
    pipeline.make((weights,), threads=1, precision="float32", sizes=((64, 64),))
except WorkersError as error:
    print(error.title, "|", error.remedy)
else:
    print("drawn")
"""


@pytest.mark.slow
def test_a_sandbox_without_machine_code_is_told_as_such() -> None:
    """Where no memory may be written and executed the worker draws all the same, or says which setting forbids it."""
    path = Path(__file__).resolve().parents[2] / "weights" / "cel.safetensors"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    done = subprocess.run(
        [sys.executable, "-c", SANDBOX, str(path), digest], capture_output=True, text=True, timeout=100,
        check=False, env=os.environ | environment(threads=1),
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this kernel cannot forbid it")
    assert done.returncode == 0, done.stderr
    assert "MemoryDenyWriteExecute" in done.stdout or done.stdout == "drawn\n"
