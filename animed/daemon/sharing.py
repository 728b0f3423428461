"""A photo that gets its own copy of a picture that is there: of equal bytes, or of a photo that looks like it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from animed.daemon.active import Phase
from animed.daemon.putting import StageCopy
from animed.daemon.recipes import is_dated
from animed.errors import AnimedError, PlaceError
from animed.records import SUFFIXES

if TYPE_CHECKING:
    from animed.daemon.active import Active
    from animed.daemon.desk import Desk
    from animed.daemon.faults import Faults
    from animed.daemon.placing import Placing
    from animed.records import Staged
    from animed.schedule.rows import Row


class Sharing:
    """Has pictures staged once more, and given a name of their own."""

    def __init__(self, desk: Desk, placing: Placing, faults: Faults) -> None:
        self._desk = desk
        self._placing = placing
        self._faults = faults

    def share(self, active: Active, found: Row, distance: int = 0) -> bool:
        """Begin to give a photo its own copy of another one's picture; False when that cannot be.

        What its name is made of must be known: the kind of the picture, and, where names tell of it, when the photo was
        taken. Only a worker can tell what an older record, or the picture's own name, does not.
        """
        inbox = self._desk.inbox_of(active.job.key)
        ext = os.fsdecode(os.path.splitext(found.output or b"")[1])
        if found.output is None or found.staged is None or ext not in SUFFIXES.values():
            return False
        if found.taken is None and is_dated(inbox.config):
            return False
        active.phase, active.of, active.ext, active.taken = Phase.PLACING, found.output, ext, found.taken
        active.distance, active.alike = distance, found.sha256 != active.job.sha256
        inbox.ask(StageCopy(active.job.key, found.output, found.staged, inbox.delivery.stage, active.job.stat.mtime_ns))
        return True

    def shared(self, request: StageCopy, result: tuple[Staged, int | None] | AnimedError, now: float) -> bool:
        """Go on with the copy; False when the first picture is gone, so that this photo is to be drawn."""
        active = self._desk.actives[request.key]
        if isinstance(result, PlaceError):
            self._faults.place_fault(active, result, now)
        elif isinstance(result, AnimedError):
            active.of, active.ext, active.taken, active.distance, active.alike = b"", "", None, 0, False
            return False
        else:
            active.staged, active.fd = result
            self._placing.claim(active, active.staged, now)
        return True
