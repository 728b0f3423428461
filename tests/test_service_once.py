"""A single pass on real processes, real files and the real network."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from harness import Service, photo, whole

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_once_works_through_the_inbox_and_tells_failures(service: Callable[..., Service]) -> None:
    """`once` draws what is there, records failures without waiting for the back-off, and exits 3."""
    run = service()
    good = photo(run.inbox / "good.jpg").read_bytes()
    (run.inbox / "cut.jpg").write_bytes(good[: len(good) // 2])
    result = run.once()
    assert result.returncode == 3, result.stderr
    assert run.pictures() == ["good.cel.jpg"]
    rows = json.loads(run.call("failed", "-c", str(run.config), "--json").stdout)
    assert [(os.path.basename(row["path"]), row["reason"]) for row in rows] == [("cut.jpg", "truncated")]
    assert run.once().returncode == 0


def test_once_with_paths_needs_no_configuration(service: Callable[..., Service]) -> None:
    """`once PATH` writes beside what is named, a link too, or into a folder, and never over what is there."""
    run = service()
    source = photo(run.root / "pictures" / "a.jpg")
    assert run.call("once", str(source)).returncode == 0
    assert run.call("once", str(source)).returncode == 0
    assert run.call("once", str(source), "-o", str(run.root / "aside")).returncode == 0
    assert sorted(p.name for p in source.parent.iterdir()) == ["a.cel-2.jpg", "a.cel.jpg", "a.jpg"]
    assert whole(run.root / "aside" / "a.cel.jpg")
    link = run.root / "links" / "b.jpg"
    link.parent.mkdir()
    link.symlink_to(source)
    assert run.call("once", str(link)).returncode == 0
    assert sorted(p.name for p in link.parent.iterdir()) == ["a.cel.jpg", "b.jpg"]
    assert len(list(source.parent.iterdir())) == 3


def test_once_with_a_folder_leaves_its_own_pictures_alone(service: Callable[..., Service]) -> None:
    """A second pass over a folder draws its photos, and not the pictures that the first pass put beside them."""
    run = service()
    photo(run.root / "pictures" / "a.jpg", 1)
    photo(run.root / "pictures" / "sub" / "b.png", 2)
    for _ in range(2):
        assert run.call("once", str(run.root / "pictures")).returncode == 0
    names = sorted(p.name for p in (run.root / "pictures").rglob("*") if p.is_file())
    assert names == ["a.cel-2.jpg", "a.cel.jpg", "a.jpg", "b.cel-2.png", "b.cel.png", "b.png"]
