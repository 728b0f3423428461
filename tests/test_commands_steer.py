"""Pause, resume and rescan on the command line: what is asked, what is said, and without a service."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from command_support import answering

from animed.cli import main
from animed.commands import status, steer

if TYPE_CHECKING:
    from pathlib import Path

STAMP = "2026-03-01T21:30:00Z"
LOCAL = datetime.fromisoformat(STAMP).astimezone().strftime("%Y-%m-%d %H:%M")
USER = {"by": "user", "since": STAMP, "until": None}
SCHEDULE = {"by": "schedule", "since": None, "until": STAMP}


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        (
            "pause",
            {"paused": USER, "changed": True, "stored": True},
            "paused: what is being drawn is finished, nothing new is begun until `animed resume`",
        ),
        ("pause", {"paused": USER, "changed": False, "stored": True}, "already paused"),
        ("resume", {"paused": None, "changed": True, "stored": True}, "resumed"),
        ("resume", {"paused": None, "changed": False, "stored": True}, "not paused"),
        (
            "resume",
            {"paused": SCHEDULE, "changed": True, "stored": True},
            f"resumed; but this is outside schedule.active, until {LOCAL}",
        ),
        (
            "resume",
            {"paused": SCHEDULE, "changed": False, "stored": True},
            f"not paused; but this is outside schedule.active, until {LOCAL}",
        ),
    ],
)
def test_what_is_said(
    name: str,
    answer: dict[str, Any],
    said: str,
    config_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line says what came of it, and both may be repeated: the exit status is 0 every time."""
    service = answering(answer)
    assert getattr(steer, name)(config_file, as_json=False, ask=service) == 0
    assert capsys.readouterr() == (f"{said}\n", "")
    assert [(command, arguments) for _, command, arguments in service.asked] == [(name, {})]


@pytest.mark.parametrize("name", ["pause", "resume"])
def test_what_a_restart_would_forget_is_told(name: str, config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pause that could not be written yet is a note on stderr."""
    getattr(steer, name)(config_file, as_json=False, ask=answering({"paused": None, "changed": True, "stored": False}))
    assert "would forget" in capsys.readouterr().err


def test_a_rescan_names_what_is_not_there(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every inbox is counted, and one that is not there is told of."""
    inboxes = [{"name": "phone", "state": "ready"}, {"name": "camera", "state": "unavailable"}]
    assert steer.rescan(config_file, as_json=False, ask=answering({"inboxes": inboxes})) == 0
    said = capsys.readouterr()
    assert said.out == "2 inboxes are looked through\n"
    assert said.err == "animed: inbox camera is not there: it is looked through when it comes back\n"


@pytest.mark.parametrize("name", ["pause", "resume", "rescan"])
def test_json_is_the_answer_as_it_is(name: str, config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints the service's answer unchanged."""
    answer: dict[str, Any] = {"paused": None, "changed": True, "stored": True, "inboxes": []}
    assert getattr(steer, name)(config_file, as_json=True, ask=answering(answer)) == 0
    assert json.loads(capsys.readouterr().out) == answer


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("name", ["pause", "resume", "rescan"])
def test_without_a_service_it_exits_69(
    name: str, options: list[str], config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No service is exit 69 with a message on stderr, and makes no state folder."""
    assert main([name, "-c", str(config_file), *options]) == 69
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("animed: ")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("paused", "said"),
    [
        (USER, f"paused since {LOCAL}, until `animed resume`\n"),
        (SCHEDULE, f"outside schedule.active, until {LOCAL}\n"),
    ],
)
def test_the_status_says_why_and_until_when(
    paused: dict[str, Any], said: str, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below its first line the status names what pauses the service."""
    report = {
        "state": "paused",
        "paused": paused,
        "version": "1",
        "pid": 1,
        "uptime_s": 60.0,
        "inboxes": [],
        "queue": {"depth": 0, "oldest_s": None},
        "workers": [],
        "rate_per_min": 0.0,
        "eta_s": None,
        "last_failures": [],
    }
    status.run(config_file, as_json=False, check=False, ask=answering(report))
    shown = capsys.readouterr().out
    assert shown.startswith("paused, up for 1 min 0 s")
    assert said in shown
