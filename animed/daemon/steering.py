"""What the control socket is told to do: pause, resume, rescan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.desk import Desk
    from animed.daemon.gate import Gate

    Answer = dict[str, Any]


def steering(
    desk: Desk, gate: Gate, clock: Callable[[], float]
) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    """Return what answers these commands; none takes arguments, and each may be repeated."""

    def pause(_arguments: dict[str, Any]) -> Answer:
        return _paused(desk, gate, changed=gate.pause(clock()))

    def resume(_arguments: dict[str, Any]) -> Answer:
        return _paused(desk, gate, changed=gate.resume(clock()))

    def rescan(_arguments: dict[str, Any]) -> Answer:
        desk.rescan()
        return {"inboxes": [{"name": inbox.name, "state": inbox.state} for inbox in desk.inboxes.values()]}

    return {"pause": pause, "resume": resume, "rescan": rescan}


def _paused(desk: Desk, gate: Gate, *, changed: bool) -> Answer:
    """Say what pauses the service now, whether this changed something, and whether a crash would forget it."""
    return {"paused": gate.report(), "changed": changed, "stored": not desk.journal.blocked}
