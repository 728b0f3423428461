"""The arguments of the commands that have commands of their own: styles and config."""

# ruff: noqa: PLC0415 -- a command's own module is imported when that command runs, and not before.

from __future__ import annotations

# typer evaluates the annotations of every command when it builds the parser, so the name must exist then.
from pathlib import Path  # noqa: TC003 -- see above
from typing import Annotated

import typer

from animed.commands.invocation import ConfigOption, JsonOption, complete_style, new_app, plan

styles_app = new_app()
config_app = new_app()


@styles_app.callback()
def _styles(context: typer.Context, config: ConfigOption = None) -> None:
    """Look at the styles, or get more: list, show, verify, import, pull."""
    context.obj.remember(config)


@config_app.callback()
def _config(context: typer.Context, config: ConfigOption = None) -> None:
    """Look at the configuration, or start one: show, init, schema."""
    context.obj.remember(config)


@styles_app.command("list")
def styles_list(context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the styles there are."""

    def act(config_file: Path | None) -> int:
        from animed.commands import styles as command

        return command.list_all(config_file, as_json=as_json)

    plan(context, config, act)


@styles_app.command("show")
def styles_show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_style)],
    config: ConfigOption = None,
) -> None:
    """Show the card of one style."""

    def act(config_file: Path | None) -> int:
        from animed.commands import styles as command

        return command.show(config_file, name)

    plan(context, config, act)


@styles_app.command("verify")
def styles_verify(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, autocompletion=complete_style)
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Compare the weights of one style, or of all, with the digest on the card."""

    def act(config_file: Path | None) -> int:
        from animed.commands import styles as command

        return command.verify(config_file, name)

    plan(context, config, act)


@styles_app.command("import")
def styles_import(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", show_default=False, help="Its name.")] = None,
    config: ConfigOption = None,
) -> None:
    """Take a file into the folder of styles; this version takes the face detector."""

    def act(config_file: Path | None) -> int:
        from animed.commands import shelving as command

        return command.take(config_file, file, name)

    plan(context, config, act)


@styles_app.command("pull")
def styles_pull(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")], config: ConfigOption = None
) -> None:
    """Fetch a file that does not ship from its public home; this version knows the face detector: faces."""

    def act(config_file: Path | None) -> int:
        from animed.commands import shelving as command

        return command.pull(config_file, name)

    plan(context, config, act)


@config_app.command("show")
def config_show(context: typer.Context, config: ConfigOption = None) -> None:
    """Print the configuration that is in effect: defaults, file and environment."""

    def act(config_file: Path | None) -> int:
        from animed.commands import config as command

        return command.show(config_file)

    plan(context, config, act)


@config_app.command("init")
def config_init(context: typer.Context, config: ConfigOption = None) -> None:
    """Write an annotated configuration file and make the folders that it names."""

    def act(config_file: Path | None) -> int:
        from animed.commands import config as command

        return command.init(config_file)

    plan(context, config, act)


@config_app.command("schema")
def config_schema(context: typer.Context, config: ConfigOption = None) -> None:
    """Print a JSON Schema of the configuration file, for editors."""

    def act(_config_file: Path | None) -> int:
        from animed.commands import config as command

        return command.schema()

    plan(context, config, act)
