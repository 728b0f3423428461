"""Starting, showing and describing a configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from command_support import Setup

from animed import config
from animed.cli import main
from animed.commands.config import own_file

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Make a temporary home the home of this process, and its current folder, for one test."""
    before, folder = dict(os.environ), os.getcwd()
    for name in [name for name in os.environ if name.startswith(("XDG_", "ANIMED_")) or name == "STATE_DIRECTORY"]:
        del os.environ[name]
    os.environ["HOME"] = str(tmp_path)
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(before)


def test_init_makes_a_working_setup(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Init writes the annotated file into the user's own place, makes its folders, and every command finds it."""
    assert main(["config", "init"]) == 0
    written = home / ".config/animed/config.yaml"
    said = capsys.readouterr().out
    assert f"wrote {written}" in said
    assert written.read_text() == config.default_text()
    for inbox in config.load(written, environ=os.environ, cwd=home).inboxes:
        assert inbox.path.is_dir()
        assert inbox.output.is_dir()
        assert str(inbox.path) in said
        assert str(inbox.output) in said
    assert main(["config", "show"]) == 0
    assert str(written) in capsys.readouterr().out


def test_init_writes_where_it_is_told(home: Path) -> None:
    """-c says where the file goes; folders above it are made."""
    assert main(["-c", "deep/er/mine.yaml", "config", "init"]) == 0
    assert (home / "deep/er/mine.yaml").is_file()
    assert not (home / ".config").exists()


def test_init_never_overwrites(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there stays as it is, exit 73."""
    target = home / "mine.yaml"
    target.write_text("precious")
    assert main(["config", "init", "-c", str(target)]) == 73
    assert target.read_text() == "precious"
    assert "stays as it is" in capsys.readouterr().err
    target.unlink()
    target.symlink_to(home / "elsewhere.yaml")
    assert main(["config", "init", "-c", str(target)]) == 73
    assert not (home / "elsewhere.yaml").exists()


def test_init_where_nothing_can_be_made(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A place that cannot hold the file is exit 73 with the path."""
    (home / "file").write_text("")
    assert main(["config", "init", "-c", str(home / "file/config.yaml")]) == 73
    assert "cannot be made" in capsys.readouterr().err


def test_init_leaves_no_file_that_cannot_be_used(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When the environment spoils the new configuration nothing is left in the way of the next try."""
    os.environ["ANIMED_BACTH__MAX_SIZE"] = "3"
    assert main(["config", "init"]) == 78
    assert "ANIMED_BACTH__MAX_SIZE" in capsys.readouterr().err
    assert not (home / ".config/animed/config.yaml").exists()


def test_folders_that_are_there_are_found(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders that exist are left as they are, and told as found."""
    assert main(["config", "init", "-c", "one.yaml"]) == 0
    assert "made the inbox folder" in capsys.readouterr().out
    assert main(["config", "init", "-c", "two.yaml"]) == 0
    assert "found the inbox folder" in capsys.readouterr().out


def test_show_is_a_configuration(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What show prints can be loaded again and means the same, environment included."""
    setup = Setup.make(home, quality=77, batch__max_size=3)
    os.environ["ANIMED_LOGGING__LEVEL"] = "debug"
    assert main(["config", "show", "-c", str(setup.config)]) == 0
    shown = home / "shown.yaml"
    shown.write_text(capsys.readouterr().out)
    del os.environ["ANIMED_LOGGING__LEVEL"]
    again = config.load(shown, environ=os.environ, cwd=home)
    assert again.inboxes[0].quality == 77
    assert again.batch.max_size == 3
    assert again.logging.level == "debug"


def test_schema_needs_no_configuration(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The schema is printed where no configuration exists, and names every part of the shipped file."""
    assert main(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert set(yaml.safe_load(config.default_text())) <= set(schema["properties"])


def test_no_configuration_exits_78(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that needs a configuration says where it looked and how to make one."""
    if Path("/etc/animed/config.yaml").exists():
        pytest.skip("this machine has a configuration of its own in /etc/animed")
    assert main(["config", "show"]) == 78
    said = capsys.readouterr().err
    assert str(home / ".config/animed/config.yaml") in said
    assert "animed config init" in said


def test_the_own_file_follows_the_xdg_rules(home: Path) -> None:
    """An absolute $XDG_CONFIG_HOME counts, a relative one is as if it were not set."""
    assert own_file({"XDG_CONFIG_HOME": "/base"}) == "/base/animed/config.yaml"
    assert own_file({"XDG_CONFIG_HOME": "base"}) == f"{home}/.config/animed/config.yaml"
