"""Photos that were read and wait for a worker: inboxes take turns, no import stands before one photo."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.daemon.active import Active


class Turns:
    """A line for each inbox, first come first; the inbox that was served longest ago is next."""

    def __init__(self) -> None:
        # The order of this dict is the rotation; lines that have run empty keep their place in it.
        self._lines: dict[str, deque[Active]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[Active]:
        return (active for line in self._lines.values() for active in line)

    def append(self, active: Active) -> None:
        """Let a photo wait behind those of its inbox."""
        self._lines.setdefault(active.job.key.inbox, deque()).append(active)

    def head(self) -> Active:
        """Return the photo that is next; there must be one."""
        return next(line[0] for line in self._lines.values() if line)

    def pop(self) -> Active:
        """Take out the photo that is next; its inbox goes to the end of the rotation."""
        active = self.head()
        line = self._lines.pop(active.job.key.inbox)
        line.popleft()
        self._lines[active.job.key.inbox] = line
        return active

    def remove(self, active: Active) -> None:
        """Take a photo out of line, wherever it stands."""
        self._lines[active.job.key.inbox].remove(active)

    def waits(self, inbox: str) -> bool:
        """Say whether a photo of an inbox waits."""
        return bool(self._lines.get(inbox))
