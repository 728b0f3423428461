"""When photos may be begun: pauses, hours, pace, and the turns that inboxes take."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from daemon_bench import RECIPE, WALL

from animed.config.windows import format_window
from animed.daemon.looking import Digest, Scan
from animed.daemon.questions import Questions
from animed.daemon.recipes import Recipes
from animed.intake.watch import Hint
from animed.records import PhotoKey, Sighting

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

HOUR = 3600.0


def ask(run: Bench, command: str) -> dict[str, Any]:
    """Ask as the control socket does, and let the loop turn."""
    questions = Questions(
        run.desk, run.parts.backlog, run.parts.gate,
        status=run.daemon.status, clock=lambda: run.now, reload=run.parts.reloader.answer,
    )  # fmt: skip
    answer = questions.answer(command, {})
    run.turn()
    return answer


def state(run: Bench) -> str:
    return str(run.daemon.status()["state"])


def window(start: float, end: float) -> str:
    """Return a window of this machine's clock, in hours after the start of the bench (rounded down to a minute)."""
    ends = [time.localtime(WALL + 100 + hours * HOUR) for hours in (start, end)]
    return format_window((ends[0].tm_hour * 60 + ends[0].tm_min, ends[1].tm_hour * 60 + ends[1].tm_min))


def write(run: Bench, inbox: str, *names: bytes) -> None:
    """Let photos appear in an inbox and settle."""
    for name in names:
        stat = run.worlds[inbox].write(name, inbox.encode() + name)
        run.parts.arrivals.settled(Sighting(PhotoKey(inbox, name), stat, run.now), run.now)


def numbered(count: int) -> list[bytes]:
    return [b"%05d.jpg" % number for number in range(count)]


def begun(run: Bench) -> list[str]:
    """Return the inboxes of the photos that workers were given, in order."""
    return [task.root.removeprefix("/in/") for task in run.pool.tasks]


# A user's pause.


def test_a_pause_lets_running_photos_finish_and_begins_nothing(bench: Callable[..., Bench]) -> None:
    """Photos in workers come out; those that were read wait in the backlog again; intake goes on; then all come."""
    run = bench(workers=1, batch=4)
    write(run, "phone", *numbered(8))
    run.turn()
    assert len(run.pool.jobs) == 2
    assert ask(run, "pause")["changed"]
    assert state(run) == "paused"
    assert run.notifier.said[-1] == "Paused"
    write(run, "phone", b"late.jpg")
    run.inbox.hinted(Hint("file", b"gone.jpg"), run.parts.arrivals, run.now)
    run.draw_all()
    run.run(HOUR)
    assert len(run.outcomes()) == 2
    assert len(run.pool.tasks) == 2
    assert not run.thread.of(Digest)
    assert len(run.parts.backlog.batcher) == len(run.desk.actives) == 7
    assert run.daemon.status()["eta_s"] is None
    assert ask(run, "resume") == {"paused": None, "changed": True, "stored": True}
    assert len(run.pool.jobs) == 2
    assert (state(run), run.notifier.said[-1]) == ("running", "Waiting for photos")
    run.draw_all()
    assert len(run.outcomes()) == len(set(run.outcomes())) == 9
    assert run.is_clean()


