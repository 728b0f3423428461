"""The content of a photo, whole and unchanged, as the worker reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed.errors import PhotoError
from animed.imaging import sniff
from animed.opening import NotRegularError, open_beneath, reading_fault
from animed.records import FileStat, Reason
from animed.system import shut

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.records import Task
    from animed.system import System

CHUNK: Final = 8 * 2**20  # bytes per read: few calls, and a changed file is noticed before gigabytes were read
# No pixel takes more than four 32-bit numbers, so a larger file is mostly something else; the floor is for low limits.
BYTES_PER_PIXEL: Final = 16
LEAST_BYTES: Final = 64 * 2**20


def read(task: Task, system: System, beat: Callable[[], None]) -> bytes:
    """Return the content of the photo that was settled, whole and unchanged; `beat` is called after every part.

    Raise PhotoError: vanished, changed, unreadable, too_large, or what the first bytes say of its kind; or
    PlaceError("inbox") where the inbox rather than the photo is at fault.
    """
    try:
        descriptor = open_beneath(task.root, task.path, system)
        try:
            return _content(descriptor, task, system, beat)
        finally:
            shut(system, descriptor)
    except NotRegularError as error:
        raise PhotoError(Reason.CHANGED, str(error)) from error
    except OSError as error:
        raise reading_fault(error, root=task.root, path=task.path, mode=task.stat.mode, system=system) from error


def _content(descriptor: int, task: Task, system: System, beat: Callable[[], None]) -> bytes:
    """Read a file between two looks at its stat."""
    _demand_same(descriptor, task, "before it was read", system)
    size = task.stat.size
    limit = max(LEAST_BYTES, BYTES_PER_PIXEL * task.max_pixels)
    content = bytearray()
    while len(content) < size:
        chunk = system.read(descriptor, min(CHUNK, size - len(content)))
        if not chunk:
            break
        content += chunk
        beat()
        if len(content) == len(chunk):
            # A video of gigabytes is known by its first bytes, and not read on.
            sniff.identify(bytes(chunk[: sniff.HEAD]), task.path)
            if size > limit:
                raise PhotoError(Reason.TOO_LARGE, f"the file has {size} bytes, limit {limit}")
    _demand_same(descriptor, task, "while it was read", system)
    if len(content) != size:
        raise PhotoError(Reason.CHANGED, f"{len(content)} bytes were read of {size}")
    if not content:
        raise PhotoError(Reason.EMPTY, "the file has no content")
    return bytes(content)


def _demand_same(descriptor: int, task: Task, when: str, system: System) -> None:
    """Raise PhotoError("changed") unless the open file is the one that was settled."""
    if not FileStat.of(system.fstat(descriptor)).same_file(task.stat):
        raise PhotoError(Reason.CHANGED, f"the file changed {when}")
