"""Photos that other watchers lost: no event, a gap, a busy file, a queue that overflows, a disk that was full."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from fault_system import reading_refused
from live_inbox import living
from watchdog.observers.api import BaseObserver

from animed.daemon.looking import Digest, OpenRoot, RootFound
from animed.errors import PhotoError
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from daemon_bench import Bench


NATIVE = RootFound((1, 1), "ext4", polled=False)


def deaf(run: Bench) -> Bench:
    """Start an inbox whose watch lives and never says a word."""
    run.inbox.start()
    run.answer(OpenRoot, NATIVE)
    run._answer_all()
    run.inbox.watching.live = False  # No threads stand behind the made-up watch: nothing is to look at them.
    run.turn()
    return run


@pytest.mark.parametrize(("watch", "wait"), [("native", 300), ("both", 30), ("auto", 300)])
def test_a_photo_without_an_event_is_found_by_the_next_scan(
    bench: Callable[..., Bench], watch: str, wait: float
) -> None:
    """A watch that never says a word costs one interval, not the photo; `both` polls besides."""
    run = deaf(bench(start=False, watch=watch, rescan_interval=300.0))
    run.world.write(b"a.jpg", b"one")
    run.run(wait + 3)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_what_came_while_the_service_was_down_is_found(bench: Callable[..., Bench]) -> None:
    """Photos of before the first start, and of between two runs, are drawn, each once."""
    run = bench(start=False)
    for name in (b"1.jpg", b"2.jpg", b"3.jpg"):
        run.world.write(name, name)
    run.start()
    run.run(3)
    run.draw_all()
    run.crash()
    run.world.write(b"4.jpg", b"four")
    run._open()
    run.start()
    run.run(3)
    run.draw_all()
    assert sorted(run.outcomes()) == [(f"{number}.jpg", "done") for number in range(1, 5)]


def test_a_photo_of_the_moment_in_which_the_watch_starts_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written while the observer starts has an event, or the scan, or both: it is taken once."""
    start = BaseObserver.start

    def slow_start(self: BaseObserver) -> None:
        (tmp_path / "inbox" / "before.jpg").write_bytes(b"photo")
        start(self)
        (tmp_path / "inbox" / "after.jpg").write_bytes(b"photo")

    monkeypatch.setattr(BaseObserver, "start", slow_start)
    with living(tmp_path) as live:
        live.until(lambda: len(live.taken) == 2 and live.finds.scans)
        live.write("fence.jpg")
        live.until(lambda: b"fence.jpg" in live.taken)
        assert sorted(live.taken) == [b"after.jpg", b"before.jpg", b"fence.jpg"]


def test_a_file_that_is_busy_twice_is_done_at_the_third_try(bench: Callable[..., Bench]) -> None:
    """EBUSY on opening costs a try each time, and the photo comes out when it can be opened."""
    run = bench(attempts=3)
    run.world.faults[Digest] = PhotoError(Reason.UNREADABLE, os.strerror(errno.EBUSY))
    run.sight()
    run.run(6)
    row = run.row()
    assert row is not None
    assert (row.status, row.attempts) == ("retry", 2)
    run.world.heal()
    run.run(30)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_ebusy_is_the_fault_of_the_photo_alone(tmp_path: Path) -> None:
    """A file that cannot be opened while its inbox can be listed is `unreadable`, which is tried again."""
    error = reading_refused(tmp_path, errno.EBUSY, 0o100644)
    assert (error.reason, error.detail) == (Reason.UNREADABLE, os.strerror(errno.EBUSY))


def test_a_photo_that_was_given_up_is_taken_when_it_changes(bench: Callable[..., Bench]) -> None:
    """Ten bad versions, all tries used up: the eleventh, good one is drawn all the same."""
    run = bench(attempts=2, poll_interval=30.0)
    for version in range(10):
        run.world.write(b"a.jpg", b"half%d" % version, mtime_ns=10 + version)
        run.run(33)
        while run.pool.jobs:
            run.fail("truncated")
            run.run(10)
    assert run.status() == "failed"
    run.world.write(b"a.jpg", b"whole", mtime_ns=99)
    run.run(33)
    run.draw_all()
    assert run.outcomes()[-1] == ("a.jpg", "done")
    assert run.status() == "done"


def test_a_second_photo_while_the_first_is_drawn(bench: Callable[..., Bench]) -> None:
    """What arrives while a photo is drawn is drawn after it; and so on."""
    run = bench(workers=1)
    for number in range(4):
        run.sight(b"%d.jpg" % number, b"%d" % number)
        run.sight(b"%d-next.jpg" % number, b"%d next" % number)
        run.draw_all()
    assert len(run.outcomes()) == 8
    assert set(run.outcomes()) == {(f"{n}{w}.jpg", "done") for n in range(4) for w in ("", "-next")}


def test_a_backlog_of_ten_loses_none_of_two_hundred(bench: Callable[..., Bench]) -> None:
    """Two hundred photos while the workers are blocked, room for ten: in the end there are two hundred pictures."""
    run = bench(backlog=10, batch=2, workers=1)
    for number in range(200):
        run.world.write(b"%03d.jpg" % number, b"%d" % number)
    run.inbox.scans.wanted = True
    run.run(60)
    assert len(run.parts.backlog.batcher) <= 10
    for _ in range(100):
        run.draw_all()
        run.run(2)
        if len(run.outcomes()) == 200:
            break
    assert sorted(run.outcomes()) == [(f"{number:03d}.jpg", "done") for number in range(200)]


def test_a_disk_that_was_full_once_costs_a_wait(bench: Callable[..., Bench]) -> None:
    """When the output is full while a picture is placed the photo waits, and is placed when there is room."""
    run = bench()
    fault = run.world.break_output()
    fault.code = errno.ENOSPC
    run.sight()
    run.run(10)
    assert run.outcomes() == []
    run.world.heal()
    run.run(70)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.log.events("file.done")[0]["attempt"] == 1


def test_fifty_files_in_new_folders_are_all_found(tmp_path: Path) -> None:
    """Folders that are made and filled at once, or moved in, are covered although they were not watched yet."""
    (tmp_path / "outside" / "trip").mkdir(parents=True)
    for number in range(10):
        (tmp_path / "outside" / "trip" / f"{number}.jpg").write_bytes(b"photo")
    with living(tmp_path, rescan_interval=0.0) as live:
        live.ready()
        for number in range(40):
            live.write(f"a/b{number % 4}/c/{number}.jpg")
        (tmp_path / "outside" / "trip").rename(live.root / "trip")
        live.until(lambda: len(live.taken) >= 50)
        assert len(set(live.taken)) == len(live.taken) == 50


def test_the_single_pass_takes_what_is_there(bench: Callable[..., Bench]) -> None:
    """`once` has an initial pass as its only one: what lies there is drawn, and then it is through."""
    run = bench(once=True, start=False)
    run.world.write(b"a.jpg", b"one")
    run.start()
    run.run(3)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.parts.is_through()
