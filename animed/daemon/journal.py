"""Commits to the ledger in order, kept and tried again when the state folder cannot take them.

Nothing that follows from a commit happens before it: each commit carries what to do next. While one waits, all later
ones wait behind it and no new photo is started, so that a full disk under the state folder loses nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from animed.schedule.store import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

_DELAYS_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class Journal:
    """An ordered line of commits."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._waiting: deque[tuple[Callable[[], object], Callable[[], None]]] = deque()
        self._failures = 0
        self._retry_at = 0.0

    @property
    def blocked(self) -> bool:
        """Say whether commits are waiting for the state folder to take them again."""
        return bool(self._waiting)

    def next_due(self) -> float | None:
        """Return when the waiting commits are tried again."""
        return self._retry_at if self._waiting else None

    def commit(self, write: Callable[[], object], then: Callable[[], None], now: float) -> None:
        """Write to the ledger, then go on; while the state folder cannot take it, keep both for later.

        Raises LedgerError for what waiting does not heal.
        """
        self._waiting.append((write, then))
        if len(self._waiting) == 1:
            self._work(now)

    def tick(self, now: float) -> None:
        """Try the waiting commits again when they are due."""
        if self._waiting and now >= self._retry_at:
            self._work(now)

    def _work(self, now: float) -> None:
        while self._waiting:
            write, then = self._waiting[0]
            try:
                write()
            except LedgerError as error:
                if not error.full:
                    raise
                self._suspend(error, now)
                return
            self._recover()
            # Removed only after what follows: a commit made by `then` queues behind this one instead of nesting.
            then()
            self._waiting.popleft()

    def _suspend(self, error: LedgerError, now: float) -> None:
        if not self._failures:
            self._log.error("disk.low", what="state", detail=str(error), waiting=len(self._waiting))
        self._retry_at = now + _DELAYS_S[min(self._failures, len(_DELAYS_S) - 1)]
        self._failures += 1

    def _recover(self) -> None:
        if self._failures:
            self._failures = 0
            self._log.info("disk.recovered", what="state")
