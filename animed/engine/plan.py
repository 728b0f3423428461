"""How many workers, with how many threads each, and when one has grown too large: pure arithmetic on a Machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from animed.engine.machine import Machine

MIB: Final = 1 << 20
GIB: Final = 1 << 30
IMPORT: Final = 400 * MIB  # what a worker holds before its first photo: the network's libraries and the weights
NETWORK: Final = 9 * MIB  # the weights of one more style
FACES: Final = 140 * MIB  # the face detector with its library, after a picture of 1024 pixels a side
PEAK: Final = {"bfloat16": 750 * MIB, "float32": 1340 * MIB}  # measured peak of the network at PEAK_PIXELS
PEAK_PIXELS: Final = 1024 * 768
# Photos of 24 million pixels whose own size is wanted: one held, and one that is decoded beside the network. What is
# made of them later fits into what the network has left.
FULL: Final = 384 * MIB
SHARE: Final = 0.8  # of the available memory; the rest is for decoding, the parent and the machine

Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the configuration asks for; None is `auto`."""

    count: int | None = None
    threads: int | None = None
    precision: Precision = "auto"
    max_edge: int = 1024  # the largest of all inboxes, pixels
    max_memory: int | None = None  # bytes for one worker
    styles: int = 1  # networks that a worker keeps at a time
    faces: bool = False  # whether it looks for faces
    full: bool = False  # some pictures are to have their photo's own size


@dataclass(frozen=True, slots=True)
class Plan:
    """What the pool does."""

    count: int  # workers
    threads: int  # of each worker, when several work
    total_threads: int  # of a photo that is the only one there is
    max_memory: int  # bytes: a worker that alone holds more is replaced after its photo
    data_limit: int | None = None  # bytes of RLIMIT_DATA; None = no limit
    reasons: tuple[str, ...] = ()  # why, for people


def make(wishes: Wishes, machine: Machine) -> Plan:
    """Return the plan: one worker per core with one thread each; fewer, with more threads, when memory says so."""
    cores = usable_cores(machine)
    need = worker_memory(wishes, machine)
    count, why = _count(wishes, cores, fits=_fits(machine, need))
    threads = max(1, cores // count) if wishes.threads is None else wishes.threads
    reasons = [_cores_text(machine, cores), f"a worker needs about {need // MIB} MiB", why]
    if count * threads > cores:
        reasons.append(
            f"{count} workers of {threads} threads are more than {cores} cores: they will wait on each other"
        )
    if wishes.max_memory is not None and wishes.max_memory < need:
        reasons.append(f"max_memory is below the {need // MIB} MiB of one photo: workers will often be replaced")
    return Plan(
        count,
        threads,
        total_threads=count * threads,
        max_memory=_max_memory(wishes, machine, need=need, count=count),
        data_limit=None if wishes.max_memory is None else 2 * max(wishes.max_memory, need) + 2 * GIB,
        reasons=tuple(reasons),
    )


def usable_cores(machine: Machine) -> int:
    """Return the whole cores that affinity and quota leave, at least 1."""
    quota = machine.cores if machine.quota is None else int(machine.quota)
    return max(1, min(machine.cores, quota))


def worker_memory(wishes: Wishes, machine: Machine) -> int:
    """Return the bytes that a worker needs for a square photo of the largest edge."""
    bf16 = wishes.precision == "bfloat16" or (wishes.precision == "auto" and machine.bf16)
    beside = (wishes.styles - 1) * NETWORK + (FACES if wishes.faces else 0) + (FULL if wishes.full else 0)
    return IMPORT + beside + PEAK["bfloat16" if bf16 else "float32"] * wishes.max_edge**2 // PEAK_PIXELS


def _fits(machine: Machine, need: int) -> int | None:
    return None if machine.memory is None else int(machine.memory * SHARE) // need


def _count(wishes: Wishes, cores: int, *, fits: int | None) -> tuple[int, str]:
    if wishes.count is not None:
        return wishes.count, f"{wishes.count} workers as configured"
    by_cores = cores if wishes.threads is None else max(1, cores // wishes.threads)
    if fits is None or fits >= by_cores:
        return by_cores, f"{by_cores} workers for {cores} cores"
    if fits == 0:
        return 1, "memory is short even for one worker: a smaller max_edge needs less"
    return fits, f"{fits} workers, because memory has room for no more"


def _max_memory(wishes: Wishes, machine: Machine, *, need: int, count: int) -> int:
    """Return when a worker is replaced for its size.

    By itself: at its share of the memory, but not before it clearly exceeds its need (or every photo would cost a
    start), and not later than at three times its need (a leak should not fill a large machine).
    """
    if wishes.max_memory is not None:
        return wishes.max_memory
    share = int((machine.memory or 0) * SHARE) // count
    return max(need * 5 // 4, min(need * 3 + GIB, share))


def _cores_text(machine: Machine, cores: int) -> str:
    quota = "" if machine.quota is None else f", processor quota {machine.quota:g}"
    return f"{cores} usable cores ({machine.cores} physical{quota})"
