"""A changed configuration while the service runs: what each photo keeps, and how inboxes come and go."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest
from daemon_fakes import open_stages, staged_fd
from daemon_world import World

from animed.config import ConfigProblemsError, Problem
from animed.config.models import BatchConfig, InboxConfig, LimitsConfig, LoggingConfig, WorkersConfig
from animed.daemon.again import Again
from animed.daemon.iothread import Answer, Ended
from animed.daemon.putting import Place, PutAway, Resolve, StageCopy
from animed.daemon.validation import Validated, Validation
from animed.delivery.publish import Placed
from animed.errors import AnimedError, ConfigError, NotRunningError, PhotoError, PlaceError, StyleError
from animed.records import PhotoKey
from animed.service.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

    from animed.config import Config


def reloaded(run: Bench) -> list[dict[str, Any]]:
    return run.log.events("config.reloaded")


def settle(run: Bench) -> None:
    """Let photos settle and be drawn until all have ended."""
    for _ in range(3):
        run.run(2)
        run.draw_all()


def beside(run: Bench, name: str = "camera") -> Config:
    """Return the configuration with one more inbox."""
    more = InboxConfig(name=name, path=Path("/in", name), output=Path("/out", name), watch="poll", stable_for=0.5)
    return run.config.model_copy(update={"inboxes": (*run.config.inboxes, more)})


# ---- Refused ---------------------------------------------------------------------------------------------------------


def test_what_is_wrong_changes_nothing(bench: Callable[..., Bench]) -> None:
    """Every problem is told, and inboxes, workers and the configuration stay as they are."""
    run = bench()
    inbox, config = run.inbox, run.parts.config
    problems = [Problem("inboxes[0].quality", "300", "at most 100", line=3), Problem("x", "an unknown key", "a key")]
    run.check_ends(run.hup(), ConfigProblemsError(problems, path="/etc/c.yaml"))
    run.turn()
    (line,) = run.log.events("config.rejected")
    assert line["errors"] == [str(problem) for problem in problems]
    assert line["config"] == "/etc/c.yaml"
    assert (run.inbox, run.parts.config, run.pool.rolls, reloaded(run)) == (inbox, config, [], [])
    run.sight()
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]


def test_another_state_folder_needs_a_restart(bench: Callable[..., Bench]) -> None:
    """A reload with another state folder is refused as a whole, and says what to do."""
    run = bench()
    run.reload(run.changed(quality=50, sections={"state_dir": Path("/elsewhere")}))
    (line,) = run.log.events("config.rejected")
    assert line["errors"] == [
        f"state_dir: got /elsewhere; accepted: {run.folder} while the service runs (restart the service)"
    ]
    assert run.inbox.config.quality == 92
    assert not run.parts.reloader.turnover.busy


def test_a_check_that_hangs_is_given_up(bench: Callable[..., Bench]) -> None:
    """After a minute the configuration counts as refused; what the check says later is not heard."""
    run = bench()
    number = run.hup()
    assert run.daemon._next_deadline(run.now) is not None
    run.run(61)
    (line,) = run.log.events("config.rejected")
    assert "within 60 s" in line["errors"][0]
    run.check_ends(number, run.candidate(run.changed(quality=50)))
    assert reloaded(run) == []
    run.reload(run.changed(quality=60))
    run.turn()
    assert run.inbox.config.quality == 60


def test_a_storm_of_requests_is_one_more_check(bench: Callable[..., Bench]) -> None:
    """Twenty requests while a check runs make one more check, and the last file's state is in force at the end."""
    run = bench()
    first = run.hup()
    for _ in range(20):
        run.hup()
    assert run.loads == [first]
    run.check_ends(first, run.candidate(run.changed(quality=50)))
    assert len(run.loads) == 2
    run.check_ends(run.loads[-1], run.candidate(run.changed(quality=60)))
    run.turn()
    assert (len(run.loads), run.inbox.config.quality, len(reloaded(run))) == (2, 60, 2)
    assert run.notifier.said == ["ready", "reloading", "reloaded", "reloading", "reloaded"]


