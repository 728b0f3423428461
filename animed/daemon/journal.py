"""Commits to the ledger in order, kept and tried again when the state folder cannot take them.

Nothing that follows from a commit happens before it: each commit carries what to do next. While one waits, all later
ones wait behind it and no new photo is started, so that a full disk under the state folder loses nothing. The same
holds while the ledger's file is missing: what is written into a removed file would be forgotten by the next start.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from animed.schedule.store import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

_LOOK_S: Final = 1.0  # between two looks of a busy service at the ledger's file
_DELAYS_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class Journal:
    """An ordered line of commits. `missing` says what has become of the ledger's file; nothing while it is there."""

    def __init__(self, log: FilteringBoundLogger, missing: Callable[[], str] = lambda: "") -> None:
        self._log = log
        self._missing = missing
        self._lost = False  # the file was missing at the last look
        self._look_at = 0.0
        self._waiting: deque[tuple[Callable[[], object], Callable[[], None]]] = deque()
        self._failures = 0
        self._retry_at = 0.0

    @property
    def blocked(self) -> bool:
        """Say whether the state folder takes no commits now."""
        return self._lost or bool(self._waiting)

    def next_due(self) -> float | None:
        """Return when the state folder is tried again; an idle service looks at it only when it has turned anyway."""
        return self._retry_at if self.blocked else None

    def commit(self, write: Callable[[], object], then: Callable[[], None], now: float) -> None:
        """Write to the ledger, then go on; while the state folder cannot take it, keep both for later.

        Raises LedgerError for what waiting does not heal.
        """
        self._waiting.append((write, then))
        if len(self._waiting) == 1:
            self._work(now)

    def tick(self, now: float) -> None:
        """Look whether the ledger's file is there, and try the waiting commits again when they are due."""
        if self.blocked:
            if now >= self._retry_at:
                self._work(now)
        elif now >= self._look_at:
            self._look(now)

    def _look(self, now: float) -> bool:
        """Look at the ledger's file, and say whether it is there."""
        self._look_at = now + _LOOK_S
        detail = self._missing()
        self._lost = bool(detail)
        if detail:
            self._suspend(detail, now)
        return not self._lost

    def _work(self, now: float) -> None:
        if not self._look(now):
            return
        if not self._waiting:
            self._recover()
        while self._waiting:
            write, then = self._waiting[0]
            try:
                write()
            except LedgerError as error:
                if not error.full:
                    raise
                self._suspend(str(error), now)
                return
            self._recover()
            # Removed only after what follows: a commit made by `then` queues behind this one instead of nesting.
            then()
            self._waiting.popleft()

    def _suspend(self, detail: str, now: float) -> None:
        if not self._failures:
            self._log.error("disk.low", what="state", detail=detail, waiting=len(self._waiting))
        self._retry_at = now + _DELAYS_S[min(self._failures, len(_DELAYS_S) - 1)]
        self._failures += 1

    def _recover(self) -> None:
        if self._failures:
            self._failures = 0
            self._log.info("disk.recovered", what="state")
