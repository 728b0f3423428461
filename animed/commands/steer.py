"""`animed pause`, `resume` and `rescan`: tell the running service, which stays as told across restarts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from animed.commands.access import ask_service, open_config
from animed.commands.output import counted, note, say, say_json, shown
from animed.errors import EXIT_OK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from animed.commands.access import Ask

    Answer = Mapping[str, Any]


def pause(config_file: Path | None, *, as_json: bool, ask: Ask = ask_service) -> int:
    """Let nothing new be begun until `resume`; raises ConfigError, and NotRunningError without a service."""
    answer = ask(open_config(config_file).state_dir, "pause", {})
    if as_json:
        say_json(answer)
        return EXIT_OK
    if answer["changed"]:
        say("paused: what is being drawn is finished, nothing new is begun until `animed resume`")
    else:
        say("already paused")
    _warn(answer)
    return EXIT_OK


def resume(config_file: Path | None, *, as_json: bool, ask: Ask = ask_service) -> int:
    """End a pause; raises ConfigError, and NotRunningError without a service."""
    answer = ask(open_config(config_file).state_dir, "resume", {})
    if as_json:
        say_json(answer)
        return EXIT_OK
    said = "resumed" if answer["changed"] else "not paused"
    paused = answer["paused"]
    say(said if paused is None else f"{said}; but this is {pause_text(paused)}")
    _warn(answer)
    return EXIT_OK


def rescan(config_file: Path | None, *, as_json: bool, ask: Ask = ask_service) -> int:
    """Look through every inbox now; raises ConfigError, and NotRunningError without a service."""
    answer = ask(open_config(config_file).state_dir, "rescan", {})
    if as_json:
        say_json(answer)
        return EXIT_OK
    say(f"{counted(len(answer['inboxes']), 'inbox is', 'inboxes are')} looked through")
    for inbox in answer["inboxes"]:
        if inbox["state"] == "unavailable":
            note(f"inbox {shown(inbox['name'])} is not there: it is looked through when it comes back")
    return EXIT_OK


def pause_text(paused: Answer) -> str:
    """Return what a pause is, since when and until when, on the clock of this machine."""
    if paused["by"] == "user":
        return f"paused since {_local(paused['since'])}, until `animed resume`"
    return f"outside schedule.active, until {_local(paused['until'])}"


def _warn(answer: Answer) -> None:
    if not answer["stored"]:
        note("the state folder takes no writes: a restart before it does would forget this")


def _local(stamp: str) -> str:
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
