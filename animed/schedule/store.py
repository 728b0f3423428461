"""The ledger's database file: opened safely, changed in whole transactions, with errors that say what to do.

One owner: the thread that opened it. A commit has reached the disk when it returns (WAL, synchronous FULL).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Final

from animed.errors import EXIT_CONFIG, AnimedError
from animed.folding import folded
from animed.schedule.rows import APPLICATION_ID, MIGRATIONS, READINGS, SCHEMA, SCHEMA_VERSION
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CACHE_KIB: Final = 256
_BUSY_S: Final = 5.0
_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # between tries of a read: the service answers nobody meanwhile
# The disk, not the database, is at fault, and may be well again later.
_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
    }
)
_DENIED: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MOVE_AWAY: Final = (
    "stop animed and move this file and its -wal and -shm companions away: "
    "photos are then checked again, and finished pictures are never overwritten"
)


class LedgerError(AnimedError):
    """The ledger could not be read or written.

    `full`: the disk is at fault (full, read-only, an I/O error). Nothing of the transaction was kept, and the same
    call may be repeated when the disk is well again.
    """

    def __init__(self, title: str, *, remedy: str = "", path: str = "", full: bool = False) -> None:
        super().__init__(title, remedy=remedy, path=path)
        self.full = full


class UnusableLedgerError(LedgerError):
    """The file is damaged, foreign, made by a newer version, or cannot be opened: a person must act."""

    exit_status = EXIT_CONFIG


class MissingLedgerError(LedgerError):
    """There is no ledger yet: no service has ever run with this state folder."""


class Store:
    """A connection whose errors are LedgerError, and whose writes are whole or not at all."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        *,
        system: System = REAL,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self.path = path
        self._system = system
        self._pause = pause

    @classmethod
    def open(
        cls, path: str, *, create: bool, system: System = REAL, pause: Callable[[float], None] = time.sleep
    ) -> Store:
        """Open and check the database; with `create` make it, and its folder, where it is missing.

        Only with `create` is a database of an earlier format changed: a service of that version may have it open.
        Others read it as it is, and call `take_on` before they write.
        Raise MissingLedgerError or UnusableLedgerError when it cannot be used.
        """
        path = os.path.abspath(path)
        _make_file(path) if create else _require_file(path)
        with _translated(path, opening=True):
            connection = sqlite3.connect(os.fsencode(path), timeout=_BUSY_S, isolation_level=None)
        store = cls(connection, path, system=system, pause=pause)
        try:
            with _translated(path, opening=True):
                store._prepare(create=create)
        except LedgerError:
            connection.close()
            raise
        return store

    def read(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Return all results of a query; what fails in passing is tried again for some seconds before it is raised.

        Who asks is in the middle of a decision, which cannot wait as a commit can.
        """
        pauses = () if self._connection.in_transaction else _PAUSES_S
        for pause in pauses:
            try:
                return self._read(sql, parameters)
            except LedgerError as error:
                if not error.full:
                    raise
            self._pause(pause)
        return self._read(sql, parameters)

    def _read(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        with _translated(self.path):
            return self._system.query(self._connection, sql, parameters)

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction: committed at the end of the block, rolled back when anything fails."""
        with _translated(self.path):
            self._system.query(self._connection, "BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._system.commit(self._connection)
            finally:
                # An error may or may not have ended the transaction already; that is SQLite's choice.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Fold the write-ahead log into the file, and close it; on a full disk the next opening folds it instead."""
        try:
            self.read("PRAGMA wal_checkpoint(TRUNCATE)")
        except LedgerError as error:
            if not error.full:
                raise
        finally:
            self._connection.close()

    def _prepare(self, *, create: bool) -> None:
        """Check whose file it is before anything is written to it."""
        version = self._pragma("user_version")
        empty = not self.read("SELECT 1 FROM sqlite_master LIMIT 1")
        if empty and version == 0 and not create:
            raise _missing(self.path)
        self._check_origin(version, empty=empty)
        if self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise UnusableLedgerError(
                "this file system cannot hold the ledger", remedy="put state_dir on a local disk", path=self.path
            )
        self._connection.execute("PRAGMA synchronous = FULL")
        # Rows are looked up one at a time: a few warm pages serve, and the process that owns the ledger stays small.
        self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if empty:
            self._make_schema()
        elif version < SCHEMA_VERSION:
            self._connection.create_function("folded", 1, folded, deterministic=True)
            self._migrate() if create else self._read_as_new(version)

    def _check_origin(self, version: int, *, empty: bool) -> None:
        if empty and version == 0:
            return
        if self._pragma("application_id") != APPLICATION_ID:
            raise UnusableLedgerError("this is not a ledger of animed", remedy=_MOVE_AWAY, path=self.path)
        self._refuse_newer(version)
        verdict = self.read("PRAGMA quick_check(1)")[0][0]
        if verdict != "ok":
            raise _damaged(self.path, " ".join(verdict.split()))

    def _refuse_newer(self, version: int) -> None:
        if version > SCHEMA_VERSION:
            raise UnusableLedgerError(
                f"the ledger was made by a newer version of animed (format {version}, known up to {SCHEMA_VERSION})",
                remedy="install that version again, or " + _MOVE_AWAY,
                path=self.path,
            )

    def _make_schema(self) -> None:
        with self.write() as db:
            for statement in SCHEMA:
                db.execute(statement)
            db.execute("INSERT INTO meta VALUES ('instance', ?)", (secrets.token_hex(4),))
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def take_on(self) -> None:
        """Bring a database up to date that was opened to be read; whoever calls this holds the state folder's lock."""
        if self._pragma("user_version") < SCHEMA_VERSION:
            with _translated(self.path):
                self._connection.execute("DROP VIEW temp.photos")
            self._migrate()

    def _read_as_new(self, version: int) -> None:
        """Let a ledger of an earlier format look as if it were up to date, for this connection only."""
        columns = ", ".join(READINGS[earlier] for earlier in range(version, SCHEMA_VERSION))
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute(f"CREATE TEMP VIEW photos AS SELECT *, {columns} FROM main.photos")  # noqa: S608 -- constants

    def _migrate(self) -> None:
        """Bring a ledger of an earlier format up to date, whole or not at all."""
        with self.write() as db:
            # Only now is it certain: another process may have been quicker.
            version = self._pragma("user_version")
            self._refuse_newer(version)
            for earlier in range(version, SCHEMA_VERSION):
                for statement in MIGRATIONS[earlier]:
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _pragma(self, name: str) -> int:
        return int(self.read(f"PRAGMA {name}")[0][0])


def _make_file(path: str) -> None:
    """Make the folder and an empty file that only the owner may read: it holds the names of all photos."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # SQLite gives the -wal and -shm companions the mode of the file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise _cannot_open(path, error.strerror or str(error)) from error


def _require_file(path: str) -> None:
    try:
        os.stat(path)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        raise _cannot_open(path, error.strerror or str(error)) from error


@contextlib.contextmanager
def _translated(path: str, *, opening: bool = False) -> Iterator[None]:
    """Turn the database's errors into the project's; misuse of the interface stays what it is."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            raise
        raise _from_code(code & 0xFF, path, str(error), opening=opening) from error


def _from_code(code: int, path: str, detail: str, *, opening: bool) -> LedgerError:
    """Choose the error for a primary result code of SQLite (the low byte of the extended one)."""
    if code in _DAMAGED:
        return _damaged(path, detail)
    if code not in _PASSING:
        return LedgerError(f"the ledger refused a statement: {detail}", path=path)
    if opening and code in _DENIED:
        return _cannot_open(path, detail)
    return LedgerError(
        f"the ledger cannot be used: {detail}",
        remedy="free some space, or check the disk that holds state_dir",
        path=path,
        full=True,
    )


def _missing(path: str) -> MissingLedgerError:
    return MissingLedgerError(
        "there is no ledger yet",
        remedy="start the service first, or name the configuration that it uses with -c",
        path=path,
    )


def _damaged(path: str, detail: str) -> UnusableLedgerError:
    return UnusableLedgerError(f"the ledger is damaged: {detail}", remedy=_MOVE_AWAY, path=path)


def _cannot_open(path: str, detail: str) -> UnusableLedgerError:
    return UnusableLedgerError(
        f"the ledger cannot be opened: {detail}",
        remedy="state_dir must be a folder on a local disk that this user can write, with space left",
        path=path,
        full=True,
    )