def test_the_control_socket_waits_by_ticket(bench: Callable[..., Bench]) -> None:
    """A ticket is pending until a check that was begun after it has ended; then it tells the changes or the errors."""
    run = bench()
    ask = run.parts.reloader.answer
    ticket = ask({}, run.now)["ticket"]
    assert ask({"ticket": ticket}, run.now) == {"ticket": ticket, "pending": True}
    later = ask({}, run.now)["ticket"]
    run.check_ends(run.loads[-1], run.candidate(run.changed(quality=50)))
    assert ask({"ticket": ticket}, run.now) == {
        "ticket": ticket, "pending": False, "changed": ["inboxes.phone.quality"], "added": [], "removed": [],
        "renewed": ["phone"], "workers": False,
    }  # fmt: skip
    assert ask({"ticket": later}, run.now)["pending"]
    run.check_ends(run.loads[-1], StyleError("the style is damaged", path="/styles/cel"))
    with pytest.raises(ConfigError, match="damaged"):
        ask({"ticket": later}, run.now)
    for wrong in (later + 1, 0, "1"):
        with pytest.raises(RequestError):
            ask({"ticket": wrong}, run.now)
    run.daemon._drain(None, run.now)
    with pytest.raises(NotRunningError):
        ask({}, run.now)


# ---- An inbox with other keys ----------------------------------------------------------------------------------------


def test_a_running_photo_keeps_its_recipe_and_a_queued_one_gets_the_new(bench: Callable[..., Bench]) -> None:
    """What a worker has begun ends as it began, what is being placed is placed so; the rest is drawn anew, once."""
    run = bench(workers=1, batch=1)
    for name in (b"placing.jpg", b"running.jpg", b"second.jpg", b"queued.jpg"):
        run.sight(name, name)
    run.draw()  # Placing: its name is asked of the I/O thread.
    assert [job.key.path for job in run.pool.jobs] == [b"running.jpg"]
    run.tick()
    held = [job.key.path for job in run.pool.jobs]
    run.reload(run.changed(quality=50))
    run.sight(b"late.jpg", b"late")  # Nothing new is taken before the old set-up has ended.
    assert run.inbox.config.quality == 92
    assert [job.key.path for job in run.pool.jobs] == held
    run.draw_all()
    assert run.inbox.config.quality == 50
    settle(run)
    assert {name for name, how in run.outcomes()} == {
        "placing.jpg", "running.jpg", "second.jpg", "queued.jpg", "late.jpg"
    }  # fmt: skip
    assert len(run.world.placed) == 5
    tasks = {task.path: task.recipe.quality for task in run.pool.tasks}
    assert tasks == {
        b"placing.jpg": 92, **dict.fromkeys(held, 92),
        **dict.fromkeys({b"second.jpg", b"queued.jpg", b"late.jpg"} - set(held), 50),
    }  # fmt: skip
    assert run.is_clean()
    assert all(row.attempts == 1 for name in tasks if (row := run.row(name)))


def test_done_photos_stay_done(bench: Callable[..., Bench]) -> None:
    """Another recipe draws no photo again that has its picture."""
    run = bench()
    run.sight()
    run.draw_all()
    run.reload(run.changed(quality=50))
    settle(run)
    assert run.inbox.config.quality == 50
    assert run.names() == ["a.cel.jpg"]


def test_new_originals_policy_holds_for_new_photos(bench: Callable[..., Bench]) -> None:
    """The original of a photo that runs is treated as it was to be when it was sent."""
    run = bench(workers=1, batch=1)
    run.sight(b"old.jpg", b"old")
    run.reload(run.changed(originals="delete"))
    run.draw_all()
    run.sight(b"new.jpg", b"new")
    settle(run)
    assert [path for path, _ in run.world.put_away] == [b"new.jpg"]
    assert set(run.world.photos) == {b"old.jpg"}


def test_a_moved_output_takes_only_what_was_begun_afterwards(bench: Callable[..., Bench]) -> None:
    """A running photo's picture appears in the old output, all later ones in the new output."""
    run = bench()
    run.sight(b"old.jpg", b"old")
    run.reload(run.changed(output=Path("/moved")))
    run.draw_all()
    run.sight(b"new.jpg", b"new")
    settle(run)
    assert run.world.placed == [b"/out/phone/old.cel.jpg", b"/moved/new.cel.jpg"]
    assert run.inbox.output == "/moved"


