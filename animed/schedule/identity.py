"""Whether a file that was seen is a photo that is known.

Pure. Size and mtime identify a photo across restarts, and then its content; inode and device do not, because many
file systems and sync tools change them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from animed.records import FileStat
    from animed.schedule.rows import Row


@dataclass(frozen=True, slots=True)
class New:
    """Draw it. The counters are what earlier tries of the same photo have used up."""

    attempts: int = 0
    crashes: int = 0
    next_try: float = 0.0  # wall-clock seconds: a back-off that a restart cut short


@dataclass(frozen=True, slots=True)
class Known:
    """It has its outcome: nothing to do."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Its picture is being placed, or its earlier original is being put away: look again when that has ended."""


@dataclass(frozen=True, slots=True)
class CheckContent:
    """Its stat changed: read it. The digest is that of the content that has its outcome."""

    sha256: str


@dataclass(frozen=True, slots=True)
class SameContent:
    """The same photo with a new stat: the record is updated, and nothing is drawn."""


Identity = New | Known | Busy | CheckContent


def decide(row: Row | None, stat: FileStat) -> Identity:
    """Compare a file's stat with what the ledger has under its name."""
    if row is None:
        return New()
    if row.status == "publishing" or (row.original_pending is not None and not row.same_stat(stat)):
        return Busy()
    if row.again:
        return New()
    if row.status == "failed":
        # A change of rights may be all that it needs, and that shows in ctime alone. While it is being put where failed
        # photos go its ctime changes by our own hand.
        unchanged = row.same_stat(stat) and (row.ctime_ns == stat.ctime_ns or row.original_pending is not None)
        return Known() if unchanged else New()
    if row.status == "retry":
        return New(row.attempts, row.crashes, row.next_try) if row.same_stat(stat) else New()
    return _with_outcome(row, stat)


def _with_outcome(row: Row, stat: FileStat) -> Identity:
    """Decide for a photo that is done, duplicate or skipped."""
    if row.same_stat(stat):
        return Known()
    # Another size is other content for certain, and without a digest there is nothing to compare with.
    return CheckContent(row.sha256) if row.sha256 and row.size == stat.size else New()


def after_content(check: CheckContent, sha256: str) -> SameContent | New:
    """Decide once the content was read and has the digest `sha256`."""
    return SameContent() if check.sha256 == sha256 else New()
