"""The networks that a worker holds: loaded when they are first wanted, and so many at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from animed.errors import PhotoError, StyleError
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from animed.records import WeightsFile
    from animed.style.network import Generator


class Shelf(Mapping[str, "Generator"]):
    """Networks by the name of their style; the one that was not wanted for longest makes room for another.

    Looking a style up loads it; PhotoError where its weights went away, or became others, since the service started.
    """

    def __init__(self, files: Iterable[WeightsFile], *, keep: int, load: Callable[[WeightsFile], Generator]) -> None:
        self._files = {file.style: file for file in files}
        self._keep = keep
        self._load = load
        self._held: OrderedDict[str, Generator] = OrderedDict()

    def __getitem__(self, style: str) -> Generator:
        """Return a style's network; KeyError for a style that nobody named."""
        file = self._files[style]
        if style not in self._held:
            while len(self._held) >= self._keep:
                self._held.popitem(last=False)
            try:
                self._held[style] = self._load(file)
            except StyleError as error:
                raise PhotoError(Reason.UNREADABLE, str(error)) from error
        self._held.move_to_end(style)
        return self._held[style]

    def fill(self, first: Generator) -> Generator:
        """Load as many styles as are kept, of which the first is loaded already; return that one.

        Raise StyleError where one cannot be loaded.
        """
        for file in reversed([*self._files.values()][1 : self._keep]):
            self._held[file.style] = self._load(file)
        self._held[next(iter(self._files))] = first
        return first

    def __iter__(self) -> Iterator[str]:
        """Yield every style that can be drawn, loaded or not."""
        return iter(self._files)

    def __len__(self) -> int:
        """Count them."""
        return len(self._files)

    @property
    def held(self) -> tuple[str, ...]:
        """Return the styles that are loaded, the one that was not wanted for longest first."""
        return tuple(self._held)
