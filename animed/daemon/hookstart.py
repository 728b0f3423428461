"""The small program that turns itself into a hook. It is run by path, imports nothing of animed, and is gone at once.

Between the service's fork and the hook's first instruction some things can only be done by the new process itself:
tying its life to the service's, giving back the signals, stepping back for other programs. Doing them in the fork of
a process with threads could lock up; an interpreter of its own does them safely, in ten milliseconds.

Arguments: the service's pid, the nice value, the program, its arguments. Exit status 126 or 127, as with env(1) and
nice(1), says that the program could not be started; stderr says why.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
from typing import Final, NoReturn

PR_SET_PDEATHSIG: Final = 1
CANNOT_RUN: Final = 126
NOT_FOUND: Final = 127
_UNTOUCHABLE: Final = frozenset({signal.SIGKILL, signal.SIGSTOP})


def main(parent: int, nice: int, command: list[str]) -> NoReturn:
    """Become the program; leave with 126 or 127 where that cannot be."""
    tie_to(parent)
    default_signals()
    step_back(nice)
    try:
        refuse_writable(command[0])
        os.execve(command[0], command, os.environb)  # noqa: S606  # that no shell is in between is the point
    except OSError as error:
        print(f"{command[0]!r} cannot be started: {error.strerror}", file=sys.stderr)  # noqa: T201  # the service logs it
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN)


def tie_to(parent: int) -> None:
    """Ask the kernel for SIGKILL when the service ends; it may have ended before the question, so look again."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the service has ended")


def default_signals() -> None:
    """Let every signal do what it does by default: an ignored one would be inherited by the program."""
    for number in signal.valid_signals() - _UNTOUCHABLE:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def step_back(nice: int) -> None:
    """Give way to other programs; where that is forbidden, stderr says so."""
    try:
        if nice > os.getpriority(os.PRIO_PROCESS, 0):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError as error:
        print(f"nice {nice} is not allowed here: {error.strerror}", file=sys.stderr)  # noqa: T201  # the service logs it


def refuse_writable(program: str) -> None:
    """Refuse, at each start, a program that others may change: they could run what they like as the service."""
    mode = os.stat(program).st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = f"{program!r} is not started: other users may change it (mode {stat.S_IMODE(mode):04o}); chmod go-w it"
        print(why, file=sys.stderr)  # noqa: T201  # the service logs it
        sys.exit(CANNOT_RUN)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
