"""The first thing a worker does: make itself a well-behaved child, before anything large is imported."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
import sys
from typing import Final

from animed.engine.protocol import EXIT_LEFT, Limits

PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15
OOM_SCORE: Final = 500  # of 1000: out of memory, the kernel takes a worker and not the service

# The parent decides when a worker leaves (it says so through the pipe, or kills). What a terminal or a service manager
# sends to the whole group is meant for the parent alone.
PARENTS_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def settle(parent: int, outputs: tuple[int, int], limits: Limits) -> None:
    """Set signals, the tie to the parent's life, outputs and limits. Leaves at once when the parent is gone already."""
    own_signals()
    tie_to_parent(parent)
    redirect(*outputs)
    faulthandler.enable()
    restrict(limits)
    step_back(limits.nice)


def touch(size: int) -> None:
    """Take and free `size` bytes: the calling thread's heap has them from now on."""
    len(b"\1" * size)


def give_back() -> None:
    """Return the free pages of the heap to the kernel, where the C library can do that."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def own_signals() -> None:
    """Ignore what is meant for the parent, then let signals through (the parent blocked them for the start)."""
    for number in PARENTS_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def tie_to_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent ends; it may have ended before the question, so look again."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    library.prctl(PR_SET_NAME, b"animed-worker", 0, 0, 0)
    if os.getppid() != parent:
        os._exit(EXIT_LEFT)


def redirect(stdout: int, stderr: int) -> None:
    """Put pipes where stdout and stderr were, and nothing where stdin was, for Python and for native code alike."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    os.close(nothing)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  # lives as long as the process
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  # the same


def restrict(limits: Limits) -> None:
    """Set resource limits: no core files, bounded files, descriptors and (when asked for) memory."""
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, limits.file_size)
    lower(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.data is not None:
        lower(resource.RLIMIT_DATA, limits.data)


def lower(which: int, wanted: int) -> None:
    """Lower one soft limit to `wanted`; a limit that is lower already stays."""
    soft, hard = resource.getrlimit(which)
    if soft == resource.RLIM_INFINITY or wanted < soft:
        resource.setrlimit(which, (wanted, hard))


def step_back(nice: int) -> None:
    """Give way to other programs and, out of memory, to the parent; where that is forbidden, stderr says so."""
    try:
        if nice > os.getpriority(os.PRIO_PROCESS, 0):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError as error:
        print(f"nice {nice} is not allowed here: {error.strerror}", file=sys.stderr)  # noqa: T201  # the parent logs it
    try:
        _raise_oom_score()
    except OSError as error:
        print(f"oom_score_adj cannot be raised here: {error.strerror}", file=sys.stderr)  # noqa: T201  # the same


def _raise_oom_score() -> None:
    with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
        if int(file.read()) < OOM_SCORE:
            file.seek(0)
            file.write(str(OOM_SCORE))
