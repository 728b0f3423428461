"""Photos that look alike, on the whole service: real processes, the real library, the real network."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from harness import Service
from test_fingerprint import scene

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_copies_of_a_photo_share_its_picture(tmp_path: Path) -> None:
    """Saved again, resized and cropped copies get the first one's picture, after a restart too; others do not."""
    run = Service(tmp_path, inbox_keys="max_edge: 128\ndedupe: similar\nextensions: [jpg, png, webp]")
    try:
        first = scene(1)
        width, height = first.size
        first.save(run.inbox / "first.jpg", quality=92)
        run.start()
        assert run.wait_outcomes(1) == {"first.jpg": "done"}
        first.save(run.inbox / "again.jpg", quality=60)
        first.resize((width // 2, height // 2)).save(run.inbox / "half.webp")
        scene(2).save(run.inbox / "other.jpg")
        wanted = {"first.jpg": "done", "again.jpg": "duplicate", "half.webp": "duplicate", "other.jpg": "done"}
        assert run.wait_outcomes(4) == wanted
        run.kill()
        run.start()
        first.crop((10, 10, width - 10, height - 10)).save(run.inbox / "cropped.png")
        assert run.wait_outcomes(1) == {"cropped.png": "duplicate"}
        (line,) = run.events("file.duplicate")
        assert os.path.basename(line["of"]) == "first.cel.jpg"
        assert os.path.basename(line["output"]) == "cropped.cel.jpg"
        assert 0 < line["distance"] <= 44
        pictures = {name: (run.outbox / name).read_bytes() for name in run.pictures()}
        assert len(pictures) == 5
        assert len(set(pictures.values())) == 2
        assert run.status()["totals"]["duplicate"] == 3
    finally:
        run.close()


def test_copies_that_come_together_are_drawn_once(tmp_path: Path) -> None:
    """Of copies that come at once, in several workers, one is drawn, and the others wait for it."""
    run = Service(tmp_path, inbox_keys="max_edge: 256\ndedupe: similar", top_keys="workers: {count: 2}")
    try:
        for seed in (1, 2):
            for quality in (60, 75, 85, 95):
                scene(seed).save(run.inbox / f"{seed}-{quality}.jpg", quality=quality)
        run.start()
        outcomes = run.wait_outcomes(8)
        for letter in "12":
            assert sorted(how for name, how in outcomes.items() if name[0] == letter) == ["done", *["duplicate"] * 3]
        assert len(run.pictures()) == 8
        assert not run.events("worker.died", "file.retry")
    finally:
        run.close()
