"""A disk that answers an inbox's requests from dictionaries, with faults to switch on."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from daemon_fakes import copy_of, sha_of, staged_fd, stat_of

from animed.daemon.looking import (
    Digest,
    Digested,
    OpenRoot,
    RootFound,
    Scan,
    ScanEnded,
    StartWatch,
    StatPaths,
    StopWatch,
)
from animed.daemon.noting import FindNotes, RemoveNote, SearchEnded, WriteNote
from animed.daemon.putting import Discard, OpenOutput, OutputFound, Place, PutAway, Resolve, Resolved, StageCopy
from animed.delivery.faults import NameRefused, SourceGone
from animed.delivery.originals import Disposed
from animed.delivery.portable import PLAIN, NameRules
from animed.delivery.publish import Placed, Taken
from animed.delivery.quarantine import Quarantined
from animed.errors import AnimedError, PhotoError, PlaceError
from animed.folding import folded
from animed.intake.scan import Found
from animed.records import VANISHED, Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.owed import Owed
    from animed.records import FileStat, Staged


@dataclass
class World:
    """The inbox, the output, and what is wrong with them."""

    photos: dict[bytes, tuple[bytes, FileStat]] = field(default_factory=dict)
    pictures: dict[bytes, Staged] = field(default_factory=dict)  # by full path
    placed: list[bytes] = field(default_factory=list)  # every name that was ever given, in order
    givers: list[bytes] = field(default_factory=list)  # the photos that they were given for
    put_away: list[tuple[bytes, Owed]] = field(default_factory=list)
    discarded: list[Staged] = field(default_factory=list)
    notes: dict[bytes, str] = field(default_factory=dict)  # text files for people, by full path
    identity: tuple[int, int] = (1, 1)
    output_identity: tuple[int, int] = (1, 1)
    free: int = 10**12
    faults: dict[type, AnimedError] = field(default_factory=dict)  # by kind of request
    names: NameRules = PLAIN  # what the output makes of names
    refused: dict[bytes, int] = field(default_factory=dict)  # names that it cannot take, below it, with their errno
    late: bool = False  # a fault of placing comes after the name was taken

    def write(self, path: bytes, content: bytes, *, mtime_ns: int = 1) -> FileStat:
        """Put a photo into the inbox."""
        stat = stat_of(content, mtime_ns=mtime_ns)
        self.photos[path] = (content, stat)
        return stat

    def stat(self, path: bytes) -> FileStat | None:
        """Look at a photo."""
        found = self.photos.get(path)
        return None if found is None else found[1]

    def break_output(self, *, late: bool = False) -> PlaceError:
        """Let the output refuse every write from now on; `late`: names are still taken before the fault."""
        fault = PlaceError("output", errno.EIO, "/out", "broken")
        self.faults |= dict.fromkeys((OpenOutput, Digest, Place, Resolve, StageCopy), fault)
        self.late = late
        return fault

    def break_inbox(self) -> PlaceError:
        """Take the inbox away."""
        fault = PlaceError("inbox", errno.ENOENT, "/in", "gone")
        self.faults |= dict.fromkeys((OpenRoot, Scan, StatPaths, Digest, PutAway), fault)
        return fault

    def heal(self) -> None:
        """End all faults."""
        self.faults.clear()
        self.late = False

    def answers(self, request: Any) -> list[Any]:
        """Return what the I/O thread would answer."""
        fault = self.faults.get(type(request))
        if (
            isinstance(request, PutAway)
            and isinstance(fault, PlaceError)
            and fault.role not in {"inbox", request.owed.role}
        ):
            fault = None
        if fault is not None:
            if isinstance(request, Place) and self.late:
                self._place(request)
            return [fault]
        if isinstance(request, Scan):
            return [tuple(Found(path, stat) for path, (_, stat) in self.photos.items()), ScanEnded(0.0)]
        if isinstance(request, FindNotes):
            return [(), SearchEnded()]
        try:
            return [self._do[type(request)](self, request)]
        except AnimedError as error:
            return [error]

    def _root(self, _request: OpenRoot) -> RootFound:
        return RootFound(self.identity, "ext4", polled=True)

    def _stats(self, request: StatPaths) -> tuple[tuple[bytes, FileStat | None], ...]:
        return tuple((path, self.stat(path)) for path in request.paths)

    def _digest(self, request: Digest) -> Digested:
        found = self.photos.get(request.job.key.path)
        if found is None:
            raise PhotoError(VANISHED)
        if not found[1].same_file(request.job.stat):
            raise PhotoError(Reason.CHANGED)
        taken = bool(request.early_name) and request.early_name in self.pictures
        return Digested(sha_of(found[0]), self.free, taken)

    def _place(self, request: Place) -> Placed | Taken:
        if request.staged.name is None:
            assert request.fd is not None
            os.fstat(request.fd)  # The stage must still be open.
        full = os.path.join(os.fsencode(request.delivery.output), request.target)
        if request.target in self.refused:
            raise NameRefused("no such name", self.refused[request.target])
        # A disk that folds names keeps the spelling that a name had first.
        full = next((name for name in self.pictures if self._is_one(name, full)), full)
        if full in self.pictures and not request.overwrite:
            return Taken(request.target)
        self.pictures[full] = request.staged
        self.placed.append(full)
        self.givers.append(request.key.path)
        return Placed(request.target)

    def _is_one(self, one: bytes, other: bytes) -> bool:
        return one == other or (self.names.folds and folded(one) == folded(other))

    def _resolve(self, request: Resolve) -> Resolved:
        assert request.row.output is not None
        held = self.pictures.get(request.row.output)
        return Resolved(held is not None and held == request.row.staged, self.stat(request.row.key.path))

    def _copy(self, request: StageCopy) -> tuple[Staged, int]:
        if self.pictures.get(request.source) != request.expected:
            raise SourceGone("the picture is gone")
        return copy_of(request.expected), staged_fd()

    def _put_away(self, request: PutAway) -> Disposed | Quarantined:
        path, owed = request.key.path, request.owed
        self.put_away.append((path, owed))
        found = self.stat(path)
        if owed.what != "failed-copy" and found is not None and found.same_file(owed.stat):
            del self.photos[path]
        to = os.path.join(os.fsencode(owed.target_dir), path)
        if owed.record:
            return Quarantined(to)
        return Disposed("deleted") if owed.what == "delete" else Disposed("moved", to)

    def _write_note(self, request: WriteNote) -> bytes:
        self.notes[self._note(request)] = request.note.text
        return request.names[0]

    def _remove_note(self, request: RemoveNote) -> bool:
        return self.notes.pop(self._note(request), None) is not None

    def _note(self, request: WriteNote | RemoveNote) -> bytes:
        return os.path.join(os.fsencode(request.delivery.output), request.names[0])

    _do: dict[type, Callable[[World, Any], Any]] = field(
        init=False,
        repr=False,
        default_factory=lambda: {
            OpenRoot: World._root,
            OpenOutput: lambda world, _: OutputFound(world.free, world.output_identity, world.names),
            StartWatch: lambda _world, _: None,
            StopWatch: lambda _world, _: None,
            StatPaths: World._stats,
            Digest: World._digest,
            Place: World._place,
            Discard: lambda world, request: world.discarded.append(request.staged),
            Resolve: World._resolve,
            StageCopy: World._copy,
            PutAway: World._put_away,
            WriteNote: World._write_note,
            RemoveNote: World._remove_note,
        },
    )
