"""A photo on its way: what the main loop knows of it between its settling and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from animed.system import shut

if TYPE_CHECKING:
    from animed.delivery.portable import NameRules
    from animed.errors import AnimedError
    from animed.records import Batch, Fingerprint, Job, Picture, Staged
    from animed.schedule.identity import CheckContent
    from animed.system import System


class Phase(StrEnum):
    """Where a photo stands."""

    QUEUED = "queued"  # in the backlog
    READING = "reading"  # its content is being read and digested by the inbox's I/O thread
    WAITING = "waiting"  # the same content, or a photo that looks like it, is being drawn already
    READY = "ready"  # read, and next for a worker
    RUNNING = "running"  # in a worker
    PLACING = "placing"  # its picture is being given its name


UNBEGUN: Final = frozenset({Phase.QUEUED, Phase.READING, Phase.WAITING, Phase.READY})  # no worker has it yet


@dataclass(slots=True)
class Active:
    """One photo on its way. Only the main thread reads and writes it."""

    job: Job
    phase: Phase = Phase.QUEUED
    batch: int = 0
    batch_size: int = 0
    sent_at: float = 0.0  # when a worker was given it
    worker: int = 0  # pid
    picture: Picture | None = None
    fd: int | None = None  # the unnamed staged file, while this process holds it
    staged: Staged | None = None  # what the staged file is
    ext: str = ""  # of the picture
    taken: str | None = None  # when the photo was, as its worker said; None where no worker was asked
    rules: NameRules | None = None  # of names, where those of the output were not strict enough
    name: bytes = b""  # the final name, below the output
    claimed: bool = False  # the ledger has that name for this photo
    output: bytes = b""  # the final name, absolute
    check: CheckContent | None = None  # the content that has its outcome, when only the stat is new
    of: bytes = b""  # the picture that this one repeats
    distance: int = 0  # of the two photos' fingerprints, bits; 0 for equal content
    alike: bool = False  # that picture is of a photo that only looks like this one: its content is another
    fingerprint: Fingerprint | None = None  # what it looks like, once a worker has said so
    refusal: AnimedError | None = None  # why the picture could not be given its name
    names: int = 0  # candidates for the output's name that were taken

    def drop_stage(self, system: System) -> None:
        """Close the unnamed staged file, which makes it vanish."""
        if self.fd is not None:
            shut(system, self.fd)
            self.fd = None


@dataclass(slots=True)
class BatchTally:
    """How the photos of one batch ended; the batch is logged when the last one has."""

    number: int
    size: int
    began_at: float
    inboxes: tuple[str, ...]  # whose photos are in it
    ended: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Batch, now: float) -> BatchTally:
        """Start a tally."""
        inboxes = dict.fromkeys(job.key.inbox for job in batch.jobs)
        return cls(batch.number, len(batch.jobs), now, tuple(inboxes))

    def count(self, status: str) -> bool:
        """Count one outcome, and say whether it was the last."""
        self.ended[status] = self.ended.get(status, 0) + 1
        return sum(self.ended.values()) >= self.size
