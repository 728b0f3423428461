"""What this process may use of the machine: processors and memory, as the kernel and its control groups say.

Any file may be missing (sandboxes hide /proc and /sys in parts): then that limit is taken as absent.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BF16_FLAGS: Final = frozenset({"avx512_bf16", "amx_bf16"})
UNLIMITED: Final = 1 << 60  # bytes; the first control groups write "no limit" as a number near 2**63
KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Machine:
    """What may be used."""

    cores: int  # physical cores that the affinity mask allows
    quota: float | None  # processors that the control groups allow, e.g. 1.5; None = no limit
    memory: int | None  # bytes that can be had without swapping; None = unknown
    bf16: bool  # the processor computes in bfloat16


def read(root: str = "/", cpus: frozenset[int] | None = None) -> Machine:
    """Read the machine. `root` and `cpus` stand in for the file system and the affinity mask in tests."""
    allowed = frozenset(os.sched_getaffinity(0)) if cpus is None else cpus
    return Machine(physical_cores(root, allowed), cpu_quota(root), available_memory(root), has_bf16(root))


def physical_cores(root: str, cpus: frozenset[int]) -> int:
    """Count the allowed cores; hardware threads of one core share its arithmetic, so they count once."""
    cores = {_line(root, f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    return max(1, len(cores))


def cpu_quota(root: str) -> float | None:
    """Return the tightest processor quota on the way from this process's control groups up to the root."""
    quotas = [quota for folder in _groups(root, "") if (quota := _quota_v2(root, folder)) is not None]
    quotas += [quota for folder in _groups(root, "cpu") if (quota := _quota_v1(root, folder)) is not None]
    return min(quotas, default=None)


def available_memory(root: str) -> int | None:
    """Return the bytes that are free for use: the machine's, or what is left in the tightest control group."""
    found = [_meminfo(root)]
    found += [
        _headroom(root, folder, limit=limit, usage="memory.current", cache="inactive_file")
        for folder in _groups(root, "")
        for limit in ("memory.max", "memory.high")
    ]
    found += [
        _headroom(root, folder, limit="memory.limit_in_bytes", usage="memory.usage_in_bytes", cache=cache)
        for folder in _groups(root, "memory")
        for cache in ("total_inactive_file",)
    ]
    return min((size for size in found if size is not None), default=None)


def has_bf16(root: str) -> bool:
    """Say whether the processor's flags name bfloat16 arithmetic."""
    flags = next((line for line in _text(root, "proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    return not BF16_FLAGS.isdisjoint(flags.split())


def unshared(root: str = "/") -> int:
    """Return the bytes of memory that this process alone holds; 0 when the kernel does not say."""
    rows = (line.split() for line in _text(root, "proc/self/smaps_rollup").splitlines())
    private = {"Private_Clean:", "Private_Dirty:", "Private_Hugetlb:"}
    return sum(int(row[1]) * KIB for row in rows if row and row[0] in private)


def anonymous(root: str = "/") -> int:
    """Return the bytes of this process's memory that no file backs; 0 when the kernel does not say.

    It costs microseconds, unlike `unshared`, which walks all page tables.
    """
    fields = _text(root, "proc/self/statm").split()
    return (int(fields[1]) - int(fields[2])) * resource.getpagesize() if len(fields) > 2 else 0  # noqa: PLR2004 - proc(5)


def _quota_v2(root: str, folder: str) -> float | None:
    quota, _, period = _line(root, f"{folder}/cpu.max").partition(" ")
    return _ratio(quota, period)


def _quota_v1(root: str, folder: str) -> float | None:
    return _ratio(_line(root, f"{folder}/cpu.cfs_quota_us"), _line(root, f"{folder}/cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    used, whole = _number(quota), _number(period)
    return used / whole if used and whole else None  # "max" and -1 mean no limit


def _headroom(root: str, folder: str, *, limit: str, usage: str, cache: str) -> int | None:
    allowed, used = _number(_line(root, f"{folder}/{limit}")), _number(_line(root, f"{folder}/{usage}"))
    if allowed is None or used is None or allowed >= UNLIMITED:
        return None
    rows = (line.split() for line in _text(root, f"{folder}/memory.stat").splitlines())
    reclaimable = next((int(row[1]) for row in rows if row[0] == cache), 0)
    return max(0, allowed - used + reclaimable)


def _meminfo(root: str) -> int | None:
    rows = (line.split() for line in _text(root, "proc/meminfo").splitlines())
    return next((int(row[1]) * KIB for row in rows if row and row[0] == "MemAvailable:"), None)


def _groups(root: str, controller: str) -> Iterator[str]:
    """Yield the folders of this process's group and of all above it; "" is the controller of the second version.

    Inside a container the path may be the host's, which does not exist there: the mount's root is then the group.
    """
    for line in _text(root, "proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if controller not in names.split(","):
            continue
        mounts = ("sys/fs/cgroup", "sys/fs/cgroup/unified") if not controller else (f"sys/fs/cgroup/{controller}",)
        parts = [part for part in path.split("/") if part not in {"", ".."}]
        for mount in mounts:
            yield from ("/".join([mount, *parts[:depth]]) for depth in range(len(parts), -1, -1))


def _line(root: str, path: str) -> str:
    return _text(root, path).strip()


def _text(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        # Hidden or absent: the limit that it would tell is taken as absent.
        return ""


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
