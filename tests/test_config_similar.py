"""The distance of `dedupe: similar`, and the look for the extras, which are not imported."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from animed.config import load
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
