"""New tries of photos that failed: which can be had, and what stands in the way of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from animed.records import PhotoKey
    from animed.schedule.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a question for new tries."""

    failed: frozenset[PhotoKey]  # all that have failed
    queued: frozenset[PhotoKey]
    busy: frozenset[PhotoKey]  # still to be put into the failed folder
    moved: tuple[
        bytes, ...
    ]  # where those lie, full paths, that are there already: only back in the inbox are they tried


def retry(ledger: Ledger, keys: Iterable[PhotoKey | None] | None) -> Tried:
    """Queue failed photos again: those that are named (None names no photo), or all."""
    failures = {row.key: row for row in ledger.failures()}
    wanted = failures.keys() if keys is None else failures.keys() & set(keys)
    away = {key: place for key, row in failures.items() if key in wanted and (place := row.moved) is not None}
    queued = frozenset(ledger.requeue(wanted - away.keys()))
    return Tried(frozenset(failures), queued, frozenset(wanted - queued - away.keys()), tuple(away.values()))
