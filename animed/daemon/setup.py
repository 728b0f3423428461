"""What the configuration says, made ready for the loop: of one inbox, and of the whole service."""

from __future__ import annotations

import grp
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from animed.daemon.demands import demand_extras, detector_of
from animed.daemon.putting import Delivery
from animed.daemon.recipes import recipes_of, stage_of
from animed.daemon.styles import styles_of
from animed.daemon.workforce import plan_of, spec_of
from animed.errors import ConfigError
from animed.intake.rules import Rules
from animed.schedule.retry import Backoff, RetryPolicy
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from animed.catalog import Style
    from animed.config import Config, InboxConfig
    from animed.daemon.recipes import Recipes
    from animed.engine.plan import Plan
    from animed.engine.protocol import WorkerSpec
    from animed.records import DetectorFile, WeightsFile


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


def candidate_of(
    config: Config,
    *,
    instance: str,
    run: str,
    once: bool = False,
    system: System = REAL,
    find_detector: Callable[[Config], DetectorFile | None] = detector_of,
) -> Candidate:
    """Look up all that follows from a configuration; raises StyleError or ConfigError."""
    demand_extras(config)
    styles, detector, the_plan = styles_of(config), find_detector(config), plan_of(config)
    weights = tuple(style.weights_file for style in styles.values())
    return Candidate(
        config,
        setups={
            inbox.name: setup_of(config, inbox, styles, instance=instance, run=run, once=once)
            for inbox in config.inboxes
        },
        policies={inbox.name: _policy(config, inbox, once=once) for inbox in config.inboxes},
        weights=weights,
        plan=the_plan,
        spec=spec_of(config, weights, the_plan, detector=detector, system=system),
        detector=detector,
    )


def _policy(config: Config, inbox: InboxConfig, *, once: bool) -> RetryPolicy:
    retry = config.retry
    if once:
        return RetryPolicy.impatient(inbox.stable_for, retry.attempts, retry.crash_attempts)
    return RetryPolicy(retry.attempts, retry.crash_attempts, Backoff(retry.delay, retry.factor, retry.max_delay))


def setup_of(
    config: Config, inbox: InboxConfig, styles: Mapping[str, Style], *, instance: str, run: str, once: bool = False
) -> Setup:
    """Return what the configuration says of an inbox, made ready; raises ConfigError for a group that is not there."""
    rules = Rules(
        extensions=inbox.extensions,
        ignore=inbox.ignore,
        ignore_conflict_copies=inbox.ignore_conflict_copies,
        recursive=inbox.recursive,
        max_depth=inbox.max_depth,
    )
    stage = stage_of(inbox, instance, run)
    delivery = Delivery(os.fspath(inbox.output), stage, inbox.mode.dir, group_of(inbox))
    return Setup(inbox, recipes_of(inbox, styles), delivery, rules, config.limits.min_free, impatient=once)


def group_of(inbox: InboxConfig) -> int | None:
    """Return the number of the group that pictures are given to; raises ConfigError for one that is not there."""
    group = inbox.mode.group
    if group is None or group.isdecimal():
        return None if group is None else int(group)
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        text = f"inboxes.{inbox.name}.mode.group: there is no group {group!r} on this machine"
        raise ConfigError(text, remedy="make it, or name another") from None
