"""What the ledger answers."""

from __future__ import annotations

from ledger_steps import KEY, OTHER, OUT, STAGED, fail, finish, publish, retrying, status

from animed.records import PhotoKey
from animed.schedule.ledger import Ledger


def test_a_picture_is_shared_by_content_and_recipe(ledger: Ledger) -> None:
    """Only a done photo with both equal lends its picture; the latest one does."""
    publish(ledger)
    assert ledger.find_picture("aa", "r1") is None, "not before it is placed"
    finish(ledger)
    publish(ledger, OTHER, b"/out/b.jpg")
    finish(ledger, OTHER, now=9.0)
    found = ledger.find_picture("aa", "r1")
    assert found is not None
    assert (found.key, found.output, found.staged) == (OTHER, b"/out/b.jpg", STAGED)
    assert ledger.find_picture("aa", "r2") is None
    assert ledger.find_picture("bb", "r1") is None


def test_a_duplicate_does_not_lend_a_picture(ledger: Ledger) -> None:
    """A duplicate has its own output, and points to no chain of duplicates."""
    publish(ledger)
    ledger.finish(KEY, status="duplicate", original_pending=None, now=6.0)
    assert status(ledger) == "duplicate"
    assert ledger.find_picture("aa", "r1") is None
    assert ledger.output_owner(OUT) == KEY


def test_failures_are_listed_newest_first(ledger: Ledger) -> None:
    """Failed and waiting photos, of one inbox or all; the short list has those that failed for good."""
    scan = PhotoKey("scans", b"s.jpg")
    fail(ledger, KEY, now=1.0)
    retrying(ledger, OTHER, now=2.0)
    fail(ledger, scan, now=3.0)
    assert [row.key for row in ledger.failures()] == [scan, OTHER, KEY]
    assert [row.key for row in ledger.failures("phone")] == [OTHER, KEY]
    assert [row.key for row in ledger.last_failures(5)] == [scan, KEY]
    assert [row.key for row in ledger.last_failures(1)] == [scan]
    waiting = ledger.get(OTHER)
    assert waiting is not None
    assert (waiting.next_try, waiting.attempts, waiting.crashes) == (17.0, 2, 1)


def test_what_lies_below_a_folder(ledger: Ledger) -> None:
    """A path means itself and all below it, whatever bytes stand in the names, and an empty one its whole inbox."""
    names = [b"a", b"a/b", b"a/b/c", b"a/\xff", b"a0", b"a.jpg", b"a-b", b"A/b", b"a\xff/b"]
    for name in names:
        fail(ledger, PhotoKey("phone", name))
    fail(ledger, PhotoKey("other", b"a/b"))
    assert [key.path for key in ledger.below(PhotoKey("phone", b"a"))] == [b"a", b"a/b", b"a/b/c", b"a/\xff"]
    assert [key.path for key in ledger.below(PhotoKey("phone", b"a/b"))] == [b"a/b", b"a/b/c"]
    assert [key.path for key in ledger.below(PhotoKey("phone", b""))] == sorted(names)
    assert ledger.below(PhotoKey("phone", b"none")) == []
    every = [PhotoKey("phone", name) for name in names]
    for place in (b"", b"a", b"a/b"):
        held = [key for key in sorted(every) if PhotoKey("phone", place).holds(key)]
        assert ledger.below(PhotoKey("phone", place)) == held


def test_outdated_is_what_no_current_recipe_made(ledger: Ledger) -> None:
    """Finished photos of the named inboxes under other recipes; failures and other inboxes are not meant."""
    publish(ledger, KEY, b"/out/1", recipe="old")
    finish(ledger, KEY)
    publish(ledger, OTHER, b"/out/2", recipe="new")
    finish(ledger, OTHER)
    fail(ledger, PhotoKey("phone", b"f.jpg"), recipe="old")
    publish(ledger, PhotoKey("scans", b"s.jpg"), b"/out/3", recipe="old")
    finish(ledger, PhotoKey("scans", b"s.jpg"))
    assert ledger.outdated({"phone": frozenset({"new", "newer"})}) == [KEY]
    assert ledger.outdated({}) == []


def test_many_photos_are_looked_up_in_chunks(ledger: Ledger) -> None:
    """More photos than one query takes, of several inboxes, known and unknown, come back complete."""
    keys = [PhotoKey(inbox, b"%d.jpg" % number) for inbox in ("phone", "scans") for number in range(1200)]
    with ledger._store.write() as db:
        db.executemany(
            "INSERT INTO photos SELECT ?, ?, 1, 1, 1, 'done', '', '', '', 1, 0, '', '', NULL, NULL, NULL, NULL, NULL, "
            "NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL",
            keys[::2],
        )
    found = ledger.get_many(keys)
    assert set(found) == set(keys[::2])
    assert all(row.key == key for key, row in found.items())
    assert ledger.get_many([]) == {}


def test_settings_and_the_instance_are_remembered(path: str) -> None:
    """The instance has 8 hex digits for ever; a setting has its latest value."""
    with Ledger.open(path) as ledger:
        instance = ledger.instance
        assert ledger.meta("paused") is None
        ledger.set_meta("paused", "yes")
        ledger.set_meta("paused", "no")
    assert len(bytes.fromhex(instance)) == 4
    with Ledger.open(path) as ledger:
        assert (ledger.instance, ledger.meta("paused")) == (instance, "no")


def test_totals_are_those_of_all_time(path: str) -> None:
    """Counts per inbox and status are the same after a restart."""
    with Ledger.open(path) as ledger:
        assert ledger.totals() == {}
        publish(ledger)
        finish(ledger)
        fail(ledger, OTHER)
        totals = ledger.totals()
    none = dict.fromkeys(("publishing", "done", "duplicate", "skipped", "failed", "retry"), 0)
    assert totals == {"phone": none | {"done": 1, "failed": 1}}
    with Ledger.open(path) as ledger:
        assert ledger.totals() == totals
