"""One inbox on a file system that hangs: everything else goes on, and the service ends on time.

The mounts are real, and so are the processes. A call that the file system's server has taken and does not answer is
beyond every signal: a process that has a thread in one cannot be waited for.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psutil
import pytest
from hanging_fs import ALL, HangingFs, refusal
from harness import Service, photo

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.skipif(bool(refusal()), reason=refusal())]

STOP_TIMEOUT = 2
LATEST = STOP_TIMEOUT + 5  # the promise itself, which is why this one duration is asserted
WORKERS = f"workers: {{count: 1, timeout: 3s, stop_timeout: {STOP_TIMEOUT}s}}\nretry: {{attempts: 2, delay: 0.3s}}"


class World(Service):
    """A service with one inbox that cannot hang, `bee`, and others on file systems that can."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.shares: list[HangingFs] = []
        self.entries = ""
        self.bee = self.add("bee", root / "bee-in", root / "bee-out")
        self.drawn = 0

    def add(self, name: str, inbox: Path, output: Path) -> Path:
        """Add an inbox, and return its folder."""
        inbox.mkdir(exist_ok=True)
        output.mkdir(exist_ok=True)
        self.entries += f"  - name: {name}\n    path: {inbox}\n    output: {output}\n"
        self.config.write_text(
            f"version: 1\nstate_dir: {self.state}\nlimits: {{min_free: 0}}\n{WORKERS}\n"
            f"defaults: {{max_edge: 64, stable_for: 0.3s, poll_interval: 1s}}\ninboxes:\n{self.entries}"
        )
        return inbox

    def share(self, name: str) -> HangingFs:
        """Mount a file system that can hang."""
        self.shares.append(HangingFs(self.root / name, self.root / f"{name}-backing"))
        return self.shares[-1]

    def draw_another(self) -> None:
        """See a photo of the inbox that cannot hang done."""
        self.drawn += 1
        name = photo(self.bee / f"bee-{self.drawn}.jpg", 1000 + self.drawn).name
        self.until(lambda: self.outcomes().get(name) == "done", name)

    def states(self) -> dict[str, str]:
        """Return each inbox's state, as `status` says."""
        return {inbox["name"]: inbox["state"] for inbox in self.status()["inboxes"]}

    def wait_hung(self, *shares: HangingFs) -> None:
        """Wait until each of these holds a call."""
        self.until(lambda: all(share.hung() for share in shares), "a call that hangs")

    def end(self) -> None:
        """Stop the service, in the time that the promise lets it take."""
        assert self.process
        began = time.monotonic()
        assert self.stop(seconds=60) == -signal.SIGTERM
        assert time.monotonic() - began < LATEST

    def times_done(self) -> dict[str, int]:
        """Return how often each photo was done, over all runs."""
        rows = []
        for number in range(1, self.runs + 1):
            self.log = self.root / f"log-{number}.jsonl"
            rows += self.events("file.done")
        return Counter(os.path.basename(row["path"]) for row in rows)

    def close(self) -> None:
        """Leave nothing behind, and nothing that hangs."""
        for share in self.shares:
            share.let_go()
        super().close()
        for share in self.shares:
            share.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_shares_that_hang_hold_up_their_inboxes_alone(world: World) -> None:
    """One share hangs from the start, another in the middle of reading, a third when pictures are placed.

    The other inbox goes on, `status` answers, a share that comes back is worked on, the service ends on time, and in
    the end each photo was drawn once.
    """
    dead, slow, full = world.share("dead"), world.share("slow"), world.share("full")
    world.add("dead", dead.mount, world.root / "dead-out")
    world.add("slow", slow.mount, world.root / "slow-out")
    placed = world.add("full", world.root / "full-in", full.mount)
    dead.hang(*ALL)
    world.start()
    slow.hang("read")
    full.hang("link", "rename", "fsync")
    for name in ("s1.jpg", "s2.jpg", "s3.jpg"):
        photo(slow.backing / name, ord(name[1]))
    photo(dead.backing / "d1.jpg", 201)
    photo(placed / "f1.jpg", 202)
    world.wait_hung(dead, slow, full)
    world.draw_another()
    stuck = dict.fromkeys(("dead", "slow", "full"), "unavailable")
    world.until(lambda: world.states() == stuck | {"bee": "ready"}, "three unavailable inboxes")
    world.draw_another()
    slow.let_go()
    world.until(
        lambda: {"s1.jpg", "s2.jpg", "s3.jpg"} <= world.outcomes().keys(), "the photos of a share that came back"
    )
    slow.hang("getattr", "opendir", "readdir")
    world.wait_hung(slow)
    world.draw_another()
    world.end()
    for share in world.shares:
        share.let_go()
    world.start()
    world.until(lambda: {"d1.jpg", "f1.jpg"} <= {*world.times_done()}, "the other photos")
    assert world.stop() == -signal.SIGTERM
    counts = world.times_done()
    assert set(counts.values()) == {1}
    assert sorted(counts) == ["bee-1.jpg", "bee-2.jpg", "bee-3.jpg", "d1.jpg", "f1.jpg", "s1.jpg", "s2.jpg", "s3.jpg"]
    assert [path.name for path in full.backing.iterdir()] == ["f1.cel.jpg"]


