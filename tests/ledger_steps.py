"""Steps of a photo's life in the ledger, with the values that do not matter filled in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from animed.records import FileStat, PhotoKey, Staged

if TYPE_CHECKING:
    from animed.schedule.ledger import Ledger


STAT = FileStat(size=100, mtime_ns=10, ctime_ns=20, inode=3, device=4, mode=0o100644)
STAGED = Staged(7, 8, 900, "ee" * 32, None)
KEY = PhotoKey("phone", b"a.jpg")
OTHER = PhotoKey("phone", b"b.jpg")
OUT = b"/out/a.cel.jpg"


def publish(ledger: Ledger, key: PhotoKey = KEY, output: bytes = OUT, **changes: Any) -> None:
    values: dict[str, Any] = {"stat": STAT, "sha256": "aa", "recipe": "r1", "style": "cel", "attempts": 1, "now": 5.0}
    values |= {"output": output, "staged": STAGED, "folder": "/out"}
    ledger.publish(key, **(values | changes))


def finish(ledger: Ledger, key: PhotoKey = KEY, *, pending: str | None = None, now: float = 6.0) -> None:
    ledger.finish(key, status="done", original_pending=pending, now=now)


def fail(ledger: Ledger, key: PhotoKey = KEY, **changes: Any) -> None:
    values: dict[str, Any] = {"sha256": "aa", "recipe": "r1", "style": "cel", "attempts": 5, "crashes": 0, "now": 7.0}
    values |= {"reason": "truncated", "detail": "ends early"}
    ledger.fail(key, STAT, **(values | changes))


def retrying(ledger: Ledger, key: PhotoKey = KEY, now: float = 7.0) -> None:
    ledger.retrying(
        key,
        STAT,
        sha256="aa",
        recipe="r1",
        style="cel",
        reason="changed",
        detail="",
        attempts=2,
        crashes=1,
        next_try=now + 15,
        now=now,
    )


def status(ledger: Ledger, key: PhotoKey = KEY) -> str | None:
    row = ledger.get(key)
    return None if row is None else row.status


def recount(ledger: Ledger) -> dict[str, Counter[str]]:
    """Count the rows themselves."""
    found: dict[str, Counter[str]] = {}
    for inbox, word in ledger._store.read("SELECT inbox, status FROM photos"):
        found.setdefault(inbox, Counter())[word] += 1
    return found
