"""How the places of one inbox stand, with a word in the log for each change."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from animed.daemon.health import Health, Trouble
from animed.errors import AnimedError, PlaceError, PlaceRole
from animed.records import PlaceFault

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class Standing:
    """Suspends places until they are well again, and says so."""

    def __init__(self, log: FilteringBoundLogger, *, inbox: str, output: str, min_free: int) -> None:
        self._log = log
        self._inbox = inbox
        self._output = output
        self.health = Health()
        self.min_free = min_free  # bytes that the output's file system keeps

    def suspend(self, fault: PlaceFault | PlaceError, now: float) -> None:
        """Suspend a place until a probe finds it well."""
        trouble = Trouble(fault.code, fault.path, fault.detail)
        if self.health.fault(fault.role, trouble, now):
            error = errno.errorcode.get(fault.code, str(fault.code))
            self._log.warning(
                trouble.event(fault.role), inbox=self._inbox, role=fault.role, error=error, place=fault.path,
                detail=fault.detail,
            )  # fmt: skip

    def restored(self, role: PlaceRole) -> None:
        """Note that a place does what it should (again)."""
        if (trouble := self.health.well(role)) is not None:
            self._log.info("disk.recovered" if trouble.full else "inbox.recovered", inbox=self._inbox, role=role)

    def is_short(self, free_bytes: int, now: float) -> bool:
        """Say whether the output's file system has less free than it must keep, and suspend it then."""
        if free_bytes >= self.min_free:
            return False
        detail = f"{free_bytes} bytes are free, limits.min_free keeps {self.min_free}"
        self.suspend(PlaceFault("output", errno.ENOSPC, self._output, detail), now)
        return True

    def faulted(self, result: object, now: float) -> bool:
        """Suspend the place that an answer is a fault of; say whether it is one."""
        if isinstance(result, PlaceError):
            self.suspend(result, now)
        elif isinstance(result, AnimedError):
            self.suspend(PlaceFault("output", errno.EACCES, self._output, str(result)), now)
        return isinstance(result, AnimedError)
