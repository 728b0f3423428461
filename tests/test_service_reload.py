"""A changed configuration on the real service: real signals, real workers, real folders."""

from __future__ import annotations

import json
import signal
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest
from harness import Service, photo, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ONE_WORKER = "workers: {count: 1}\n"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Service]:
    """Return a service of one worker that is closed at the end."""
    made = Service(tmp_path, top_keys=ONE_WORKER)
    yield made
    made.close()


def rejected(run: Service, count: int) -> bool:
    return len(run.events("config.rejected")) == count


def hup(run: Service) -> None:
    assert run.process
    run.process.send_signal(signal.SIGHUP)


def test_photos_flow_through_a_reload(run: Service) -> None:
    """Another quality and a second inbox come while photos are drawn: each photo gets one picture, none is lost."""
    run.start()
    for number in range(12):
        photo(run.inbox / f"{number}.jpg", number, (200, 150))
    run.wait_outcomes(2)
    camera = run.root / "camera"
    camera.mkdir()
    photo(camera / "there.jpg", 100)
    output = run.root / "out2"
    with run.config.open("a") as file:
        keys = f"name: camera, path: {camera}, output: {output}, stable_for: 0.3s"
        file.write(f"    quality: 60\n  - {{{keys}}}\n")
    hup(run)
    run.until(lambda: run.events("config.reloaded"), "config.reloaded")
    for number in range(12, 16):
        photo(run.inbox / f"{number}.jpg", number, (200, 150))
    run.wait_outcomes(17)
    (line,) = run.events("config.reloaded")
    assert (line["changed"], line["added"]) == (["inboxes.phone.quality"], ["camera"])
    ends = Counter(row["path"] for row in run.events("file.done", "file.duplicate", "file.failed", "file.skipped"))
    assert set(ends.values()) == {1}
    assert set(run.outcomes().values()) == {"done"}
    assert run.pictures() == sorted(f"{number}.cel.jpg" for number in range(16))
    assert all(whole(run.outbox / name) for name in run.pictures())
    assert [path.name for path in output.iterdir()] == ["there.cel.jpg"]
    assert run.events("file.retry") == []
    assert [inbox["state"] for inbox in run.status()["inboxes"]] == ["ready", "ready"]
    assert run.stop() == -signal.SIGTERM


def test_a_wrong_file_is_refused_and_a_right_one_taken(run: Service) -> None:
    """A syntax error and an unknown key leave the service as it is; the command speaks as `check` does."""
    asked = ("-c", str(run.config))
    assert run.call("reload", *asked).returncode == 69
    run.start()
    good = run.config.read_text()
    for count, wrong in enumerate((good + "  - name: [\n", good.replace("max_edge:", "max_egde:")), 1):
        run.config.write_text(wrong)
        hup(run)
        run.until(partial(rejected, run, count), "config.rejected")
    assert "max_edge" in run.events("config.rejected")[-1]["errors"][0]
    refused, checked = run.call("reload", *asked), run.call("check", *asked)
    assert (refused.returncode, refused.stderr) == (78, checked.stderr)
    photo(run.inbox / "a.jpg", 1)
    assert run.wait_outcomes(1) == {"a.jpg": "done"}
    run.config.write_text(good.replace("{count: 1}", "{count: 1, max_images: 500}"))
    taken = run.call("reload", *asked)
    assert (taken.returncode, taken.stdout) == (
        0, "changed  workers.max_images\nthe workers are replaced, one by one\n"
    )  # fmt: skip
    run.until(lambda: len(run.events("worker.started")) == 2, "a new worker")
    assert [row["why"] for row in run.events("worker.recycled")] == ["reload"]
    photo(run.inbox / "b.jpg", 2)
    assert run.wait_outcomes(2) == {"a.jpg": "done", "b.jpg": "done"}
    assert json.loads(run.call("status", *asked, "--json").stdout)["state"] == "running"
