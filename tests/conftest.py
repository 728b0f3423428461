"""What every test shares."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from command_support import Setup
from daemon_bench import Bench
from daemon_fakes import open_stages
from engine_fakes import Driver, plan, spec
from harness import Service

from animed.detector import FACES
from animed.schedule.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.engine.plan import Plan
    from animed.engine.protocol import WorkerSpec


BESIDE: Final = Path(__file__).parents[2] / "shared"  # where files of others may lie that cannot ship


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let files of others be used, where somebody has them."""
    parser.addoption("--photos", metavar="FOLDER", help=f"awkward photos of others; {BESIDE}/photos if it is there")
    parser.addoption("--weights", metavar="FOLDER", help=f"public weights; {BESIDE}/weights if it is there")
    parser.addoption("--train", action="store_true", help="test_corpus.py draws all plain photos, not every fiftieth")


def of_others(config: pytest.Config, sort: str, *needed: str) -> Path:
    """Return the folder of an option; skip the test where none was given and none lies beside the project."""
    given = config.getoption(sort)
    folder = Path(given) if given else BESIDE / sort
    missing = [name for name in needed if not (folder / name).exists()]
    if given and missing:
        raise pytest.UsageError(f"--{sort}: {given} does not hold {', '.join(missing)}")
    if missing:
        pytest.skip(f"the {sort} of others are not here; --{sort} says where they are")
    return folder


@pytest.fixture(scope="session")
def photos_of_others(pytestconfig: pytest.Config) -> Path:
    """Return the folder of the awkward photos."""
    return of_others(pytestconfig, "photos", "heic", "odd", "orientation", "train")


@pytest.fixture(scope="session")
def weights_of_others(pytestconfig: pytest.Config) -> Path:
    """Return the folder of the public weights."""
    return of_others(pytestconfig, "weights", FACES.file_name, "animeganv2_hayao.safetensors")


@pytest.fixture(scope="session", autouse=True)
def _way_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let others pass through the folders above each test's own: some tests become another user."""
    base = tmp_path_factory.getbasetemp()
    for folder in (base, *base.parents):
        if folder == base or folder.name.startswith("pytest-"):
            folder.chmod(folder.stat().st_mode | 0o011)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return where a ledger is to be, in a folder that is not there yet."""
    return str(tmp_path / "state" / "ledger.db")


@pytest.fixture
def ledger(path: str) -> Iterator[Ledger]:
    """Open an empty ledger."""
    with Ledger.open(path) as opened:
        yield opened


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """Return a configuration with one inbox."""
    return Setup.make(tmp_path).config


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Make services that are closed at the end."""
    made: list[Service] = []

    def make(**options: object) -> Service:
        made.append(Service(tmp_path, **options))  # type: ignore[arg-type]  # each test passes the harness's own options
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Make daemons on fakes; at the end no staged picture may be held open by one that has nothing on its way."""
    made: list[Bench] = []
    before = open_stages()

    def make(**options: object) -> Bench:
        folder = tmp_path / f"state-{len(made)}"
        folder.mkdir()
        made.append(Bench(folder, **options))  # type: ignore[arg-type]  # each test passes the bench's own options
        return made[-1]

    yield make
    idle = not any(run.desk.actives for run in made)
    for run in made:
        run.crash()
    assert not idle or open_stages() == before


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Return a function that starts a pool of real processes, which is ended after the test."""
    with contextlib.ExitStack() as stack:

        def start(of: Plan | None = None, to: WorkerSpec | None = None) -> Driver:
            driver = Driver(tmp_path, of or plan(), to or spec())
            stack.callback(driver.end)
            return driver

        yield start
