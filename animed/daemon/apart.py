"""Does what an I/O thread is asked in a process of its own, so that a file system that hangs never holds this one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from animed.aside import Aside
from animed.daemon.looking import StartWatch, StopWatch
from animed.daemon.putting import Place, StageCopy
from animed.system import REAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.daemon.iothread import Request, Slices


@dataclass(frozen=True, slots=True)
class _There:
    """A request as the other process does it; unnamed staged files travel as descriptors."""

    request: Request

    def __call__(self, beat: Callable[[], None], descriptor: int | None) -> tuple[Any, int | None]:
        """Do it."""
        request = replace(self.request, fd=descriptor) if isinstance(self.request, Place) else self.request
        result = request.run(beat, REAL)
        if isinstance(request, StageCopy) and isinstance(result, tuple):
            staged, copied = result
            return staged, copied
        return result, None


class Apart:
    """Runs requests elsewhere. Only an inbox's I/O thread uses it."""

    def __init__(self) -> None:
        self._aside = Aside()

    def run(self, request: Request, beat: Callable[[], None]) -> object:
        """Do a request and return its answer; raises what it raises, and OSError when the other process is gone.

        Watches stay here, where their threads are; they only wait for the kernel.
        """
        if isinstance(request, StartWatch | StopWatch):
            return request.run(beat, REAL)
        descriptor = request.fd if isinstance(request, Place) else None
        result, copied = self._aside.call(_There(request), beat=beat, descriptor=descriptor)
        return (result, copied) if isinstance(request, StageCopy) else result

    def slices(self, request: Slices) -> Iterator[object]:
        """Yield the answers of a request bit by bit."""
        return self._aside.iterate(partial(request.slices, REAL))

    def close(self) -> None:
        """End the other process."""
        self._aside.close()
