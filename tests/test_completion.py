"""What the Tab key brings in bash, zsh and fish, asked for as those shells ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_support import Setup

from animed.config import glance
from animed.errors import ConfigError

SCRIPT = str(Path(sys.executable).parent / "animed")
BASH = shutil.which("bash")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("ANIMED_", "COMP_"))}


def animed(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the console script as a shell's completion does."""
    environ = {**CLEAN, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), **variables}
    return subprocess.run([SCRIPT], capture_output=True, text=True, env=environ, cwd=folder, timeout=60, check=False)


def bash(folder: Path, line: str) -> list[str]:
    """Return what bash offers at the end of a line."""
    words = line.split(" ")
    done = animed(folder, _ANIMED_COMPLETE="complete_bash", COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def fish(folder: Path, line: str, action: str = "get-args") -> subprocess.CompletedProcess[str]:
    """Ask as fish does, for the words or for whether there are any."""
    return animed(
        folder, _ANIMED_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS=line, _TYPER_COMPLETE_FISH_ACTION=action
    )


def own_style(folder: Path, name: str) -> None:
    """Put a copy of the built-in style into a folder, under another name."""
    shipped = Path(__file__).parent.parent / "weights"
    folder.mkdir(parents=True)
    (folder / f"{name}.yaml").write_text((shipped / "cel.yaml").read_text().replace("name: cel", f"name: {name}"))
    (folder / f"{name}.safetensors").symlink_to(shipped / "cel.safetensors")


def test_commands_are_completed(tmp_path: Path) -> None:
    """The first word becomes a command, a group's second word one of the group's."""
    assert {"run", "once", "check", "retry", "forget", "styles", "config"} <= set(bash(tmp_path, "animed "))
    assert bash(tmp_path, "animed sta") == ["status"]
    assert bash(tmp_path, "animed config s") == ["show", "schema"]


def test_options_are_completed(tmp_path: Path) -> None:
    """A hyphen becomes the options of the command it stands after."""
    assert {"--json", "--explain", "--config"} <= set(bash(tmp_path, "animed check --"))
    assert bash(tmp_path, "animed retry --o") == ["--outdated"]


@pytest.mark.parametrize("line", ["animed once --style ", "animed styles show ", "animed styles verify c"])
def test_styles_are_completed(line: str, tmp_path: Path) -> None:
    """Where a style is named, Tab knows those that ship, with no configuration at all."""
    assert bash(tmp_path, line) == ["cel"]


def test_a_users_own_styles_are_completed(tmp_path: Path) -> None:
    """Own styles are found in the folder that the configuration names, -c included, and else in the usual one."""
    own_style(tmp_path / "data/animed/styles", "usual")
    assert bash(tmp_path, "animed styles show u") == ["usual"]
    setup = Setup.make(tmp_path)
    own_style(tmp_path / "styles", "mine")
    assert bash(tmp_path, f"animed -c {setup.config} styles show m") == ["mine"]
    assert bash(tmp_path, f"animed once -c {setup.config} --style ") == ["cel", "mine"]


def test_a_broken_configuration_keeps_the_built_in_styles(tmp_path: Path) -> None:
    """A file that is no YAML, or is not there, costs Tab no more than the styles that it would have brought."""
    (tmp_path / "config.yaml").write_text("a: [\n")
    assert bash(tmp_path, "animed styles show ") == ["cel"]
    assert bash(tmp_path, "animed -c none.yaml styles show ") == ["cel"]


def test_paths_are_left_to_the_shell(tmp_path: Path) -> None:
    """Where a path is wanted nothing is offered, and each shell falls back to its own completion of files."""
    for line in ("animed retry a", "animed forget a", "animed check --explain a", "animed -c a", "animed once -o a"):
        assert bash(tmp_path, line) == []
        assert fish(tmp_path, line, "is-args").returncode == 1
        zsh = animed(tmp_path, _ANIMED_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
        assert zsh.stdout == "_files\n"


def test_zsh_and_fish_show_what_a_word_means(tmp_path: Path) -> None:
    """Those two get the help of a command, and the title of a style, beside the word."""
    zsh = animed(tmp_path, _ANIMED_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="animed sta")
    assert zsh.stdout == """_arguments '*: :(("status":"Show the live state of the running service."))'\n"""
    assert fish(tmp_path, "animed styles show ").stdout.startswith("cel\tCel-shaded")
    assert fish(tmp_path, "animed styles show ", "is-args").returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str, tmp_path: Path) -> None:
    """The script that sets a shell up is printed, and calls this very command."""
    done = animed(tmp_path, _ANIMED_COMPLETE=f"source_{shell}")
    assert done.returncode == 0
    assert f"_ANIMED_COMPLETE=complete_{shell}" in done.stdout


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_bash_itself(tmp_path: Path) -> None:
    """A real bash that has read the script puts the words where readline looks for them."""
    program = (
        f'eval "$(_ANIMED_COMPLETE=source_bash {SCRIPT})"\n'
        'COMP_WORDS=(animed check --ex); COMP_CWORD=2; _animed_completion "$0"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"; complete -p animed'
    )
    done = subprocess.run(
        [BASH or "", "--norc", "-c", program, SCRIPT],
        capture_output=True,
        text=True,
        env=CLEAN,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["--explain", "complete -o default -F _animed_completion animed"]


def test_the_key_alone_is_read(tmp_path: Path) -> None:
    """The folder of styles is read from the file whatever else is wrong with it; the environment wins."""
    file = tmp_path / "config.yaml"
    file.write_text("styles_dir: more\nquality: 300\ninboxes: 5\n")
    assert glance.styles_dir(None, environ={"HOME": "/h"}, cwd=tmp_path) == tmp_path / "more"
    by_environment = {"HOME": "/h", "ANIMED_STYLES_DIR": "~/s"}
    assert glance.styles_dir(file, environ=by_environment, cwd=tmp_path) == Path("/h/s")
    file.write_text("styles_dir: null\n")
    assert glance.styles_dir(file, environ={"XDG_DATA_HOME": "/d"}, cwd=tmp_path) == Path("/d/animed/styles")
    file.write_text("styles_dir: 5\n")
    with pytest.raises(ConfigError, match="the path of a folder"):
        glance.styles_dir(file, environ={}, cwd=tmp_path)
