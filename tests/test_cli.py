"""The command line: what it parses, what it says, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from animed import __version__, errors
from animed.cli import main
from animed.commands.arguments import app, parse
from animed.commands.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COMMANDS = (
    "run",
    "once",
    "check",
    "status",
    "failed",
    "retry --all",
    "retry --outdated",
    "forget a.jpg",
    "styles list",
    "styles show cel",
    "styles verify",
    "config show",
    "config init",
    "config schema",
    "demo",
)


def raising(error: BaseException) -> Callable[[Sequence[str]], int]:
    def perform(_arguments: Sequence[str]) -> int:
        raise error

    return perform


def performing(*lines: str) -> str:
    """Return a program that runs `main` with a command of these lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"import os, sys\nfrom animed.cli import main\ndef perform(_):\n{body}sys.exit(main([], perform=perform))"


def python(program: str, *, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], check=False, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60
    )


def every_command() -> Iterator[str]:
    """Yield every command and group of commands that the parser knows, by its words."""
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield str(group.name)
        yield from (f"{group.name} {command.name}" for command in group.typer_instance.registered_commands)
    for command in app.registered_commands:
        assert command.callback is not None
        yield command.name or command.callback.__name__


@pytest.mark.parametrize("words", sorted(every_command()))
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_explains_itself(words: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command and group answers --help and -h with its usage, exit 0."""
    assert main([*words.split(), option]) == 0
    assert f"Usage: animed {words}" in capsys.readouterr().out


@pytest.mark.parametrize("words", COMMANDS)
def test_the_configuration_file_is_taken_before_and_after_the_name(words: str) -> None:
    """Every command takes -c FILE and --config FILE, before its name and after it."""
    first, *rest = words.split()
    for line in (
        ["-c", "here.yaml", first, *rest],
        ["--config=here.yaml", first, *rest],
        [first, *rest, "-c", "here.yaml"],
        [first, *rest, "--config", "here.yaml"],
    ):
        asked = parse(line)
        assert isinstance(asked, Invocation), line
        assert asked.config_file == Path("here.yaml")
        assert asked.command is not None


def test_the_configuration_file_of_a_group_counts() -> None:
    """The -c between a group and its command counts, and the one nearest to the command wins."""
    asked = parse(["-c", "a.yaml", "styles", "-c", "b.yaml", "list"])
    assert isinstance(asked, Invocation)
    assert asked.config_file == Path("b.yaml")
    asked = parse(["-c", "a.yaml", "config", "show", "-c", "c.yaml"])
    assert isinstance(asked, Invocation)
    assert asked.config_file == Path("c.yaml")


def test_no_configuration_file_is_no_file() -> None:
    """Without -c the command is left to search for the file."""
    asked = parse(["status"])
    assert isinstance(asked, Invocation)
    assert asked.config_file is None


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the version on stdout, exit 0."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"animed {__version__}\n"


@pytest.mark.parametrize(
    "line",
    [
        ["statsu"],
        ["status", "--jsno"],
        ["status", "surplus"],
        ["-c"],
        ["styles", "show"],
        ["styles", "paint"],
        ["retry"],
        ["retry", "a.jpg", "--all"],
        ["retry", "a.jpg", "--outdated"],
        ["retry", "--all", "--outdated"],
        ["forget"],
    ],
)
def test_a_wrong_command_line_is_a_usage_error(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the parser does not know exits 2 with a message on stderr."""
    assert main(line) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(("Usage: animed", "Error: "))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.AnimedError("x"), 1),
        (errors.ConfigError("x"), 78),
        (errors.LockedError("x"), 69),
        (errors.NotRunningError("x"), 69),
        (errors.OutputError("x"), 73),
        (errors.StyleError("x"), 4),
        (errors.WorkersError("x"), 4),
    ],
)
def test_an_error_becomes_its_exit_status(
    error: errors.AnimedError, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """An expected error is one line on stderr and its own exit status."""
    assert main([], perform=raising(error)) == status
    assert capsys.readouterr().err == "animed: x\n"


def test_every_problem_has_its_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The lines of a long message are kept, the later ones indented."""
    assert main([], perform=raising(errors.ConfigError("2 problems\na: wrong\nb: worse"))) == 78
    assert capsys.readouterr().err == "animed: 2 problems\n  a: wrong\n  b: worse\n"


def test_a_system_error_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of the file system that nobody translated names the path, without a traceback."""
    assert main([], perform=raising(PermissionError(13, "Permission denied", "/somewhere"))) == 1
    assert capsys.readouterr().err == "animed: /somewhere: Permission denied\n"


def test_an_interrupt_ends_by_its_signal() -> None:
    """Ctrl-C ends the process by SIGINT, quietly, so that the shell sees 130."""
    ended = python(performing("raise KeyboardInterrupt"))
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr == ""


def test_a_reader_that_leaves_is_no_error() -> None:
    """A closed pipe ends the process by SIGPIPE without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = python(performing("print('x' * 100_000)", "return 0"), stdout=writer)
    finally:
        os.close(writer)
    assert ended.stderr == ""
    assert ended.returncode == -signal.SIGPIPE


def test_a_full_disk_is_an_error() -> None:
    """Output that cannot be written is said on stderr, exit 1, and not lost in silence."""
    full = os.open("/dev/full", os.O_WRONLY)
    program = performing("print('x')", "return 0")
    try:
        ended = python(program, stdout=full)
    finally:
        os.close(full)
    assert ended.stderr == "animed: No space left on device\n"
    assert ended.returncode == 1


def test_closed_streams_are_held() -> None:
    """A file opened by a command never gets the number of a standard stream that was closed by the caller."""
    program = performing("print('lost')", "return os.open('/dev/null', os.O_RDONLY)")
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, program], check=False, timeout=60
    )
    assert ended.returncode > 2


def test_the_console_script_is_light() -> None:
    """Spawned workers import the console script's module again: it brings nothing but the standard library."""
    program = (
        "import sys; before = set(sys.modules); import animed.cli\n"
        "mine = {m.partition('.')[0] for m in set(sys.modules) - before} - sys.stdlib_module_names\n"
        "print(sorted(mine), sorted(m for m in sys.modules if m.startswith('animed')))"
    )
    ended = python(program)
    assert ended.stdout == "['animed'] ['animed', 'animed.cli', 'animed.errors']\n"


def test_the_parser_brings_no_command() -> None:
    """Parsing imports no command's module: a broken or heavy command costs the others nothing."""
    ended = python(
        "import sys; from animed.commands.arguments import parse; parse(['status'])\n"
        "print(sorted(m for m in sys.modules if m.startswith(('animed.', 'structlog', 'watchdog', 'torch', 'PIL'))))"
    )
    parser = [f"animed.commands{part}" for part in ("", ".arguments", ".groups", ".invocation", ".steering")]
    assert ended.stdout == f"{[*parser, 'animed.errors']}\n"


def test_no_command_brings_the_network() -> None:
    """Every command's module can be imported without torch, torchvision and PIL: those live in workers only."""
    program = (
        "import importlib, pkgutil, sys, animed.commands\n"
        "for module in pkgutil.iter_modules(animed.commands.__path__, 'animed.commands.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(sorted(m for m in sys.modules if m in {'torch', 'torchvision', 'PIL'}))"
    )
    ended = python(program)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


def test_an_unusual_name_can_be_printed() -> None:
    """A name that the output's encoding lacks is escaped, not fatal."""
    program = performing(r"print('\udcff\u6f22')", "return 0")
    ended = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (ended.returncode, ended.stdout) == (0, "\\udcff\\u6f22\n")


def test_the_module_is_the_command() -> None:
    """`python -m animed` is the same as the console script."""
    ended = subprocess.run(
        [sys.executable, "-m", "animed", "--version"], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, f"animed {__version__}\n")


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """A command that is given in a folder which was deleted meanwhile says so, instead of a bare system error."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys; os.rmdir(os.getcwd()); from animed.cli import main; sys.exit(main(['status']))"
    ended = subprocess.run([sys.executable, "-c", script], cwd=gone, capture_output=True, text=True, check=False)
    assert ended.returncode == errors.EXIT_UNEXPECTED
    assert "is gone" in ended.stderr
    assert "cd" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["styles", "import", "ev\x1b[31mil"],
        ["-c", "ev\x1b[31mil", "check"],
        ["-c", "ev\x1b[31mil", "status"],
        ["once", "ev\x1b[31mil"],
        ["styles", "show", "ev\x1b[31mil"],
    ],
)
def test_no_name_plays_tricks_on_the_terminal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters of what was named come out escaped in every error."""
    assert main(arguments) != 0
    said = "".join(capsys.readouterr())
    assert "ev\\x1b[31mil" in said
    assert "\x1b" not in said


def test_an_error_shows_its_path_on_one_line() -> None:
    """A line feed in a name begins no line, and bytes that are not UTF-8 are shown as such."""
    error = errors.AnimedError("is wrong", remedy="do this", path="a\nb\udcff\u202ec é")
    assert str(error) == "a\\nb\\xff\\u202ec é: is wrong (do this)"
