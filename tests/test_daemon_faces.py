"""What `faces: auto` needs: looked for at the start, told by `check`, named where it is missing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_support import Setup
from daemon_fakes import picture_of, staged_fd

from animed import config, detector
from animed.cli import main
from animed.commands.capacity import look_at_faces
from animed.config import ConfigProblemsError
from animed.daemon.faces import detector_of, wants_faces
from animed.daemon.parts import candidate_of
from animed.daemon.workforce import wishes_of
from animed.errors import ConfigError, StyleError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from daemon_bench import Bench

    from animed.config import Config

BYTES = b"stands in for the detector"
FILE = detector.Download(
    "faces", "detector.onnx", len(BYTES), hashlib.sha256(BYTES).hexdigest(), "detector", "MIT", "https://nowhere/"
)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the detector be a file that the test has."""
    monkeypatch.setattr(detector, "FACES", FILE)


def configured(root: Path, faces: str = "auto", *, there: bool = True) -> Config:
    """Return a configuration, with the detector in its folder of styles or without."""
    setup = Setup.make(root, faces=faces)
    if there:
        (root / "styles").mkdir()
        (root / "styles" / FILE.file_name).write_bytes(BYTES)
    return config.load(setup.config, environ={}, cwd=root)


def test_without_faces_nothing_is_looked_for(tmp_path: Path) -> None:
    """No library, no file, no memory for it, no digest in the recipe."""
    settings = configured(tmp_path, "off", there=False)
    assert detector_of(settings, has_library=lambda: False) is None
    assert (wants_faces(settings), wishes_of(settings).faces) == (False, False)
    assert list(look_at_faces(settings)) == []


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path) -> None:
    """A configuration that asks for what is not installed is exit 78, with the line that installs it."""
    settings = configured(tmp_path)
    with pytest.raises(ConfigProblemsError, match=r"inboxes\[0\]\.faces: got auto") as caught:
        detector_of(settings, has_library=lambda: False)
    assert caught.value.exit_status == 78
    assert "pip install 'animed[faces]'" in str(caught.value)


def test_the_command_that_fetches_it_is_named(tmp_path: Path) -> None:
    """A detector that is not there is exit 78, with the command."""
    settings = configured(tmp_path, there=False)
    with pytest.raises(ConfigError, match="animed styles pull faces") as caught:
        detector_of(settings, has_library=lambda: True)
    assert caught.value.exit_status == 78


def test_a_damaged_detector_is_exit_4(tmp_path: Path) -> None:
    """As damaged weights are: it is there, and not what it should be."""
    settings = configured(tmp_path)
    (tmp_path / "styles" / FILE.file_name).write_bytes(BYTES[::-1])
    with pytest.raises(StyleError, match="sha256") as caught:
        detector_of(settings, has_library=lambda: True)
    assert caught.value.exit_status == 4


@pytest.mark.skipif(not detector.has_library(), reason="OpenCV is not on this machine")
def test_workers_get_the_detector_and_the_recipe_its_digest(tmp_path: Path) -> None:
    """Where one inbox asks for faces the workers load the detector, and its photos have another recipe."""
    candidate = candidate_of(configured(tmp_path), instance="i", run="r")
    assert candidate.detector is not None
    assert candidate.detector.sha256 == FILE.sha256
    assert candidate.spec.arguments["detector"] == candidate.detector
    recipe = candidate.setups["phone"].recipes.by_style["cel"]
    assert (recipe.faces, recipe.detector_sha256) == ("auto", FILE.sha256)


def test_check_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The finding is on one line, and no test picture is drawn without the detector."""
    configured(tmp_path, there=False)
    assert main(["-c", str(tmp_path / "animed.yaml"), "check", "--json"]) == 78
    found = {one["check"]: one for one in json.loads(capsys.readouterr().out)}
    assert (found["faces"]["level"], found["picture"]["level"]) == ("fail", "warn")
    assert "\n" not in found["faces"]["text"]
    assert "faces: got auto" in found["faces"]["text"]


def test_the_log_says_how_many_faces_were_drawn(bench: Callable[..., Bench]) -> None:
    """Where they were looked for the line of a done photo has their number, 0 too; else it has no such field."""
    run = bench()
    for name, faces in ((b"a.jpg", None), (b"b.jpg", 0), (b"c.jpg", 3)):
        run.sight(name, name)
        run.turn()
        (job,) = run.pool.jobs
        run.event(run.pool.finish(job, replace(picture_of(name), faces=faces), staged_fd()))
        run.run(1)
    lines = run.log.events("file.done")
    assert [line.get("faces", "none") for line in lines] == ["none", 0, 3]
