"""What `faces: auto` needs: looked for at the start, told by `check`, named where it is missing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_support import Setup
from daemon_fakes import picture_of, staged_fd

from animed import config, detector, extras
from animed.cli import main
from animed.commands.capacity import look_at_extras, look_at_faces
from animed.config import ConfigProblemsError
from animed.daemon.demands import demand_extras, detector_of, wants_faces
from animed.daemon.setup import candidate_of
from animed.daemon.workforce import wishes_of
from animed.errors import ConfigError, StyleError
from animed.extras import MODULES, Extra
from animed.records import DetectorFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from daemon_bench import Bench

    from animed.config import Config

BYTES = b"stands in for the detector"
FILE = detector.Download(
    "faces", "detector.onnx", len(BYTES), hashlib.sha256(BYTES).hexdigest(), "detector", "MIT", "https://nowhere/"
)


def configured(root: Path, faces: str = "auto", *, there: bool = True, **keys: str) -> Config:
    """Return a configuration, with the detector in its folder of styles or without."""
    setup = Setup.make(root, faces=faces, **keys)
    if there:
        (root / "styles").mkdir()
        (root / "styles" / FILE.file_name).write_bytes(BYTES)
    return config.load(setup.config, environ={}, cwd=root)


def test_without_faces_nothing_is_looked_for(tmp_path: Path) -> None:
    """No library, no file, no memory for it."""
    settings = configured(tmp_path, "off", there=False)
    demand_extras(settings, installed=lambda extra: False)
    assert detector_of(settings) is None
    assert (wants_faces(settings), wishes_of(settings).faces) == (False, False)
    assert list(look_at_faces(settings)) == []


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path) -> None:
    """A configuration that asks for what is not installed is exit 78, with the line that installs it."""
    settings = configured(tmp_path, dedupe="similar")
    demand_extras(settings, installed=lambda extra: True)
    with pytest.raises(ConfigProblemsError) as caught:
        demand_extras(settings, installed=lambda extra: False)
    assert caught.value.exit_status == 78
    assert [(problem.path, problem.got) for problem in caught.value.problems] == [
        ("inboxes[0].faces", "auto"),
        ("inboxes[0].dedupe", "similar"),
    ]
    extra: Extra
    for extra in ("faces", "similar"):
        with pytest.raises(ConfigProblemsError, match=rf"pip install 'animed\[{extra}\]'") as caught:
            demand_extras(settings, installed=set[Extra](MODULES).difference({extra}).__contains__)
        assert len(caught.value.problems) == 1


def test_the_command_that_fetches_it_is_named(tmp_path: Path) -> None:
    """A detector that is not there is exit 78, with the command."""
    settings = configured(tmp_path, there=False)
    with pytest.raises(ConfigError, match="animed styles pull faces") as caught:
        detector_of(settings, wanted=FILE)
    assert caught.value.exit_status == 78


def test_a_sound_detector_is_found(tmp_path: Path) -> None:
    """It is told by its place and its digest."""
    file = detector_of(configured(tmp_path), wanted=FILE)
    assert file == DetectorFile(str(tmp_path / "styles" / FILE.file_name), FILE.sha256)


def test_a_damaged_detector_is_exit_4(tmp_path: Path) -> None:
    """As damaged weights are: it is there, and not what it should be."""
    settings = configured(tmp_path)
    (tmp_path / "styles" / FILE.file_name).write_bytes(BYTES[::-1])
    with pytest.raises(StyleError, match="sha256") as caught:
        detector_of(settings, wanted=FILE)
    assert caught.value.exit_status == 4


@pytest.mark.skipif(not extras.installed("faces"), reason="OpenCV is not on this machine")
def test_workers_get_the_detector_and_the_recipe_its_digest(tmp_path: Path) -> None:
    """Where one inbox asks for faces the workers load the detector, and its photos have another recipe."""
    found = DetectorFile("/styles/detector.onnx", detector.FACES.sha256)
    settings = configured(tmp_path)
    candidate = candidate_of(settings, instance="i", run="r", find_detector=lambda given: found)
    assert candidate.detector is found
    assert candidate.spec.arguments["detector"] == candidate.detector
    recipe = candidate.setups["phone"].recipes.by_style["cel"]
    assert (recipe.faces, recipe.detector_sha256) == ("auto", found.sha256)


def test_check_names_a_missing_extra(tmp_path: Path) -> None:
    """One finding, on one line; where nothing is missing there is none."""
    settings = configured(tmp_path, dedupe="similar")
    assert list(look_at_extras(settings, installed=lambda extra: True)) == []
    (found,) = look_at_extras(settings, installed=lambda extra: extra != "similar")
    assert (found.check, found.level, found.status) == ("extras", "fail", 78)
    assert "inboxes[0].dedupe: got similar" in found.text
    assert "\n" not in found.text


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
