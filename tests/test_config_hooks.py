"""Hooks and reports in the configuration: how they are written, and which programs are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from animed.config import dump, load
from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from animed.config import Config

INBOXES = "inboxes: [{name: a, path: in, output: out}]\n"


def read(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    (folder / "config.yaml").write_text(f"state_dir: state\n{text}")
    return load(None, environ={"HOME": "/home/ada", **(environ or {})}, cwd=folder)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    return str(caught.value).splitlines()[1:]


def program(path: Path, mode: int = 0o755) -> Path:
    """Write a program that does nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("null", None),
        ("/opt/tell", ("/opt/tell",)),
        ("bin/tell", ("{folder}/bin/tell",)),
        ("~/tell me", ("/home/ada/tell me",)),
        ("[/opt/tell]", ("/opt/tell",)),
        ("[tell, --to, 'a b', -x]", ("{folder}/tell", "--to", "a b", "-x")),
    ],
)
def test_a_hook_is_a_program_or_a_list_of_it_and_its_arguments(
    tmp_path: Path, written: str, meant: tuple[str, ...] | None
) -> None:
    """The program's path becomes absolute, as that of any file; arguments stay as they are."""
    expected = meant and tuple(word.format(folder=tmp_path) for word in meant)
    config = read(tmp_path, f"hooks: {{on_batch: {written}}}\n{INBOXES}")
    assert config.hooks.on_batch == expected
    (tmp_path / "shown.yaml").write_text(dump(config))
    assert load(tmp_path / "shown.yaml", environ={}, cwd=tmp_path).hooks == config.hooks


@pytest.mark.parametrize(
    ("value", "meant"),
    [("/opt/tell", ("/opt/tell",)), ('["/opt/tell", "-x"]', ("/opt/tell", "-x")), ("null", None)],
)
def test_a_hook_in_the_environment(tmp_path: Path, value: str, meant: Any) -> None:
    """A variable holds a path, or a list as JSON."""
    config = read(tmp_path, INBOXES, {"ANIMED_HOOKS__ON_SUCCESS": value})
    assert config.hooks.on_success == meant


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o720])
def test_a_program_that_others_may_change_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever could write the program could run code as the service."""
    program(tmp_path / "tell", mode)
    (line,) = problems(tmp_path, f"hooks: {{on_failure: tell}}\n{INBOXES}")
    assert "line 2: hooks.on_failure: got" in line
    assert f"mode {mode:04o}" in line
    assert "run chmod go-w on it" in line


@pytest.mark.parametrize("place", ["in/tell", "out/sub/tell", "in/x/../tell", "bad/tell"])
def test_a_program_where_photos_or_pictures_lie_is_refused(tmp_path: Path, place: str) -> None:
    """A program below an inbox, an output or a folder of originals belongs to whoever fills that."""
    program(tmp_path / place) if ".." not in place else program(tmp_path / "in" / "x" / "y")
    keys = "inboxes: [{name: a, path: in, output: out, failed: copy, failed_dir: bad}]\n"
    (line,) = problems(tmp_path, f"hooks: {{on_success: [{place}, -x]}}\n{keys}")
    assert "hooks.on_success: got" in line
    assert "which lies inside inboxes[0]." in line


def test_a_link_hides_neither_side(tmp_path: Path) -> None:
    """A link in an inbox to a good program is refused, and so is a good place's link into an inbox."""
    good = program(tmp_path / "bin" / "tell")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(good)
    assert problems(tmp_path, f"hooks: {{on_success: in/link}}\n{INBOXES}")
    program(tmp_path / "in" / "tell")
    (tmp_path / "bin" / "link").symlink_to(tmp_path / "in" / "tell")
    assert problems(tmp_path, f"hooks: {{on_success: bin/link}}\n{INBOXES}")
    assert read(tmp_path, f"hooks: {{on_success: bin/tell}}\n{INBOXES}").hooks.on_success == (str(good),)


def test_a_wrong_program_is_told_beside_other_problems(tmp_path: Path) -> None:
    """All problems of a file come together."""
    program(tmp_path / "in" / "tell")
    lines = problems(tmp_path, f"hooks: {{on_success: in/tell}}\nbatch: {{max_size: 0}}\n{INBOXES}")
    assert len(lines) == 2


def test_a_program_that_is_not_there_is_no_problem_of_the_file(tmp_path: Path) -> None:
    """It may lie on a disk that comes later; `check` and each start tell."""
    assert read(tmp_path, f"hooks: {{on_success: /nowhere/tell}}\n{INBOXES}").hooks.on_success


def test_reports_can_be_switched_on(tmp_path: Path) -> None:
    """The key `report` takes off and file."""
    keys = "inboxes: [{name: a, path: in, output: out, report: file}]\n"
    assert read(tmp_path, keys).inboxes[0].report == "file"
    (line,) = problems(tmp_path, keys.replace("file", "mail"))
    assert "accepted: off or file" in line
