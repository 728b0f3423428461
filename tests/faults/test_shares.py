"""Shares, bind mounts and missing mounts. What this machine has not (a real outage of NFS) comes through the seams."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest
from delivery_fakes import FakeSystem
from live_inbox import living

from animed.config import InboxConfig
from animed.daemon.health import ScanClock
from animed.daemon.looking import OpenRoot, RootFound, Scan, ScanEnded
from animed.daemon.report import Reporter
from animed.delivery.publish import Placed, discard, place
from animed.engine.staging import write
from animed.intake.rules import Rules
from animed.intake.scan import Scanner
from animed.records import Stage
from animed.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from daemon_bench import Bench

    from animed.system import Listed


class SlowShare(System):
    """A share on which each listing takes a second of a made-up clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.listings = 0
        self.stats = 0

    def clock(self) -> float:
        """Return the time."""
        return self.now

    def scandir(self, folder: int) -> AbstractContextManager[Iterable[Listed]]:
        """List slowly."""
        self.listings += 1
        self.now += 1.0
        return super().scandir(folder)


def test_a_slow_share_is_listed_half_of_the_time_at_most(tmp_path: Path) -> None:
    """A pass of three seconds with an interval of half a second is followed by three seconds of rest."""
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    share = SlowShare()
    scan = Scan(Scanner(str(tmp_path), Rules(extensions=["jpg"])), clock=share.clock)
    (ended,) = scan.slices(share)
    assert isinstance(ended, ScanEnded)
    assert ended.wall_s == 3.0
    clock = ScanClock(0.5)
    for wanted in (False, True):
        clock.begin()
        clock.end(ended.cpu_s, 10.0, wall_s=ended.wall_s)
        clock.wanted = wanted
        due = clock.next_due()
        assert due is not None
        assert due >= 13.0


def test_waiting_between_slices_is_no_cost_of_a_scan(tmp_path: Path) -> None:
    """What the thread does between two slices of a scan (it places pictures) does not put off the next scan."""
    for number in range(600):
        (tmp_path / f"{number}.jpg").touch()
    share = SlowShare()
    answers = []
    scanner = Scanner(str(tmp_path), Rules(extensions=["jpg"]))
    for answer in Scan(scanner, clock=share.clock).slices(share):
        share.now += 1000
        answers.append(answer)
    assert isinstance(answers[-1], ScanEnded)
    assert answers[-1].wall_s == 1.0


def test_polling_is_rare_and_cheap_by_default(tmp_path: Path) -> None:
    """A pass over a thousand photos in fifty folders is 51 listings; by default one comes every half minute at most."""
    for number in range(1000):
        folder = tmp_path / f"d{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.jpg").touch()
    share = SlowShare()
    assert len(list(Scanner(str(tmp_path), Rules(extensions=["jpg"])).scan(system=share))) == 1000
    assert share.listings == 51
    config = InboxConfig(name="a", path=tmp_path / "in", output=tmp_path / "out")
    assert min(config.poll_interval, config.rescan_interval) >= 30


def test_nothing_is_written_below_an_empty_mount_point(tmp_path: Path) -> None:
    """Without its marker an inbox is unavailable, nothing in it is looked at, and nothing is put anywhere."""
    with living(tmp_path, require_marker=True) as live:
        live.write("a.jpg")
        live.until(lambda: live.inbox.state == "unavailable")
        for _ in range(5):
            live.skip(61)
            live.turn()
        assert live.taken == []
        assert sorted(os.listdir(live.root)) == ["a.jpg"]
        assert os.listdir(live.output) == []
        (told,) = live.log.events("inbox.unavailable")
        assert ".animed-inbox" in told["detail"]
        (live.root / ".animed-inbox").touch()
        live.skip(61)
        live.until(lambda: live.taken == [b"a.jpg"])


