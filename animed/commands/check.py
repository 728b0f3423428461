"""`animed check`: whether the service could work here, found out without changing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animed.catalog import Catalog
from animed.commands.access import open_config
from animed.commands.capacity import (
    look_at_extras,
    look_at_faces,
    look_at_inotify,
    look_at_picture,
    look_at_weights,
    look_at_workers,
)
from animed.commands.depths import look_below
from animed.commands.findings import Finding, failure, good, warning
from animed.commands.output import counted, say, say_json, shown
from animed.commands.places import SILENT, look_at_inbox, look_at_space, look_at_state
from animed.commands.programs import look_at_hooks
from animed.commands.settings import look_at_defaults, look_at_settings
from animed.daemon.styles import demand_names
from animed.errors import EXIT_OK, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from animed.commands.capacity import Draw
    from animed.config import Config

_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def draw_test_picture(config: Config) -> Mapping[str, object]:
    """Draw one picture in a real worker; raises StyleError and WorkersError."""
    from animed.daemon.trial import draw_test_picture as draw  # noqa: PLC0415 -- it brings the engine with it

    return draw(config)


def run(config_file: Path | None, *, as_json: bool, draw: Draw = draw_test_picture) -> int:
    """Print every finding and return the exit status of the first failure; raises ConfigError."""
    try:
        config = open_config(config_file)
        demand_names(config, Catalog.read(styles_dir=config.styles_dir))
    except ConfigError as error:
        if not as_json:
            raise
        return _print_json([failure("config", "", str(error), error.remedy, status=error.exit_status)])
    findings = look(config, draw)
    return _print_json(findings) if as_json else _print_text(findings)


def look(config: Config, draw: Draw) -> Iterator[Finding]:
    """Yield each finding as soon as it is known: the last ones take seconds."""
    yield good("config", "", f"{shown(str(config.source))}: {counted(len(config.inboxes), 'inbox', 'inboxes')}")
    yield from look_at_settings(config)
    yield from look_at_defaults(config)
    yield look_at_state(config.state_dir)
    answering = []
    for inbox in config.inboxes:
        found = list(look_at_inbox(inbox))
        yield from found
        # One that does not answer has been told of: it is not waited for again.
        if not any(each.check == "inbox" and SILENT in each.text for each in found):
            answering.append(inbox)
            yield from look_below(inbox)
    yield from look_at_space(config)
    yield from look_at_inotify(config.model_copy(update={"inboxes": tuple(answering)}))
    yield from look_at_hooks(config.hooks)
    weights = [*look_at_weights(config), *look_at_extras(config), *look_at_faces(config)]
    yield from weights
    yield from look_at_workers(config)
    if any(finding.level == "fail" for finding in weights):
        yield warning("picture", "", "no test picture was drawn: what workers load is wrong", "see above")
    else:
        yield look_at_picture(config, draw)


def _print_text(findings: Iterable[Finding]) -> int:
    statuses = []
    for finding in findings:
        subject = f"{finding.check} {finding.subject}".rstrip()
        advice = f"; {finding.remedy}" if finding.remedy else ""
        say(f"{_MARKS[finding.level]}  {subject}: {finding.text}{advice}")
        statuses.append(finding.status)
    return _status(statuses)


def _print_json(findings: Iterable[Finding]) -> int:
    found = list(findings)
    say_json([finding.fields() for finding in found])
    return _status([finding.status for finding in found])


def _status(statuses: Iterable[int]) -> int:
    return next((status for status in statuses if status), EXIT_OK)
