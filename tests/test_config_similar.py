"""The key `dedupe: similar` needs an extra, which is looked for and not imported."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from animed.config import load
from animed.errors import EXIT_CONFIG, ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "inboxes:\n  - {name: phone, path: in, output: out, dedupe: DEDUPE}\n"


def test_similar_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the configuration is refused, with what to install; nobody else misses it."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "imagehash" else real(name))
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", "similar"))
    with pytest.raises(ConfigError, match=r"(?s)dedupe.*similar.*pip install 'animed\[similar\]'") as caught:
        load(None, environ={"HOME": "/home/ada"}, cwd=tmp_path)
    assert caught.value.exit_status == EXIT_CONFIG
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", "content"))
    assert load(None, environ={"HOME": "/home/ada"}, cwd=tmp_path).inboxes[0].dedupe == "content"


@pytest.mark.parametrize("distance", ["-1", "101", "1.5", "near"])
def test_a_distance_that_is_none_is_refused(tmp_path: Path, distance: str) -> None:
    """Beyond 100 of 256 bits unrelated photos would be taken for alike."""
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", f"content, similar_distance: {distance}"))
    with pytest.raises(ConfigError, match="similar_distance"):
        load(None, environ={"HOME": "/home/ada"}, cwd=tmp_path)


def test_similar_is_looked_for_without_being_imported(tmp_path: Path) -> None:
    """The process that reads the configuration stays free of Pillow and numpy."""
    (tmp_path / "config.yaml").write_text(TEXT.replace("DEDUPE", "similar"))
    code = (
        "import sys; from pathlib import Path; from animed.config import load; "
        "config = load(None, environ={'HOME': '/home/ada'}, cwd=Path(sys.argv[1])); "
        "assert config.inboxes[0].dedupe == 'similar'; "
        "sys.exit(bool({'PIL', 'imagehash', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60).returncode == 0