def test_a_root_that_comes_late_is_picked_up(tmp_path: Path) -> None:
    """An inbox that is mounted two seconds after the start is watched and scanned then."""
    (tmp_path / "inbox").mkdir()
    with living(tmp_path) as live:
        live.root.rmdir()
        live.skip(31)
        live.until(lambda: live.inbox.state == "unavailable")
        live.write("a.jpg")
        live.skip(2)
        live.until(lambda: live.taken == [b"a.jpg"])
        assert live.inbox.state == "ready"


def test_what_was_done_stays_done_while_its_share_is_away(bench: Callable[..., Bench]) -> None:
    """A missing inbox deletes no record, and a share that comes back empty first and full later draws nothing twice."""
    run = bench(poll_interval=30.0)
    run.sight(b"a.jpg", b"one")
    run.draw_all()
    photos = dict(run.world.photos)
    run.world.break_inbox()
    run.restart()
    run.run(100)
    assert run.state() == "unavailable"
    assert run.status() == "done"
    run.world.heal()
    run.world.photos.clear()
    run.run(200)
    assert run.status() == "done"
    run.world.identity = (2, 1)
    run.world.photos.update(photos)
    run.run(200)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_a_place_that_comes_and_goes_is_told_at_each_turn_only(bench: Callable[..., Bench]) -> None:
    """A share that fails a hundred probes is one line, and one more when it is back."""
    run = bench(poll_interval=30.0)
    run.world.break_inbox()
    run.run(6000)
    run.world.heal()
    run.run(100)
    names = [name for name in run.log.names() if name in {"inbox.unavailable", "inbox.recovered"}]
    assert names == ["inbox.unavailable", "inbox.recovered"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_share_that_refuses_modes_owners_and_times_gets_its_pictures(tmp_path: Path, code: int) -> None:
    """chmod, chown and utime are refused throughout: the picture is placed, and each refusal is told once."""

    def squashed(name: str, _arguments: tuple[Any, ...]) -> None:
        if name in {"chmod", "chgrp", "utime"}:
            raise OSError(code, os.strerror(code))

    stage = Stage(str(tmp_path), ".syncthing.animed-test-", 0o600, keep_mtime=True)
    before = os.umask(0o022)
    try:
        refusing = FakeSystem(hook=squashed)
        staged, fd = write(b"picture", stage, 1_600_000_000_000_000_000, system=refusing)
        placed = place(
            staged, fd, stage=stage, output=str(tmp_path), target=b"sub/a.jpg", dir_mode=0o770, group=12345,
            system=refusing,
        )  # fmt: skip
    finally:
        os.umask(before)
    discard(staged, fd, stage=stage)
    assert isinstance(placed, Placed)
    assert (tmp_path / "sub" / "a.jpg").read_bytes() == b"picture"
    assert sorted({note.partition(" could")[0] for note in placed.notes}) == [
        "the group of a file", "the group of a folder", "the mode of a file", "the mode of a folder",
    ]  # fmt: skip

    class Log:
        def __init__(self) -> None:
            self.told: list[str] = []

        def warning(self, _event: str, *, inbox: str, detail: str) -> None:
            self.told.append(detail)

    log: Any = Log()
    reporter = Reporter(log, {"phone": "/in"})
    for _ in range(3):
        reporter.place_notes("phone", placed.notes)
    assert sorted(log.told) == sorted(set(placed.notes))


def test_no_look_without_need(bench: Callable[..., Bench]) -> None:
    """A watched inbox without a rescan interval is asked for its root's number now and then, and for nothing else."""
    run = bench(start=False, watch="native")
    run.inbox.start()
    run.answer(OpenRoot, RootFound((1, 1), "ext4", polled=False))
    run._answer_all()
    run.inbox.watching.live = False  # No threads stand behind the made-up watch: nothing is to look at them.
    run.turn()
    run.run(3600)
    assert run.daemon._next_deadline(run.now) is None
    assert run.thread.requests == []