def test_a_moved_inbox_is_another_folder(bench: Callable[..., Bench]) -> None:
    """Running photos of the old folder end; what waited in it is left there; the new folder is scanned."""
    run = bench(workers=1, batch=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg"):
        run.sight(name, name)
    held = len(run.pool.jobs)
    run.reload(run.changed(path=Path("/moved")))
    assert len(run.desk.actives) == held
    while run.pool.jobs:
        run.draw()
        run.step()
    new = run.worlds["phone"] = World()
    new.write(b"e.jpg", b"e")
    settle(run)
    assert run.inbox.root == "/moved"
    assert new.givers == [b"e.jpg"]
    assert run.log.events("file.done")[-1]["path"] == "/moved/e.jpg"


def test_a_photo_in_back_off_keeps_its_tries(bench: Callable[..., Bench]) -> None:
    """A photo that waits for its next try goes on counting under the new set-up."""
    run = bench()
    run.sight()
    run.fail("truncated")
    run.reload(run.changed(quality=50))
    run.run(2)
    assert run.inbox.config.quality == 50
    run.run(5)
    run.fail("truncated")
    run.run(20)
    run.fail("truncated")
    assert run.outcomes() == [("a.jpg", "truncated")]
    row = run.row()
    assert row is not None
    assert row.attempts == 3


def test_equal_photos_share_under_the_new_recipe(bench: Callable[..., Bench]) -> None:
    """A photo that waited for its twin is decided anew when the twin's recipe is no longer its own."""
    run = bench()
    run.sight(b"a.jpg", b"same")
    run.sight(b"b.jpg", b"same")
    run.reload(run.changed(quality=50))
    run.draw_all()
    settle(run)
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("b.jpg", "done")]
    assert run.is_clean()


def test_a_full_state_folder_holds_up_the_change(bench: Callable[..., Bench]) -> None:
    """While commits wait, the inbox that they belong to stays; afterwards it is renewed, and nothing is lost."""
    run = bench()
    run.sight()
    run.store.full = True
    run.draw()
    run.reload(run.changed(quality=50))
    run.run(10)
    assert run.inbox.config.quality == 92
    run.store.full = False
    run.run(60)
    assert run.inbox.config.quality == 50
    assert run.outcomes() == [("a.jpg", "done")]


def test_what_a_crash_left_open_is_ended_before_the_change(bench: Callable[..., Bench]) -> None:
    """An inbox that is looking at claimed names goes on with what follows from them, before it ends."""
    run = bench(originals="delete")
    run.sight()
    run.draw()
    run.world.answers(run.thread.of(Place)[0])  # The name is taken, and nobody hears of it.
    run.restart(start=False)
    run.inbox.start()
    while not run.thread.of(Resolve):
        assert run.step()
    run.reload(run.changed(quality=50))
    settle(run)
    assert run.inbox.config.quality == 50
    assert [path for path, _ in run.world.put_away] == [b"a.jpg"]
    row = run.row()
    assert row is not None
    assert (row.status, row.original_pending) == ("done", None)


# ---- Inboxes that come and go ----------------------------------------------------------------------------------------


def test_an_added_inbox_is_watched_and_shown(bench: Callable[..., Bench]) -> None:
    """A new inbox is scanned and drawn, reported under its own root, and listed in the order of the file."""
    run = bench()
    run.worlds["camera"] = World()
    run.worlds["camera"].write(b"new.jpg", b"new")
    run.reload(beside(run))
    settle(run)
    assert run.log.events("file.done")[0]["path"] == "/in/camera/new.jpg"
    assert [each["name"] for each in run.daemon.status()["inboxes"]] == ["phone", "camera"]
    assert reloaded(run)[0]["added"] == ["camera"]


