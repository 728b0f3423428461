"""Which name a picture is to have: the best that no other photo has a claim to."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

from animed.daemon.recipes import likely_ext, names_of
from animed.delivery.faults import NameRefused
from animed.delivery.moment import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.daemon.active import Active
    from animed.daemon.desk import Desk
    from animed.errors import AnimedError
    from animed.records import PhotoKey


class Titles:
    """Chooses names by the ledger and by what else is on its way; the disk has the last word."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def next(self, active: Active) -> bytes:
        """Return the best name that is not known to be taken; where a taken name ends the matter, the best one."""
        key, inbox = active.job.key, self._desk.inbox_of(active.job.key)
        names = self._names(active, key.path, active.ext)
        for name in itertools.islice(names, active.names, None):
            active.names += 1
            if inbox.config.on_conflict in {"skip", "fail"}:
                return name
            full = os.path.join(os.fsencode(inbox.output), name)
            owner = self._desk.ledger.output_owner(full, but=key, folds=inbox.names.folds)
            if owner is None and not (active.names == 1 and self._gives_way(active, name)):
                return name
        raise AssertionError("candidates never end")

    def again(self, active: Active, refusal: AnimedError) -> bool:
        """Go on to names that are easier to take, after one was refused; False where there are none."""
        if not isinstance(refusal, NameRefused):
            return False
        rules = active.rules or self._desk.inbox_of(active.job.key).names
        stricter = rules.stricter(refusal.code)
        if stricter is None:
            return False
        active.rules, active.names = stricter, 0
        return True

    def _names(self, active: Active, path: bytes, ext: str) -> Iterator[bytes]:
        inbox, job = self._desk.inbox_of(active.job.key), active.job
        when = moment(active.taken or "", job.stat.mtime_ns)
        return names_of(inbox.config, path, job.recipe.style, ext, when=when, rules=active.rules or inbox.names)

    def _gives_way(self, active: Active, name: bytes) -> bool:
        """Say whether a photo of the same stem is on its way that this name is rather for.

        Which of them is drawn first depends on the workers. Which gets the name must not: it is the one whose
        extension is the picture's, else the first in the order of the alphabet.
        """
        return any(
            _rank(other.path, active.ext) < _rank(active.job.key.path, active.ext)
            and self._is_new(other)
            and next(self._names(active, other.path, self._ext_of(other))) == name
            for other in self._siblings(active.job.key)
        )

    def _siblings(self, key: PhotoKey) -> Iterator[PhotoKey]:
        """Yield the photos on their way whose paths are this one but for the extension."""
        stem = os.path.splitext(key.path)[0]
        for ext in self._desk.inbox_of(key).config.extensions:
            for spelling in (ext, ext.upper(), ext.capitalize()):
                other = key._replace(path=stem + b"." + os.fsencode(spelling))
                if other != key and other in self._desk.actives:
                    yield other

    def _ext_of(self, key: PhotoKey) -> str:
        return likely_ext(self._desk.inbox_of(key).config, key.path)

    def _is_new(self, key: PhotoKey) -> bool:
        """Say whether a photo has no picture yet: one that has keeps its name."""
        row = self._desk.ledger.get(key)
        return row is None or row.output is None


def _rank(path: bytes, ext: str) -> tuple[bool, bytes]:
    own = os.path.splitext(path)[1].lower()
    return (b".jpg" if own == b".jpeg" else own) != os.fsencode(ext), path
