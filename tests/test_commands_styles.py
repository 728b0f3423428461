"""Looking at styles: with and without a configuration, whole and damaged ones."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_support import Setup

from animed import detector
from animed.cli import main
from animed.daemon.bypath import styles_dir_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CARD = """\
name: {name}
title: A style for tests
architecture: animeganv2
upsampling: half_pixel
preferred_edge: 512
licence: MIT
source: nowhere
sha256: {sha256}
"""
BYTES = b"not a network, but bytes with a digest"


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return a configuration whose folder of more styles holds one."""
    setup = Setup.make(tmp_path)
    add(setup.root / "styles", "mine", BYTES)
    return setup


@pytest.fixture
def data_home(tmp_path: Path) -> Iterator[Path]:
    """Let this process have no configuration, and its default folder of styles below a temporary one."""
    before, folder = dict(os.environ), os.getcwd()
    for name in [name for name in os.environ if name.startswith("ANIMED_")]:
        del os.environ[name]
    os.environ.update({"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)})
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(before)


def add(folder: Path, name: str, content: bytes, sha256: str = "") -> None:
    """Write a card and its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.safetensors").write_bytes(content)
    card = CARD.format(name=name, sha256=sha256 or hashlib.sha256(content).hexdigest())
    (folder / f"{name}.yaml").write_text(card)


def names(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Return the names that `styles list --json` prints."""
    assert main([*options, "styles", "list", "--json"]) == 0
    return [style["name"] for style in json.loads(capsys.readouterr().out)]


def test_list_names_built_in_and_own_styles(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The list holds the styles that ship and those of styles_dir, with title and origin."""
    assert names(capsys, "-c", str(setup.config)) == ["cel", "mine"]
    assert main(["styles", "list", "-c", str(setup.config)]) == 0
    lines = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["NAME", "FROM", "EDGE", "TITLE"]
    assert [line[:3] for line in lines[1:]] == [["cel", "built-in", "512"], ["mine", "own", "512"]]
    assert lines[2][3].strip() == "A style for tests"


def test_no_configuration_is_needed(data_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a configuration the default folder of styles counts, or the one that the environment names."""
    assert names(capsys) == ["cel"]
    add(data_home / "animed/styles", "mine", BYTES)
    add(data_home / "other", "yours", BYTES)
    assert names(capsys) == ["cel", "mine"]
    os.environ["ANIMED_STYLES_DIR"] = str(data_home / "other")
    assert names(capsys) == ["cel", "yours"]


def test_a_configuration_that_was_asked_for_must_be_there(data_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file named by -c or the environment is never silently done without."""
    assert main(["styles", "list", "-c", "absent.yaml"]) == 78
    os.environ["ANIMED_CONFIG"] = str(data_home / "absent.yaml")
    assert main(["styles", "list"]) == 78
    assert "absent.yaml" in capsys.readouterr().err


def test_show_tells_all(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Show prints the card, the file and its size."""
    assert main(["-c", str(setup.config), "styles", "show", "mine"]) == 0
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert said["licence:"] == "MIT"
    assert said["weights:"] == str(setup.root / "styles/mine.safetensors")
    assert said["size:"] == f"{len(BYTES)} B"
    assert said["sha256:"] == hashlib.sha256(BYTES).hexdigest()


@pytest.mark.parametrize("command", ["show", "verify"])
def test_an_unknown_style_exits_4(command: str, setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no style has is exit 4, with the nearest name."""
    assert main(["styles", command, "mime", "-c", str(setup.config)]) == 4
    assert "did you mean mine" in capsys.readouterr().err


def test_verify_reads_every_style(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Verify without a name looks at all styles, exit 0 when each is what its card says."""
    assert main(["styles", "verify", "-c", str(setup.config)]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["ok", "cel"], ["ok", "mine"]]


def test_verify_finds_changed_weights(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights that are not what the card says are exit 4, and the other styles are still looked at."""
    add(setup.root / "styles", "bent", BYTES, sha256="0" * 64)
    assert main(["styles", "verify", "-c", str(setup.config)]) == 4
    said = capsys.readouterr()
    verdicts = [line.split()[:2] for line in said.out.splitlines()]
    assert verdicts == [["ok", "cel"], ["FAIL", "bent"], ["ok", "mine"]]
    assert "sha256" in said.err
    assert main(["styles", "verify", "bent", "-c", str(setup.config)]) == 4
    assert main(["styles", "verify", "mine", "-c", str(setup.config)]) == 0


def test_a_broken_card_hides_no_other(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A style that cannot be read is told on stderr; list goes on, verify of all exits 4."""
    (setup.root / "styles/broken.yaml").write_text("name: [")
    assert names(capsys, "-c", str(setup.config)) == ["cel", "mine"]
    assert main(["styles", "list", "-c", str(setup.config)]) == 0
    assert "broken.yaml" in capsys.readouterr().err
    assert main(["styles", "verify", "-c", str(setup.config)]) == 4
    assert "broken.yaml" in capsys.readouterr().err


def test_the_environment_names_the_folder_for_single_photos_too(tmp_path: Path) -> None:
    """Where photos are drawn without a configuration, $ANIMED_STYLES_DIR still says where further styles are."""
    assert styles_dir_of(None, {"ANIMED_STYLES_DIR": str(tmp_path), "XDG_DATA_HOME": "/d"}) == tmp_path
    assert styles_dir_of(None, {"XDG_DATA_HOME": "/d"}) == Path("/d/animed/styles")


def test_verify_looks_at_fetched_files_too(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged detector in the folder of styles is exit 4, and a pipe under its name as well; none is no fault."""
    styles = setup.root / "styles"
    assert main(["styles", "verify", "-c", str(setup.config)]) == 0
    assert "faces" not in capsys.readouterr().out
    path = styles / detector.FACES.file_name
    path.write_bytes(b"damaged")
    assert main(["styles", "verify", "-c", str(setup.config)]) == 4
    said = capsys.readouterr()
    assert "FAIL  faces" in said.out
    assert f"{path}: is not the YuNet face detector" in said.err
    path.unlink()
    os.mkfifo(path)
    assert main(["styles", "verify", "-c", str(setup.config)]) == 4
    assert "it is not a regular file" in capsys.readouterr().err


def test_a_folder_of_styles_that_leads_nowhere_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is not there is none; a link to nothing, or a file, is a mistake."""
    setup = Setup.make(tmp_path)
    assert main(["styles", "verify", "-c", str(setup.config)]) == 0
    (setup.root / "styles").symlink_to("nowhere")
    assert main(["styles", "verify", "-c", str(setup.config)]) == 4
    assert f"{setup.root / 'styles'}: cannot be read: No such file" in capsys.readouterr().err
