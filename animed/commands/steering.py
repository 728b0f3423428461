"""The arguments of the commands that steer a running service."""

# ruff: noqa: PLC0415 -- a command's own module is imported when that command runs, and not before.

from __future__ import annotations

# typer evaluates the annotations of every command when it builds the parser, so the name must exist then.
from pathlib import Path  # noqa: TC003 -- see above

import typer  # noqa: TC002 -- the same

from animed.commands.invocation import ConfigOption, JsonOption, plan


def add_steering(app: typer.Typer) -> None:
    """Give the parser the commands pause, resume and rescan."""
    for command in (pause, resume, rescan):
        app.command()(command)


def pause(context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Let the running service begin nothing new until `resume`, also after a restart."""

    def act(config_file: Path | None) -> int:
        from animed.commands import steer

        return steer.pause(config_file, as_json=as_json)

    plan(context, config, act)


def resume(context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """End a pause."""

    def act(config_file: Path | None) -> int:
        from animed.commands import steer

        return steer.resume(config_file, as_json=as_json)

    plan(context, config, act)


def rescan(context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Look through every inbox now, for photos that nothing has told of."""

    def act(config_file: Path | None) -> int:
        from animed.commands import steer

        return steer.rescan(config_file, as_json=as_json)

    plan(context, config, act)
