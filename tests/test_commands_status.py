"""The state of the service, as people, programs and health checks see it."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from command_support import answering

from animed.cli import main
from animed.commands import status
from animed.service.control import ControlServer
from animed.service.endpoint import server_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def report(state: str = "running", inbox_state: str = "ready", **more: Any) -> dict[str, Any]:
    """Return what a service answers."""
    counts = {"done": 12, "failed": 1, "duplicate": 0, "skipped": 0, "ignored": 3}
    inbox = {
        "name": "phone",
        "path": "/photos/in",
        "state": inbox_state,
        "watch": "native",
        "waiting": 2,
        "queued": 7,
        "done": 12,
        "failed": 1,
        "troubles": [{"role": "output", "path": "/photos/out", "detail": "No space left: /photos/out"}],
    }
    return {
        "state": state,
        "version": "1.2.3",
        "pid": 4711,
        "uptime_s": 3725.2,
        "inboxes": [inbox],
        "queue": {"depth": 5, "oldest_s": 61.0},
        "workers": [
            {"pid": 4712, "state": "busy", "style": "cel", "images": 7, "memory_mb": 612.4},
            {"pid": None, "state": "dead", "style": None, "images": 0, "memory_mb": None},
        ],
        "totals": counts,
        "since_start": counts,
        "rate_per_min": 4.25,
        "eta_s": 71.0,
        "last_failures": [{"path": "/photos/in/a\x1b[31m.jpg", "reason": "truncated"}],
        **more,
    }


@pytest.mark.parametrize(
    ("state", "inbox_state", "code"),
    [
        ("running", "ready", 0),
        ("paused", "ready", 0),
        ("starting", "ready", 1),
        ("degraded", "ready", 1),
        ("draining", "ready", 1),
        ("running", "degraded", 1),
        ("running", "unavailable", 1),
    ],
)
def test_the_health_check(
    state: str, inbox_state: str, code: int, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check passes while the service runs or is paused and every inbox is ready, and says why in one line."""
    service = answering(report(state, inbox_state))
    assert status.run(config_file, as_json=False, check=True, ask=service) == code
    said = capsys.readouterr().out
    shown = "paused, up" if state == "paused" else state
    assert said.startswith(f"{shown} for 1 h 2 min, {int(inbox_state == 'ready')} of 1 inbox ready")
    assert said.count("\n") == 1


def test_without_check_a_bad_state_is_an_answer(config_file: Path) -> None:
    """Without --check the exit status only says that there was an answer."""
    assert status.run(config_file, as_json=False, check=False, ask=answering(report("degraded"))) == 0


def test_json_is_the_answer_as_it_is(config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints the service's answer unchanged, also what this version does not know."""
    answer = report(new_key=[1, "\udcff"])
    service = answering(answer)
    assert status.run(config_file, as_json=True, check=True, ask=service) == 0
    assert json.loads(capsys.readouterr().out) == answer
    assert service.asked == [(tmp_path / "state", "status", {})]


def test_people_see_every_figure(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text names queue, rate, time to go, inboxes, workers with memory, and the last failures."""
    status.run(config_file, as_json=False, check=False, ask=answering(report()))
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert "5 in the queue, 2 in work, the oldest for 1 min 1 s, 4.2 pictures a minute, 1 min 11 s to go" in said
    assert ["phone", "ready", "native", "2", "7", "12", "1", "/photos/in"] in lines
    assert "  phone: output: No space left: /photos/out\n" in said
    assert ["4712", "busy", "cel", "7", "612", "MB"] in lines
    assert ["-", "dead", "-", "0", "-"] in lines
    assert ["truncated", r"/photos/in/a\x1b[31m.jpg"] in lines


def test_a_quiet_service_is_shown(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A service without work, workers, failures or an estimate leaves those parts out."""
    quiet = report(
        inboxes=[], queue={"depth": 0, "oldest_s": None}, workers=[], last_failures=[], rate_per_min=0.0, eta_s=None
    )
    status.run(config_file, as_json=False, check=False, ask=answering(quiet))
    said = capsys.readouterr().out
    assert "0 in the queue, 0.0 pictures a minute\n" in said
    assert "WORKER" not in said
    assert "FAILURES" not in said


@pytest.mark.parametrize("options", [[], ["--json"], ["--check"]])
def test_without_a_service_it_exits_69(
    options: list[str], config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No service is exit 69 with a message on stderr, and makes no state folder."""
    assert main(["status", "-c", str(config_file), *options]) == 69
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("animed: ")
    assert not (tmp_path / "state").exists()


def test_a_bad_configuration_exits_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration with mistakes exits 78, and each mistake has its own line."""
    path = tmp_path / "config.yaml"
    path.write_text("version: 1\nbacth: {}\ninboxes: [{name: a, path: /a/in, output: /a/out, quality: 300}]\n")
    assert main(["-c", str(path), "status"]) == 78
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert [line for line in said.splitlines() if "bacth" in line] != [
        line for line in said.splitlines() if "quality" in line
    ]
    assert main(["status", "-c", str(tmp_path / "absent.yaml")]) == 78


@contextmanager
def serving(state_dir: Path, answer: dict[str, Any]) -> Iterator[None]:
    """Answer on the real control socket of a state folder, from a thread that ends with the block."""
    server = ControlServer(server_path(str(state_dir), os.environ, uid=os.geteuid()), lambda _c, _a: answer)
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            server.poll(select.select(server.waitables(), [], [], 0.02)[0], time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        server.close()


@pytest.mark.parametrize(("state", "code"), [("running", 0), ("degraded", 1)])
def test_the_control_socket_is_asked(
    state: str, code: int, config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line reaches the service over its socket, and the health check's status comes back."""
    (tmp_path / "state").mkdir(mode=0o700)
    answer = report(state)
    with serving(tmp_path / "state", answer):
        assert main(["status", "--json", "--check", "-c", str(config_file)]) == code
    assert json.loads(capsys.readouterr().out) == answer
