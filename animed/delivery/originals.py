"""What becomes of an original once its picture is durable: it is removed or moved, if it still is what was read.

The original is first renamed to a private name in its own folder, where no program writes to it by name, and verified
there. Every step can be repeated: after a crash at any point, calling `dispose` again with the same arguments goes on
from where it stopped. What cannot be done is put back and reported, never tried for ever.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Final, Literal

from animed.delivery.faults import FolderGone, Place
from animed.delivery.folders import Making, open_folder, peek, prepare_root, remove, sync_folder
from animed.delivery.naming import numbered, split
from animed.delivery.transfer import READ, copy_across, identity, move_free, opened, same_content, unchanged
from animed.errors import AnimedError, PhotoError, PlaceError
from animed.records import Reason, printable
from animed.system import REAL, Entry, System, shut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from animed.records import FileStat

Action = Literal["delete", "move"]

CHANGED: Final = "it is no longer the file that was read"
_MOST_NAMES: Final = 9999
_NO_PLAIN_RENAME: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


@dataclass(frozen=True, slots=True)
class Disposed:
    """The original is out of the inbox. `gone`: it was already, by whoever."""

    kind: Literal["deleted", "moved", "gone"]
    to: bytes | None = None  # full path, for `moved`


@dataclass(frozen=True, slots=True)
class Kept:
    """The original stays in the inbox; the photo stays done, and this is worth one warning."""

    why: str
    at: bytes | None = None  # path below the inbox, when a new file took its name meanwhile and it got another
    stat: FileStat | None = None  # of the original afterwards: hiding it and putting it back changes its ctime


def private_name(instance: str, path: bytes) -> bytes:
    """Return the hidden name under which an original waits in its folder for its end.

    It is not one of the temporary names that Syncthing deletes when they are old.
    """
    return os.fsencode(f".animed-{instance}-{hashlib.sha256(path).hexdigest()[:16]}.original")


def dispose(
    root: str,
    path: bytes,
    stat: FileStat,
    *,
    action: Action,
    private: bytes,
    target_dir: str | None = None,
    system: System = REAL,
) -> Disposed | Kept:
    """Delete an original, or move it below `target_dir` to the same relative path (or `NAME-2.EXT` …, never replacing).

    `private` is `private_name(...)`. `target_dir` is made when only its last component is missing. Raises PlaceError
    ("inbox" or "processed") when the place fails: the original is then back under its name, or waits under the private
    one, and the call is to be made again later. Also what a restart calls for an unfinished removal.
    """
    if action == "move" and target_dir is None:
        raise ValueError("a move needs a target folder")
    try:
        with open_original(system, root, path, stat, private=private) as original:
            try:
                return _end(original, None if action == "delete" else target_dir, split(path)[:-1])
            except PhotoError as denied:
                return Kept(denied.detail, original.at)
    except FolderGone:
        return Disposed("gone")
    except PhotoError as denied:
        return Kept(denied.detail)


def _end(original: Original, target_dir: str | None, parents: list[bytes]) -> Disposed | Kept:
    ended = original.withdraw()
    if ended is not None:
        return ended
    if target_dir is None:
        return original.delete()
    names = (numbered(original.name, counter) for counter in count(1))
    return original.move(Place("processed", target_dir), parents, names)


@contextmanager
def open_original(system: System, root: str, path: bytes, stat: FileStat, *, private: bytes) -> Iterator[Original]:
    """Open the folder of an original, never through a link. Raises PlaceError, PhotoError (FolderGone)."""
    inbox = Place("inbox", root)
    with open_folder(system, inbox, split(path)[:-1]) as folder:
        yield Original(system, inbox, folder, path=path, stat=stat, private=private)


class Original:
    """One original in its open folder, under its own or its private name."""

    def __init__(
        self, system: System, inbox: Place, folder: int, *, path: bytes, stat: FileStat, private: bytes
    ) -> None:
        self.name = os.path.basename(path)
        self.at: bytes | None = None  # path below the inbox, once it had to be put back under another name
        self._system = system
        self._inbox = inbox
        self.spare = private + b".part"  # names a temporary file beside its future name, where it needs one
        self._folder = folder
        self._path = path
        self._below = os.path.dirname(path)
        self._stat = stat
        self._own = Entry(folder, self.name)
        self._private = Entry(folder, private)

    def withdraw(self) -> Disposed | Kept | None:
        """Bring the original under its private name and verify it there: None; else what became of it instead."""
        with self._undone_on_fault(), self._inbox.guard(self._below):
            if self._resumed():
                return None
            found = peek(self._system, self._own)
            if found is None:
                return Disposed("gone")
            if not unchanged(found, self._stat):
                return Kept(CHANGED, self.at)
            return self._hide()

    def delete(self) -> Disposed:
        """Remove the hidden original for ever."""
        with self._undone_on_fault(), self._inbox.guard(self._below):
            self._system.unlink(self._private)
        self._sync_end(self._inbox, self._below, self._folder)
        return Disposed("deleted")

    def move(self, place: Place, parents: list[bytes], names: Iterable[bytes]) -> Disposed:
        """Move the hidden original to the first free one of `names` in the folder `parents` below a place."""
        making, below = Making(), b"/".join(parents)
        with self._undone_on_fault():
            prepare_root(self._system, place, making)
            with open_folder(self._system, place, parents, making) as folder, place.guard(below):
                name = self._move_to(folder, islice(names, _MOST_NAMES))
                self._sync_end(place, below, folder)
            self._sync_end(self._inbox, self._below, self._folder)
        return Disposed("moved", os.path.join(os.fsencode(place.root), below, name))

    def copy(self, folder: int, name: bytes) -> None:
        """Copy the original, which stays, to a free name in an open folder. FileExistsError, PhotoError (changed)."""
        target = Entry(folder, name)
        self._copy_across(self._own, target)
        sync_folder(self._system, folder)

    def state(self) -> Literal["here", "changed", "gone"]:
        """Say whether the file that was read is in the inbox, under either name. Raises PlaceError, PhotoError."""
        with self._inbox.guard(self._below):
            found = [peek(self._system, entry) for entry in (self._private, self._own)]
        if any(one is not None and unchanged(one, self._stat) for one in found):
            return "here"
        return "gone" if found == [None, None] else "changed"

    def equals(self, folder: int, name: bytes) -> bool:
        """Say whether a name elsewhere holds the original's content already: a crash cut its move or copy short."""
        source = self._own if peek(self._system, self._private) is None else self._private
        return same_content(self._system, source, Entry(folder, name))

    def _sync_end(self, place: Place, below: bytes, folder: int) -> None:
        """Make an end durable. A refusal is no reason to say that it did not happen: at worst a power cut undoes it."""
        with suppress(PhotoError), place.guard(below):
            sync_folder(self._system, folder)

    def _resumed(self) -> bool:
        """Say whether an earlier call left the original under its private name; what else is there is put back."""
        hidden, own = peek(self._system, self._private), peek(self._system, self._own)
        if hidden is None:
            return False
        if own is not None and identity(own) == identity(hidden):
            # It was being put back by a second name: only the first had not been removed yet.
            self._system.unlink(self._private)
            return False
        if unchanged(hidden, self._stat):
            return True
        self._restore()
        return False

    def _hide(self) -> Disposed | Kept | None:
        try:
            self._rename_to_private()
        except OSError as error:
            # A share may rename and lose the answer; when it is asked again, it says that there is no such file.
            if not self._is_hidden():
                if isinstance(error, FileNotFoundError):
                    return Disposed("gone")
                raise
        hidden = peek(self._system, self._private)
        if hidden is not None and unchanged(hidden, self._stat):
            return None
        self._restore()
        return Kept(CHANGED, self.at)

    def _is_hidden(self) -> bool:
        found = peek(self._system, self._private)
        return found is not None and unchanged(found, self._stat)

    def _rename_to_private(self) -> None:
        """Rename in one step. Only this instance makes the private name, and it was free a moment ago.

        Linking and unlinking would not do here: a new file could take the name between the two, and be unlinked.
        """
        try:
            self._system.rename_free(self._own, self._private)
        except OSError as error:
            if error.errno not in _NO_PLAIN_RENAME:
                raise
            self._system.rename(self._own, self._private)

    def _restore(self) -> None:
        """Put what is under the private name back under its own, or under `NAME-2.EXT` … when that is taken."""
        for counter in range(1, _MOST_NAMES):
            name = numbered(self.name, counter)
            with suppress(FileExistsError):
                move_free(self._system, self._private, Entry(self._folder, name))
                sync_folder(self._system, self._folder)
                self.at = None if counter == 1 else os.path.join(self._below, name)
                return
        raise PhotoError(Reason.CONFLICT, f"no free name for {printable(self.name)}")

    @contextmanager
    def _undone_on_fault(self) -> Iterator[None]:
        """Put the original back when its end failed; if that fails too, it waits under the private name.

        Then the inbox is at fault, whatever came first: what is owed must not be crossed off while it is hidden.
        """
        try:
            yield
        except AnimedError as error:
            try:
                if peek(self._system, self._private) is not None:
                    self._restore()
            except (OSError, PhotoError) as again:
                if isinstance(error, PlaceError):
                    raise error from again
                code = (again.errno if isinstance(again, OSError) else None) or errno.EIO
                raise PlaceError("inbox", code, self._inbox.root, "an original cannot be put back now") from again
            raise

    def _move_to(self, folder: int, names: Iterable[bytes]) -> bytes:
        for name in names:
            try:
                self._carry(Entry(folder, name))
            except FileExistsError:
                if not self.equals(folder, name):
                    continue
                self._adopt(Entry(folder, name))
            return name
        raise PhotoError(Reason.CONFLICT, f"no free name for {printable(self.name)}")

    def _carry(self, target: Entry) -> None:
        try:
            move_free(self._system, self._private, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._carry_across(target)

    def _carry_across(self, target: Entry) -> None:
        self._copy_across(self._private, target)
        sync_folder(self._system, target.folder or 0)
        if self._system.lstat(target).st_size != self._stat.size:
            raise PhotoError(Reason.CHANGED, "the moved file has not the size of the original")
        self._system.unlink(self._private)

    def _copy_across(self, source: Entry, target: Entry) -> None:
        with self._inbox.guard(self._path):
            # A file that cannot be read is the inbox's matter, and is named as such.
            shut(self._system, self._system.open(source, READ))
        copy_across(self._system, source, target, spare=self.spare, expected=self._stat)

    def _adopt(self, target: Entry) -> None:
        """Finish a move that was cut short after the file had its new name: make that durable, drop the old name."""
        with opened(self._system, target) as descriptor:
            self._system.fsync(descriptor)
        sync_folder(self._system, target.folder or 0)
        remove(self._system, self._private)
