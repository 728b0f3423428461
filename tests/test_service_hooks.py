"""Hooks and report files in the real service: real programs, real signals, a real output folder."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import psutil
import pytest
from harness import Service, photo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a service with all hooks and reports; it leaves nothing behind."""
    hook = tmp_path / "hook.sh"
    # The status is asked of the very service that waits for this hook: neither may wait for the other.
    hook.write_text(
        f"""#!/bin/sh
printf "%s %s %s\\n" "$HOOK_EVENT" "$HOOK_STATUS$HOOK_DONE" "$*" >>"{tmp_path}/told"
echo "heard of $HOOK_EVENT"
case $HOOK_EVENT in
success)  # The very service that runs this hook is asked: neither may wait for the other.
    "{sys.executable}" -m animed status >"{tmp_path}/answer" 2>&1
    echo "exit $?" >>"{tmp_path}/answer" ;;
failure)
    exec sleep 1000 ;;
esac
"""
    )
    hook.chmod(0o755)
    hooks = f"hooks: {{on_success: {hook}, on_failure: {hook}, on_batch: [{hook}, --all]}}"
    made = Service(
        tmp_path,
        top_keys=f"workers: {{count: 1, stop_timeout: 3s}}\n{hooks}",
        inbox_keys="report: file\nrescan_interval: 1s",
    )
    yield made
    made.close()


def told(service: Service) -> list[str]:
    path = service.root / "told"
    return path.read_text().splitlines() if path.exists() else []


def heard(service: Service) -> list[str]:
    """Return the kinds of events that hooks were started for."""
    return [line.split(" ")[0] for line in told(service)]


def sleepers(service: Service) -> list[psutil.Process]:
    """Return the hooks that never end."""
    assert service.process
    return [each for each in psutil.Process(service.process.pid).children() if each.name() == "sleep"]


def test_hooks_and_reports_of_a_real_service(service: Service) -> None:
    """Each outcome starts its hook, the folder tells what failed, and nothing outlives a stop or a kill -9."""
    service.start()
    good = photo(service.inbox / "$(touch pwned) a.jpg")
    bad = service.inbox / "-rf.jpg"
    bad.write_bytes(b"this is no picture")
    service.wait_outcomes(2)
    picture = service.outbox / "$(touch pwned) a.cel.jpg"
    service.until(lambda: {"success", "failure", "batch"} <= set(heard(service)), "a hook of each kind")
    assert f"success done {picture} {good}" in told(service)
    assert f"failure failed {bad}" in told(service)
    assert any(line.endswith(" --all") for line in told(service))
    answer = service.root / "answer"
    service.until(lambda: answer.exists() and "exit " in answer.read_text(), "the status that the hook asked for")
    assert answer.read_text().endswith("exit 0\n"), answer.read_text()
    assert not list(service.root.rglob("pwned"))
    service.until(lambda: service.events("hook.output"), "the line that a hook printed")
    note, status = service.outbox / "-rf.jpg.failed.txt", service.outbox / "animed-status.txt"
    service.until(note.exists, "the note about the failed photo")
    assert "This is not a picture" in note.read_text()
    service.until(status.exists, "the status")
    (sleeper,) = service.until(lambda: sleepers(service), "the hook that never ends")
    assert os.getsid(sleeper.pid) == sleeper.pid

    service.kill()
    service.until(lambda: not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE, "the end of the hook")

    bad.unlink()
    service.start()
    service.until(lambda: not note.exists(), "the end of the note, found by the search of a new start")
    assert (heard(service).count("success"), heard(service).count("failure")) == (1, 1)
    second = service.inbox / "second.jpg"
    second.write_bytes(b"no picture either")
    (sleeper,) = service.until(lambda: sleepers(service), "the second hook that never ends")
    assert service.stop() == -signal.SIGTERM
    assert not sleeper.is_running()
    assert [line["cause"] for line in service.events("hook.failed")] == ["stop"]
    assert status.read_text().startswith("animed: stopped at ")
    assert "second.jpg: this is not a picture" in status.read_text()
    assert {name for name in service.pictures() if name.startswith(".")} == set()


def test_a_single_pass_has_hooks_and_reports_too(service: Service) -> None:
    """`once` over the inboxes runs the hooks to their end, and leaves its status as finished."""
    photo(service.inbox / "a.jpg")
    done = service.once()
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(heard(service)) == ["batch", "success"]
    assert (service.outbox / "animed-status.txt").read_text().startswith("animed: finished at ")
