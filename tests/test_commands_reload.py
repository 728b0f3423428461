"""`animed reload`: whom it asks, what it prints, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_support import Service, Setup, no_service

from animed.cli import main
from animed.commands import reload
from animed.config import find_state_dir
from animed.errors import ConfigError, NotRunningError
from animed.service.protocol import ReplyError

NOTHING: dict[str, Any] = {"changed": [], "added": [], "removed": [], "renewed": [], "workers": False}


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return one inbox."""
    return Setup.make(tmp_path)


class Line:
    """A service that needs some questions before a reload has its outcome."""

    def __init__(self, outcome: dict[str, Any], pending: int = 0) -> None:
        self.outcome, self.pending = outcome, pending
        self.service = Service(self.answer)
        self.slept: list[float] = []

    def answer(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Hand out a ticket, or say what came of it."""
        assert command == "reload"
        if not arguments:
            return {"ticket": 7}
        assert arguments == {"ticket": 7}
        self.pending -= 1
        return {"ticket": 7, "pending": True} if self.pending >= 0 else {"ticket": 7, "pending": False, **self.outcome}

    def run(self, setup: Setup) -> int:
        """Run the command on a made-up clock."""
        return reload.run(setup.config, ask=self.service, sleep=self.slept.append, clock=lambda: sum(self.slept))


def test_it_waits_and_says_what_has_changed(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """It asks until the reload has its outcome, and prints every key, inbox and the workers."""
    outcome = {
        "changed": ["batch.max_size", "inboxes.phone.quality"], "added": ["camera"], "removed": ["old"],
        "renewed": ["phone"], "workers": True,
    }  # fmt: skip
    line = Line(outcome, pending=3)
    assert line.run(setup) == 0
    assert len(line.slept) == 3
    assert {folder for folder, _, _ in line.service.asked} == {setup.state}
    assert capsys.readouterr().out.splitlines() == [
        "changed  batch.max_size",
        "changed  inboxes.phone.quality",
        "inbox camera: added",
        "inbox old: removed",
        "inbox phone: starts anew with its changes",
        "the workers are replaced, one by one",
    ]


def test_no_change_is_said(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing differs, that is what it says."""
    assert Line(NOTHING).run(setup) == 0
    assert capsys.readouterr().out == "nothing has changed\n"


def test_a_service_that_never_ends_is_not_waited_for_without_end(setup: Setup) -> None:
    """Patience has an end."""
    with pytest.raises(ReplyError, match="has not reloaded"):
        Line(NOTHING, pending=10**6).run(setup)


def test_without_a_service(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 69, or with what is wrong with the file."""
    assert main(["reload", "-c", str(setup.config)]) == 69
    setup.write(qualty="1")
    assert main(["reload", "-c", str(setup.config)]) == 78
    told = capsys.readouterr().err
    assert main(["check", "-c", str(setup.config)]) == 78
    assert capsys.readouterr().err in told


def test_a_wrong_file_is_shown_to_the_service(setup: Setup) -> None:
    """The service hears of a file with problems, and its word counts; a file that is no YAML leads to no service."""
    setup.write(qualty="1")
    line = Line(NOTHING)
    assert line.run(setup) == 0
    assert line.service.asked[0][0] == setup.state
    setup.config.write_text("inboxes: [")
    with pytest.raises(ConfigError):
        reload.run(setup.config, ask=no_service)
    setup.config.unlink()
    with pytest.raises(ConfigError):
        reload.run(setup.config, ask=no_service)


def test_the_state_folder_of_a_wrong_file(setup: Setup) -> None:
    """It is found as in a right file: the environment wins, null is the default, nonsense is none."""
    env = {"HOME": "/home/ada"}
    find = find_state_dir
    setup.config.write_text("state_dir: sub\nnonsense: 1\n")
    assert find(setup.config, environ=env, cwd=setup.root) == setup.root / "sub"
    assert find(setup.config, environ=env | {"ANIMED_STATE_DIR": "/var/x"}, cwd=setup.root) == Path("/var/x")
    setup.config.write_text("nonsense: 1\n")
    assert find(setup.config, environ=env, cwd=setup.root) == Path("/home/ada/.local/state/animed")
    for wrong in ("state_dir: 5\n", "state_dir: [a]\n", "- 1\n", "a: [\n"):
        setup.config.write_text(wrong)
        assert find(setup.config, environ=env, cwd=setup.root) is None


def test_no_service_is_an_error_of_its_own(setup: Setup) -> None:
    """With a right file the absence of the service is what is told."""
    with pytest.raises(NotRunningError):
        reload.run(setup.config, ask=no_service)
