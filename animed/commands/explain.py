"""`animed check --explain PATH`: why a file is or is not taken, and where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from animed.commands.access import ask_service, open_config
from animed.commands.failed import what_to_do
from animed.commands.output import counted, duration, say, say_json, shown
from animed.commands.verdict import judge, locate
from animed.commands.whereabouts import standing
from animed.errors import EXIT_OK
from animed.logs import path_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from animed.commands.access import Ask
    from animed.commands.verdict import Verdict
    from animed.records import PhotoKey

    Standing = dict[str, Any]

_TEXTS: Final = {
    "waiting": "it is watched until it has stopped changing",
    "queued": "it waits for a worker",
    "running": "it is being drawn",
    "retry": "it is to be tried again",
    "done": "its picture is finished",
    "duplicate": "the same photo was drawn before, and its picture was shared",
    "skipped": "it was left out",
    "failed": "it failed",
    "unknown": "there is no record of it",
}
_STEPS: Final = {
    "queued": "it waits for its turn",
    "reading": "it is being read before its turn",
    "waiting": "an equal or similar photo is on its way, whose picture it will share",
    "ready": "it was read, and is next for a worker",
    "running": "a worker has it",
    "placing": "its picture is being given its name",
}


def run(config_file: Path | None, path: Path, *, as_json: bool, ask: Ask = ask_service) -> int:
    """Print why the file is or is not taken, and where it stands; raises ConfigError and LedgerError."""
    config = open_config(config_file)
    place, key = locate(config, path)
    verdict = judge(config, place, key)
    stands = standing(config, key, verdict.stat, ask) if key else {"where": "unknown"}
    if as_json:
        fields = {"taken": verdict.taken, "rule": verdict.rule, "why": verdict.why}
        say_json({**path_fields(place), "inbox": key.inbox if key else None, **fields, **stands})
    else:
        _describe(place, key, verdict, stands)
    return EXIT_OK


def _describe(place: bytes, key: PhotoKey | None, verdict: Verdict, stands: Standing) -> None:
    say(f"{shown(place)} ({f'inbox {key.inbox}' if key else 'no inbox'})")
    decided = f" [{shown(verdict.rule)}]" if verdict.rule else ""
    say(f"  {'taken' if verdict.taken else 'not taken'}: {verdict.why}{decided}")
    for line in (f"{stands['where']}: {_now(stands)}", *_more(stands), *_next(verdict, stands)):
        say(f"  {line}")


def _now(stands: Standing) -> str:
    """Say in words what the photo does now, and for how long."""
    if "quiet_s" in stands:
        quiet, look = duration(stands["quiet_s"]), duration(stands["look_in_s"])
        return f"it is watched until it has stopped changing: quiet for {quiet}, looked at in {look}"
    text = _STEPS.get(stands.get("step", ""), _TEXTS.get(stands["where"], "see the log"))
    if "for_s" in stands:
        alone = ", alone in its worker because a worker died with it" if stands["alone"] else ""
        return f"{text}, for {duration(stands['for_s'])} (try {stands['attempt']}{alone})"
    return f"{text} (since {stands['since']})" if "since" in stands else text


def _more(stands: Standing) -> Iterator[str]:
    """Yield what is known besides."""
    if "output" in stands:
        gone = "" if stands.get("picture_there", True) else " (not there any more; a photo that is done stays done)"
        yield f"picture: {shown(stands['output'])}{gone}"
    if "of" in stands:
        yield f"shared from: {shown(stands['of'])}"
    if "outdated" in stands:
        today = "another recipe than today's (`animed retry --outdated`)" if stands["outdated"] else "today's recipe"
        yield f"made: by {today}, style {shown(stands['style'])}"
    if stands.get("reason"):
        advice = f"; {what_to_do(stands['reason'])}" if stands["where"] in {"failed", "retry"} else ""
        yield f"reason: {shown(stands['reason'])} after {counted(stands['attempts'], 'try', 'tries')}{advice}"
        yield f"detail: {shown(stands['detail'] or '-')}"
    if "moved_to" in stands:
        yield f"lies now: {shown(stands['moved_to'])}"
    if "original" in stands:
        yield f"original: {stands['original']}"
    for each in stands.get("held", ()):
        yield f"held back: {shown(each['detail'])} [{each['by']}]"


def _next(verdict: Verdict, stands: Standing) -> Iterator[str]:
    """Yield what will happen, where that is not plain from where the photo stands."""
    where, serving = stands["where"], stands.get("service")
    if "next_try" in stands:
        yield f"next: tried again at {stands['next_try']}"
    elif stands.get("again"):
        yield "next: someone asked for a new try, which comes at its next look"
    elif stands.get("changed") and verdict.taken:
        yield "next: the file has changed since; it is looked at again"
    elif where == "failed":
        yield "next: tried again when the file or its rights change, or by `animed retry`"
    elif where == "unknown" and verdict.taken and serving:
        yield "next: the service has not met it; the next scan does (`animed rescan`)"
    if serving is False and verdict.taken and where in {"unknown", "retry", "running"}:
        yield "service: none is running; it is seen to when one is (`animed run`, `animed once`)"
