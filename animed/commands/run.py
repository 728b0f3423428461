"""`animed run`: the service, in the foreground."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from animed import config, logs
from animed.daemon.loop import Daemon
from animed.daemon.parts import Again, assembled
from animed.daemon.questions import Questions
from animed.daemon.signals import die_by
from animed.errors import EXIT_OK, ConfigError
from animed.service import sdnotify
from animed.service.control import ControlServer
from animed.service.endpoint import server_path
from animed.service.lock import InstanceLock, StateFolderError

if TYPE_CHECKING:
    from animed.config import Config


def run(config_file: Path | None) -> int:
    """Serve until a signal comes, then die by that signal.

    Raises ConfigError, LockedError, StyleError or WorkersError.
    """
    for early in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(early, signal.SIG_IGN)  # Until the loop takes them, they must not end the service.
    environ = dict(os.environ)
    settings = config.load(config_file, environ=environ, cwd=Path.cwd())
    notifier = sdnotify.Notifier(sdnotify.take(os.environ), pid=os.getpid())
    with InstanceLock(os.fspath(settings.state_dir)):
        writer = logs.configure(settings.logging.level, settings.logging.format, stream=sys.stdout)
        again = Again(
            # The same file again, wherever it was found: another one may be another instance's.
            partial(config.load, settings.source, environ=environ, cwd=Path.cwd()),
            lambda logging: logs.apply(writer, logging.level, logging.format),
        )
        try:
            number = _serve(settings, notifier, again)
        finally:
            writer.close()
    if number is not None:
        die_by(number)
    return EXIT_OK


def _serve(settings: Config, notifier: sdnotify.Notifier, again: Again) -> signal.Signals | None:
    log = structlog.get_logger()
    with assembled(settings, log, notifier, again=again) as parts:
        daemon = Daemon(parts)
        questions = Questions(
            parts.desk, parts.backlog, parts.gate,
            status=daemon.status, clock=daemon.clock, reload=parts.reloader.answer,
        )  # fmt: skip
        state_dir = os.fspath(settings.state_dir)
        try:
            parts.control = ControlServer(server_path(state_dir, os.environ, uid=os.getuid()), questions.answer)
        except StateFolderError as error:
            # Nothing that a restart heals: the exit status of a configuration that cannot be used.
            raise ConfigError(error.title, remedy=error.remedy, path=error.path) from error
        try:
            return daemon.run()
        finally:
            parts.control.close()
