"""The demonstration, on stand-ins for the service and on the real one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from animed.commands import demo
from animed.errors import AnimedError

if TYPE_CHECKING:
    from pathlib import Path

# A service in ten lines: it says what the real one says, and draws by copying.
STAND_IN = """
import json, os, pathlib, shutil, signal, sys, time
def say(event, **fields): print(json.dumps({"level": "info", "event": event, **fields}), flush=True)
root = pathlib.Path(sys.argv[-1]).parent
say("daemon.starting")
BEFORE_READY
say("daemon.ready")
seen = set()
while True:
    for photo in sorted(root.glob("inbox/*.jpg")):
        if photo not in seen and (seen.add(photo) or True):
            picture = root / "outbox" / photo.name
            FOR_EACH
    time.sleep(0.02)
"""
DRAW = 'shutil.copy(photo, picture); say("file.done", path=str(photo), output=str(picture), total_s=0.1)'
SAMPLES = ("astronaut.jpg", "chelsea.jpg", "coffee.jpg", "rocket.jpg")


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let throw-away folders be made below the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def stand_in(*, before_ready: str = "pass", for_each: str = DRAW) -> list[str]:
    program = STAND_IN.replace("BEFORE_READY", before_ready).replace("FOR_EACH", for_each)
    return [sys.executable, "-c", program]


def test_every_photo_comes_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With all pictures drawn it returns 0, says where they are and stay, and closes with one summary line."""
    assert demo.run(service=stand_in()) == 0
    *lines, where, summary = capsys.readouterr().out.splitlines()
    (folder,) = tmp_path.glob("animed-demo-*")
    assert where == f"The pictures are in {folder}/outbox"
    assert sorted(os.listdir(folder / "outbox")) == list(SAMPLES)
    assert sorted(line.split()[0] for line in lines) == list(SAMPLES)
    photos, seconds, rate = summary.split(", ")
    assert photos == "4 photos"
    assert seconds.endswith(" s")
    assert float(rate.removesuffix(" images/s")) > 0


def test_a_failed_photo_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With one photo failed it returns 3 and names the photo and the reason; the others are drawn."""
    draw = f"[{DRAW.replace('; ', ', ')}]"
    fail = f'say("file.failed", path=str(photo), reason="timeout") if "coffee" in photo.name else {draw}'
    assert demo.run(service=stand_in(for_each=fail)) == 3
    assert "coffee.jpg: no picture, failed timeout" in capsys.readouterr().out.splitlines()


def test_done_without_a_picture_is_not_done() -> None:
    """A picture that is said to be done and is not there counts as not drawn."""
    say = 'say("file.done", path=str(photo), output=str(picture), total_s=0.1)'
    assert demo.run(service=stand_in(for_each=say)) == 3


@pytest.mark.parametrize("when", ["before_ready", "for_each"])
def test_a_service_that_dies_is_an_error(when: str, capsys: pytest.CaptureFixture[str]) -> None:
    """When the service ends by itself the error has its status and stderr, and its error lines were shown."""
    die = 'print(json.dumps({"level": "error", "event": "worker.died"}), flush=True); sys.exit("no torch here")'
    with pytest.raises(AnimedError, match=r"status 1:\nno torch here"):
        demo.run(service=stand_in(**{when: die}))
    assert "event=worker.died" in capsys.readouterr().out


def test_a_service_that_hangs_is_an_error(tmp_path: Path) -> None:
    """When an outcome never comes, the time that is allowed is the time it takes, and nothing is left behind."""
    with pytest.raises(AnimedError, match="too long"):
        demo.run(service=stand_in(for_each="pass"), patience_s=1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_end_is_an_error() -> None:
    """A service that draws everything and then does not stop in order is an error."""
    bad = "signal.signal(signal.SIGTERM, lambda *_: os._exit(9))"
    with pytest.raises(AnimedError, match="status 9"):
        demo.run(service=stand_in(before_ready=bad))


def test_nothing_of_this_machine_reaches_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of an installed service, and systemd's variables, are not handed on."""
    for name in ("ANIMED_INBOXES", "NOTIFY_SOCKET", "STATE_DIRECTORY"):
        monkeypatch.setenv(name, "[]")
    check = "assert not [n for n in os.environ if n.startswith(('ANIMED_', 'NOTIFY', 'STATE_DIR'))]"
    assert demo.run(service=stand_in(before_ready=check)) == 0


def test_nothing_is_left_when_nothing_is_to_be_kept(tmp_path: Path) -> None:
    """Without `keep` the throw-away folder is gone afterwards."""
    assert demo.run(keep=False, service=stand_in()) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_real_demonstration(tmp_path: Path) -> None:
    """The command draws the sample photos with the real service and the real network, and exits with 0."""
    seen = subprocess.run(
        [sys.executable, "-m", "animed", "demo"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert seen.returncode == 0, seen.stdout + seen.stderr
    (folder,) = tmp_path.glob("animed-demo-*")
    pictures = sorted((folder / "outbox").iterdir())
    assert [picture.name for picture in pictures] == [name.replace(".jpg", ".cel.jpg") for name in SAMPLES]
    assert all(picture.read_bytes().startswith(b"\xff\xd8") for picture in pictures)
    assert seen.stdout.splitlines()[-1].startswith("4 photos, ")
