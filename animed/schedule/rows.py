"""One photo as the ledger remembers it, and its way into and out of the database's columns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from animed.folding import folded
from animed.records import PhotoKey, Staged

if TYPE_CHECKING:
    from animed.records import FileStat, Status

# Application id and version live in the file's header. The columns without a type hold whole numbers that may be
# larger than SQLite's 63 bits (inode numbers, far dates); those travel as text, and a typed column would round them.
APPLICATION_ID: Final = 0x616E6D64  # "anmd"
SCHEMA_VERSION: Final = 4
SCHEMA: Final = (
    """
    CREATE TABLE photos (
        inbox TEXT NOT NULL,
        path BLOB NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns NOT NULL,
        ctime_ns NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('publishing', 'done', 'duplicate', 'skipped', 'failed', 'retry')),
        sha256 TEXT NOT NULL,
        recipe TEXT NOT NULL,
        style TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        crashes INTEGER NOT NULL,
        reason TEXT NOT NULL,
        detail TEXT NOT NULL,
        output BLOB,
        stage_device,
        stage_inode,
        stage_size INTEGER,
        stage_sha256 TEXT,
        stage_name BLOB,
        stage_folder BLOB,
        original_pending TEXT,
        first_seen REAL NOT NULL,
        updated REAL NOT NULL,
        next_try REAL NOT NULL,
        again INTEGER NOT NULL,
        moved BLOB,
        taken TEXT,
        fold BLOB,
        fingerprint BLOB,
        PRIMARY KEY (inbox, path)
    )
    """,
    "CREATE UNIQUE INDEX photos_by_output ON photos (output) WHERE output IS NOT NULL",
    "CREATE INDEX photos_by_fold ON photos (fold) WHERE fold IS NOT NULL",
    "CREATE INDEX photos_by_content ON photos (sha256, recipe) WHERE status = 'done'",
    "CREATE INDEX photos_by_status ON photos (status, updated, inbox)",
    "CREATE INDEX photos_by_original ON photos (inbox) WHERE original_pending IS NOT NULL",
    "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
)

# Stands where a fingerprint would, with a picture of another photo that this one only looks like.
ALIKE: Final = b""

# What makes a ledger of each earlier format one of the next; SQL may call `folded`.
MIGRATIONS: Final = {
    1: ("ALTER TABLE photos ADD COLUMN moved BLOB",),
    2: (
        "ALTER TABLE photos ADD COLUMN taken TEXT",
        "ALTER TABLE photos ADD COLUMN fold BLOB",
        "UPDATE photos SET fold = folded(output) WHERE output IS NOT NULL",
        "CREATE INDEX photos_by_fold ON photos (fold) WHERE fold IS NOT NULL",
    ),
    3: ("ALTER TABLE photos ADD COLUMN fingerprint BLOB",),
}

# How a ledger of each earlier format reads as one of the next.
READINGS: Final = {
    1: "NULL AS moved",
    2: "NULL AS taken, CASE WHEN output IS NOT NULL THEN folded(output) END AS fold",
    3: "NULL AS fingerprint",
}

_COLUMNS = (
    "inbox, path, size, mtime_ns, ctime_ns, status, sha256, recipe, style, attempts, crashes, reason, detail, output, "
    "stage_device, stage_inode, stage_size, stage_sha256, stage_name, stage_folder, "
    "original_pending, first_seen, updated, next_try, again, moved, taken, fold, fingerprint"
)
_NAMES = _COLUMNS.split(", ")
SELECT: Final = f"SELECT {_COLUMNS} FROM photos"  # noqa: S608 -- made of the constant above, never of input
UPSERT: Final = (
    f"INSERT INTO photos ({_COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))}) "  # noqa: S608 -- constants only
    f"ON CONFLICT (inbox, path) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _NAMES[2:])}"
)
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Row:
    """What the ledger knows of a photo. Times are wall-clock seconds."""

    key: PhotoKey
    size: int  # bytes
    mtime_ns: int
    ctime_ns: int
    status: Status
    sha256: str = ""  # of the photo, hex; empty when its content was never read
    recipe: str = ""  # digest of the recipe of the last try
    style: str = ""
    attempts: int = 0  # tries so far
    crashes: int = 0
    reason: str = ""  # why it failed, waits or was skipped
    detail: str = ""
    output: bytes | None = None  # the picture's full path; after a later failure, that of the earlier version
    staged: Staged | None = None  # what that picture is on disk
    folder: str | None = None  # where it was staged
    original_pending: str | None = None  # what is still to be done to the original, as its owner wrote it
    first_seen: float = 0.0
    updated: float = 0.0
    next_try: float = 0.0  # status "retry" only
    again: bool = False  # someone asked for a new try
    moved: bytes | None = None  # where the original lies now, full path, if it was moved after this outcome
    # When the photo of that picture was taken, as its worker said; empty: unknown; None: never asked.
    taken: str | None = None
    # What the photo looks like, if its picture was drawn and photos are compared; ALIKE, or None.
    fingerprint: bytes | None = None

    @property
    def is_alike(self) -> bool:
        """Say whether its picture is that of a photo which only looks like it, and is of other content."""
        return self.fingerprint == ALIKE

    def same_stat(self, stat: FileStat) -> bool:
        """Say whether size and mtime are those of the record: what identifies a file across restarts."""
        return (self.size, self.mtime_ns) == (stat.size, stat.mtime_ns)


def to_values(row: Row) -> tuple[Any, ...]:
    """Return a row as the parameters of UPSERT."""
    return (
        row.key.inbox,
        row.key.path,
        row.size,
        _number(row.mtime_ns),
        _number(row.ctime_ns),
        row.status,
        row.sha256,
        row.recipe,
        row.style,
        row.attempts,
        row.crashes,
        _text(row.reason),
        _text(row.detail),
        row.output,
        *_staged_values(row.staged),
        None if row.folder is None else os.fsencode(row.folder),
        row.original_pending,
        row.first_seen,
        row.updated,
        row.next_try,
        int(row.again),
        row.moved,
        row.taken,
        None if row.output is None else folded(row.output),
        row.fingerprint,
    )


def from_values(values: tuple[Any, ...]) -> Row:
    """Return a result of SELECT as a row."""
    inbox, path, size, mtime_ns, ctime_ns, status, sha256, recipe, style, attempts, crashes, reason, detail = values[
        :13
    ]
    output, *staged, folder, pending, first_seen, updated, next_try, again, moved, taken, _, fingerprint = values[13:]
    return Row(
        PhotoKey(inbox, path),
        size,
        int(mtime_ns),
        int(ctime_ns),
        status,
        sha256,
        recipe,
        style,
        attempts,
        crashes,
        reason,
        detail,
        output,
        _staged(staged),
        None if folder is None else os.fsdecode(folder),
        pending,
        first_seen,
        updated,
        next_try,
        bool(again),
        moved,
        taken,
        fingerprint,
    )


def _staged_values(staged: Staged | None) -> tuple[Any, ...]:
    if staged is None:
        return (None,) * 5
    name = None if staged.name is None else os.fsencode(staged.name)
    return (_number(staged.device), _number(staged.inode), staged.size, staged.sha256, name)


def _staged(values: list[Any]) -> Staged | None:
    device, inode, size, sha256, name = values
    if sha256 is None:
        return None
    return Staged(int(device), int(inode), size, sha256, None if name is None else os.fsdecode(name))


def _number(number: int) -> int | str:
    """Return a number that the database keeps exactly."""
    return number if number in _INT64 else str(number)


def _text(text: str) -> str:
    """Return text that the database can hold: what stands for bytes outside UTF-8 becomes escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
