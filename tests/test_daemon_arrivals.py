"""What intake brings: new photos, known ones, and those that change or go while they are on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from animed.daemon.looking import Digest, Scan, StatPaths
from animed.records import VANISHED, Sighting

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench


def test_a_new_photo_gets_its_picture(bench: Callable[..., Bench]) -> None:
    """A photo that settles is read, drawn, placed and logged once, and leaves nothing behind."""
    run = bench()
    run.world.write(b"a.jpg", b"one")
    run.inbox.hint(b"a.jpg", run.now)
    run.run(2)
    assert [job.key.path for job in run.pool.jobs] == [b"a.jpg"]
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.names() == ["a.cel.jpg"]
    assert [line["done"] for line in run.log.events("batch.done")] == [1]
    assert run.is_clean()


def test_known_photos_cost_a_restart_no_look(bench: Callable[..., Bench]) -> None:
    """After a restart the scan alone tells what is known: no stat, no reading."""
    run = bench()
    for name in (b"a.jpg", b"b.jpg"):
        run.sight(name, name)
    run.draw_all()
    run.restart(start=False)
    run.inbox.start()
    asked = set()
    for _ in range(6):
        asked |= {type(request) for request in run.thread.requests}
        run._answer_all()
        run.tick()
    run.run(10)
    assert Scan in asked
    assert not asked & {Digest, StatPaths}
    assert len(run.outcomes()) == 2


def test_the_same_bytes_with_a_new_stat_are_the_same_photo(bench: Callable[..., Bench]) -> None:
    """A new mtime leads to one reading; the record is updated and nothing is drawn, now or after a restart."""
    run = bench()
    run.sight()
    run.draw_all()
    run.sight(mtime_ns=2)
    assert not run.pool.jobs
    assert run.is_clean()
    row = run.row()
    assert row is not None
    assert (row.status, row.mtime_ns) == ("done", 2)
    run.restart()
    run.run(5)
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.is_clean()


def test_new_bytes_under_an_old_name_are_a_new_photo(bench: Callable[..., Bench]) -> None:
    """The same name with new content of the same size is drawn, beside the first picture."""
    run = bench()
    run.sight(content=b"one")
    run.draw_all()
    run.sight(content=b"two", mtime_ns=2)
    run.draw_all()
    assert run.names() == ["a.cel.jpg", "a.cel-2.jpg"]
    assert run.outcomes() == [("a.jpg", "done")] * 2


@pytest.mark.parametrize("trouble", ["inbox", "output", "free"])
def test_a_place_fault_does_not_make_a_known_photo_new(bench: Callable[..., Bench], trouble: str) -> None:
    """When a place fails while a touched photo is read, it is compared again later, and not drawn anew."""
    run = bench()
    run.sight()
    run.draw_all()
    if trouble == "free":
        run.world.free = 1
    else:
        fault = run.world.break_inbox if trouble == "inbox" else run.world.break_output
        fault()
        run.world.faults[Digest] = next(iter(run.world.faults.values()))
    run.sight(mtime_ns=2)
    assert run.state() != "ready" or trouble == "free"
    run.world.free = 10**12
    run.world.heal()
    run.run(120)
    assert not run.pool.jobs
    assert run.outcomes() == [("a.jpg", "done")]
    row = run.row()
    assert row is not None
    assert row.mtime_ns == 2
    assert run.is_clean()


def test_a_known_photo_that_cannot_be_read_stays_done(bench: Callable[..., Bench]) -> None:
    """A touched photo that is written to again while it is compared keeps its record; equal bytes are not drawn."""
    run = bench()
    run.sight()
    run.draw_all()
    stat = run.world.write(b"a.jpg", b"photo", mtime_ns=2)
    run.world.write(b"a.jpg", b"photo", mtime_ns=3)
    run.parts.arrivals.settled(Sighting(run.key(), stat, run.now), run.now)
    run.turn()
    assert run.status() == "done"
    run.inbox.scans.wanted = True
    run.run(60)
    row = run.row()
    assert row is not None
    assert (row.status, row.mtime_ns) == ("done", 3)
    assert run.names() == ["a.cel.jpg"]


def test_a_photo_that_changes_while_it_is_drawn_is_looked_at_again(bench: Callable[..., Bench]) -> None:
    """A new version of a running photo waits for the old one's end, and then is drawn once."""
    run = bench()
    run.sight(content=b"one")
    run.sight(content=b"longer", mtime_ns=2)
    assert len(run.pool.jobs) == 1
    assert run.desk.relook == {run.key()}
    run.fail("changed")
    run.run(2)
    assert [job.stat.size for job in run.pool.jobs] == [6]
    run.draw_all()
    run.run(1000)
    assert run.outcomes() == [("a.jpg", "done")]
    assert run.is_clean()
    assert not run.desk.relook


def test_an_empty_file_fails_after_its_patience(bench: Callable[..., Bench]) -> None:
    """A file that stays empty is failed once, for good, and is new again when it gets content."""
    run = bench(stable_max=10.0)
    run.world.write(b"a.jpg", b"")
    run.inbox.hint(b"a.jpg", run.now)
    run.run(60)
    assert run.outcomes() == [("a.jpg", "empty")]
    run.inbox.scans.wanted = True
    run.run(60)
    assert run.outcomes() == [("a.jpg", "empty")]
    run.sight(content=b"full", mtime_ns=2)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "empty"), ("a.jpg", "done")]


