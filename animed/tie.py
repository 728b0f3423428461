"""What ties a process to the one that started it: the end of the one is the end of the other, and signals are its."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

# The parent decides when a child leaves (it says so through a pipe or a socket, or kills). What a terminal or a service
# manager sends to the whole group is meant for the parent alone.
PARENTS_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15


def own_signals() -> None:
    """Ignore what is meant for the parent, then let signals through (it may have blocked them for the start)."""
    for number in PARENTS_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def tie_to_parent(parent: int, name: bytes) -> bool:
    """Ask the kernel for SIGKILL when the parent ends, and take a process name of at most 15 bytes.

    The parent may have ended before the question: false says so, and it is time to leave. Raises OSError.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    library.prctl(_PR_SET_NAME, name, 0, 0, 0)
    return os.getppid() == parent
