"""Work that was done twice, for ever, or over another's: duplicate events, restarts, loops, names that collide."""

from __future__ import annotations

import io
import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from animed import logs
from animed.config import InboxConfig, load
from animed.config.overlap import Place, overlaps
from animed.daemon.putting import PutAway
from animed.daemon.recipes import temp_prefix
from animed.delivery.originals import Kept, private_name
from animed.errors import ConfigError
from animed.intake.rules import Rules
from animed.intake.watch import Hint
from animed.records import Sighting

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def touch(run: Bench, path: bytes = b"a.jpg") -> None:
    """Give a photo a new time, and let intake notice."""
    content = run.world.photos[path][0]
    stat = run.world.write(path, content, mtime_ns=run.world.photos[path][1].mtime_ns + 1)
    run.parts.arrivals.settled(Sighting(run.key(path), stat, run.now), run.now)
    run.turn()


def test_a_photo_that_is_touched_while_it_is_drawn_is_one_job(bench: Callable[..., Bench]) -> None:
    """A new time during the drawing, same bytes: one picture, no failure, nothing queued again."""
    run = bench()
    run.sight()
    touch(run)
    run.draw_all()
    run.run(60)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert len(run.pool.tasks) == 1
    assert not run.log.events("file.failed", "file.retry", "file.vanished")


def test_five_events_are_one_job(bench: Callable[..., Bench]) -> None:
    """Created, modified three times, closed, six seconds later attributes: one photo is drawn once."""
    run = bench()
    run.world.write(b"a.jpg", b"one")
    for wait in (0.0, 0.1, 0.1, 0.1, 0.1, 6.0):
        run.run(wait)
        run.inbox.hinted(Hint("file", b"a.jpg"), run.parts.arrivals, run.now)
    run.run(5)
    run.draw_all()
    run.run(60)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert len(run.pool.tasks) == 1


def test_kept_originals_are_no_new_work(bench: Callable[..., Bench]) -> None:
    """Originals that stay in the inbox cost nothing more, however often it is scanned and the service restarted."""
    run = bench(poll_interval=30.0)
    for name in (b"a.jpg", b"b.jpg"):
        run.world.write(name, name)
    run.inbox.scans.wanted = True
    run.run(5)
    run.draw_all()
    run.run(300)
    for _ in range(3):
        run.restart()
        run.run(100)
        assert not run.pool.jobs
    assert sorted(run.outcomes()) == [("a.jpg", "done"), ("b.jpg", "done")]


def test_six_files_are_six_jobs(bench: Callable[..., Bench]) -> None:
    """Six files, many scans: six tasks, six pictures, and the counters say six."""
    run = bench(poll_interval=30.0)
    for number in range(6):
        run.world.write(b"%d.jpg" % number, b"%d" % number)
    run.inbox.scans.wanted = True
    for _ in range(5):
        run.run(40)
        run.draw_all()
    assert len(run.pool.tasks) == 6
    assert len(set(run.names())) == len(run.names()) == 6
    totals = run.daemon.status()["totals"]
    assert (totals["done"], totals["failed"], totals["duplicate"], totals["skipped"]) == (6, 0, 0, 0)


@pytest.mark.parametrize("originals", ["keep", "move", "delete"])
def test_an_equal_photo_is_one_line_and_follows_the_policy(bench: Callable[..., Bench], originals: str) -> None:
    """The same bytes under another name: one `duplicate`, no failure, and the original goes where the others go."""
    run = bench(originals=originals)
    run.sight(b"a.jpg", b"same")
    run.draw_all()
    run.sight(b"copy of a.jpg", b"same")
    run.draw_all()
    run.run(60)
    assert run.outcomes() == [("a.jpg", "done"), ("copy of a.jpg", "duplicate")]
    assert len(run.log.events("file.duplicate")) == 1
    left = [] if originals != "keep" else [b"a.jpg", b"copy of a.jpg"]
    assert sorted(run.world.photos) == left


def test_an_original_that_cannot_go_is_done_all_the_same(bench: Callable[..., Bench]) -> None:
    """The folder refuses the removal: the job is done once, told once, and not run again."""
    run = bench(originals="delete", poll_interval=30.0)
    run.sight()
    run.draw()
    run._answer_all()
    run.answer(PutAway, Kept("it may not be removed: Operation not permitted"))
    run.run(300)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert len(run.log.events("original.kept")) == 1
    assert len(run.pool.tasks) == 1


def configuration(tmp_path: Path, output: str) -> Path:
    """Write a configuration with an inbox below the folder."""
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    text = f"version: 1\nstate_dir: state\ninboxes:\n  - {{name: a, path: in, output: {output}}}\n"
    (tmp_path / "config.yaml").write_text(text)
    return tmp_path / "config.yaml"


@pytest.mark.parametrize("output", ["in/out", "link/out", "x/../in/out", "in", "./in/./out"])
def test_an_output_inside_the_inbox_is_refused(tmp_path: Path, output: str) -> None:
    """Whatever way leads to it, an output below an inbox is an error of the configuration, exit 78."""
    with pytest.raises(ConfigError) as caught:
        load(configuration(tmp_path, output), environ={"HOME": "/home/ada"}, cwd=tmp_path)
    assert caught.value.exit_status == 78
    assert "do not overlap" in str(caught.value)