def test_a_removed_inbox_ends_its_running_photo(bench: Callable[..., Bench]) -> None:
    """Its running photo is placed, its waiting ones are dropped, the ledger keeps what it knows, and it is gone."""
    run = bench(names=("phone", "camera"), workers=1, batch=1)
    for name in (b"a.jpg", b"b.jpg", b"c.jpg", b"d.jpg"):
        run.sight(name, name)
    held = [job.key.path for job in run.pool.jobs]
    phone = run.thread
    run.reload(run.config.model_copy(update={"inboxes": run.config.inboxes[1:]}))
    assert [job.key.path for job in run.pool.jobs] == held
    while run.pool.jobs:
        run.draw()
        run.turn()
    run.turn()
    assert list(run.desk.inboxes) == ["camera"]
    assert phone.ended
    assert [name.encode() for name, _ in run.outcomes()] == held
    assert {row.status for path in held if (row := run.ledger.get(PhotoKey("phone", path)))} == {"done"}
    assert run.is_clean()
    run.mailbox.post(("phone", object()))  # A hint that was on its way.
    run.turn()


def test_retry_outdated_right_after_a_reload(bench: Callable[..., Bench]) -> None:
    """While the inbox still ends under its old recipe, it is the new one that says what is outdated."""
    run = bench()
    run.sight()
    run.draw_all()
    run.sight(b"b.jpg", b"other")
    run.reload(run.changed(quality=50))
    again = Again(run.desk, run.parts.backlog, lambda: run.now)
    assert "phone" in run.desk.leaving
    assert again.outdated()["queued"] == 1
    run.reload(run.changed(quality=92))
    assert again.outdated()["queued"] == 0
    run.reload(run.changed(quality=50))
    run.draw_all()
    settle(run)
    assert run.names() == ["a.cel.jpg", "b.cel.jpg", "a.cel-2.jpg"]
    assert again.outdated()["queued"] == 1  # b.jpg, which was drawn as it had begun
    run.reload(run.config.model_copy(update={"inboxes": beside(run).inboxes[1:]}))
    assert again.outdated()["queued"] == 0


@pytest.mark.parametrize("reason", ["unreadable", "not_an_image"])
def test_a_running_photo_of_a_removed_inbox_may_fail(bench: Callable[..., Bench], reason: str) -> None:
    """Its inbox ends under the rules for tries that it had: the fault ends nothing but the photo."""
    run = bench(names=("phone", "camera"))
    run.sight()
    run.reload(run.config.model_copy(update={"inboxes": run.config.inboxes[1:]}))
    run.fail(reason)
    run.turn()
    assert list(run.desk.inboxes) == ["camera"]
    assert run.is_clean()
    row = run.ledger.get(PhotoKey("phone", b"a.jpg"))
    assert row is not None
    assert (row.status, row.reason) == ("retry" if reason == "unreadable" else "failed", reason)
    assert len(run.parts.backlog.retries) == 0


def test_a_renamed_inbox_is_a_new_one(bench: Callable[..., Bench]) -> None:
    """The new name begins only when the old one has let go of the folder, and draws what is there as its own."""
    run = bench()
    run.sight()
    renamed = run.changed(name="mobile")
    run.worlds["mobile"] = run.world
    run.reload(renamed)
    run.turn()
    assert run.daemon.status()["inboxes"][0]["state"] == "unavailable"
    assert not run.threads["mobile"].started
    run.draw_all()
    settle(run)
    assert list(run.desk.inboxes) == ["mobile"]
    assert [line["inbox"] for line in run.log.events("file.done")] == ["phone", "mobile"]


def test_the_same_inbox_may_come_back_at_once(bench: Callable[..., Bench]) -> None:
    """An inbox that is removed and added again while it ends begins again, with the last keys."""
    run = bench(names=("phone", "camera"))
    run.sight()
    both = run.config
    run.reload(both.model_copy(update={"inboxes": both.inboxes[1:]}))
    run.reload(both)
    run.draw_all()
    settle(run)
    assert list(run.desk.inboxes) == ["phone", "camera"]
    assert run.outcomes() == [("a.jpg", "done")]
    assert all(thread.started for thread in run.threads.values())


def test_an_old_output_may_become_an_inbox(bench: Callable[..., Bench]) -> None:
    """What is known as an output is forgotten with the last inbox that writes to it."""
    run = bench()
    assert run.outputs == {(1, 1)}
    run.worlds["phone"] = World(output_identity=(2, 2))
    run.reload(run.changed(output=Path("/moved")))
    run.turn()
    assert run.outputs == {(2, 2)}


