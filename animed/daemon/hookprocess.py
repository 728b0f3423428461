"""One running hook: started without a shell, in a session of its own, and ended with all that it left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final, Protocol

from animed.daemon import hookstart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # Command, environment, nice value → the running hook; raises OSError.
    Start = Callable[[Sequence[bytes], Mapping[bytes, bytes], int], "Process"]

# Isolated and without site-packages: it starts in ten milliseconds, and no variable changes what it does. The UTF-8
# mode passes every byte of a name through, whatever the locale.
_PYTHON: Final = (sys.executable, "-I", "-S", "-X", "utf8", hookstart.__file__)


class Process(Protocol):
    """What is needed of a started hook."""

    pid: int
    outputs: tuple[int, int]  # descriptors of its stdout and stderr; they do not block
    sentinel: int | None  # becomes readable when the hook ends; None where the kernel has no such thing

    def has_ended(self) -> bool:
        """Say whether the program has ended; what it started may still run."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program and all that it started in its session's group."""

    def end(self, patience: float = 0.0) -> int | None:
        """Kill what is left of the group and return the exit status, negative for a signal, None if it still runs."""

    def close(self) -> None:
        """Free everything that the service has of it."""


class HookProcess:
    """A real hook."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self.outputs = (_fileno(process.stdout), _fileno(process.stderr))
        self.sentinel = _sentinel(process.pid)

    def has_ended(self) -> bool:
        """Say whether the program has ended. Its number stays taken, so that its group cannot become another's."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True  # Whoever started the service has it ignore the ends of children.

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group. A program that changed its user cannot be sent one."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def end(self, patience: float = 0.0) -> int | None:
        """Kill what is left of the group, then fetch the exit status; None when it cannot be killed in time."""
        self.signal(signal.SIGKILL)
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Close the pipes. What still writes to them, because it left the group, gets SIGPIPE."""
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self.sentinel is not None:
            os.close(self.sentinel)
            self.sentinel = None


def start(command: Sequence[bytes], environ: Mapping[bytes, bytes], nice: int) -> HookProcess:
    """Start a program. Raises OSError when the system has no room for it; what is wrong with it is its exit status.

    Call it from the main thread only: the kernel kills a hook when the thread that started it ends. It holds the
    thread up for less than a millisecond: it waits for an interpreter's start, never for the program or its disk.
    """
    process = subprocess.Popen(
        [*_PYTHON, str(os.getpid()), str(nice), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd="/",
        bufsize=0,
        start_new_session=True,
    )
    for pipe in (process.stdout, process.stderr):
        os.set_blocking(_fileno(pipe), False)
    return HookProcess(process)


def _fileno(pipe: object) -> int:
    return pipe.fileno()  # type: ignore[attr-defined,no-any-return]  # both are pipes: that is how it was started


def _sentinel(pid: int) -> int | None:
    """Return a descriptor that tells of the end; None on kernels before 5.3, and where a filter forbids the call."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