@pytest.mark.parametrize("output", ["/MNT/Photos/out", "/mnt/photos/OUT", "/mnt/again/out"])
def test_another_spelling_or_mount_of_the_inbox_is_the_inbox(output: str) -> None:
    """Where names differ in case only, or a folder is mounted twice, the folder's number tells that it is the inbox."""
    inbox, above = (1, 7), frozenset({(1, 7), (1, 2)})

    def find(loc: tuple[str | int, ...], path: Path) -> Place:
        is_inbox = os.fspath(path) == "/mnt/photos"
        return Place(loc, path, path, inbox if is_inbox else None, frozenset({(1, 2)}) if is_inbox else above)

    config = InboxConfig(name="a", path=Path("/mnt/photos"), output=Path(output))
    assert len(overlaps([(("inboxes", 0), config)], None, find=find)) == 1


def test_a_log_inside_the_inbox_feeds_no_loop(bench: Callable[..., Bench]) -> None:
    """A file that every log line changes is told of once: its events lead to no further line."""
    run = bench()
    for name in (b"animed.log", b"log.jsonl"):
        for _ in range(100):
            run.inbox.hinted(Hint("file", name), run.parts.arrivals, run.now)
            run.turn()
    assert [line["path"].rpartition("/")[2] for line in run.log.events("file.ignored")] == ["animed.log", "log.jsonl"]
    assert run.inbox.settling.pending == 0


def test_what_libraries_say_of_each_event_is_not_logged() -> None:
    """The messages that watchdog has for every event are below what is logged, even at level debug."""
    stream = io.StringIO()
    writer = logs.configure("debug", "json", stream=stream)
    try:
        for name in ("watchdog.observers.inotify_c", "watchdog.observers.inotify_buffer"):
            logging.getLogger(name).debug("in-event %s", "a.jpg")
            logging.getLogger(name).info("in-event %s", "a.jpg")
        logging.getLogger("watchdog").warning("fence")
    finally:
        writer.close()
        structlog.reset_defaults()
    assert [line["message"] for line in map(json.loads, stream.getvalue().splitlines())] == ["fence"]


def test_own_temporary_names_are_never_taken() -> None:
    """Staged pictures, probes and hidden originals have names that no inbox takes, whatever it takes."""
    rules = Rules(extensions=["jpg", "tmp", "png"], ignore_conflict_copies=False)
    staged = temp_prefix("1a2b3c4d") + "abcdef0123456789.tmp"
    for name in (staged.encode(), b".syncthing.animed-check-0123456789abcdef.tmp", private_name("1a2b3c4d", b"a.jpg")):
        for folder in (b"", b"album/"):
            assert (rules.judge(folder + name.rpartition(b"/")[2], is_dir=False) or "").startswith(
                ("builtin:", "hidden")
            )


@pytest.mark.parametrize(
    ("keys", "photos", "expected"),
    [
        ({"output_format": "jpeg"}, (b"a.jpg", b"a.png"), ["a.cel-2.jpg", "a.cel.jpg"]),
        ({"layout": "flat"}, (b"a/x.jpg", b"b/x.jpg"), ["x.cel-2.jpg", "x.cel.jpg"]),
        ({}, (b"IMG.JPG", b"img.jpg"), ["IMG.cel.jpg", "img.cel.jpg"]),
        ({}, (b"a/x.jpg", b"b/x.jpg"), ["a/x.cel.jpg", "b/x.cel.jpg"]),
    ],
)
def test_photos_with_one_name_have_pictures_with_two(
    bench: Callable[..., Bench], keys: dict[str, str], photos: tuple[bytes, bytes], expected: list[str]
) -> None:
    """Two photos whose pictures would share a name get one each, whichever comes first, and the same ones always."""
    for order in (photos, photos[::-1]):
        run = bench(**keys)
        for name in order:
            run.sight(name, name)
        run.draw_all()
        assert sorted(run.names()) == expected
        assert {how for _, how in run.outcomes()} == {"done"}


def test_new_bytes_under_an_old_name_are_drawn_beside_it(bench: Callable[..., Bench]) -> None:
    """A replaced photo gets a second picture; a photo that is asked for again gets one more try, and no loop."""
    run = bench(poll_interval=30.0)
    run.sight(b"a.jpg", b"one")
    run.draw_all()
    run.sight(b"a.jpg", b"two", mtime_ns=9)
    run.draw_all()
    run.run(100)
    assert run.names() == ["a.cel.jpg", "a.cel-2.jpg"]
    assert run.outcomes() == [("a.jpg", "done")] * 2


def test_a_killed_service_leaves_no_lock_and_draws_again(bench: Callable[..., Bench]) -> None:
    """Killed at any stage of a photo, the next run draws it, once, and nothing says "already running"."""
    for stage in range(6):
        run = bench()
        run.world.write(b"a.jpg", b"one")
        run.inbox.scans.wanted = True
        run.tick()
        for _ in range(stage * 2):
            if not run.step() and run.pool.jobs:
                run.draw()
            run.now += 1
            run.tick()
        run.restart()
        run.run(60)
        run.draw_all()
        run.run(60)
        assert run.status() == "done"
        assert run.names() == ["a.cel.jpg"]