def test_the_status_of_an_output_ends_and_begins_with_its_inbox(bench: Callable[..., Bench]) -> None:
    """An output that nobody writes to any more is told to be stopped; the new one has a status of its own at once."""
    run = bench(report="file")
    run.sight()
    run.draw_all()
    old, new = b"/out/phone/animed-status.txt", b"/moved/animed-status.txt"
    before = run.world.notes[old]
    run.reload(run.changed(output=Path("/moved")))
    settle(run)
    assert "stopped" in run.world.notes[old]
    assert "stopped" not in before + run.world.notes[new]
    run.reload(run.changed(output=Path("/out/phone")))
    settle(run)
    assert "stopped" not in run.world.notes[old]


def test_a_failed_photo_of_an_inbox_that_ends_has_its_note(bench: Callable[..., Bench]) -> None:
    """The note about a photo that fails under the old set-up is written in the old output."""
    run = bench(report="file")
    run.sight()
    run.reload(run.changed(output=Path("/moved")))
    run.fail("not_an_image")
    settle(run)
    assert b"/out/phone/a.jpg.failed.txt" in run.world.notes
    assert run.inbox.output == "/moved"
    assert not run.parts.reports.busy


# ---- Workers and those who are told ----------------------------------------------------------------------------------


def test_workers_roll_while_photos_run(bench: Callable[..., Bench]) -> None:
    """Worker keys hand the new plan to the pool at once; no photo leaves its worker and no inbox is disturbed."""
    run = bench()
    run.sight()
    jobs, inbox = run.pool.jobs, run.inbox
    workers = WorkersConfig(max_images=7)
    run.reload(run.changed(sections={"workers": workers}))
    run.turn()
    assert [spec for _, spec in run.pool.rolls] == [workers]
    assert (run.pool.jobs, run.inbox) == (jobs, inbox)
    run.draw_all()
    row = run.row()
    assert row is not None
    assert (row.status, row.attempts) == ("done", 1)


def test_other_keys_leave_the_workers_alone(bench: Callable[..., Bench]) -> None:
    """Batches, limits, the log and the time for a stop are taken in place: no worker and no inbox is replaced."""
    run = bench()
    inbox = run.inbox
    sections = {
        "batch": BatchConfig(max_size=3, max_wait=1.0), "limits": LimitsConfig(backlog=5, min_free=7),
        "logging": LoggingConfig(level="debug"), "workers": WorkersConfig(stop_timeout=99),
    }  # fmt: skip
    run.reload(run.changed(sections=sections))
    batcher = run.parts.backlog.batcher
    assert (batcher.max_size, batcher.max_wait, batcher.backlog) == (3, 1.0, 5)
    assert (run.inbox, run.inbox.standing.min_free, run.levels, run.pool.rolls) == (inbox, 7, ["debug"], [])
    assert run.parts.config.workers.stop_timeout == 99
    assert reloaded(run)[0]["changed"] == [
        "batch.max_size", "batch.max_wait", "workers.stop_timeout", "limits.min_free", "limits.backlog",
        "logging.level",
    ]  # fmt: skip


def test_a_new_style_waits_for_workers_that_know_it(bench: Callable[..., Bench]) -> None:
    """No photo is given to a worker that was made without its style: its inbox begins when all have rolled."""
    run = bench()
    run.sight()
    run.pool.rolled = False
    run.reload(run.changed(), weights="bb")
    assert reloaded(run)[0]["workers"]
    run.draw_all()
    run.world.write(b"b.jpg", b"b")
    run.run(5)
    assert run.inbox.recipes.by_style["cel"].weights_sha256 == "bb"
    assert not run.pool.jobs
    run.pool.rolled = True
    run.run(5)
    assert [job.recipe.weights_sha256 for job in run.pool.jobs] == ["bb"]


