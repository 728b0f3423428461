"""The one immutable configuration: everything after the file, the environment and the command line were read.

Paths are absolute, durations are seconds, sizes are bytes, and `auto` is None where a number would stand.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads the types at run time.
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from animed.config.fields import AutoCount, AutoSize, Duration, Folder, Percent, Positive, Size, only, refused
from animed.config.inbox import InboxConfig, Mode, Part, Preserve
from animed.config.programs import Command  # noqa: TC001 - pydantic reads the types at run time.
from animed.config.units import format_duration
from animed.config.windows import Windows  # noqa: TC001 - pydantic reads the types at run time.

__all__ = [
    "BatchConfig",
    "Config",
    "HooksConfig",
    "InboxConfig",
    "LimitsConfig",
    "LoggingConfig",
    "Mode",
    "Part",
    "Preserve",
    "RetryConfig",
    "ScheduleConfig",
    "WorkersConfig",
]


class BatchConfig(Part):
    """The section `batch`: how photos that arrive together are gathered."""

    max_size: int = Field(default=8, ge=1, description="Most photos in one batch.")
    max_wait: Positive = Field(default=0.2, description="Longest time that a photo waits for others.")


class WorkersConfig(Part):
    """The section `workers`: the processes that draw."""

    count: AutoCount = Field(default=None, description="Number of worker processes; auto fits cores and memory.")
    threads: AutoCount = Field(default=None, description="Threads per worker; auto is one.")
    device: Annotated[Literal["auto", "cpu"], only("auto", "cpu")] = Field(
        default="auto", description="What the network runs on."
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="Numbers that the network computes with; auto picks what is fast here."
    )
    nice: int = Field(
        default=10, ge=-20, le=19, description="How far workers step back for other programs, as in nice."
    )
    timeout: Positive = Field(default=120.0, description="Longest silence of a busy worker before it is killed.")
    boot_timeout: Positive = Field(default=180.0, description="Longest time for a worker to load and warm its styles.")
    stop_timeout: Positive = Field(default=20.0, description="Time for running photos to finish at shutdown.")
    max_images: int = Field(default=1000, ge=1, description="Photos after which a worker is replaced.")
    max_memory: AutoSize = Field(default=None, description="Memory above which a worker is replaced.")
    cpu_share: Annotated[Percent, only("100%", 100, 100.0)] = Field(
        default=100.0, description="Share of a worker's time that it may compute."
    )
    styles_in_memory: Annotated[int, only(3)] = Field(default=3, description="Styles that a worker keeps ready.")
    preload: Annotated[bool, only(True)] = Field(  # noqa: FBT003 - the value is what is meant.
        default=True, description="Load styles at start, before any photo."
    )
    idle_unload: Annotated[Duration, only(0, "0", "0s", 0.0)] = Field(
        default=0.0, description="Idle time after which workers leave memory; 0 is never."
    )


class RetryConfig(Part):
    """The section `retry`: when a photo that failed is tried again."""

    attempts: int = Field(default=5, ge=1, description="Most tries of one photo.")
    delay: Positive = Field(default=5.0, description="Wait before the second try.")
    factor: float = Field(default=3.0, ge=1, description="How many times longer each further wait is.")
    max_delay: Positive = Field(default=900.0, validate_default=True, description="Longest wait between tries.")
    crash_attempts: int = Field(default=2, ge=1, description="Most tries of a photo that kills its worker.")

    @field_validator("max_delay")
    @classmethod
    def _after_first(cls, value: float, info: ValidationInfo) -> float:
        """Refuse a longest wait that is shorter than the first one."""
        least = info.data.get("delay", 0.0)
        if value < least:
            raise refused(f"at least delay, which is {format_duration(least)}")
        return value


class LimitsConfig(Part):
    """The section `limits`: what animed leaves to others."""

    min_free: Size = Field(default=2**30, description="Free space on the output's disk below which work stops.")
    backlog: int = Field(default=10_000, ge=1, description="Most photos that are remembered as waiting.")
    images_per_minute: int = Field(default=0, ge=0, description="Most photos begun in a minute; 0 is no limit.")


class ScheduleConfig(Part):
    """The section `schedule`: when animed works."""

    active: Windows = Field(default=(), description="Times of day to work in, such as 22:00-07:00; empty is always.")


class HooksConfig(Part):
    """The section `hooks`: programs that animed starts."""

    on_success: Command = Field(default=None, description="Program to run after a picture.")
    on_failure: Command = Field(default=None, description="Program to run after a failure.")
    on_batch: Command = Field(default=None, description="Program to run after a batch.")
    timeout: Positive = Field(default=60.0, description="Longest time that such a program may run.")

    def commands(self) -> dict[str, tuple[str, ...]]:
        """Return the commands that are set, by their keys."""
        named = {"on_success": self.on_success, "on_failure": self.on_failure, "on_batch": self.on_batch}
        return {key: command for key, command in named.items() if command is not None}


class LoggingConfig(Part):
    """The section `logging`: what is written to standard output."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is written."
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="Lines for people or for programs; auto asks whether the output is a terminal."
    )


FOUND: Final = frozenset({"source", "unheeded"})  # keys of Config that reading finds, and nobody gives


class Config(Part):
    """Everything that animed was told."""

    version: Literal[1] = Field(default=1, description="Version of the form of this file.")
    state_dir: Folder = Field(
        description="Folder of the ledger and the lock, on a local disk; null is $STATE_DIRECTORY or the user's own."
    )
    styles_dir: Folder = Field(description="Folder of more styles; null is $XDG_DATA_HOME/animed/styles.")
    inboxes: tuple[InboxConfig, ...] = Field(description="The watched folders.", min_length=1)
    batch: BatchConfig = Field(default_factory=BatchConfig, description="How photos are gathered.")
    workers: WorkersConfig = Field(default_factory=WorkersConfig, description="The processes that draw.")
    retry: RetryConfig = Field(default_factory=RetryConfig, description="When a failed photo is tried again.")
    limits: LimitsConfig = Field(default_factory=LimitsConfig, description="What animed leaves to others.")
    schedule: ScheduleConfig = Field(default_factory=ScheduleConfig, description="When animed works.")
    hooks: HooksConfig = Field(default_factory=HooksConfig, description="Programs that animed starts.")
    logging: LoggingConfig = Field(default_factory=LoggingConfig, description="What is written to standard output.")
    source: Path | None = Field(default=None, description="The file that this was read from.")
    unheeded: tuple[str, ...] = Field(default=(), description="Keys of `defaults` that every inbox overrides.")
