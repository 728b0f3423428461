"""What travels between the parent and a worker, and the pipe it travels through.

Both processes import this module: nothing here may import the network, and every message pickles small
(paths travel, pixels never do).
"""

from __future__ import annotations

import pickle
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from animed.records import Fingerprint, Outcome, Picture, Task
from animed.system import REAL, STARVED, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_MESSAGE: Final = 128 * 1024  # bytes; far below what a socket buffer takes, far above two long paths
MAX_TEXT: Final = 4000  # characters of free text in one message

EXIT_LEFT: Final = 0  # told to leave, or the parent is gone
EXIT_BOOT: Final = 80  # the pipeline could not be built; a BootFailed was sent before
EXIT_ERROR: Final = 81  # an unexpected error in the worker's own loop; its traceback is on stderr


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker process is held to."""

    nice: int = 10  # the niceness wanted; a worker never becomes less nice than its parent
    data: int | None = None  # bytes of private memory (RLIMIT_DATA); None = no limit
    file_size: int = 4 << 30  # bytes of one written file
    open_files: int = 1024


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What every worker of a pool is started with. `factory` is "module:function", resolved in the worker only."""

    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of the factory; must pickle
    environment: Mapping[str, str] = field(default_factory=dict)  # set for the worker before it starts
    limits: Limits = field(default_factory=Limits)
    timeout: float = 120.0  # longest silence of a busy worker, seconds
    boot_timeout: float = 180.0
    max_images: int = 1000  # photos until a worker is replaced; 0 = never
    system: System = REAL  # of the worker's loop and of both ends of its pipe; the factory's is among its arguments


class Life(Protocol):
    """How a step that cannot call back all the time shows that it goes on."""

    def beat(self) -> None:
        """Say so; as often as convenient."""

    def announce(self, pixels: int) -> None:
        """Say that calls into libraries follow, which work on so many pixels: their processor time counts as life."""


class Pipeline(Protocol):
    """One photo's way through a worker. Each step raises PhotoError or PlaceError for what it expects to go wrong."""

    @property
    def precision(self) -> str:
        """Name the arithmetic that the network runs in."""

    def load(self, task: Task, life: Life) -> Any:
        """Read and decode a photo, in the loader's thread; a Skip says that policy leaves it out."""

    def fingerprint(self, loaded: Any) -> Fingerprint | None:
        """Say what a loaded photo looks like, in the loader's thread; None where that would say nothing."""

    def draw(self, task: Task, loaded: Any, beat: Callable[[], None]) -> Any:
        """Run the network; call `beat` as often as convenient to show that work goes on."""

    def finish(self, task: Task, drawn: Any, life: Life) -> tuple[Picture, int | None]:
        """Encode and stage the picture; return it with the descriptor of an unnamed file, if it is one."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Parent to worker: finish what you have, then leave."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Parent to worker: draw the photo that you told the looks of, or leave it."""

    number: int
    draw: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker to parent: the pipeline is built and warm."""

    precision: str
    threads: int
    boot_s: float
    memory: int  # bytes that this process alone holds
    refused: tuple[str, ...] = ()  # what the system would not grant, such as a priority, for people


@dataclass(frozen=True, slots=True)
class BootFailed:
    """Worker to parent: the pipeline cannot be built. `final` says that trying again cannot help."""

    final: bool
    title: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Looks:
    """Worker to parent: what a loaded photo looks like; the loader waits for the Verdict."""

    number: int
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Started:
    """Worker to parent: the network begins with this photo."""

    number: int


@dataclass(frozen=True, slots=True)
class Beat:
    """Worker to parent: the work loop is alive."""


@dataclass(frozen=True, slots=True)
class Result:
    """Worker to parent: what became of a photo. The descriptor of an unnamed file rides on the same message."""

    number: int
    outcome: Outcome
    memory: int | None = None  # bytes that this process alone holds, when it was measured


Message = Task | Stop | Verdict | Ready | BootFailed | Looks | Started | Beat | Result


class Channel:
    """One end of a worker's pipe: whole messages, each with at most one descriptor.

    A sequenced-packet socket keeps a message and its descriptor together, so a reader never waits for the
    second half of something that a dying process only half sent.
    """

    def __init__(self, end: socket.socket, system: System = REAL) -> None:
        self._end = end
        self._system = system

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Return the parent's end (never blocks) and the worker's end (blocks)."""
        parent, worker = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent.settimeout(0)
        return parent, worker

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._end.fileno()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send one message, whole or not at all.

        Raises BrokenPipeError or ConnectionResetError when the other side is gone, BlockingIOError at an end that does
        not block when its buffer is full, and OSError when the machine has run out of memory or descriptors.
        """
        self._system.send(self._end, pickle.dumps(message), descriptors)

    def receive(self) -> tuple[Message, int | None] | None:
        """Return the next message and its descriptor, or None when the other side is gone.

        Raises BlockingIOError at an end that does not block when nothing is there, or cannot be taken just now.
        """
        try:
            data, descriptors = self._system.receive(self._end, MAX_MESSAGE)
        except ConnectionResetError:
            return None
        except OSError as error:
            if error.errno not in STARVED:
                raise
            raise BlockingIOError(error.errno, "nothing can be received now") from error
        if not data:
            return None
        message: Message = pickle.loads(data)  # noqa: S301  # both ends are this program
        return message, descriptors[0] if descriptors else None

    def close(self) -> None:
        """Close this end."""
        self._end.close()


def clip(text: str) -> str:
    """Return a text that fits a message."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
