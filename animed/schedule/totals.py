"""How many photos of each inbox have which status, kept in step with the ledger without counting again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, get_args

from animed.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

STATUSES: Final[tuple[str, ...]] = get_args(Status)


class Totals:
    """Counts per inbox and status."""

    def __init__(self, counts: Iterable[tuple[str, str, int]]) -> None:
        self._counts: dict[str, Counter[str]] = {}
        for inbox, status, count in counts:
            self.add(inbox, status, count)

    def add(self, inbox: str, status: str, count: int) -> None:
        """Count photos that came, or with a negative count went."""
        self._counts.setdefault(inbox, Counter())[status] += count

    def move(self, inbox: str, old: str | None, new: str | None) -> None:
        """Note that one photo changed its status; None is a photo without a record."""
        if old is not None:
            self.add(inbox, old, -1)
        if new is not None:
            self.add(inbox, new, 1)

    def by_inbox(self) -> dict[str, dict[str, int]]:
        """Return a copy with every status named, for each inbox that has any photo."""
        counts = {inbox: {status: found[status] for status in STATUSES} for inbox, found in self._counts.items()}
        return {inbox: found for inbox, found in counts.items() if any(found.values())}
