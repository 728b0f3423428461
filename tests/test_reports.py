"""`report: file`: what people who see only the synced folder get to read, and that it costs photos nothing."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.daemon import reporttext
from animed.daemon.noting import FindNotes, RemoveNote, SearchEnded, WriteNote
from animed.daemon.outcomes import PhotoEnded
from animed.daemon.reports import EVERY_S
from animed.daemon.reporttext import STATUS_NAMES, WORDS, InboxLine, clean, failure, owner, status
from animed.delivery.notes import FoundNote
from animed.errors import PlaceError
from animed.records import PhotoKey, Reason
from animed.schedule.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon_bench import Bench

NOTE = b"/out/phone/a.jpg.failed.txt"
STATUS = b"/out/phone/animed-status.txt"


def asked(run: Bench, kind: type, inbox: str = "phone") -> list[Any]:
    """Return what an inbox's thread is asked about notes, the status left out."""
    return [each for each in run.threads[inbox].of(kind) if getattr(each, "names", ()) != STATUS_NAMES]


def status_writes(world: World) -> list[str]:
    """Let a world count the versions of the status; returns the list that they come into."""
    versions: list[str] = []
    write = world._do[WriteNote]

    def counted(self: World, request: WriteNote) -> object:
        if request.names == STATUS_NAMES:
            versions.append(request.note.text)
        return write(self, request)

    world._do[WriteNote] = counted
    return versions


# Notes about photos.


def test_a_failed_photo_has_a_note_until_it_comes_out_well(bench: Callable[..., Bench]) -> None:
    """The note lies beside the place of the picture, says what was wrong and what to do, and goes with the failure."""
    run = bench(report="file", attempts=1)
    run.sight(b"a.jpg", b"bad")
    run.fail(Reason.TRUNCATED)
    text = run.world.notes[NOTE]
    assert "a.jpg" in text
    assert WORDS[Reason.TRUNCATED][0] in text
    assert WORDS[Reason.TRUNCATED][1] in text
    run.sight(b"a.jpg", b"good now", mtime_ns=2)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "truncated"), ("a.jpg", "done")]
    assert NOTE not in run.world.notes


def test_a_note_goes_when_the_photo_is_gone(bench: Callable[..., Bench]) -> None:
    """A failed photo that is taken out of the inbox takes its note with it, found by the next scan."""
    run = bench(report="file", rescan_interval=60)
    run.sight(b"a.jpg", b"bad")
    run.fail(Reason.NOT_AN_IMAGE)
    assert NOTE in run.world.notes
    del run.world.photos[b"a.jpg"]
    run.run(200)
    assert run.row() is None
    assert NOTE not in run.world.notes


def test_a_note_goes_when_the_photo_is_forgotten(bench: Callable[..., Bench]) -> None:
    """Whoever makes the ledger forget a photo, with a word or without, makes its note go."""
    run = bench(report="file")
    for name in (b"a.jpg", b"b.jpg"):
        run.sight(name, b"bad " + name)
        run.fail(Reason.NOT_AN_IMAGE)
    run.ledger.forget([run.key(b"a.jpg")])
    run.desk.reporter.forgotten(run.key(b"a.jpg"))
    run.turn()
    assert NOTE not in run.world.notes
    run.ledger.forget([run.key(b"b.jpg")])  # no word of it
    run.run(2 * EVERY_S)
    assert set(run.world.notes) == {STATUS}


@pytest.mark.parametrize("change", [{"report": "off"}, {"output": Path("/elsewhere")}])
def test_notes_go_with_the_inbox_that_leaves_the_output(bench: Callable[..., Bench], change: dict[str, Any]) -> None:
    """Where a reload ends the reports in an output, no note about a photo is left lying there for ever."""
    run = bench(report="file")
    run.sight(b"a.jpg", b"bad")
    run.fail(Reason.NOT_AN_IMAGE)
    assert NOTE in run.world.notes
    run.reload(run.changed(**change))
    run.run(5)
    assert NOTE not in run.world.notes


def test_reports_are_off_unless_asked_for(bench: Callable[..., Bench]) -> None:
    """Without `report: file` nothing is asked and nothing is written."""
    run = bench()
    run.sight(b"a.jpg", b"bad")
    run.fail(Reason.NOT_AN_IMAGE)
    run.run(200)
    assert run.world.notes == {}
    run.daemon._drain(signal.SIGTERM, run.now)
    run.parts.reports.close(finished=False)
    assert run.thread.requests == []