def test_a_photo_that_becomes_empty_is_not_tried_again(bench: Callable[..., Bench]) -> None:
    """When the file is emptied during a back-off, its one outcome is `empty`; the old try is not made."""
    run = bench()
    run.sight()
    run.fail("truncated")
    stat = run.world.write(b"a.jpg", b"", mtime_ns=2)
    run.parts.arrivals.empty(Sighting(run.key(), stat, run.now), run.now)
    run.run(3600)
    assert run.outcomes() == [("a.jpg", "empty")]
    assert run.status() == "failed"


def test_an_emptied_photo_on_its_way_is_looked_at_again(bench: Callable[..., Bench]) -> None:
    """A file that is empty while its earlier version is drawn is not forgotten."""
    run = bench(stable_max=10.0)
    run.sight()
    stat = run.world.write(b"a.jpg", b"", mtime_ns=2)
    run.parts.arrivals.empty(Sighting(run.key(), stat, run.now), run.now)
    run.draw_all()
    run.run(60)
    assert run.outcomes() == [("a.jpg", "done"), ("a.jpg", "empty")]


def test_a_photo_that_is_gone_when_it_is_read_has_vanished(bench: Callable[..., Bench]) -> None:
    """What was gone before it was read is no failure: it is logged, and its back-off is forgotten."""
    run = bench()
    run.sight()
    run.fail("truncated")
    assert run.status() == "retry"
    del run.world.photos[b"a.jpg"]
    run.run(30)
    assert len(run.log.events("file.vanished")) == 1
    assert run.row() is None
    assert run.outcomes() == []
    assert run.is_clean()


def test_a_photo_that_was_away_for_a_moment_is_drawn(bench: Callable[..., Bench]) -> None:
    """A share that was away while a worker looked brings its photo back without an event: it is looked at again."""
    run = bench()
    run.sight()
    run.fail(VANISHED)
    assert len(run.log.events("file.vanished")) == 1
    run.run(5)
    run.draw_all()
    assert run.status() == "done"


def test_a_photo_that_vanishes_during_its_back_off_is_told_once(bench: Callable[..., Bench]) -> None:
    """Intake's word that a waiting photo is gone ends its waiting at once."""
    run = bench()
    run.sight()
    run.fail("truncated")
    del run.world.photos[b"a.jpg"]
    run.parts.arrivals.vanished(run.key(), run.now, seen=True)
    assert run.row() is None
    assert run.parts.backlog.next_due() is None
    run.run(60)
    assert len(run.log.events("file.vanished")) == 1


def test_a_photo_that_goes_after_it_was_read_has_not_vanished(bench: Callable[..., Bench]) -> None:
    """A photo in a worker's hands ends as that worker says, and is not called vanished besides."""
    run = bench()
    run.sight()
    del run.world.photos[b"a.jpg"]
    run.parts.arrivals.vanished(run.key(), run.now, seen=True)
    run.draw_all()
    run.parts.arrivals.vanished(run.key(), run.now, seen=True)
    assert run.outcomes() == [("a.jpg", "done")]
    assert not run.log.events("file.vanished")


@pytest.mark.parametrize("after", ["placed", "lost"])
def test_a_photo_that_changed_during_a_crash_is_not_missed(bench: Callable[..., Bench], after: str) -> None:
    """The start-up scan meets a name that is still claimed: the new version is drawn once that is resolved."""
    run = bench()
    run.sight(content=b"one")
    run.draw()
    if after == "placed":
        run.world.answers(run.thread.requests[0])
    run.crash()
    run.world.write(b"a.jpg", b"second", mtime_ns=2)
    run._open()
    run.start()
    run.run(10)
    run.draw_all()
    run.run(10)
    row = run.row()
    assert row is not None
    assert (row.status, row.size) == ("done", 6)
    assert run.outcomes() == [("a.jpg", "done")] * (2 if after == "placed" else 1)


@pytest.mark.parametrize("policy", ["leave", "copy", "move"])
def test_a_failure_goes_with_its_file(bench: Callable[..., Bench], policy: str) -> None:
    """A scan that does not meet a failed photo forgets it, unless it went to where failed photos are moved."""
    run = bench(failed=policy)
    run.sight()
    run.fail("not_an_image")
    run.run(5)
    assert run.status() == "failed"
    run.world.photos.pop(b"a.jpg", None)
    run.inbox.scans.wanted = True
    run.run(30)
    assert (run.row() is None) == (policy != "move")


def test_a_new_try_of_a_photo_that_was_moved_away_ends(bench: Callable[..., Bench]) -> None:
    """Asking for a new try of a failed photo that is no longer in the inbox forgets it, instead of waiting for ever."""
    run = bench(failed="move")
    run.sight()
    run.fail("not_an_image")
    run.run(5)
    run.world.photos.pop(b"a.jpg", None)
    run.parts.desk.ledger.requeue([run.key()])
    run.inbox.scans.wanted = True
    run.run(30)
    assert run.row() is None


def test_a_failure_whose_file_is_gone_is_forgotten_once(bench: Callable[..., Bench]) -> None:
    """While the state folder is full, each scan finds it gone; that is told and put in line once."""
    run = bench(rescan_interval=10)
    run.sight()
    run.fail("not_an_image")
    run.world.photos.clear()
    run.store.full = True
    run.run(100)
    assert len(run.log.events("file.vanished")) == 1
    run.store.full = False
    run.run(60)
    assert run.row() is None
    assert not run.desk.going
