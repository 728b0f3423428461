"""The arguments of every command, and the parser that is made of them."""

# ruff: noqa: PLC0415 -- a command's own module is imported when that command runs, and not before.

from __future__ import annotations

# typer evaluates the annotations of every command when it builds the parser, so the name must exist then.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from animed import __version__
from animed.commands.groups import config_app, styles_app
from animed.commands.invocation import ConfigOption, Invocation, JsonOption, complete_style, new_app, plan
from animed.commands.steering import add_steering
from animed.errors import EXIT_OK

if TYPE_CHECKING:
    from collections.abc import Sequence

app = new_app(completion=True)
app.add_typer(styles_app, name="styles")
app.add_typer(config_app, name="config")


def parse(arguments: Sequence[str]) -> Invocation | int:
    """Return what to do, or the exit status where the parser has answered itself (help, version, usage error)."""
    invocation = Invocation()
    try:
        typer.main.get_command(app).main(args=list(arguments), prog_name="animed", obj=invocation)
    except SystemExit as end:
        # The parser always ends this way, and leaves no command when it has answered itself.
        if invocation.command is None or end.code not in (None, EXIT_OK):
            return end.code if isinstance(end.code, int) else EXIT_OK
    return invocation


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"animed {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    config: ConfigOption = None,
    version: Annotated[  # noqa: ARG001 -- its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Drop photos into a folder, and anime pictures appear in another."""
    context.obj.remember(config)


@app.command()
def run(context: typer.Context, config: ConfigOption = None) -> None:
    """Run the service in the foreground: watch the inboxes and draw what lands in them."""

    def act(config_file: Path | None) -> int:
        from animed.commands import run as command

        return command.run(config_file)

    plan(context, config, act)


@app.command()
def once(
    context: typer.Context,
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", show_default=False, parser=Path)] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="DIR", show_default=False, parser=Path, help="Where the pictures of PATHs go."),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="NAME",
            show_default=False,
            autocompletion=complete_style,
            help="The style to draw with.",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Draw what is there now, then exit.

    Without PATH it works through all inboxes. With PATHs it needs no configuration and writes beside each photo, or
    into the folder given with -o.
    """

    def act(config_file: Path | None) -> int:
        from animed.commands import once as command

        return command.run(config_file, paths or [], output, style)

    plan(context, config, act)


@app.command()
def check(
    context: typer.Context,
    as_json: JsonOption = False,
    explain: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            show_default=False,
            parser=Path,
            help="Say why this file is or is not taken, and where it stands.",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Check the configuration, folders, rights, space, limits and weights, and draw one test picture."""

    def act(config_file: Path | None) -> int:
        if explain is not None:
            from animed.commands import explain as explaining

            return explaining.run(config_file, explain, as_json=as_json)
        from animed.commands import check as command

        return command.run(config_file, as_json=as_json)

    plan(context, config, act)


@app.command()
def status(
    context: typer.Context,
    as_json: JsonOption = False,
    healthy: Annotated[
        bool, typer.Option("--check", help="Exit 0 when all is well, 1 when not, 69 without a service.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Show the live state of the running service."""

    def act(config_file: Path | None) -> int:
        from animed.commands import status as command

        return command.run(config_file, as_json=as_json, check=healthy)

    plan(context, config, act)


@app.command()
def failed(context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the photos that failed, why, and what to do."""

    def act(config_file: Path | None) -> int:
        from animed.commands import failed as command

        return command.run(config_file, as_json=as_json)

    plan(context, config, act)


@app.command()
def retry(
    context: typer.Context,
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", show_default=False, parser=Path)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every photo that failed.")] = False,
    outdated: Annotated[bool, typer.Option("--outdated", help="Every picture that another recipe made.")] = False,
    config: ConfigOption = None,
) -> None:
    """Try failed photos again, or draw finished ones again that another recipe made.

    A new picture gets a name as on_conflict says: beside the old one that is a.cel-2.jpg.
    """
    if bool(paths) + every + outdated != 1:
        said = "give either one PATH or more, or --all, or --outdated"
        raise typer.BadParameter(said, ctx=context, param_hint="PATH...")

    def act(config_file: Path | None) -> int:
        from animed.commands import retry as command

        return command.run(config_file, paths or [], which="failed" if every else "outdated" if outdated else "named")

    plan(context, config, act)


@app.command()
def forget(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", show_default=False, parser=Path)],
    config: ConfigOption = None,
) -> None:
    """Treat photos as never seen: those that are still in the inbox are drawn again.

    A folder means every photo on record below it, an inbox every photo of it. Neither photos nor pictures are touched;
    a new picture gets a name as on_conflict says: beside the old one that is a.cel-2.jpg.
    """

    def act(config_file: Path | None) -> int:
        from animed.commands import forget as command

        return command.run(config_file, paths)

    plan(context, config, act)


add_steering(app)


@app.command()
def reload(context: typer.Context, config: ConfigOption = None) -> None:
    """Have the running service take its changed configuration, and say what has changed."""

    def act(config_file: Path | None) -> int:
        from animed.commands import reload as command

        return command.run(config_file)

    plan(context, config, act)


@app.command()
def demo(context: typer.Context, config: ConfigOption = None) -> None:
    """Draw sample photos with the built-in style in a throw-away folder."""

    def act(_config_file: Path | None) -> int:
        from animed.commands import demo as command

        return command.run()

    plan(context, config, act)
