"""The workers that a configuration asks for: how many, how large, and what each is started with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed.daemon.demands import wants_faces
from animed.engine import machine, plan
from animed.engine.environment import environment
from animed.engine.protocol import Limits, WorkerSpec
from animed.system import REAL, System

if TYPE_CHECKING:
    from animed.config import Config
    from animed.engine.plan import Plan
    from animed.records import DetectorFile, WeightsFile

HEADROOM: Final = 32  # pixels
_FACTORY: Final = "animed.engine.pipeline:make"


def plan_of(config: Config) -> Plan:
    """Return how many workers this machine takes."""
    return plan.make(wishes_of(config), machine.read())


def wishes_of(config: Config) -> plan.Wishes:
    """Return what the configuration asks of the workers."""
    workers, inboxes = config.workers, config.inboxes
    largest = max(inbox.max_edge for inbox in inboxes)
    every, most = any(inbox.style_from_folder for inbox in inboxes), workers.styles_in_memory
    return plan.Wishes(
        workers.count,
        workers.threads,
        workers.precision,
        largest,
        workers.max_memory,
        styles=most if every else min(most, len({inbox.style for inbox in inboxes})),
        faces=wants_faces(config),
        full=any(inbox.output_size == "original" for inbox in inboxes),
    )


def spec_of(
    config: Config,
    weights: tuple[WeightsFile, ...],
    the_plan: Plan,
    *,
    detector: DetectorFile | None,
    system: System = REAL,
) -> WorkerSpec:
    """Return what every worker is started with."""
    workers = config.workers
    arguments = {
        "weights_files": weights,
        "threads": the_plan.threads,
        "precision": workers.precision,
        "device": workers.device,
        "system": system,
        "keep": workers.styles_in_memory,
        "detector": detector,
        "compare": any(inbox.dedupe == "similar" for inbox in config.inboxes),
        # A worker has its full size from the start: that of the largest picture that comes, which is a square, and a
        # little more, so that pictures of other shapes, which cut its heap into pieces, still find room in it.
        "sizes": tuple({(inbox.max_edge + HEADROOM, inbox.max_edge + HEADROOM) for inbox in config.inboxes}),
    }
    return WorkerSpec(
        _FACTORY,
        arguments,
        environment(threads=the_plan.threads),
        Limits(nice=workers.nice),
        timeout=workers.timeout,
        boot_timeout=workers.boot_timeout,
        max_images=workers.max_images,
        system=system,
    )
