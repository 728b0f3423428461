"""One instance for a state folder: an flock that the kernel drops when the process dies, however it dies.

The lock file stays where it is: a file that is unlinked and made anew could be locked by two.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING, Final, Self

from animed.errors import AnimedError, LockedError

if TYPE_CHECKING:
    from types import TracebackType

LOCK_NAME: Final = "lock"
TRIES: Final = 5  # `is_held` takes the lock for an instant; who starts just then must not be turned away by it.
PAUSE_S: Final = 0.02


class StateFolderError(AnimedError):
    """The state folder cannot be made or used: a service manager starts the service again, for a disk can be freed."""


def make_state_dir(state_dir: str) -> None:
    """Make the state folder and what is missing above it, for the owner's eyes only; raises StateFolderError.

    Folders that are there already keep their mode: they are someone's decision.
    """
    try:
        _make_private(os.path.abspath(state_dir))
    except OSError as error:
        raise _unusable(state_dir, error) from error


def is_held(state_dir: str) -> bool:
    """Say whether an instance holds the state folder now; without a lock file none does. Raises StateFolderError."""
    try:
        descriptor = os.open(_lock_path(state_dir), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(state_dir, error) from error
    try:
        return not _try_flock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


class InstanceLock:
    """Holds the state folder until `release`, the end of the `with` block, or the end of the process.

    Workers never inherit it (O_CLOEXEC), so that a worker that outlives its parent does not keep the next instance out.
    """

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once, making the folder if need be; raises LockedError or StateFolderError."""
        make_state_dir(self.state_dir)
        try:
            descriptor = os.open(_lock_path(self.state_dir), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(self.state_dir, error) from error
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _take(self, descriptor: int) -> None:
        try:
            if not _insist(descriptor):
                raise _locked(self.state_dir, os.pread(descriptor, 32, 0))
            # Whole lines for people and scripts; the lock itself is the kernel's.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise _unusable(self.state_dir, error) from error

    def release(self) -> None:
        """Give the folder up; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with contextlib.suppress(OSError):  # A full disk must not turn a clean end into a failure.
            os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _make_private(folder: str) -> None:
    # os.makedirs gives its mode to the last folder only; a state folder below a fresh ~/.local must not be open either.
    if os.path.isdir(folder):
        return
    _make_private(os.path.dirname(folder))
    with contextlib.suppress(FileExistsError):  # Another process made it between the look and the call.
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)  # A umask may have taken the search bit, without which nobody could enter.
    if not os.path.isdir(folder):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)


def _insist(descriptor: int) -> bool:
    for _ in range(TRIES):
        if _try_flock(descriptor, fcntl.LOCK_EX):
            return True
        time.sleep(PAUSE_S)
    return False


def _try_flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_path(state_dir: str) -> str:
    return os.path.join(state_dir, LOCK_NAME)


def _locked(state_dir: str, text: bytes) -> LockedError:
    holder = text.decode("ascii", "replace").strip()
    who = f"process {holder}" if holder.isdigit() else "a process that has not written its number yet"
    return LockedError(
        f"another instance of animed holds this state folder ({who})",
        remedy="stop it first, or give this one its own state_dir",
        path=state_dir,
    )


def _unusable(state_dir: str, error: OSError) -> StateFolderError:
    return StateFolderError(
        f"the state folder cannot be used: {error.strerror or error}",
        remedy="set state_dir to a folder on a local disk that this user may make and write",
        path=state_dir,
    )
