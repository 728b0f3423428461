"""Awkward files of others, which may not ship, where somebody has them (`--photos FOLDER`).

Each ends as it should: tests/data/corpus_outcomes.json says how, file by file. Each `done` was held against what
ImageMagick and libvips show of the file, each refusal against what they say of it; `python tests/measure.py corpus
FOLDER` runs the real workers.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from photo_bench import Bench

from animed.errors import PhotoError

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE: Final[dict[str, str]] = json.loads((Path(__file__).parent / "data" / "corpus_outcomes.json").read_text())
FOLDERS: Final = ("heic", "odd", "orientation")
EDGE: Final = 64  # pixels; what is looked at is all before the network and after it


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("inbox"))


def files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.iterdir()) if path.is_file())


def outcome(bench: Bench, path: Path) -> str:
    """Return `done` or the reason of the failure, which must come with a detail."""
    try:
        drawn = bench.draw(path.read_bytes(), path.name, max_edge=EDGE, max_pixels=120_000_000)
    except PhotoError as error:
        return error.reason if error.detail else "no detail"
    pixels = drawn.pixels()
    assert 1 <= max(pixels.shape[:2]) <= EDGE, path.name
    return "done"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_ends_as_it_should(bench: Bench, photos_of_others: Path, folder: str) -> None:
    """Each file is done, or refused for the reason that the table says; nothing else comes out of the way to it."""
    found = {f"{folder}/{path.name}": outcome(bench, path) for path in files(photos_of_others / folder)}
    assert found == {name: wanted for name, wanted in TABLE.items() if name.startswith(f"{folder}/")}


def test_the_eight_orientations_show_one_picture(bench: Bench, photos_of_others: Path) -> None:
    """Real photos of one scene, stored in eight ways, give nearly the same pixels."""
    shown = {}
    for path in files(photos_of_others / "orientation"):
        drawn = bench.draw(path.read_bytes(), path.name, max_edge=EDGE, output_format="png")
        shown[path.name] = drawn.pixels()[..., :3].astype(int)
    first = next(iter(shown.values()))
    assert {picture.shape for picture in shown.values()} == {first.shape}
    assert {name for name, picture in shown.items() if np.abs(picture - first).mean() > 4} == set()


def test_photos_that_are_sound_are_all_done(bench: Bench, photos_of_others: Path, pytestconfig: pytest.Config) -> None:
    """Hundreds of plain photos are done, each of them (with --train; else every fiftieth)."""
    every = 1 if pytestconfig.getoption("--train") else 50
    chosen = [path for number, path in enumerate(files(photos_of_others / "train")) if number % every == 0]
    assert Counter(outcome(bench, path) for path in chosen) == {"done": len(chosen)}
