"""What every command's arguments share: the configuration file, before or after the command's name, and the plan."""

from __future__ import annotations

from dataclasses import dataclass

# typer evaluates annotations when it builds the parser, so the name must exist then.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[[Path | None], int]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        show_default=False,
        help="The configuration file; else $ANIMED_CONFIG, ./config.yaml, the user's and /etc/animed/config.yaml.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(slots=True)
class Invocation:
    """What one command line asks for; filled in from left to right while it is parsed."""

    config_file: Path | None = None
    command: Command | None = None

    def remember(self, config_file: Path | None) -> None:
        """Take the configuration file of one level; the level that is nearest to the command wins."""
        self.config_file = config_file or self.config_file


def plan(context: typer.Context, config_file: Path | None, command: Command) -> None:
    """Note what to do; it is done after the parser has ended, so that errors and signals are animed's to handle."""
    invocation: Invocation = context.obj
    invocation.remember(config_file)
    invocation.command = command


def new_app(*, completion: bool = False) -> typer.Typer:
    """Return an empty parser; plain text reads the same in a journal, in a pipe and on a terminal.

    With `completion` it has the options that set up a shell's completion; only the outermost one needs them.
    """
    names = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(context_settings=names, rich_markup_mode=None, no_args_is_help=True, add_completion=completion)


def complete_style(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the styles that a word may become, with their titles; called for a shell's Tab key only."""
    from animed.commands import completing  # noqa: PLC0415 -- the parser brings no catalog

    given = context.params.get("config")
    level = context.parent
    while level is not None and given is None:
        given, level = level.params.get("config"), level.parent
    return [(name, title) for name, title in completing.styles(given) if name.startswith(incomplete)]
