"""A photo's life in the ledger: two commits, one outcome, one owner for each output."""

from __future__ import annotations

import os

import pytest
from ledger_steps import KEY, OTHER, OUT, STAGED, STAT, fail, finish, publish, retrying, status

from animed.records import FileStat, PhotoKey, Staged
from animed.schedule.identity import Known, New, decide
from animed.schedule.ledger import Ledger, OutputTakenError


def test_two_commits_make_one_outcome(ledger: Ledger, path: str) -> None:
    """A photo is publishing, then done, and a new opening remembers every field."""
    publish(ledger)
    assert [row.key for row in ledger.publishing("phone")] == [KEY]
    assert ledger.publishing("scans") == []
    finish(ledger)
    assert ledger.publishing("phone") == []
    with Ledger.open(path, create=False) as again:
        row = again.get(KEY)
    assert row == ledger.get(KEY)
    assert row is not None
    assert (row.size, row.mtime_ns, row.ctime_ns, row.sha256, row.recipe, row.style) == (100, 10, 20, "aa", "r1", "cel")
    assert (row.status, row.attempts, row.output, row.staged, row.folder) == ("done", 1, OUT, STAGED, "/out")
    assert (row.first_seen, row.updated) == (5.0, 6.0)
    assert decide(row, STAT) == Known()


def test_names_and_numbers_survive_as_they_are(ledger: Ledger) -> None:
    """Bytes outside UTF-8, inodes of 64 bits and dates far away come back exactly, and match again."""
    key = PhotoKey("phone", b"sub/\xff\xfe\x00'.jpg")
    stat = FileStat(2**40, 2**64 + 1, -(2**64), 2**64 - 1, 2**63, 0o100644)
    staged = Staged(2**64 - 1, 2**63, 5, "ff", os.fsdecode(b".t\xff.tmp"))
    folder = os.fsdecode(b"/out/\xe9")
    publish(ledger, key, b"/out/\xe9/\xff.jpg", stat=stat, staged=staged, folder=folder)
    finish(ledger, key)
    row = ledger.get_many([key])[key]
    assert (row.output, row.staged, row.folder, row.ctime_ns) == (b"/out/\xe9/\xff.jpg", staged, folder, -(2**64))
    assert decide(row, stat) == Known()
    assert ledger.output_owner(b"/out/\xe9/\xff.jpg") == key
    fail(ledger, OTHER, detail="cannot read \udcff\ud800")
    failed = ledger.get(OTHER)
    assert failed is not None
    assert failed.detail == "cannot read \\udcff\\ud800"


def test_no_two_photos_get_one_output(ledger: Ledger) -> None:
    """A claimed name is refused to others, names its owner, and leaves the other photo's record alone."""
    publish(ledger)
    fail(ledger, OTHER)
    for _ in range(2):
        with pytest.raises(OutputTakenError, match=r"a\.jpg of inbox phone") as caught:
            publish(ledger, OTHER)
        assert (caught.value.owner, caught.value.output) == (KEY, OUT)
        assert status(ledger, OTHER) == "failed"
        if status(ledger) == "publishing":
            finish(ledger)
    publish(ledger, OTHER, b"/out/a.cel-2.jpg")
    assert ledger.output_owner(b"/out/a.cel-2.jpg") == OTHER
    assert ledger.output_owner(b"/out/free.jpg") is None


def test_a_photo_may_keep_its_own_output(ledger: Ledger) -> None:
    """New bytes under the same name may replace the picture of the old ones, or leave its name to others."""
    publish(ledger)
    finish(ledger)
    publish(ledger, sha256="bb")
    finish(ledger)
    publish(ledger, output=b"/out/a.cel-2.jpg", sha256="cc")
    finish(ledger)
    publish(ledger, OTHER, OUT)
    assert ledger.output_owner(OUT) == OTHER


def test_a_failed_new_version_keeps_the_claim_of_the_old_picture(ledger: Ledger) -> None:
    """The picture of the earlier bytes is still on disk: its name is given to no other photo."""
    publish(ledger)
    finish(ledger)
    fail(ledger)
    assert ledger.output_owner(OUT) == KEY
    assert ledger.find_picture("aa", "r1") is None


def test_a_placing_that_did_not_happen_is_undone(ledger: Ledger) -> None:
    """The name is free again, the photo is new with the tries that it had, and it is no failure."""
    publish(ledger, attempts=3)
    ledger.unpublish(KEY, now=8.0)
    row = ledger.get(KEY)
    assert row is not None
    assert (row.output, row.staged, row.folder) == (None, None, None)
    assert decide(row, STAT) == New(attempts=2)
    assert ledger.failures() == []
    publish(ledger, OTHER, OUT)


def test_a_placing_that_failed_frees_its_name(ledger: Ledger) -> None:
    """A failure straight out of publishing claims nothing: nothing was placed."""
    publish(ledger)
    fail(ledger, reason="conflict")
    publish(ledger, OTHER, OUT)
    assert ledger.output_owner(OUT) == OTHER


