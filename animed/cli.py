"""The command line's outer edge: turns errors into messages, and ends with the right exit status or signal.

Spawned workers import the console script again, so this module imports only the standard library and the errors;
the parser, and then the command, are imported when they are used.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TYPE_CHECKING

from animed.errors import EXIT_OK, EXIT_UNEXPECTED, AnimedError, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def perform(arguments: Sequence[str]) -> int:
    """Parse one command line, do what it asks, and return the exit status."""
    from animed.commands.arguments import parse  # noqa: PLC0415 -- workers must not import the parser

    asked = parse(arguments)
    if isinstance(asked, int):
        return asked
    try:
        os.getcwd()
    except OSError as error:
        # Every relative path, and the search for the configuration, begins there.
        raise AnimedError("the folder that this was started in is gone", remedy="`cd` to one that is there") from error
    return EXIT_OK if asked.command is None else asked.command(asked.config_file)


def main(arguments: Sequence[str] | None = None, *, perform: Callable[[Sequence[str]], int] = perform) -> int:
    """Run one command line and return its exit status; an interrupt or a closed pipe ends the process by its signal."""
    _hold_streams()
    try:
        status = perform(sys.argv[1:] if arguments is None else arguments)
        # Here and not when the interpreter ends: a full disk or a reader that left must be seen.
        sys.stdout.flush()
    except AnimedError as error:
        return _complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _die_by(signal.SIGINT)
    except BrokenPipeError:
        return _die_by(signal.SIGPIPE)
    except OSError as error:
        return _complain(_describe(error), EXIT_UNEXPECTED)
    return status


def _hold_streams() -> None:
    # A closed standard stream's number would go to the next file that is opened, and prints would end up in it.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 -- 0, 1 and 2 are the streams
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 -- it lives as long as the process
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 -- the same
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal cannot show is no reason to fall over.
            stream.reconfigure(errors="backslashreplace")


def _complain(text: str, status: int) -> int:
    _give_up_unwritable_stdout()
    first, *others = [visible(line) for line in text.splitlines()] or ["an error without a message"]
    sys.stderr.write("\n".join([f"animed: {first}", *(f"  {line}" for line in others), ""]))
    return status


def _give_up_unwritable_stdout() -> None:
    # What cannot be written now cannot be written when the interpreter ends either, and would cost the exit status.
    try:
        sys.stdout.flush()
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def _describe(error: OSError) -> str:
    place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return f"{place}{error.strerror or error}"


def _die_by(number: signal.Signals) -> int:
    """End the process by a signal, as the shell expects; return its status only where the signal is blocked."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
