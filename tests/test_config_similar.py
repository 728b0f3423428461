"""The distance of `dedupe: similar`, and the look for the extras, which are not imported."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from animed.config import load
from animed.daemon.changes import changes
from animed.daemon.workforce import spec_of
from animed.engine.plan import Plan
from animed.engine.protocol import BootFailed, WorkerSpec
from animed.engine.worker import build
from animed.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "inboxes:\n  - {name: phone, path: in, output: out, dedupe: DEDUPE}\n"


@pytest.mark.parametrize("distance", ["-1", "101", "1.5", "near"])
def test_a_distance_that_is_none_is_refused(tmp_path: Path, distance: str) -> None:
    """Beyond 100 of 256 bits unrelated photos would be taken for alike."""
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", f"content, similar_distance: {distance}"))
    with pytest.raises(ConfigError, match="similar_distance"):
        load(None, environ={"HOME": "/home/ada"}, cwd=tmp_path)


def test_extras_are_looked_for_without_being_imported(tmp_path: Path) -> None:
    """The process that reads the configuration stays free of what only workers load."""
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", "similar, faces: auto"))
    code = (
        "import sys; from pathlib import Path; from animed.config import load; "
        "from animed.daemon.demands import demand_extras; from animed import extras; "
        "demand_extras(load(None, environ={'HOME': '/home/ada'}, cwd=Path(sys.argv[1])), "
        "installed=lambda extra: extras.installed(extra) or True); "
        "sys.exit(bool({'PIL', 'imagehash', 'numpy', 'scipy', 'cv2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60).returncode == 0


def test_a_library_that_is_broken_is_not_the_fault_of_photos(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is to compare photos loads it before it is ready, and says so when it cannot; others do without."""
    monkeypatch.setitem(sys.modules, "imagehash", None)
    for compare, found in ((True, "imagehash"), (False, "a worker needs at least one style")):
        spec = WorkerSpec("animed.engine.pipeline:make", {"weights_files": (), "threads": 1, "compare": compare})
        built = build(spec)
        assert isinstance(built, BootFailed)
        assert built.final
        assert found in built.title


@pytest.mark.parametrize("dedupe", ["similar", "content"])
def test_workers_are_told_whether_they_are_to_compare(tmp_path: Path, dedupe: str) -> None:
    """One inbox that compares is enough; a reload that begins with it, or ends it, replaces the workers."""
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", dedupe))
    config = load(None, environ={"HOME": "/home/ada"}, cwd=tmp_path)
    spec = spec_of(config, (), Plan(1, 1, 1, 1 << 30), detector=None)
    assert spec.arguments["compare"] == (dedupe == "similar")
    other = {"dedupe": "content" if dedupe == "similar" else "similar"}
    changed = config.model_copy(update={"inboxes": (config.inboxes[0].model_copy(update=other),)})
    assert changes(config, changed).workers
