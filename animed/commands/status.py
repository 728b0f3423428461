"""`animed status`: the live state of the running service, for people, programs and health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from animed.commands.access import ask_service, open_config
from animed.commands.output import counted, duration, say, say_json, say_table, shown
from animed.commands.steer import pause_text
from animed.errors import EXIT_OK, EXIT_UNEXPECTED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from animed.commands.access import Ask

    Report = Mapping[str, Any]

_WELL = frozenset({"running", "paused"})
_INBOX_HEADS = ("INBOX", "STATE", "WATCH", "WAITING", "QUEUED", "DONE", "FAILED", "PATH")
_WORKER_HEADS = ("WORKER", "STATE", "STYLE", "IMAGES", "MEMORY")


def run(config_file: Path | None, *, as_json: bool, check: bool, ask: Ask = ask_service) -> int:
    """Print the state and return the exit status; raises ConfigError, and NotRunningError without a service."""
    report = ask(open_config(config_file).state_dir, "status", {})
    if as_json:
        say_json(report)
    elif check:
        say(_headline(report))
    else:
        _describe(report)
    return EXIT_UNEXPECTED if check and not is_well(report) else EXIT_OK


def is_well(report: Report) -> bool:
    """Say whether a health check passes: running or paused, and every inbox ready."""
    return report["state"] in _WELL and all(inbox["state"] == "ready" for inbox in report["inboxes"])


def _describe(report: Report) -> None:
    say(_headline(report))
    if paused := report.get("paused"):
        say(pause_text(paused))
    say(_workload(report))
    say("")
    say_table(_INBOX_HEADS, [_inbox_row(inbox) for inbox in report["inboxes"]], right=_INBOX_HEADS[3:7])
    for inbox in report["inboxes"]:
        for trouble in inbox.get("troubles", ()):
            say(f"  {inbox['name']}: {trouble['role']}: {shown(trouble['detail'])}")
    if report["workers"]:
        say("")
        say_table(_WORKER_HEADS, [_worker_row(worker) for worker in report["workers"]], right=_WORKER_HEADS[3:])
    if report["last_failures"]:
        say("")
        rows = [(failure["reason"], shown(failure["path"])) for failure in report["last_failures"]]
        say_table(("LAST FAILURES", "PATH"), rows)


def _headline(report: Report) -> str:
    inboxes = report["inboxes"]
    ready = sum(inbox["state"] == "ready" for inbox in inboxes)
    state = "paused, up" if report["state"] == "paused" else report["state"]
    every = counted(len(inboxes), "inbox", "inboxes")
    return (
        f"{state} for {duration(report['uptime_s'])}, {ready} of {every} ready "
        f"(animed {report['version']}, process {report['pid']})"
    )


def _workload(report: Report) -> str:
    queue = report["queue"]
    drawn = sum(inbox["queued"] for inbox in report["inboxes"]) - queue["depth"]
    parts = [f"{queue['depth']} in the queue", *([f"{drawn} in work"] if drawn > 0 else [])]
    if queue["depth"] and queue["oldest_s"] is not None:
        parts.append(f"the oldest for {duration(queue['oldest_s'])}")
    parts.append(f"{report['rate_per_min'] or 0:.1f} pictures a minute")
    if report["eta_s"] is not None:
        parts.append(f"{duration(report['eta_s'])} to go")
    return ", ".join(parts)


def _inbox_row(inbox: Report) -> tuple[str, ...]:
    counts = (str(inbox[name]) for name in ("waiting", "queued", "done", "failed"))
    return (shown(inbox["name"]), inbox["state"], inbox["watch"], *counts, shown(inbox["path"]))


def _worker_row(worker: Report) -> tuple[str, ...]:
    return (
        str(worker["pid"] or "-"),
        worker["state"],
        worker["style"] or "-",
        str(worker["images"]),
        "-" if worker["memory_mb"] is None else f"{worker['memory_mb']:.0f} MB",
    )
