"""`animed once`: what is there now, then the end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from animed import config, logs
from animed.commands.output import called, counted, duration, note, shown
from animed.commands.progress import Bar
from animed.daemon.loop import Daemon
from animed.daemon.parts import assembled
from animed.daemon.signals import die_by
from animed.daemon.styles import complaint_about
from animed.errors import EXIT_CANNOT_CREATE, EXIT_OK, EXIT_SOME_FAILED, EXIT_TEMPORARY, EXIT_USAGE
from animed.service import sdnotify
from animed.service.lock import InstanceLock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animed.config import Config
    from animed.daemon.parts import Parts


def run(config_file: Path | None, paths: Sequence[Path], output: Path | None, style: str | None) -> int:
    """Draw, say what came of it, and return the exit status.

    Raises ConfigError, LockedError, StyleError or WorkersError.
    """
    if paths:
        from animed.commands import once_paths  # noqa: PLC0415 -- each half brings its own modules

        return once_paths.run(config_file, paths, output, style)
    if output is not None:
        note("-o goes with paths; the output of an inbox stands in the configuration")
        return EXIT_USAGE
    overrides = {} if style is None else {"inboxes.style": style}
    settings = config.load(config_file, environ=os.environ, cwd=Path.cwd(), overrides=overrides)
    if style is not None and (complaint := complaint_about(style, settings.styles_dir)):
        note(complaint)
        return EXIT_USAGE
    with InstanceLock(os.fspath(settings.state_dir)):
        return _pass(settings, config_file)


def _pass(settings: Config, config_file: Path | None) -> int:
    """Work through all inboxes with the log on stdout, or on a terminal with a bar and the warnings."""
    terminal = sys.stdout.isatty()
    stream = sys.stderr if terminal else sys.stdout
    level = "warning" if terminal and settings.logging.level in {"debug", "info"} else settings.logging.level
    writer = logs.configure(level, settings.logging.format, stream=stream)
    notifier = sdnotify.Notifier(sdnotify.take(os.environ), pid=os.getpid())
    try:
        with assembled(settings, structlog.get_logger(), notifier, once=True) as parts, Bar(enabled=terminal) as bar:
            daemon = Daemon(parts, once=True)
            daemon.on_turn = lambda: bar.show(*_progress(parts))
            number = daemon.run()
            writer.flush(2.0)
            status = _sum_up(parts, daemon.clock() - daemon.started_at, config_file)
    finally:
        writer.close()
    if number is not None:
        die_by(number)
    return status


def _progress(parts: Parts) -> tuple[int, int]:
    """Return how many photos have ended, and how many there are."""
    counts = parts.desk.reporter.since_start
    ended = sum(counts[name] for name in ("done", "duplicate", "skipped", "failed"))
    settling = sum(inbox.settling.pending for inbox in parts.desk.inboxes.values())
    return ended, ended + len(parts.desk.actives) + len(parts.backlog.retries) + settling


def _sum_up(parts: Parts, seconds: float, config_file: Path | None) -> int:
    """Say what came of the pass, and return its exit status; `config_file` is what the command line named."""
    counts = parts.desk.reporter.since_start
    said = [f"{counts[name]} {name}" for name in ("done", "duplicate", "skipped", "failed") if counts[name]]
    note(f"{', '.join(said) or 'nothing to do'} in {duration(seconds)}")
    states = [inbox.health.troubles.keys() for inbox in parts.desk.inboxes.values()]
    for inbox in parts.desk.inboxes.values():
        for role, trouble in inbox.health.troubles.items():
            note(f"inbox {inbox.name}: {role}: {shown(trouble.path)}: {trouble.detail}")
    if any("inbox" in roles for roles in states):
        return EXIT_TEMPORARY
    if any("output" in roles for roles in states):
        return EXIT_CANNOT_CREATE
    if counts["failed"]:
        note(f"`{called('failed', config_file)}` says why {counted(counts['failed'], 'photo')} failed, and what to do")
        return EXIT_SOME_FAILED
    return EXIT_OK