@pytest.mark.parametrize("known", [False, True])
def test_only_a_started_placing_can_end(ledger: Ledger, known: bool) -> None:
    """`finish` and `unpublish` without `publish` are mistakes of the caller, and change nothing."""
    if known:
        fail(ledger)
    before = ledger.get(KEY)
    with pytest.raises(LookupError, match="not being published"):
        finish(ledger)
    with pytest.raises(LookupError, match="not being published"):
        ledger.unpublish(KEY, now=1.0)
    assert ledger.get(KEY) == before


def test_a_new_stat_of_the_same_content_is_remembered(ledger: Ledger) -> None:
    """`touch` changes the stat alone, and nothing for a photo that was forgotten meanwhile."""
    publish(ledger)
    finish(ledger)
    moved = FileStat(100, 99, 98, 97, 96, 0o100644)
    assert ledger.touch(KEY, moved)
    assert decide(ledger.get(KEY), moved) == Known()
    assert not ledger.touch(OTHER, moved)
    assert ledger.get(OTHER) is None


def test_an_original_waits_until_it_is_put_away(ledger: Ledger, path: str) -> None:
    """What is owed to an original survives a restart and everything but `original_done`."""
    publish(ledger)
    finish(ledger, pending='{"move": "x"}')
    fail(ledger, OTHER, original_pending='{"move": "y"}')
    with Ledger.open(path) as again:
        assert {row.key: row.original_pending for row in again.original_waiting("phone")} == {
            KEY: '{"move": "x"}',
            OTHER: '{"move": "y"}',
        }
        assert again.original_waiting("scans") == []
    fail(ledger, OTHER)
    assert ledger.forget([KEY, OTHER]) == []
    assert ledger.requeue([KEY, OTHER]) == []
    assert ledger.original_done(KEY)
    assert [row.key for row in ledger.original_waiting("phone")] == [OTHER]
    assert ledger.forget([KEY, OTHER]) == [KEY]
    assert not ledger.original_done(KEY)


def test_a_policy_skip_is_an_outcome(ledger: Ledger) -> None:
    """A skipped photo is remembered with its cause and is no failure."""
    ledger.skip(KEY, STAT, sha256="aa", recipe="r1", style="cel", cause="animated", now=4.0)
    row = ledger.get(KEY)
    assert row is not None
    assert (row.status, row.reason) == ("skipped", "animated")
    assert decide(row, STAT) == Known()
    assert ledger.failures() == []


def test_the_first_sighting_is_that_of_the_same_bytes(ledger: Ledger) -> None:
    """Later tries keep `first_seen`; other bytes under the name start it again."""
    retrying(ledger, now=2.0)
    fail(ledger, now=9.0)
    assert [(row.first_seen, row.updated) for row in ledger.failures()] == [(2.0, 9.0)]
    publish(ledger, stat=FileStat(1, 2, 3, 4, 5, 0o100644), now=20.0)
    assert [row.first_seen for row in ledger.publishing("phone")] == [20.0]


def test_requeue_gives_all_tries_back(ledger: Ledger, path: str) -> None:
    """Without keys all that failed is tried again, across restarts, and stays listed until it ends otherwise."""
    fail(ledger, KEY)
    retrying(ledger, OTHER)
    done = PhotoKey("phone", b"done.jpg")
    publish(ledger, done)
    assert ledger.requeue([done]) == [], "it is being placed"
    finish(ledger, done)
    assert set(ledger.requeue([row.key for row in ledger.failures()])) == {KEY, OTHER}
    with Ledger.open(path) as again:
        assert [decide(again.get(key), STAT) for key in (KEY, OTHER, done)] == [New(), New(), Known()]
        assert len(again.failures()) == 2
    publish(ledger, KEY, b"/out/k.jpg")
    finish(ledger, KEY)
    assert decide(ledger.get(KEY), STAT) == Known()


def test_a_done_photo_stays_done_while_it_is_asked_for_again(ledger: Ledger) -> None:
    """It is new to `decide`, but keeps its outcome and picture until the new picture is placed."""
    publish(ledger)
    finish(ledger)
    assert ledger.requeue([KEY, OTHER]) == [KEY]
    row = ledger.get(KEY)
    assert row is not None
    assert (row.status, row.output, decide(row, STAT)) == ("done", OUT, New())


def test_a_forgotten_photo_is_new(ledger: Ledger) -> None:
    """It leaves no record and no claim, unless it is just being placed."""
    publish(ledger)
    assert ledger.forget([KEY, OTHER]) == []
    finish(ledger)
    assert ledger.forget([KEY, OTHER]) == [KEY]
    assert decide(ledger.get(KEY), STAT) == New()
    assert ledger.output_owner(OUT) is None