def test_a_note_that_is_being_written_can_be_removed(bench: Callable[..., Bench]) -> None:
    """A photo that comes out well before its note was written is not left with one."""
    run = bench(report="file")
    run.run(1)
    stat = run.world.write(b"a.jpg", b"bad")
    run.ledger.fail(
        run.key(), stat, sha256="", recipe="", style="cel", reason=Reason.CHANGED, detail="", attempts=1, crashes=0,
        now=1.0,
    )  # fmt: skip
    run.parts.reports.photo_ended(PhotoEnded(run.key(), "failed", b"/in/phone/a.jpg"))
    run.parts.reports.photo_ended(PhotoEnded(run.key(), "done", b"/in/phone/a.jpg"))
    (write,), (remove,) = asked(run, WriteNote), asked(run, RemoveNote)
    assert remove.owner == write.note.owner
    assert remove.names == write.names
    run.ledger.forget([run.key()])
    run.turn()
    assert NOTE not in run.world.notes


def test_each_start_puts_the_notes_right(bench: Callable[..., Bench]) -> None:
    """What is missing or old is written, what is about no failure is removed, what is right is left alone."""
    run = bench(report="file")
    for name in (b"missing.jpg", b"old.jpg", b"right.jpg"):
        run.sight(name, b"bad " + name)
        run.fail(Reason.NOT_AN_IMAGE)
    run.restart(start=False)
    for inbox in run.desk.inboxes.values():
        inbox.start()
    run.thread.silence = 0.0
    while not run.thread.of(FindNotes):
        if not run.step():
            run.tick()
    request = run.thread.of(FindNotes)[0]
    instance = run.ledger.instance
    assert request.owners == f"animed-report {instance} phone "
    right = run.row(b"right.jpg")
    assert right is not None
    stamps = {b"gone.jpg": "1", b"old.jpg": "1", b"right.jpg": reporttext.stamp(right)}
    found = tuple(
        FoundNote(name + b".failed.txt", owner(instance, PhotoKey("phone", name)), stamp)
        for name, stamp in stamps.items()
    )
    run.thread.requests.clear()
    run.parts.reports.answered("phone", request, found)
    run.parts.reports.answered("phone", request, SearchEnded())
    assert {each.names[0] for each in asked(run, WriteNote)} == {b"missing.jpg.failed.txt", b"old.jpg.failed.txt"}
    assert [each.names for each in asked(run, RemoveNote)] == [(b"gone.jpg.failed.txt",)]


def test_a_place_that_refuses_notes_has_no_effect_on_photos(bench: Callable[..., Bench]) -> None:
    """Notes that cannot be written are told once; photos are drawn, the output stays in use, and it is tried again."""
    run = bench(report="file")
    run.world.faults[WriteNote] = PlaceError("output", errno.EACCES, "/out/phone", "no")
    for number in range(3):
        run.sight(b"bad%d.jpg" % number, b"bad %d" % number)
        run.fail(Reason.NOT_AN_IMAGE)
    run.sight(b"good.jpg", b"good")
    run.draw_all()
    assert run.status(b"good.jpg") == "done"
    assert run.state() == "ready"
    assert len([line for line in run.log.events("place.note") if "report" in line["detail"]]) == 1
    run.world.faults.clear()
    run.run(3 * EVERY_S)
    assert set(run.world.notes) == {STATUS, *(b"/out/phone/bad%d.jpg.failed.txt" % number for number in range(3))}


# The status.


def test_the_status_changes_at_most_once_a_minute_and_only_with_something_to_say(bench: Callable[..., Bench]) -> None:
    """Ten photos in a minute are two versions; an idle hour is none, and asks for no turn of the loop."""
    world = World()
    versions = status_writes(world)
    run = bench(report="file", world=world)
    run.run(1)
    assert len(versions) == 1
    for number in range(10):
        run.sight(b"%d.jpg" % number, b"photo %d" % number)
        run.draw_all()
        run.run(1)
    assert len(versions) == 1
    run.run(EVERY_S)
    assert len(versions) == 2
    assert "10 pictures" in versions[-1]
    run.run(3600)
    assert len(versions) == 2
    assert run.parts.reports.next_due() is None


def test_the_status_tells_of_troubles_and_of_the_end(bench: Callable[..., Bench]) -> None:
    """It names what failed, an inbox that is away, and at a stop says so at once, whatever the minute."""
    run = bench(report="file", names=("phone", "nas"))
    run.sight(b"a.jpg", b"bad")
    run.fail(Reason.NOT_AN_IMAGE)
    run.run(EVERY_S)
    text = run.world.notes[STATUS]
    assert "animed: running" in text
    assert "Inbox phone: ready\n  0 pictures, 1 failed" in text
    assert "a.jpg: this is not a picture" in text
    assert "nas" not in text
    assert "Inbox nas: ready" in run.worlds["nas"].notes[b"/out/nas/animed-status.txt"]
    run.daemon._drain(signal.SIGTERM, run.now)
    run.parts.reports.close(finished=False)
    run._answer_all()
    assert run.world.notes[STATUS].startswith("animed: stopped at ")
    run.parts.reports.close(finished=True)
    run._answer_all()
    assert run.world.notes[STATUS].startswith("animed: finished at ")


