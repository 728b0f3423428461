"""The first thing a worker does: make itself a well-behaved child, before anything large is imported."""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import resource
import sys
from typing import TYPE_CHECKING, Final

from animed.engine.protocol import EXIT_LEFT, Limits
from animed.tie import own_signals, tie_to_parent

if TYPE_CHECKING:
    from collections.abc import Callable

NICEST: Final = 19
LAST_IN_CLASS: Final = 7  # of the eight levels of the best-effort class
OOM_SCORE: Final = 500  # of 1000: out of memory, the kernel takes a worker and not the service


def settle(parent: int, outputs: tuple[int, int], limits: Limits) -> tuple[str, ...]:
    """Set signals, the tie to the parent's life, outputs and limits; return what the system refused, for people.

    Leaves at once when the parent is gone already.
    """
    own_signals()
    if not tie_to_parent(parent, b"animed-worker"):
        os._exit(EXIT_LEFT)
    redirect(*outputs)
    faulthandler.enable()
    restrict(limits)
    return tuple(step_back(limits.nice))


def touch(size: int) -> None:
    """Take and free `size` bytes: the calling thread's heap has them from now on."""
    len(b"\1" * size)


def give_back() -> None:
    """Return the free pages of the heap to the kernel, where the C library can do that."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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


def step_back(nice: int) -> list[str]:
    """Give way to other programs and, out of memory, to the parent; return what was refused, which is no reason to end.

    Called once in a worker's life, before it has a second thread: threads take both priorities over. What is set is a
    level and not a step, so that no worker is nicer for being the hundredth.
    """
    wishes = {
        f"nice {nice}": lambda: _set_nice(nice),
        "the lowest I/O priority": lambda: _set_io_priority(nice),
        "a higher oom_score_adj": _raise_oom_score,
    }
    return [refusal for name, wish in wishes.items() if (refusal := _refusal(name, wish))]


def _refusal(name: str, wish: Callable[[], None]) -> str:
    """Do something that a sandbox may forbid; say what came of it when it is forbidden."""
    try:
        wish()
    except OSError as error:
        return f"{name} is not allowed here: {error.strerror or error}"
    return ""


def _set_nice(nice: int) -> None:
    if nice > os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, min(nice, NICEST))


def _set_io_priority(nice: int) -> None:
    """Read and write after other programs, unless that is not wanted or the service was given a class of its own.

    Not the idle class: a worker that a busy disk starves would count as one that hangs.
    """
    import psutil  # noqa: PLC0415 -- the parent imports this module, and needs no second look at processes

    process = psutil.Process()
    try:
        if nice > 0 and process.ionice().ioclass == psutil.IOPRIO_CLASS_NONE:
            process.ionice(psutil.IOPRIO_CLASS_BE, LAST_IN_CLASS)
    except psutil.AccessDenied as error:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM)) from error


def _raise_oom_score() -> None:
    with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
        if int(file.read()) < OOM_SCORE:
            file.seek(0)
            file.write(str(OOM_SCORE))
