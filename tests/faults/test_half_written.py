"""Photos that are still being written: slow uploads, pauses, empty placeholders, temporary names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from daemon_fakes import stat_of
from live_inbox import living

from animed.intake.settle import Settled, Settler, Unsettled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from daemon_bench import Bench

PATH = b"a.jpg"
FIRST = replace(stat_of(b"photo"), inode=7)


def upload(settler: Settler, pauses: list[float], *, events: bool) -> tuple[float, list[tuple[float, object]]]:
    """Write in steps with these pauses between them; return when the last step was, and the verdicts with their times.

    Without events only a poll every tenth of a second tells of a change, as on a share that another machine writes to.
    """
    steps, at = [0.0], 0.0
    for pause in pauses:
        at += pause
        steps.append(at)
    said: list[tuple[float, object]] = []
    for tick in range(int(at * 20) + 1200):
        now = tick / 20
        size = sum(step <= now + 1e-9 for step in steps)
        stat = replace(FIRST, size=size, mtime_ns=size)
        if events and any(abs(step - now) < 0.025 for step in steps):
            settler.hint(PATH, now)
        elif not events and tick % 2 == 0 and not [verdict for _, verdict in said if verdict == Settled(PATH, stat)]:
            settler.hint(PATH, now, stat=stat)
        for path in settler.due(now):
            verdict = settler.observe(path, stat, now)
            said += [] if verdict is None else [(now, verdict)]
    return at, said


@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize(
    ("stable_for", "pauses"),
    [(0.3, [0.1] * 10), (5.0, [0.2, 4.0, 0.2, 3.5]), (30.0, [20.0, 25.0, 29.0])],
)
def test_an_upload_with_pauses_is_taken_once_and_whole(stable_for: float, pauses: list[float], events: bool) -> None:
    """Pauses shorter than `stable_for` do not end an upload, with and without events; its end is noticed soon."""
    last, said = upload(Settler(stable_for, 600.0), pauses, events=events)
    settled = [(at, verdict) for at, verdict in said if isinstance(verdict, Settled)]
    assert [verdict.stat.size for _, verdict in settled] == [len(pauses) + 1]
    assert settled[0][0] >= last + stable_for - 0.06
    assert settled[0][0] <= last + 2 * stable_for + 3


def test_the_quiet_time_of_the_inbox_is_honoured(bench: Callable[..., Bench]) -> None:
    """With `stable_for: 30s` nothing is read before thirty quiet seconds."""
    run = bench(stable_for=30.0)
    run.world.write(PATH, b"one")
    run.inbox.hint(PATH, run.now)
    run.run(29)
    assert not run.pool.jobs
    run.run(2)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_an_empty_placeholder_becomes_one_photo(bench: Callable[..., Bench]) -> None:
    """A file that is made empty and filled a second later gives one outcome, that of its content."""
    run = bench()
    run.world.write(PATH, b"")
    run.inbox.hint(PATH, run.now)
    run.run(1)
    run.world.write(PATH, b"content", mtime_ns=2)
    run.inbox.hint(PATH, run.now)
    run.run(5)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_a_file_that_never_rests_is_waiting_and_no_success(bench: Callable[..., Bench]) -> None:
    """While a file keeps changing it is told and counted as waiting; it has no outcome and no picture."""
    run = bench(stable_max=10.0)
    for second in range(60):
        run.world.write(PATH, b"x" * (second + 1), mtime_ns=second + 1)
        run.inbox.hint(PATH, run.now)
        run.run(0.25)
    assert run.daemon.status()["inboxes"][0]["waiting"] == 1
    assert run.log.events("file.waiting")
    assert run.outcomes() == []
    assert run.names() == []
    assert run.status() is None


def test_a_waiting_file_is_told_of_by_its_settler() -> None:
    """What is written to for longer than `stable_max` is told of, and settles when its writer rests."""
    _, said = upload(Settler(0.3, 5.0), [0.1] * 100, events=True)
    assert [type(verdict) for _, verdict in said] == [Unsettled, Settled]


def test_half_a_photo_is_tried_again_when_the_rest_has_come(bench: Callable[..., Bench]) -> None:
    """An upload that pauses for too long costs a try: `truncated` is no outcome while the file still grows."""
    run = bench()
    run.sight(PATH, b"half")
    run.fail("truncated")
    assert run.outcomes() == []
    run.sight(PATH, b"half and the rest", mtime_ns=2)
    run.run(20)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    row = run.row()
    assert row is not None
    assert row.size == len(b"half and the rest")


TEMPORARY = (
    "a.jpg.part", ".a.jpg.Ab12Cd", "a.jpg.crdownload", ".syncthing.a.jpg.tmp", "~syncthing~a.jpg.tmp", "a.jpg.filepart",
    "a.jpg.temp", ".trashed-1690000000-a.jpg", ".pending-1690000000-a.jpg", "a.jpg.tacitpart", "a.jpg.!sync",
    ".a.jpg.~1a2b3c4d", "a.jpg.opdownload", "a.jpg.aria2",
)  # fmt: skip


def test_temporary_names_are_left_alone_until_they_get_their_own(tmp_path: Path) -> None:
    """A file under a temporary name is not looked at, by event or scan; renamed, it is taken, exactly once."""
    with living(tmp_path) as live:
        live.write("before/a.jpg.part")
        live.ready()
        for number, name in enumerate(TEMPORARY):
            live.write(f"{number}/{name}")
            live.write(f"{number}/fence.jpg")
        live.until(lambda: len(live.taken) == len(TEMPORARY))
        live.inbox.scans.wanted = True
        live.until(lambda: live.finds.scans >= 2)
        assert {path.rpartition(b"/")[2] for path in live.taken} == {b"fence.jpg"}
        for number, name in enumerate(TEMPORARY):
            (live.root / f"{number}" / name).rename(live.root / f"{number}" / "a.jpg")
        (live.root / "before" / "a.jpg.part").rename(live.root / "before" / "a.jpg")
        live.until(lambda: len(live.taken) >= 2 * len(TEMPORARY) + 1)
        live.inbox.scans.wanted = True
        scans = live.finds.scans
        live.until(lambda: live.finds.scans > scans)
        assert len(live.taken) == len(set(live.taken)) == 2 * len(TEMPORARY) + 1


def test_copies_that_run_in_parallel_end_each_by_itself(tmp_path: Path) -> None:
    """Of five slow copies the one that ends first is taken while the others are still written."""
    with living(tmp_path) as live:
        live.ready()
        files = [(live.root / f"{number}.jpg").open("wb", buffering=0) for number in range(5)]
        for number, file in enumerate(files):
            still = files[number + 1 :]
            file.write(b"the end")
            file.close()

            def taken(number: int = number, still: list = still) -> bool:  # type: ignore[type-arg]  # of open files
                for other in still:
                    other.write(b"more")
                return len(live.taken) > number

            live.until(taken)
            assert live.taken == [b"%d.jpg" % done for done in range(number + 1)]