def test_faces_wait_for_workers_that_find_them(bench: Callable[..., Bench]) -> None:
    """Workers without the detector are replaced, and no photo of the inbox is given to one of them."""
    run = bench()
    run.pool.rolled = False
    run.reload(run.changed(faces="auto"), detector="dd")
    line = reloaded(run)[0]
    assert (line["workers"], line["changed"]) == (True, ["inboxes.phone.faces"])
    run.world.write(b"b.jpg", b"b")
    run.run(5)
    assert not run.pool.jobs
    run.pool.rolled = True
    run.run(5)
    assert len(run.pool.jobs) == 1


# ---- Stops, starts and shares that hang ------------------------------------------------------------------------------


def test_a_stop_during_a_reload_ends_in_order(bench: Callable[..., Bench]) -> None:
    """A stop while an inbox ends and a check runs waits for the running photo alone."""
    run = bench()
    run.sight()
    run.reload(run.changed(quality=50))
    number = run.hup()
    run.daemon._drain(None, run.now)
    run.check_ends(number, run.candidate(run.changed(quality=60)))
    assert not run.daemon._is_over()
    run.draw_all()
    assert run.daemon._is_over()
    assert run.outcomes() == [("a.jpg", "done")]
    assert len(reloaded(run)) == 1


def test_a_reload_during_the_start_begins_with_the_new_keys(bench: Callable[..., Bench]) -> None:
    """An inbox that has not answered yet is renewed like any other, and the service gets ready."""
    run = bench(start=False)
    run.pool.ready = False
    run.inbox.start()
    run.world.write(b"a.jpg", b"a")
    run.reload(run.changed(quality=50))
    run.turn()
    run.pool.ready = True
    settle(run)
    assert [task.recipe.quality for task in run.pool.tasks] == [50]
    assert run.daemon.status()["state"] == "running"


def hang(run: Bench, seconds: float = 31.0) -> None:
    """Let the first inbox's file system answer nothing more, and that long enough."""
    run.thread.silence = seconds


def leave_behind(run: Bench, seconds: float = 0) -> None:
    """Let the first inbox hang, and reload it: its successor goes on without what is in the stuck thread's hands."""
    hang(run)
    run.reload(run.changed(quality=50))
    run.run(seconds) if seconds else run.turn()


def late(run: Bench, request: Any, result: object, old: object) -> None:
    """Let a thread that was left behind answer at last."""
    run.daemon.incoming.answered(Answer("phone", request, result, old), run.now)


def test_a_share_that_hangs_is_left_behind(bench: Callable[..., Bench]) -> None:
    """An inbox whose thread is stuck placing a picture is replaced; its picture is looked at when it is back."""
    run = bench()
    run.sight()
    run.draw()
    (place,) = run.thread.of(Place)
    old = run.thread
    leave_behind(run)
    assert old.stopped  # if it ever comes back, it ends
    assert run.thread is not old
    assert run.inbox.config.quality == 50
    run.run(5)
    assert run.status() == "publishing"
    assert not run.thread.of(Resolve)
    assert not run.pool.jobs
    os.fstat(place.fd)  # Still open: the stuck thread may use it any time.
    (result,) = run.world.answers(place)
    late(run, place, result, old)
    settle(run)
    assert run.names() == ["a.cel.jpg"]
    assert run.status() == "done"
    assert run.is_clean()


def test_a_refused_picture_in_stuck_hands_is_freed(bench: Callable[..., Bench]) -> None:
    """A thread that is stuck with the question what became of a refused picture does not need it any more."""
    run = bench()
    before = open_stages()
    run.sight()
    run.draw()
    old = run.thread
    run.answer(Place, PhotoError("output_denied", "made up"))
    leave_behind(run, 5)
    assert open_stages() == before
    (resolve,) = old.of(Resolve)
    (result,) = run.world.answers(resolve)
    late(run, resolve, result, old)
    settle(run)
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.is_clean()


def test_a_late_fault_draws_the_photo_again(bench: Callable[..., Bench]) -> None:
    """A stuck placing that fails in the end gives the photo back: it is drawn again, under the new set-up."""
    run = bench()
    before = open_stages()
    run.sight()
    run.draw()
    (place,) = run.thread.of(Place)
    old = run.thread
    leave_behind(run, 5)
    fault = PlaceError("output", errno.EIO, "/out", "gone")
    late(run, place, fault, old)
    assert open_stages() == before
    settle(run)
    assert [task.recipe.quality for task in run.pool.tasks] == [92, 50]
    assert run.names() == ["a.cel.jpg"]
    assert run.inbox.state == "ready"