@pytest.mark.parametrize("where", ["read", "write"])
def test_a_worker_that_hangs_is_replaced_and_its_photo_not_blamed(world: World, where: str) -> None:
    """The only worker hangs where nothing ends it: another takes its place, and no photo loses a try."""
    share = world.share("share")
    folders = (share.mount, world.root / "out") if where == "read" else (world.root / "in", share.mount)
    inbox = world.add("share", *folders)
    world.start()
    worker = world.workers()[0]
    share.hang(where, who="animed-worker")
    photo((share.backing if where == "read" else inbox) / "a.jpg", 1)
    world.wait_hung(share)
    share.hang(where)
    world.draw_another()
    (died,) = world.events("worker.died")
    assert (died["worker"], died["cause"]) == (worker.pid, "unkillable")
    assert not world.events("file.retry", "file.failed")
    share.let_go()
    world.until(lambda: world.outcomes().get("a.jpg") == "done", "the photo")
    world.until(lambda: not is_running(worker.pid), "the end of the worker that was given up")
    share.hang(where, who="animed-worker")
    photo((share.backing if where == "read" else inbox) / "b.jpg", 2)
    world.wait_hung(share)
    world.end()
    assert world.times_done() == {"a.jpg": 1, "bee-1.jpg": 1}


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_commands_and_a_single_pass_give_up_a_share_that_hangs(world: World) -> None:
    """They look at it for a limited time, say so, and answer about the other inbox."""
    share = world.share("share")
    inbox = world.add("share", share.mount, world.root / "out")
    (world.bee / "bad.jpg").write_bytes(b"no picture")
    good = photo(world.bee / "good.jpg", 1)
    photo(share.backing / "a.jpg", 2)
    share.hang(*ALL)
    first = asked(world, ["check"], ["check", "--explain", str(inbox / "a.jpg")], ["once"])
    check, explained, single = first
    assert (check.returncode, explained.returncode, single.returncode) == (75, 0, 75), [each.stderr for each in first]
    assert "FAIL  inbox share" in check.stdout
    assert "does not answer" in check.stdout
    assert "ok    inbox bee" in check.stdout
    assert "ok    picture" in check.stdout
    assert "does not answer" in explained.stdout
    assert "does not answer" in single.stderr
    assert [path.name for path in (world.root / "bee-out").iterdir()] == ["good.cel.jpg"]
    explained, failed, status = asked(world, ["check", "--explain", str(good)], ["failed"], ["status"])
    assert "done" in explained.stdout
    assert "bad.jpg" in failed.stdout
    assert status.returncode == 69
    (retried,) = asked(world, ["retry", str(world.bee / "bad.jpg"), str(inbox / "a.jpg")])
    assert "1 photo will be tried again" in retried.stdout


def asked(world: World, *commands: list[str]) -> list[subprocess.CompletedProcess[str]]:
    """Run commands side by side: each of them waits for what does not answer."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda each: world.call(*each, "-c", str(world.config)), commands))
