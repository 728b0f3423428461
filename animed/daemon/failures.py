"""A failure as programs see it: through the service, or from the ledger when there is none."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from animed.logs import path_fields

if TYPE_CHECKING:
    from animed.schedule.rows import Row


def entry(row: Row, root: str | None) -> dict[str, Any]:
    """Return one failure as programs see it; its path is relative where the inbox has left the configuration."""
    path = row.key.path if root is None else os.path.join(os.fsencode(root), row.key.path)
    return {
        "inbox": row.key.inbox,
        **path_fields(path),
        "reason": row.reason,
        "attempts": row.attempts,
        "since": stamp(row.updated),
        "will_retry": row.status == "retry" or row.again,
        **(path_fields(row.moved, "moved_to") if row.moved else {}),
    }


def stamp(wall: float) -> str:
    """Return wall-clock seconds as RFC 3339 in UTC."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
