"""What the configuration says, made ready for the loop: of one inbox, and of the whole service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animed.config import Config, InboxConfig
    from animed.daemon.putting import Delivery
    from animed.daemon.recipes import Recipes
    from animed.engine.plan import Plan
    from animed.engine.protocol import WorkerSpec
    from animed.intake.rules import Rules
    from animed.records import DetectorFile, WeightsFile
    from animed.schedule.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class Setup:
    """All of an inbox that follows from the configuration alone. Two that are equal need no change of the inbox."""

    config: InboxConfig
    recipes: Recipes
    delivery: Delivery
    rules: Rules = field(compare=False)  # they follow from `config`
    min_free: int = field(compare=False)  # bytes that the output's file system keeps; an inbox is told of a new number
    impatient: bool = False  # a single pass: nothing waits longer than it must


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was found valid, with all that was looked up for it."""

    config: Config
    setups: Mapping[str, Setup]  # by inbox, in the order of the configuration
    policies: Mapping[str, RetryPolicy]  # by inbox
    weights: tuple[WeightsFile, ...]
    plan: Plan  # what this machine takes
    spec: WorkerSpec
    detector: DetectorFile | None = None  # of faces, where an inbox asks for it
