"""The ledger on a real disk: rights, full disks, damaged files, kill -9 between the commits."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from ledger_steps import KEY, OTHER, OUT, fail, finish, publish, recount, status

from animed.records import PhotoKey
from animed.schedule.ledger import Ledger
from animed.schedule.rows import SCHEMA_VERSION
from animed.schedule.store import LedgerError, MissingLedgerError, UnusableLedgerError
from animed.system import System

if TYPE_CHECKING:
    from pathlib import Path


def test_a_commit_is_durable_by_its_settings(ledger: Ledger) -> None:
    """A write-ahead log, synced at every commit: FULL is 2."""
    assert ledger._store.read("PRAGMA journal_mode") == [("wal",)]
    assert ledger._store.read("PRAGMA synchronous") == [(2,)]


def test_only_the_owner_reads_it(ledger: Ledger, path: str) -> None:
    """The names of all photos are private: folder 0700, files 0600, also those that the database adds."""
    publish(ledger)
    folder = os.path.dirname(path)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    modes = {name: os.stat(os.path.join(folder, name)).st_mode & 0o777 for name in os.listdir(folder)}
    assert set(modes) == {"ledger.db", "ledger.db-wal", "ledger.db-shm"}
    assert set(modes.values()) == {0o600}


def test_closing_leaves_one_file(path: str) -> None:
    """A clean end folds the log into the file: one file is the whole backup."""
    with Ledger.open(path) as ledger:
        publish(ledger)
    assert os.listdir(os.path.dirname(path)) == ["ledger.db"]
    with Ledger.open(path, create=False) as ledger:
        assert status(ledger) == "publishing"


def test_an_absent_ledger_is_not_made_by_a_reader(path: str) -> None:
    """A command that only asks gets a clear error, and leaves nothing behind."""
    with pytest.raises(MissingLedgerError, match=r"no ledger yet .*start the service"):
        Ledger.open(path, create=False)
    assert not os.path.exists(os.path.dirname(path))
    os.makedirs(os.path.dirname(path))
    with open(path, "wb"):
        pass
    with pytest.raises(MissingLedgerError, match="no ledger yet"):
        Ledger.open(path, create=False)


def test_a_start_that_was_cut_short_is_made_good(path: str) -> None:
    """An empty file, as a crash right after its creation leaves it, becomes a ledger."""
    os.makedirs(os.path.dirname(path))
    with open(path, "wb"):
        pass
    with Ledger.open(path) as ledger:
        publish(ledger)


def test_a_newer_ledger_is_left_alone(path: str) -> None:
    """A format from the future is refused with what to do, and not changed."""
    Ledger.open(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 5")
    with pytest.raises(UnusableLedgerError, match=r"newer version of animed .*install that version") as caught:
        Ledger.open(path)
    assert caught.value.exit_status == 78
    assert path in str(caught.value)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (5,)


def test_a_ledger_of_an_earlier_format_is_taken_on(path: str) -> None:
    """A ledger from before originals were said to have moved, and names to be one, keeps all and knows that now."""
    with Ledger.open(path) as ledger:
        publish(ledger, taken="2024-05-17T18:03:59")
        finish(ledger)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP INDEX photos_by_fold")
        for column in ("moved", "taken", "fold", "fingerprint"):
            db.execute(f"ALTER TABLE photos DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 1")
    with Ledger.open(path) as ledger:
        row = ledger.get(KEY)
        assert row is not None
        assert (row.status, row.output, row.moved, row.taken) == ("done", OUT, None, None)
        assert ledger.output_owner(OUT.upper(), folds=True) == KEY
        assert ledger.original_done(KEY, moved=b"/elsewhere/\xff.jpg")
    with Ledger.open(path) as ledger:
        row = ledger.get(KEY)
        assert row is not None
        assert row.moved == b"/elsewhere/\xff.jpg"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_ledger_of_the_third_format_is_taken_on(path: str) -> None:
    """A ledger from before photos were compared keeps all it knows; what it has finished is like nothing."""
    with Ledger.open(path) as ledger:
        publish(ledger)
        finish(ledger)
        ledger.original_done(KEY, moved=b"/elsewhere/\xff.jpg")
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE photos DROP COLUMN fingerprint")
        db.execute("PRAGMA user_version = 3")
    with Ledger.open(path) as ledger:
        row = ledger.get(KEY)
        assert row is not None
        assert (row.status, row.output, row.moved, row.fingerprint) == ("done", OUT, b"/elsewhere/\xff.jpg", None)
        assert ledger.fingerprints(KEY.inbox) == []
        publish(ledger, OTHER, b"/out/b.jpg", fingerprint=b"looks")
        assert ledger.fingerprints(KEY.inbox) == []
        finish(ledger, OTHER)
        assert ledger.fingerprints(KEY.inbox) == [(OTHER.path, "r1", b"looks")]
        ledger.forget([OTHER])
        assert ledger.fingerprints(KEY.inbox) == []


def test_whoever_is_quicker_may_take_an_earlier_ledger_on(path: str) -> None:
    """A command that opens the ledger while the service does is in nobody's way: the format is changed once."""
    with Ledger.open(path) as ledger:
        publish(ledger)
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE photos DROP COLUMN fingerprint")
        db.execute("PRAGMA user_version = 3")

    quicker = [path]

    class Late(System):
        def query(self, connection: sqlite3.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
            if sql == "BEGIN IMMEDIATE" and quicker:
                Ledger.open(quicker.pop()).close()
            return super().query(connection, sql, parameters)

    with Ledger.open(path, system=Late()) as ledger:
        assert ledger.get(KEY) is not None
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def earlier(path: str, version: int) -> None:
    """Make a ledger with one finished photo into one of an earlier format."""
    with Ledger.open(path) as ledger:
        publish(ledger)
        finish(ledger)
    columns = {1: ["moved"], 2: ["taken", "fold"], 3: ["fingerprint"]}
    with closing(sqlite3.connect(path)) as db:
        if version <= 2:
            db.execute("DROP INDEX photos_by_fold")
        for column in (name for format_, names in columns.items() if format_ >= version for name in names):
            db.execute(f"ALTER TABLE photos DROP COLUMN {column}")
        db.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_whoever_only_asks_changes_no_format(path: str, version: int) -> None:
    """A service of the earlier version may be running still: it must find its ledger as it was."""
    earlier(path, version)
    with Ledger.open(path, create=False) as ledger:
        row = ledger.get(KEY)
        assert row is not None
        assert (row.status, row.output, row.moved, row.taken, row.fingerprint) == ("done", OUT, None, None, None)
        assert ledger.output_owner(OUT.upper(), folds=True) == KEY
        assert ledger.failures() == []
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
        assert "fingerprint" not in [column[1] for column in db.execute("PRAGMA table_info(photos)")]


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_whoever_is_to_write_brings_the_format_up_to_date_first(path: str, version: int) -> None:
    """Behind the lock no service is running; a second time is nothing."""
    earlier(path, version)
    with Ledger.open(path, create=False) as ledger:
        ledger.take_on()
        ledger.take_on()
        assert ledger.requeue([KEY]) == [KEY]
        assert ledger.output_owner(OUT.upper(), folds=True) == KEY
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_foreign_database_is_left_alone(path: str) -> None:
    """Another program's database is refused, and gets no table of ours."""
    os.makedirs(os.path.dirname(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(UnusableLedgerError, match="not a ledger of animed"):
        Ledger.open(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_damaged_ledger_says_what_to_do(path: str) -> None:
    """Both a file that is no database and one with a broken page name the file and the way out."""
    with Ledger.open(path) as ledger:
        for number in range(200):
            fail(ledger, PhotoKey("phone", b"%d" % number))
    with open(path, "r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xde\xad" * 6 * 2048)
    with pytest.raises(UnusableLedgerError, match=r"damaged: .*move this file .*checked again"):
        Ledger.open(path)
    with open(path, "wb") as file:
        file.write(b"these are not the photos that you are looking for" * 100)
    with pytest.raises(UnusableLedgerError, match=r"damaged: .*never overwritten") as caught:
        Ledger.open(path)
    assert caught.value.path == path


def test_a_place_that_cannot_hold_it_is_named(tmp_path: Path) -> None:
    """A state folder that cannot be made is an error with the path and the remedy, not a traceback."""
    (tmp_path / "file").write_text("")
    for create in (True, False):
        with pytest.raises(UnusableLedgerError, match=r"cannot be opened: .*state_dir must be"):
            Ledger.open(str(tmp_path / "file" / "ledger.db"), create=create)
    (tmp_path / "folder" / "ledger.db").mkdir(parents=True)
    with pytest.raises(UnusableLedgerError, match="cannot be opened"):
        Ledger.open(str(tmp_path / "folder" / "ledger.db"))


def limit_pages(ledger: Ledger, spare: int) -> None:
    """Let the file grow by no more than some pages: what a full disk is to the database."""
    pages = ledger._store.read("PRAGMA page_count")[0][0]
    ledger._store.read(f"PRAGMA max_page_count = {pages + spare}")


def fail_many(ledger: Ledger) -> None:
    for number in range(1000):
        fail(ledger, PhotoKey("phone", b"%d" % number))


def test_a_full_disk_keeps_nothing_and_can_be_repeated(ledger: Ledger) -> None:
    """The error says that the disk is at fault; rows and totals are as before, and the same call works later."""
    publish(ledger)
    finish(ledger)
    limit_pages(ledger, 0)
    with pytest.raises(LedgerError, match="free some space") as caught:
        fail_many(ledger)
    assert caught.value.full
    assert not isinstance(caught.value, UnusableLedgerError)
    assert recount(ledger)["phone"] == +Counter(ledger.totals()["phone"])
    lost = PhotoKey("phone", b"%d" % ledger.totals()["phone"]["failed"])
    assert ledger.get(lost) is None
    limit_pages(ledger, 1000)
    fail(ledger, lost)
    assert status(ledger, lost) == "failed"


def test_a_locked_file_is_a_passing_fault(ledger: Ledger, path: str) -> None:
    """A backup program that holds the file makes the commit fail whole, and repeatable."""
    ledger._store.read("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked") as caught:
            publish(ledger)
        assert caught.value.full
        other.execute("ROLLBACK")
    assert ledger.totals() == {}
    publish(ledger)


def test_a_mistake_in_the_program_is_not_blamed_on_the_disk(ledger: Ledger) -> None:
    """A statement that the schema refuses is an error that no waiting cures."""
    with pytest.raises(LedgerError, match="refused") as caught, ledger._store.write() as db:
        db.execute("UPDATE meta SET value = NULL")
    assert not caught.value.full


# kill -9: a child does the steps and kills itself, or is killed, and the parent opens what is left.

CHILD = """
import os, signal, sys
from animed.records import FileStat, PhotoKey, Staged
from animed.schedule.ledger import Ledger

STAT = FileStat(100, 10, 20, 3, 4, 0o100644)
path, point = sys.argv[1:]
ledger = Ledger.open(path)

def here(name):
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)

def publish(number):
    ledger.publish(PhotoKey("phone", b"%d.jpg" % number), stat=STAT, sha256="aa", recipe="r1", style="cel",
                   output=b"/out/%d.jpg" % number, staged=Staged(7, 8, 900, "ee", None), folder="/out",
                   attempts=1, now=5.0)

if point == "endless":
    for number in range(1_000_000):
        publish(number)
        os.write(1, b"p%d\\n" % number)
        ledger.finish(PhotoKey("phone", b"%d.jpg" % number), status="done", original_pending=None, now=6.0)
        os.write(1, b"d%d\\n" % number)

KEY = PhotoKey("phone", b"0.jpg")
here("opened")
with ledger._store.write() as db:
    db.execute("UPDATE meta SET value = 'half'")
    here("inside a transaction")
    db.execute("ROLLBACK")
    db.execute("BEGIN")
publish(0)
here("published")
ledger.finish(KEY, status="done", original_pending="{}", now=6.0)
here("finished")
ledger.original_done(KEY)
here("put away")
ledger.close()
here("closed")
"""


def child(path: str, point: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CHILD, path, point], stdout=subprocess.PIPE)


DYING = """
import os, signal, sys
from animed.schedule.ledger import Ledger
from animed.system import System

class Dying(System):
    def commit(self, connection):
        os.kill(os.getpid(), signal.SIGKILL)

Ledger.open(sys.argv[1], system=Dying())
"""


def test_kill_9_in_the_middle_of_a_change_of_format_changes_nothing(path: str) -> None:
    """The ledger is of the earlier format then, with all its rows, and taken on by the next start."""
    earlier(path, 2)
    killed = subprocess.run([sys.executable, "-c", DYING, path], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert "fold" not in [column[1] for column in db.execute("PRAGMA table_info(photos)")]
    with Ledger.open(path) as ledger:
        assert status(ledger) == "done"
        assert ledger.output_owner(OUT.upper(), folds=True) == KEY


@pytest.mark.parametrize(
    ("point", "expected", "pending"),
    [
        ("opened", None, None),
        ("inside a transaction", None, None),
        ("published", "publishing", None),
        ("finished", "done", "{}"),
        ("put away", "done", None),
        ("closed", "done", None),
    ],
)
def test_kill_9_loses_no_step_and_makes_up_none(path: str, point: str, expected: str, pending: str | None) -> None:
    """What was committed before the kill is there, whole; what was not is not."""
    with child(path, point) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    with Ledger.open(path, create=False) as ledger:
        row = ledger.get(PhotoKey("phone", b"0.jpg"))
        assert (row and row.status) == expected
        assert (row and row.original_pending) == pending
        assert len(ledger.publishing("phone")) == (expected == "publishing")
        assert len(ledger.instance) == 8
        assert recount(ledger) == {inbox: +Counter(found) for inbox, found in ledger.totals().items()}


def test_kill_9_at_any_time_keeps_every_step_that_returned(path: str) -> None:
    """Killed in the middle of work, the ledger has all that was acknowledged and at most one step more."""
    with child(path, "endless") as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(random.randint(40, 80))]
        process.kill()
        said += process.stdout.read().split()
    done = {int(word[1:]) for word in said if word.startswith(b"d")}
    published = {int(word[1:]) for word in said if word.startswith(b"p")}
    with Ledger.open(path, create=False) as ledger:
        totals = ledger.totals()["phone"]
        assert len(done) <= totals["done"] <= len(done) + 1
        assert len(published) <= totals["done"] + totals["publishing"] <= len(published) + 1
        assert {status(ledger, PhotoKey("phone", b"%d.jpg" % number)) for number in done} == {"done"}
