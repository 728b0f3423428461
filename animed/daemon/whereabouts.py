"""Where a photo stands that is on its way, and what holds it back, for those who ask about one photo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from animed.daemon.active import Phase
from animed.records import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.daemon.active import Active
    from animed.daemon.desk import Desk
    from animed.daemon.gate import Gate
    from animed.daemon.inbox import Inbox
    from animed.records import PhotoKey

    Answer = dict[str, Any]

_IN_WORK = frozenset({Phase.RUNNING, Phase.PLACING})
_STATES = {
    "starting": "no worker is ready yet",
    "degraded": "no worker can start, or the state folder takes no writes",
    "draining": "the service is stopping",
}


def whereabouts(desk: Desk, gate: Gate, key: PhotoKey, *, state: str, now: float) -> Answer:
    """Return where a photo stands (None: not on its way), since when, and what holds photos of its inbox back.

    `state` is the service's, as `status` says it.
    """
    inbox = desk.inbox_of(key)
    held = [{"by": by, "detail": detail} for by, detail in (*_by_service(state, gate, now), *_by_inbox(inbox))]
    place = _place(desk, key, inbox, now)
    if place["where"] is None and inbox.scans.running:
        held.append({"by": "scan", "detail": "the inbox is being scanned, and may not have come to it"})
    return {**place, "held": held}


def _place(desk: Desk, key: PhotoKey, inbox: Inbox, now: float) -> Answer:
    active = desk.actives.get(key)
    if active is not None:
        return _on_its_way(active, now)
    quiet = inbox.settling.quiet(key.path, now)
    if quiet is None:
        return {"where": None}
    return {"where": "waiting", "quiet_s": round(quiet[0], 1), "look_in_s": round(quiet[1], 1)}


def _on_its_way(active: Active, now: float) -> Answer:
    began = active.sent_at or active.job.settled_at
    return {
        "where": "running" if active.phase in _IN_WORK else "queued",
        "step": active.phase.value,
        "for_s": round(now - began, 1),
        "attempt": active.job.attempt,
        "alone": active.job.alone,
    }


def _by_service(state: str, gate: Gate, now: float) -> Iterator[tuple[str, str]]:
    if state in _STATES:
        yield state, _STATES[state]
    if (paused := gate.report()) is not None:
        until = f" until {paused['until']}" if paused["until"] else ""
        yield "paused", f"paused by the {paused['by']}{until}"
    elif gate.why_not(now) is not None:
        yield "pace", "as many photos were begun as limits.images_per_minute allows"


def _by_inbox(inbox: Inbox) -> Iterator[tuple[str, str]]:
    if not (inbox.opened and inbox.output_opened):
        yield "starting", "its inbox or output has not answered yet"
    for role, trouble in inbox.health.troubles.items():
        if role not in inbox.health.shelves:  # Where originals go holds no photo back.
            yield role, f"{printable(trouble.path)}: {trouble.detail}"
    if inbox.dirty:
        yield "backlog", "more photos wait than are remembered (limits.backlog); the others are found again later"
