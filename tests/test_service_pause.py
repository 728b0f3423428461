"""A pause of the real service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import Service, photo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_a_pause_outlives_a_restart_until_it_is_ended(tmp_path: Path) -> None:
    """Pause, restart, still paused with a photo in the queue and a passing health check; resume, and it is done."""
    run = Service(tmp_path, top_keys="logging: {level: debug}")
    try:
        run.start()
        for said in ("paused: ", "already paused"):
            result = run.call("pause", "-c", str(run.config))
            assert (result.returncode, result.stdout[: len(said)]) == (0, said), result.stderr
        assert run.stop() == -15
        run.start()
        photo(run.inbox / "a.jpg")
        run.until(lambda: run.events("file.seen"), "the photo")
        state = run.status()
        assert (state["state"], state["paused"]["by"], state["queue"]["depth"]) == ("paused", "user", 1)
        assert run.call("status", "--check", "-c", str(run.config)).returncode == 0
        assert run.call("rescan", "-c", str(run.config)).stdout == "1 inbox is looked through\n"
        assert (run.outcomes(), run.pictures()) == ({}, [])
        assert run.call("resume", "-c", str(run.config)).stdout == "resumed\n"
        assert run.wait_outcomes(1) == {"a.jpg": "done"}
        assert [row["by"] for row in run.events("daemon.paused", "daemon.resumed")] == ["user", "user"]
    finally:
        run.close()