def test_inboxes_that_share_an_output_share_one_status(bench: Callable[..., Bench]) -> None:
    """One file names them all, written by one that answers: where the first hangs, the next one writes."""
    run = bench(report="file", names=("phone", "nas"), start=False)
    first, second = run.desk.inboxes.values()
    second.output = first.output
    second.delivery = first.delivery
    run.start()
    run.run(1)
    assert "Inbox phone: ready" in run.world.notes[STATUS]
    assert "Inbox nas: ready" in run.world.notes[STATUS]
    assert run.worlds["nas"].notes == {}
    run.threads["phone"].silence = 40.0  # its share hangs
    run.run(2 * EVERY_S)
    text = run.worlds["nas"].notes[STATUS]
    assert "Inbox phone: unavailable (trouble with: inbox)" in text
    assert "Inbox nas: ready" in text


def test_nothing_is_written_into_an_output_that_does_not_take_it(bench: Callable[..., Bench]) -> None:
    """While the output is suspended no note is asked for; when it is back, the status is made good."""
    run = bench(report="file")
    run.world.break_output()
    run.sight(b"a.jpg")
    run.run(5)
    assert run.state() == "degraded"
    run.thread.requests.clear()
    run.tick()
    assert run.thread.of(WriteNote) == []
    run.world.heal()
    run.run(5 * EVERY_S)
    assert "Inbox phone: ready" in run.world.notes[STATUS]


def test_a_single_pass_waits_for_its_notes(bench: Callable[..., Bench]) -> None:
    """`once` ends when its notes are written."""
    run = bench(report="file", once=True)
    run.run(1)
    assert run.parts.is_through()
    run.thread.silence = 0.1
    run.ledger.fail(
        run.key(), World().write(b"a.jpg", b"x"), sha256="", recipe="", style="cel", reason=Reason.EMPTY, detail="",
        attempts=1, crashes=0, now=1.0,
    )  # fmt: skip
    row = run.row()
    assert row is not None
    run.parts.reports._write(run.inbox, row)
    assert not run.parts.is_through()
    run.thread.silence = 0.0
    run.turn()
    assert run.parts.is_through()


# The words.


def test_every_reason_has_its_words() -> None:
    """Each reason that a photo can fail for is told in words of its own, with what to do."""
    reasons = {value for name, value in vars(Reason).items() if name.isupper()}
    assert set(WORDS) == reasons
    assert len({what for what, _ in WORDS.values()}) == len(WORDS)
    assert all(what.endswith(".") and to_do.endswith(".") for what, to_do in WORDS.values())


@settings(deadline=None, max_examples=100)
@given(path=st.binary(min_size=1, max_size=60), detail=st.text(max_size=60), reason=st.text(max_size=20))
def test_nothing_in_a_name_can_forge_a_note(path: bytes, detail: str, reason: str) -> None:
    """Whatever a photo is called, its note ends in the one line that says whose it is, and is text of one form."""
    row = Row(PhotoKey("phone", path), 1, 1, 1, "failed", reason=reason, detail=detail, attempts=2, updated=1e9)
    note = failure("inst", row)
    lines = note.content.decode().split("\n")
    assert lines[-2:] == [f"{owner('inst', row.key)} 1000000000000", ""]
    assert sum(line.startswith("animed-report ") for line in lines) == 1
    whole = status("inst", "running", [InboxLine("phone", "ready", {"done": 1}, ())], [row] * 30, now=1e9)
    assert sum(line.startswith("animed-status ") for line in whole.content.decode().split("\n")) == 1
    assert len(whole.content.decode().split("\n")) < 25


@pytest.mark.parametrize(
    ("text", "shown"), [("a b.jpg", "a b.jpg"), ("a\nb\x1b[2J\u202e", "a\\nb\\x1b[2J\\u202e"), ("ü猫", "ü猫")]
)
def test_names_are_shown_on_one_line(text: str, shown: str) -> None:
    """Letters of any script stay; what would break the line or turn it round is escaped."""
    assert clean(text) == shown


def test_notes_lie_where_pictures_would(bench: Callable[..., Bench]) -> None:
    """With `layout: flat` a note lies at the top, as its picture would; else in the same sub-folder."""
    for layout, place in (("mirror", b"/out/phone/trip/a.jpg.failed.txt"), ("flat", NOTE)):
        run = bench(report="file", layout=layout)
        run.sight(b"trip/a.jpg", b"bad")
        run.fail(Reason.NOT_AN_IMAGE)
        assert place in run.world.notes
        assert os.path.basename(place) == b"a.jpg.failed.txt"
