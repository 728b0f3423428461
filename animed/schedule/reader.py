"""What the ledger can be asked. Nothing here writes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from animed.folding import folded
from animed.records import Fingerprint, PhotoKey
from animed.schedule.rows import SELECT, Row, from_values
from animed.schedule.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from animed.schedule.store import Store

_NOBODY: Final = PhotoKey("", b"")
_CHUNK: Final = 499  # paths per query: with the inbox, 500 parameters; the lowest limit in the field is 999
# A row that waits without a reason never failed: its picture was not placed when the service ended.
FAILING: Final = "(status = 'failed' OR (status = 'retry' AND reason <> ''))"


class Reader:
    """Questions to the ledger. Rows are snapshots: they do not follow later changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        counts = store.read("SELECT inbox, status, count(*) FROM photos GROUP BY status, inbox")
        self._totals = Totals(counts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        self._store.close()

    @property
    def instance(self) -> str:
        """Return 8 hex digits that name this ledger for ever; they mark its temporary files."""
        return self._store.read("SELECT value FROM meta WHERE name = 'instance'")[0][0]  # type: ignore[no-any-return]  # a TEXT column

    def meta(self, name: str) -> str | None:
        """Return a remembered setting of the service."""
        found = self._store.read("SELECT value FROM meta WHERE name = ?", (name,))
        return found[0][0] if found else None

    def get(self, key: PhotoKey) -> Row | None:
        """Return what is known of a photo."""
        return self._first("WHERE inbox = ? AND path = ?", key)

    def get_many(self, keys: Iterable[PhotoKey]) -> dict[PhotoKey, Row]:
        """Return what is known of many photos; unknown ones are left out."""
        paths: dict[str, list[bytes]] = defaultdict(list)
        for key in keys:
            paths[key.inbox].append(key.path)
        return {
            row.key: row
            for inbox, names in paths.items()
            for start in range(0, len(names), _CHUNK)
            for row in self._get_chunk(inbox, names[start : start + _CHUNK])
        }

    def below(self, place: PhotoKey) -> list[PhotoKey]:
        """Return the photos on record at a path and anywhere below it, in order; an empty path is the whole inbox."""
        if not place.path:
            found = self._store.read("SELECT path FROM photos WHERE inbox = ? ORDER BY path", (place.inbox,))
        else:
            # What lies below begins with the path and a slash; the next byte after the slash is a 0.
            ends = (place.path, place.path + b"/", place.path + b"0")
            where = "inbox = ? AND (path = ? OR (path > ? AND path < ?))"
            found = self._store.read(f"SELECT path FROM photos WHERE {where} ORDER BY path", (place.inbox, *ends))  # noqa: S608 -- a constant
        return [PhotoKey(place.inbox, path) for (path,) in found]

    def find_picture(self, sha256: str, recipe: str) -> Row | None:
        """Return a done photo with this content and recipe, the latest one: its picture can be shared."""
        return self._first(
            "WHERE sha256 = ? AND recipe = ? AND status = 'done' AND output IS NOT NULL ORDER BY updated DESC LIMIT 1",
            (sha256, recipe),
        )

    def fingerprints(self, inbox: str) -> list[tuple[bytes, str, bytes]]:
        """Return path, recipe (digest) and brief fingerprint of the photos of an inbox that were drawn and compared."""
        return self._store.read(
            "SELECT path, recipe, substr(fingerprint, 1, ?) FROM photos WHERE inbox = ? AND status = 'done' "
            "AND fingerprint IS NOT NULL AND output IS NOT NULL ORDER BY updated",
            (Fingerprint.BRIEF, inbox),
        )

    def output_owner(self, output: bytes, *, but: PhotoKey = _NOBODY, folds: bool = False) -> PhotoKey | None:
        """Return which photo, `but` that one, has claimed this full path for its picture.

        `folds`: every spelling of it counts that some file systems take for the same. A claim lasts until the same
        photo publishes under another name, or is forgotten.
        """
        named = "fold" if folds else "output"
        found = self._store.read(
            f"SELECT inbox, path FROM photos WHERE {named} = ? AND NOT (inbox = ? AND path = ?) LIMIT 1",  # noqa: S608 -- one of two constants
            (folded(output) if folds else output, *but),
        )
        return PhotoKey(*found[0]) if found else None

    def publishing(self, inbox: str) -> list[Row]:
        """Return the photos whose picture may or may not have got its name: each is to be resolved."""
        return list(self._rows("WHERE status = 'publishing' AND inbox = ? ORDER BY updated", (inbox,)))

    def original_waiting(self, inbox: str) -> list[Row]:
        """Return the photos whose original is still to be moved or deleted."""
        return list(self._rows("WHERE original_pending IS NOT NULL AND inbox = ? ORDER BY updated", (inbox,)))

    def failures(self, inbox: str | None = None) -> list[Row]:
        """Return the photos that failed, and those that will be tried again, the newest first."""
        if inbox is None:
            return list(self._rows(f"WHERE {FAILING} ORDER BY updated DESC, inbox, path"))
        return list(self._rows(f"WHERE {FAILING} AND inbox = ? ORDER BY updated DESC, path", (inbox,)))

    def last_failures(self, count: int) -> list[Row]:
        """Return the photos that failed for good, the newest first."""
        return list(self._rows("WHERE status = 'failed' ORDER BY updated DESC LIMIT ?", (count,)))

    def outdated(self, recipes: Mapping[str, frozenset[str]]) -> list[PhotoKey]:
        """Return the finished photos of these inboxes whose recipe is none of those in use there (digests)."""
        found = self._store.read("SELECT inbox, path, recipe FROM photos WHERE status IN ('done', 'duplicate')")
        return [PhotoKey(inbox, path) for inbox, path, recipe in found if recipe not in recipes.get(inbox, {recipe})]

    def totals(self) -> dict[str, dict[str, int]]:
        """Return per inbox how many photos have each status; costs no query."""
        return self._totals.by_inbox()

    def _get_chunk(self, inbox: str, paths: list[bytes]) -> Iterator[Row]:
        marks = ", ".join("?" * len(paths))
        return self._rows(f"WHERE inbox = ? AND path IN ({marks})", (inbox, *paths))

    def _rows(self, where: str, parameters: tuple[Any, ...] = ()) -> Iterator[Row]:
        return map(from_values, self._store.read(f"{SELECT} {where}", parameters))

    def _first(self, where: str, parameters: tuple[Any, ...]) -> Row | None:
        return next(self._rows(where, parameters), None)
