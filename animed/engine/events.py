"""What the pool tells the daemon: frozen values, returned by `poll`, `tick` and `kill`, never called back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from animed.records import Fingerprint, Job, Outcome

UNKILLABLE: Final = "unkillable"  # the cause of a worker that not even SIGKILL ends: the kernel holds it in a call
WorkerState = Literal["starting", "idle", "busy", "dead"]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker as `status` shows it."""

    pid: int
    state: WorkerState
    style: str | None  # of the last photo it was given
    images: int  # photos since it started
    memory_mb: int  # that it alone holds, when last measured


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """A worker is ready."""

    pid: int
    precision: str
    boot_s: float
    refused: tuple[str, ...] = ()  # what the system would not grant it, for people


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker is gone that nobody asked to leave. `suspects` are the photos that were in it."""

    pid: int  # 0: it could not even be started
    cause: str  # "SIGKILL", "exit:3", "timeout", "unkillable", "start:EAGAIN"
    suspects: tuple[Job, ...]
    hint: str  # for people; may be empty


@dataclass(frozen=True, slots=True)
class WorkerTimeout:
    """A worker was silent for too long and is being ended; a WorkerDied follows."""

    pid: int
    silent_s: float


@dataclass(frozen=True, slots=True)
class WorkerRecycled:
    """A worker was told to finish what it has and leave; another takes its place."""

    pid: int
    why: Literal["images", "memory", "out_of_memory", "reload"]


@dataclass(frozen=True, slots=True)
class WorkerOutput:
    """A worker, or a library inside it, wrote a line."""

    pid: int
    stream: Literal["stdout", "stderr"]
    line: str


@dataclass(frozen=True, slots=True)
class PhotoFinished:
    """A worker is done with a photo. Whoever takes this event owns `fd` and closes it."""

    job: Job
    outcome: Outcome
    fd: int | None
    pid: int


@dataclass(frozen=True, slots=True)
class PhotoLooks:
    """A worker has loaded a photo, says what it looks like, and waits for `Pool.answer`."""

    job: Job
    number: int  # of its task
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class PhotosReturned:
    """Photos that the pool hands back unfinished, by its own decision: nothing speaks against them."""

    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class WorkersCannotStart:
    """Workers cannot start, for a reason that will not go away."""

    title: str
    remedy: str


PoolEvent = (
    WorkerStarted
    | WorkerDied
    | WorkerTimeout
    | WorkerRecycled
    | WorkerOutput
    | PhotoFinished
    | PhotoLooks
    | PhotosReturned
    | WorkersCannotStart
)
