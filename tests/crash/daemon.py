"""The service with a wall clock that can jump: `python -m tests.crash.daemon CLOCK WORDS...` is `animed WORDS...`.

The machine's own clock is everybody's, and a time namespace moves the other clocks only. animed reads the wall clock
through `time.time` for the times of its ledger, back-offs included; the log's timestamps come from elsewhere and stay
true. CLOCK is a file that holds the seconds to add, and may change at any moment.

Spawned workers import this module again, so that it does nothing when it is loaded.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def jumping(clock: Path, real: Callable[[], float]) -> Callable[[], float]:
    """Return a clock that is off by the seconds that a file holds."""

    def now() -> float:
        text = clock.read_text()
        return real() + (float(text) if text else 0.0)  # empty for the instant in which it is written anew

    return now


def main() -> int:
    """Run the command line under that clock, and die with the harness."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    clock, *arguments = sys.argv[1:]
    time.time = jumping(Path(clock), time.time)
    from animed.cli import main as animed  # noqa: PLC0415 -- it must find the other clock when it is loaded

    return animed(arguments)


if __name__ == "__main__":
    sys.exit(main())
