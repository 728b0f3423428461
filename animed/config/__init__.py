"""The configuration: one YAML file, the environment and the command line become one immutable `Config`."""

from __future__ import annotations

from animed.config.load import find_state_dir, load
from animed.config.locate import find
from animed.config.models import (
    BatchConfig,
    Config,
    HooksConfig,
    InboxConfig,
    LimitsConfig,
    LoggingConfig,
    Mode,
    Preserve,
    RetryConfig,
    ScheduleConfig,
    WorkersConfig,
)
from animed.config.problems import ConfigProblemsError, Problem
from animed.config.published import default_text, dump, schema

__all__ = [
    "BatchConfig",
    "Config",
    "ConfigProblemsError",
    "HooksConfig",
    "InboxConfig",
    "LimitsConfig",
    "LoggingConfig",
    "Mode",
    "Preserve",
    "Problem",
    "RetryConfig",
    "ScheduleConfig",
    "WorkersConfig",
    "default_text",
    "dump",
    "find",
    "find_state_dir",
    "load",
    "schema",
]
