"""What the configuration says of one inbox, made ready for the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from animed.config import InboxConfig
    from animed.daemon.putting import Delivery
    from animed.intake.rules import Rules
    from animed.records import Recipe


@dataclass(frozen=True, slots=True)
class Setup:
    """All of an inbox that follows from the configuration alone."""

    config: InboxConfig
    recipe: Recipe
    delivery: Delivery
    rules: Rules
    min_free: int  # bytes that the output's file system keeps
    impatient: bool = False  # a single pass: nothing waits longer than it must
