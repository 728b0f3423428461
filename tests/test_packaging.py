"""The wheel: everything that an installed animed needs is inside, and nothing else is."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from animed.extras import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling, which builds the wheel, is not in this environment",
)


def project(requirement: str) -> str:
    """Return the name in a requirement, as package indexes compare it."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Build the wheel once, and yield it open."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, check=True, cwd=TOP, capture_output=True)
    (file,) = folder.glob("animed-*.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def test_all_modules_are_inside(wheel: zipfile.ZipFile) -> None:
    """Every module of the package is in the wheel."""
    modules = {str(path.relative_to(TOP)) for path in (TOP / "animed").rglob("*.py")}
    assert modules - set(wheel.namelist()) == set()


def test_the_built_in_style_is_inside(wheel: zipfile.ZipFile) -> None:
    """The weights of the built-in style and their card are in the wheel, and are what the card says."""
    card = yaml.safe_load(wheel.read("animed/weights/cel.yaml"))
    assert hashlib.sha256(wheel.read("animed/weights/cel.safetensors")).hexdigest() == card["sha256"]


def test_configuration_and_licence_are_inside(wheel: zipfile.ZipFile) -> None:
    """The annotated configuration and the licence are in the wheel, as they stand in the repository."""
    assert wheel.read("animed/config.yaml") == (TOP / "config.yaml").read_bytes()
    (licence,) = [name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
    assert wheel.read(licence) == (TOP / "LICENSE").read_bytes()


def test_the_samples_are_inside_with_their_licences(wheel: zipfile.ZipFile) -> None:
    """The four sample photos are in the wheel as JPEG files, and each has its line of origin."""
    names = [name for name in wheel.namelist() if name.startswith("animed/samples/") and name.endswith(".jpg")]
    origins = wheel.read("animed/samples/LICENSES.md").decode()
    assert len(names) == 4
    for name in names:
        assert wheel.read(name).startswith(b"\xff\xd8\xff")
        assert f"`{Path(name).name}`" in origins


def test_nothing_else_is_inside(wheel: zipfile.ZipFile) -> None:
    """Tests, caches and working files are not in the wheel."""
    strange = [name for name in wheel.namelist() if not name.startswith("animed/") and ".dist-info/" not in name]
    caches = [name for name in wheel.namelist() if "__pycache__" in name or name.endswith(".pyc")]
    assert (strange, caches) == ([], [])


def test_the_extras_are_those_that_are_asked_for() -> None:
    """What the code tells people to install is declared, and the manual of the container names each."""
    declared = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(MODULES) == declared.keys() - {"dev"}
    assert f"EXTRAS={','.join(sorted(MODULES))}`" in (TOP / "docs" / "operations.md").read_text()


def test_the_command_is_declared(wheel: zipfile.ZipFile) -> None:
    """Installing the wheel makes the command `animed`, with the dependencies of pyproject.toml."""
    (entry,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "animed = animed.cli:main" in wheel.read(entry).decode()
    (metadata,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    required = {
        line.partition(": ")[2]
        for line in wheel.read(metadata).decode().splitlines()
        if line.startswith("Requires-Dist") and "extra ==" not in line
    }
    declared = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {project(line) for line in required} == {project(line) for line in declared}
