"""What every test shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon_bench import Bench
from daemon_fakes import open_stages

from animed.schedule.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
