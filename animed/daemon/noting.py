"""What an inbox's I/O thread can be asked about the notes for people in the output. `run` says what each answers.

Each may raise PlaceError or PhotoError besides; neither has an effect on photos.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from animed.delivery import notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.daemon.putting import Delivery
    from animed.delivery.notes import FoundNote, Note
    from animed.system import System


@dataclass(frozen=True, slots=True)
class WriteNote:
    """Write a note, or renew it; answers its name below the output, or None where every name is somebody else's."""

    note: Note
    names: tuple[bytes, ...]
    delivery: Delivery

    def run(self, beat: Callable[[], None], system: System) -> bytes | None:
        """Write it."""
        beat()
        to = self.delivery
        return notes.write(
            self.note,
            self.names,
            output=to.output,
            stage=to.stage,
            dir_mode=to.dir_mode,
            group=to.group,
            system=system,
        )


@dataclass(frozen=True, slots=True)
class RemoveNote:
    """Remove a note; answers whether it was there."""

    owner: str
    names: tuple[bytes, ...]
    delivery: Delivery

    def run(self, beat: Callable[[], None], system: System) -> bool:
        """Remove it."""
        beat()
        return notes.drop(self.owner, self.names, output=self.delivery.output, system=system)


@dataclass(frozen=True, slots=True)
class SearchEnded:
    """The output has been looked through."""


@dataclass(frozen=True, slots=True)
class FindNotes:
    """Look through the output for notes that earlier runs left; answers tuples of FoundNote, at last SearchEnded."""

    owners: str  # how the owners begin
    delivery: Delivery

    def slices(self, system: System) -> Iterator[tuple[FoundNote, ...] | SearchEnded]:
        """Yield what each folder holds, so that other requests come in between."""
        yield from notes.find(self.delivery.output, self.owners, system=system)
        yield SearchEnded()
