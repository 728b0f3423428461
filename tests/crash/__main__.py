"""`python -m tests.crash`: run the crash harness from the project's folder.

Exit status 0: no promise was broken; 1: one was, or the harness itself failed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys

from . import ground
from .report import say
from .run import Options, run

INSIDE = "--inside"


def main(arguments: list[str]) -> int:
    """Go into a mount namespace of our own where there is one to be had, then run."""
    options = _parser().parse_args(arguments)
    if options.inside is None:
        prefix = ground.namespace()
        seeded = (
            arguments
            if options.seed is not None
            else [*arguments, "--seed", str(random.SystemRandom().randrange(10**6))]
        )
        command = [sys.executable, "-m", "tests.crash", *seeded, INSIDE, "without" if prefix is None else "mounts"]
        # The same process goes on inside: there is nobody who could be left behind.
        os.execvp((prefix or ("env",))[0], [*(prefix or ("env",)), *command])  # noqa: S606 -- no shell is wanted
    replay = tuple(arguments[: arguments.index(INSIDE)])
    seconds = options.seconds if options.seconds is not None else options.minutes * 60
    mounts = options.inside == "mounts"
    try:
        return run(Options(seconds, options.seed, options.keep, options.verbose, mounts, replay))
    except KeyboardInterrupt:
        say("interrupted: nothing was proven, and nothing is left behind")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description="Prove animed's promises under faults.")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=1.0, help="how long writers and faults go on")
    length.add_argument("--seconds", type=float, help="the same in seconds")
    parser.add_argument("--seed", type=int, help="what is done, and in which order; a random one if not given")
    parser.add_argument("--keep", action="store_true", help="keep the folder; a failing run always does")
    parser.add_argument("--verbose", action="store_true", help="print each fault as it is done")
    parser.add_argument(INSIDE, choices=("mounts", "without"), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
