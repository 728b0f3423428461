"""The live state as `status` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from animed import __version__
from animed.daemon.active import UNBEGUN
from animed.daemon.report import OUTCOMES
from animed.logs import path_fields
from animed.records import absolute

if TYPE_CHECKING:
    from animed.daemon.desk import Desk
    from animed.daemon.inbox import Inbox
    from animed.engine.pool import Pool

State = Literal["starting", "running", "paused", "degraded", "draining"]
_LAST: Final = 5  # failures that are shown


def report(
    desk: Desk,
    pool: Pool,
    *,
    state: State,
    pid: int,
    started_at: float,
    now: float,
    paused: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return the state of everything; costs no look at any inbox."""
    totals = desk.ledger.totals()
    oldest = min((a.job.settled_at for a in desk.actives.values() if a.phase in UNBEGUN), default=None)
    rate = desk.reporter.rate_per_min(now)
    left = len(desk.actives)
    return {
        "state": state,
        "paused": paused,
        "version": __version__,
        "pid": pid,
        "uptime_s": round(now - started_at, 1),
        "inboxes": [_inbox(inbox, desk, totals.get(inbox.name, {})) for inbox in desk.inboxes.values()],
        "queue": {
            "depth": sum(active.phase in UNBEGUN for active in desk.actives.values()),
            "oldest_s": None if oldest is None else round(now - oldest, 1),
        },
        "workers": [
            {"pid": w.pid, "state": w.state, "style": w.style, "images": w.images, "memory_mb": w.memory_mb}
            for w in pool.workers
        ],
        # The ledger holds no paths that are never taken: those found since the start are all that are known.
        "totals": {name: sum(counts.get(name, 0) for counts in totals.values()) for name in OUTCOMES}
        | {"ignored": desk.reporter.since_start["ignored"]},
        "since_start": dict(desk.reporter.since_start),
        "rate_per_min": rate,
        "eta_s": round(60 * left / rate, 1) if left and rate and not paused else None,
        "last_failures": [
            {**path_fields(_full(desk, row.key.inbox, row.key.path)), "reason": row.reason}
            for row in desk.ledger.last_failures(_LAST)
        ],
    }


def _inbox(inbox: Inbox, desk: Desk, counts: dict[str, int]) -> dict[str, Any]:
    waiting = inbox.settling.pending + counts.get("retry", 0)
    return {
        "name": inbox.name,
        **path_fields(inbox.root),
        "state": inbox.state if inbox.opened else "unavailable",
        "watch": inbox.watching.mode,
        "waiting": waiting,
        "queued": sum(key.inbox == inbox.name for key in desk.actives),
        "done": counts.get("done", 0),
        "failed": counts.get("failed", 0),
        "troubles": [
            {"role": role, "detail": trouble.detail, "path": trouble.path}
            for role, trouble in inbox.health.troubles.items()
        ],
    }


def _full(desk: Desk, inbox: str, path: bytes) -> bytes:
    """Return a photo's full path; only the relative one when its inbox has left the configuration."""
    return absolute(desk.inboxes[inbox].root, path) if inbox in desk.inboxes else path