def test_a_worker_that_still_draws_is_waited_for(bench: Callable[..., Bench]) -> None:
    """A hanging inbox is left behind only when no worker has a photo of it any more."""
    run = bench()
    run.sight()
    leave_behind(run)
    assert run.inbox.config.quality == 92
    run.draw()
    (place,), old = run.thread.of(Place), run.thread
    run.tick()
    assert run.inbox.config.quality == 50
    late(run, place, Placed(place.target), old)


def test_a_worker_that_hangs_with_an_ending_inbox_blames_no_photo(bench: Callable[..., Bench]) -> None:
    """A suspect is not given up because its share hung once more while its inbox ended; the successor draws it."""
    run = bench()
    run.sight()
    run.die()
    run.die(cause="timeout")
    run.run(6)
    assert [(job.alone, job.crashes) for job in run.pool.jobs] == [(True, 1)]
    leave_behind(run)
    run.die(cause="timeout")
    assert run.outcomes() == []
    run.turn()
    settle(run)
    assert run.outcomes() == [("a.jpg", "done")]


def test_a_removed_share_that_hangs_is_gone(bench: Callable[..., Bench]) -> None:
    """It holds up nothing, and what its thread brings later disturbs nobody and leaves nothing open."""
    run = bench(names=("phone", "camera"), dedupe="content")
    before = open_stages()
    run.sight(b"a.jpg", b"same")
    run.draw_all()
    run.sight(b"b.jpg", b"same")
    old = run.thread
    old.requests.append(StageCopy(run.key(b"b.jpg"), b"", run.world.pictures.popitem()[1], None, 1))  # type: ignore[arg-type]  # its stage is not looked at
    hang(run)
    run.reload(run.config.model_copy(update={"inboxes": run.config.inboxes[1:]}))
    run.turn()
    assert list(run.desk.inboxes) == ["camera"]
    copy = old.of(StageCopy)[0]
    late(run, copy, (copy.expected, staged_fd()), old)
    run.mailbox.post(Ended("phone", asked=True, origin=old))
    run.turn()
    assert open_stages() == before


def test_an_original_in_stuck_hands_is_left_alone(bench: Callable[..., Bench]) -> None:
    """What is owed to an original is not begun a second time while a stuck thread may still do it."""
    run = bench(originals="delete")
    run.sight()
    run.draw()
    run.step()
    (put_away,) = run.thread.of(PutAway)
    old = run.thread
    leave_behind(run, 5)
    assert not run.thread.of(PutAway)
    assert run.world.put_away == []
    fault = PlaceError("inbox", errno.EIO, "/in", "gone")
    late(run, put_away, fault, old)
    settle(run)
    assert [path for path, _ in run.world.put_away] == [b"a.jpg"]
    row = run.row()
    assert row is not None
    assert row.original_pending is None


# ---- The thread that reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [(StyleError("damaged"), "damaged"), (OSError(errno.EIO, "Input/output error", "/x"), "/x: Input/output error")],
)
def test_an_expected_error_is_what_the_check_came_to(error: Exception, text: str) -> None:
    """Errors of animed and of the system come back as outcomes."""
    assert text in str(outcome_of(error))


# The error ends a thread on purpose; what it prints on its way is no warning of the test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_the_program_refuses_the_configuration() -> None:
    """An unexpected error is not swallowed, and the service keeps what it has."""
    assert isinstance(outcome_of(ZeroDivisionError()), ConfigError)


def outcome_of(error: Exception) -> object:
    """Return what a check comes to that ends with an error."""

    def load() -> Any:
        raise error

    posts: SimpleQueue[Validated] = SimpleQueue()
    Validation(load, posts.put).start(3)
    post = posts.get(timeout=30)
    for thread in threading.enumerate():
        if thread.name == "validation-3":
            thread.join(30)
    assert post.number == 3
    assert isinstance(post.outcome, AnimedError)
    return post.outcome
