"""The container's files agree with each other and with animed. What their steps do is tried by container_steps.py."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from dockerfile_parse import DockerfileParser  # type: ignore[import-untyped]  # it ships no types

from animed import config
from animed.commands.arguments import parse
from animed.config.units import parse_duration

TOP: Final = Path(__file__).parent.parent
FOLDER: Final = TOP / "container"


@pytest.fixture
def steps() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile, in order."""
    parser = DockerfileParser(fileobj=io.BytesIO((FOLDER / "Containerfile").read_bytes()))
    return [(each["instruction"], each["value"]) for each in parser.structure]


@pytest.fixture
def service() -> dict[str, Any]:
    """Return the service of the compose example."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["animed"]
    return found


@pytest.fixture
def settings() -> config.Config:
    """Return the configuration inside the container."""
    return config.load(FOLDER / "config.yaml", environ={}, cwd=Path("/"))


def test_what_is_copied_is_there(steps: list[tuple[str, str]]) -> None:
    """Each file that the Containerfile copies from the project is in the project."""
    copied = [value.split()[0] for name, value in steps if name == "COPY" and not value.startswith("--from=")]
    assert copied
    assert all((TOP / each).exists() for each in copied)


@pytest.mark.parametrize(
    ("extras", "installed"), [("", "/src"), ("raw", "/src[raw]"), ("faces,raw", "/src[faces,raw]")]
)
def test_the_image_is_built_with_the_extras_that_are_named(
    steps: list[tuple[str, str]], extras: str, installed: str
) -> None:
    """As the shell of the build understands it; by itself none is built in."""
    assert ("ARG", 'EXTRAS=""') in steps
    (words,) = [value.split() for name, value in steps if name == "RUN" and "/src" in value]
    told = subprocess.run(
        ["/bin/sh", "-c", f"printf %s {words[-1]}"], env={"EXTRAS": extras}, capture_output=True, text=True, check=True
    )
    assert told.stdout == installed


def test_the_container_runs_commands_that_there_are(steps: list[tuple[str, str]]) -> None:
    """What the container starts, and its health check, are command lines that animed understands."""
    said = dict(steps)
    entry, command = json.loads(said["ENTRYPOINT"]), json.loads(said["CMD"])
    health = json.loads(said["HEALTHCHECK"].partition(" CMD ")[2])
    assert entry[-1] == health[0] == "animed"
    for arguments in (command, health[1:]):
        assert not isinstance(parse(arguments), int)


def test_state_and_photos_lie_in_volumes(service: dict[str, Any], settings: config.Config) -> None:
    """The folders of the configuration lie in the volumes of the example: one for the state, one for all the photos."""
    volumes = [Path(volume.split(":")[1]) for volume in service["volumes"]]
    (inbox,) = settings.inboxes
    assert settings.state_dir in volumes
    (shared,) = [each for each in volumes if inbox.path.is_relative_to(each)]
    assert inbox.output.is_relative_to(shared)
    assert inbox.processed_dir is not None
    assert inbox.processed_dir.is_relative_to(shared)


def test_a_stop_leaves_time_for_running_photos(service: dict[str, Any], settings: config.Config) -> None:
    """The container's engine waits for longer than animed does for its running photos."""
    assert parse_duration(service["stop_grace_period"]) > settings.workers.stop_timeout + 5


def test_the_image_and_the_example_name_one_user(steps: list[tuple[str, str]], service: dict[str, Any]) -> None:
    """Without a change the example runs as the image does, as a user without rights over the machine."""
    assert dict(steps)["USER"] == service["user"]
    assert not service["user"].startswith("0")
