"""Which faults there are, which of them can be done here, and in which order a seed has them."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .ground import Ground

KINDS: Final = {
    "kill": 6, "kill_busy": 10, "kill_worker": 9, "term": 4, "term_twice": 3, "fill_output": 5, "fill_state": 5,
    "read_only": 5, "unmount": 6, "clock": 5, "overflow": 4, "reload": 7, "reload_invalid": 3, "rescan": 2, "dump": 1,
    "freeze": 4, "pause": 3,
}  # fmt: skip
NEED_MOUNTS: Final = frozenset({"fill_output", "fill_state", "unmount"})
_QUEUE: Final = "/proc/sys/fs/inotify/max_queued_events"
_MOST_QUEUED: Final = 100_000  # where the kernel's queue is longer, filling it would take too long


@dataclass(frozen=True, slots=True)
class Step:
    """One fault: after how long a pause, of what kind, how long it lasts, and dice for all else."""

    pause: float
    kind: str
    hold: float
    dice: random.Random


def plan(seed: int, kinds: dict[str, int]) -> Iterator[Step]:
    """Yield faults without end, always the same ones for a seed."""
    dice = random.Random(f"{seed} faults")
    for number in count():
        kind = dice.choices(list(kinds), list(kinds.values()))[0]
        yield Step(dice.uniform(0.2, 3.5), kind, dice.uniform(0.3, 5.0), random.Random(f"{seed} fault {number}"))


def possible(ground: Ground) -> tuple[dict[str, int], dict[str, str]]:
    """Return the kinds of faults that can be done here, and why each of the others cannot."""
    out: dict[str, str] = {}
    if not ground.mounts:
        out |= dict.fromkeys(sorted(NEED_MOUNTS), "no right to mount")
        if os.geteuid() == 0:
            out["read_only"] = "no right to mount, and root may write where nobody may"
    if (length := queue_length()) is None or length > _MOST_QUEUED:
        out["overflow"] = f"the queue of inotify holds {length} events"
    return {kind: weight for kind, weight in KINDS.items() if kind not in out}, out


def queue_length() -> int | None:
    """Return how many events the kernel keeps for a reader of inotify."""
    try:
        with open(_QUEUE, encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return None