def test_a_photo_that_is_being_read_when_the_pause_comes_waits(bench: Callable[..., Bench]) -> None:
    """What the I/O thread reads at that moment goes back to the backlog, and equal photos are still drawn once."""
    run = bench(workers=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg"):
        stat = run.world.write(name, b"the same")
        run.parts.arrivals.settled(Sighting(run.key(name), stat, run.now), run.now)
    run.tick()
    assert len(run.thread.of(Digest)) == 3
    run.parts.gate.pause(run.now)
    run.turn()
    assert run.pool.tasks == []
    assert len(run.parts.backlog.batcher) == 3
    ask(run, "resume")
    run.draw_all()
    assert sorted(how for _, how in run.outcomes()) == ["done", "duplicate", "duplicate"]
    assert len(run.pool.tasks) == 1
    assert run.is_clean()


def test_suspects_wait_out_a_pause_as_suspects(bench: Callable[..., Bench]) -> None:
    """A photo whose worker died is not rerun during a pause, and is alone in its worker afterwards."""
    run = bench(workers=1)
    write(run, "phone", b"a.jpg", b"b.jpg")
    run.turn()
    ask(run, "pause")
    run.die()
    run.run(60)
    assert run.pool.jobs == []
    ask(run, "resume")
    assert [job.alone for job in run.pool.jobs] == [True]
    run.draw_all()
    assert len(run.outcomes()) == 2


def test_a_paused_service_sleeps(bench: Callable[..., Bench]) -> None:
    """Nothing is due while the service is paused, whatever waits, and however many turns the loop takes."""
    run = bench(watch="off")
    ask(run, "pause")
    write(run, "phone", *numbered(20))
    run.run(5)
    assert run.daemon._next_deadline(run.now) is None
    assert not run.thread.requests


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_a_pause_outlives_the_process(bench: Callable[..., Bench], how: str) -> None:
    """A restart and a kill -9 keep the pause, and its end."""
    run = bench()
    ask(run, "pause")
    run.sight()
    if how == "restart":
        run.daemon._drain(None, run.now)
    run.restart()
    write(run, "phone", b"b.jpg")
    run.run(60)
    assert state(run) == "paused"
    assert run.pool.tasks == []
    ask(run, "resume")
    run.restart()
    run.run(60)
    run.draw_all()
    assert state(run) == "running"
    assert len(run.outcomes()) == 2


def test_pause_and_resume_may_be_repeated(bench: Callable[..., Bench]) -> None:
    """The second time changes nothing, says so, and logs nothing."""
    run = bench()
    since = "1970-01-12T13:48:20Z"
    assert not ask(run, "resume")["changed"]
    assert ask(run, "pause")["changed"]
    run.run(60)
    assert ask(run, "pause") == {
        "paused": {"by": "user", "since": since, "until": None},
        "changed": False,
        "stored": True,
    }
    assert run.daemon.status()["paused"] == {"by": "user", "since": since, "until": None}
    assert ask(run, "resume")["changed"]
    assert not ask(run, "resume")["changed"]
    lines = run.log.events("daemon.paused", "daemon.resumed")
    assert [(line["event"], line["by"]) for line in lines] == [("daemon.paused", "user"), ("daemon.resumed", "user")]


def test_a_pause_counts_before_a_full_state_folder_takes_it(bench: Callable[..., Bench]) -> None:
    """It holds at once, the answer says that it is not stored, and it is written when there is room."""
    run = bench()
    run.store.full = True
    assert not ask(run, "pause")["stored"]
    run.sight()
    assert run.pool.tasks == []
    assert state(run) == "degraded"
    run.store.full = False
    run.run(30)
    run.restart()
    assert state(run) == "paused"


def test_a_rescan_scans_also_during_a_pause(bench: Callable[..., Bench]) -> None:
    """Each inbox is scanned once, and one that is not there when it comes back."""
    run = bench(names=("phone", "camera"), watch="off")
    run.worlds["camera"].break_inbox()
    run.desk.inboxes["camera"].suspend(run.worlds["camera"].break_inbox(), run.now)
    ask(run, "pause")
    run.world.write(b"untold.jpg", b"photo")
    answer = ask(run, "rescan")
    assert answer == {"inboxes": [{"name": "phone", "state": "ready"}, {"name": "camera", "state": "unavailable"}]}
    run.run(5)
    assert run.key(b"untold.jpg") in run.desk.actives
    run.worlds["camera"].write(b"other.jpg", b"photo")
    run.worlds["camera"].heal()
    run.run(120)
    assert PhotoKey("camera", b"other.jpg") in run.desk.actives
    assert run.pool.tasks == []


def test_the_watchdog_is_fed_during_a_pause(bench: Callable[..., Bench]) -> None:
    """A paused service is well."""
    run = bench(watch="off")
    run.notifier.watchdog_interval = lambda: 10.0  # type: ignore[method-assign]  # someone watches
    ask(run, "pause")
    before = run.notifier.said.count("watchdog")
    run.run(100)
    assert run.notifier.said.count("watchdog") - before == 10


# The schedule.


def test_the_hours_end_in_the_middle_of_an_import(bench: Callable[..., Bench]) -> None:
    """At the end of the window running photos finish and nothing is begun; at the next one the rest comes at once."""
    run = bench(workers=1, active=(window(-1, 1),), watch="off")
    write(run, "phone", *numbered(6))
    run.turn()
    run.draw()
    run.run(HOUR)
    assert state(run) == "paused"
    assert run.daemon.status()["paused"]["by"] == "schedule"
    assert run.notifier.said[-1] == "Paused by the schedule"
    run.draw_all()
    begun_before = len(run.pool.tasks)
    assert len(run.outcomes()) == begun_before < 6
    run.run(21 * HOUR)
    assert len(run.pool.tasks) == begun_before
    run.run(1.1 * HOUR)
    assert len(run.pool.tasks) == begun_before + 2
    run.draw_all()
    assert len(run.outcomes()) == 6
    assert [line["event"] for line in run.log.events("daemon.paused", "daemon.resumed")] == [
        "daemon.paused",
        "daemon.resumed",
    ]


def test_outside_the_hours_no_scan_comes_by_the_clock(bench: Callable[..., Bench]) -> None:
    """Neither rescans nor polls; the scan at the start and one that is asked for are done, and events are followed."""
    run = bench(active=(window(1, 2),), rescan_interval=300.0, poll_interval=30.0)
    assert run.inbox.scanned
    scans: list[float] = []
    answers = run.world.answers

    def counted(request: Any) -> list[Any]:
        scans.extend([run.now] if isinstance(request, Scan) else [])
        return answers(request)

    run.world.answers = counted  # type: ignore[method-assign]  # the disk, with a counter
    run.run(0.9 * HOUR)
    assert scans == []
    run.world.write(b"told.jpg", b"told")
    run.inbox.hinted(Hint("file", b"told.jpg"), run.parts.arrivals, run.now)
    run.run(5)
    assert run.key(b"told.jpg") in run.desk.actives
    ask(run, "rescan")
    assert len(scans) == 1
    run.world.write(b"untold.jpg", b"untold")
    run.run(0.2 * HOUR)
    assert len(scans) > 2
    run.draw_all()
    assert sorted(name for name, _ in run.outcomes()) == ["told.jpg", "untold.jpg"]


def test_the_wall_clock_is_set(bench: Callable[..., Bench]) -> None:
    """A clock that is set on or back moves the hours within a minute; an idle loop wakes up for no more than that."""
    run = bench(active=(window(5, 6),), watch="off")
    run.sight()
    assert state(run) == "paused"
    due = run.daemon._next_deadline(run.now)
    assert due == run.now + 60
    run.jump = 5.5 * HOUR
    run.run(60)
    assert len(run.pool.tasks) == 1
    run.draw_all()
    run.jump = 2 * HOUR
    run.sight(b"b.jpg")
    run.run(60)
    assert state(run) == "paused"
    assert run.pool.jobs == []
    run.jump = -1000 * HOUR
    run.run(60)
    assert state(run) == ("running" if run.parts.gate._hours.is_active(run.desk.wall()) else "paused")


def test_a_user_resumes_outside_the_hours(bench: Callable[..., Bench]) -> None:
    """The end of a pause does not overrule the schedule, and the answer says what holds on and until when."""
    run = bench(active=(window(2, 3),), watch="off")
    ask(run, "pause")
    assert run.daemon.status()["paused"]["by"] == "user"
    answer = ask(run, "resume")
    assert answer["changed"]
    assert answer["paused"]["by"] == "schedule"
    assert answer["paused"]["until"] == run.daemon.status()["paused"]["until"]
    run.sight()
    assert run.pool.tasks == []
    run.run(2 * HOUR)
    assert len(run.pool.tasks) == 1


def test_a_new_configuration_opens_the_gate(bench: Callable[..., Bench]) -> None:
    """Hours and pace of a new configuration hold from the next turn on."""
    run = bench(active=(window(2, 3),), pace=1, watch="off", workers=4)
    write(run, "phone", *numbered(5))
    run.turn()
    assert run.pool.tasks == []
    run.parts.gate.configure(
        run.config.model_copy(
            update={
                "schedule": run.config.schedule.model_copy(update={"active": ()}),
                "limits": run.config.limits.model_copy(update={"images_per_minute": 0}),
            }
        )
    )
    run.turn()
    assert len(run.pool.tasks) == 5
    assert state(run) == "running"


def test_once_is_an_order_for_now(bench: Callable[..., Bench]) -> None:
    """A single pass heeds neither a pause nor the hours, keeps the pace, and leaves the pause as it is."""
    run = bench(workers=1)
    ask(run, "pause")
    run.crash()
    run.once = True
    run.config = run.config.model_copy(
        update={
            "schedule": run.config.schedule.model_copy(update={"active": ((0, 1),)}),
            "limits": run.config.limits.model_copy(update={"images_per_minute": 2}),
        }
    )
    for name in numbered(3):
        run.world.write(name, name)
    run._open()
    run.start()
    run.run(2)
    assert len(run.pool.tasks) == 1
    assert not run.parts.is_through()
    while not run.parts.is_through():
        run.draw_all()
        run.run(1)
    assert len(run.outcomes()) == 3
    assert run.now - 100 > 60
    run.once = False
    run.restart()
    assert state(run) == "paused"


# The pace.


def test_the_pace_counts_photos_that_workers_are_given(bench: Callable[..., Bench]) -> None:
    """With many workers and batches, one photo is begun every ten seconds; the loop wakes up for each."""
    run = bench(workers=4, pace=6, batch=3, watch="off")
    write(run, "phone", *numbered(12))
    times: list[float] = []
    start = run.now
    run.turn()
    while len(times) < 12:
        times += [run.now - start] * (len(run.pool.tasks) - len(times))
        run.draw_all()
        due = run.daemon._next_deadline(run.now)
        if len(times) < 12:
            assert due is not None
            assert due > run.now
            run.now = due
            run.turn()
    assert times == [10.0 * number for number in range(12)]
    run.run(60)
    assert run.is_clean()
    lines = run.log.events("batch.done")
    assert sum(line["done"] for line in lines) == 12


def test_photos_that_are_not_drawn_cost_no_time(bench: Callable[..., Bench]) -> None:
    """Duplicates go by at full speed, however slow the pace is."""
    run = bench(workers=2, pace=1, watch="off")
    for name in numbered(50):
        run.sight(name, b"the same")
    run.draw_all()
    assert len(run.outcomes()) == 50
    assert len(run.pool.tasks) == 1


def test_little_is_read_ahead_of_a_slow_pace(bench: Callable[..., Bench]) -> None:
    """At a pace no more than a batch is read, so that nothing in hand is old."""
    run = bench(workers=8, pace=1, batch=2, watch="off")
    write(run, "phone", *numbered(40))
    run.run(600)
    in_hand = len(run.desk.actives) - len(run.parts.backlog.batcher) - len(run.pool.jobs)
    assert in_hand <= 2
    assert len(run.pool.tasks) == 11


def test_a_retry_is_a_start_too(bench: Callable[..., Bench]) -> None:
    """What is begun again is counted again."""
    run = bench(workers=1, pace=1, watch="off")
    run.sight()
    run.fail("truncated")
    run.run(30)
    assert run.pool.jobs == []
    run.run(31)
    assert len(run.pool.jobs) == 1


# Fairness.


@pytest.mark.parametrize("recipes", ["equal", "different"])
@pytest.mark.parametrize("pace", [0, 30])
def test_an_import_does_not_starve_one_photo(bench: Callable[..., Bench], recipes: str, pace: int) -> None:
    """With 10,000 photos before it, everything in hand and all workers full, one photo of another inbox is next."""
    run = bench(names=("import", "phone"), workers=2, backlog=10_000, pace=pace, watch="off", dedupe="path")
    if recipes == "different":
        run.desk.inboxes["phone"].recipes = Recipes({"cel": replace(RECIPE, strength=0.5)})
    write(run, "import", *numbered(10_000))
    for _ in range(5):
        run.run(2)
        run.draw_all() if pace else run.draw()
    run.turn()
    for number in range(5):
        write(run, "phone", b"%d.jpg" % number)
        run.turn()
        before = len(run.pool.tasks)
        for _ in range(2):
            run.draw() if run.pool.jobs else None
            run.run(2)
        assert "phone" in begun(run)[before - 1 :][:3], number
        for _ in range(number):
            run.draw() if run.pool.jobs else None
            run.run(2)
    in_hand = len(run.desk.actives) - len(run.parts.backlog.batcher) - len(run.pool.jobs)
    assert in_hand <= 4 + 2 * 8


def test_two_imports_share_the_workers(bench: Callable[..., Bench]) -> None:
    """Two imports of different recipes are begun in equal parts, from the start on."""
    run = bench(names=("one", "two"), workers=1, batch=8, watch="off", dedupe="path", backlog=1000)
    run.desk.inboxes["two"].recipes = Recipes({"cel": replace(RECIPE, strength=0.5)})
    write(run, "one", *numbered(60))
    write(run, "two", *numbered(60))
    run.turn()
    for _ in range(60):
        run.draw()
        run.turn()
    first = begun(run)[:60]
    assert 28 <= first.count("one") <= 32
