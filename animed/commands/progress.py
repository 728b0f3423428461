"""A progress bar with rate and time left, on a terminal only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.progress import Task


class _Rate(ProgressColumn):
    """Pictures a second."""

    def render(self, task: Task) -> Text:
        """Return the rate, once there is one."""
        return Text("" if task.speed is None else f"{task.speed:.2f}/s")


class _Shown:
    """A line on stderr about one thing that makes progress; a disabled one shows nothing."""

    def __init__(self, name: str, *columns: ProgressColumn, enabled: bool) -> None:
        self._progress = Progress(*columns, console=Console(stderr=True), disable=not enabled, transient=True)
        self._task = self._progress.add_task(name, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class Bar(_Shown):
    """Shows how many photos of how many have ended; a disabled one shows nothing."""

    def __init__(self, *, enabled: bool) -> None:
        columns = (TextColumn("photos"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        super().__init__("photos", *columns, enabled=enabled)

    def show(self, ended: int, total: int) -> None:
        """Show a new state."""
        self._progress.update(self._task, completed=ended, total=total or None)


class ByteBar(_Shown):
    """Shows how much of a file has come; a disabled one shows nothing."""

    def __init__(self, name: str, *, enabled: bool) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        super().__init__(name, *columns, enabled=enabled)

    def show(self, received: int, expected: int) -> None:
        """Show a new state, bytes."""
        self._progress.update(self._task, completed=received, total=expected)
