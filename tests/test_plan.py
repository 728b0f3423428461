"""The plan is arithmetic; the machine is what a file tree says."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from animed.engine import machine as machines
from animed.engine import plan as plans
from animed.engine.machine import Machine
from animed.engine.plan import GIB, MIB, Wishes

if TYPE_CHECKING:
    from pathlib import Path

NAS = Machine(cores=4, quota=None, memory=64 * GIB, bf16=False)


def tree(root: Path, files: dict[str, str]) -> str:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_one_worker_per_core_with_one_thread_each() -> None:
    """By itself the plan is a worker per core, and a photo alone gets all their threads."""
    plan = plans.make(Wishes(), NAS)
    assert (plan.count, plan.threads, plan.total_threads, plan.data_limit) == (4, 1, 4, None)


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        (Wishes(count=2), (2, 2, 4)),
        (Wishes(count=3), (3, 1, 3)),
        (Wishes(count=1), (1, 4, 4)),
        (Wishes(count=8), (8, 1, 8)),
        (Wishes(threads=2), (2, 2, 4)),
        (Wishes(threads=8), (1, 8, 8)),
        (Wishes(count=2, threads=3), (2, 3, 6)),
    ],
)
def test_what_is_configured_is_kept(wishes: Wishes, expected: tuple[int, int, int]) -> None:
    """A configured number stands; the other one follows from the cores."""
    plan = plans.make(wishes, NAS)
    assert (plan.count, plan.threads, plan.total_threads) == expected
    assert any("more than" in reason for reason in plan.reasons) == (plan.count * plan.threads > 4)


@pytest.mark.parametrize(("quota", "count"), [(0.5, 1), (1.9, 1), (2.0, 2), (99.0, 4)])
def test_a_processor_quota_counts_whole_cores(quota: float, count: int) -> None:
    """A container that may use a part of the cores gets workers for that part."""
    assert plans.make(Wishes(), Machine(4, quota, 64 * GIB, bf16=False)).count == count


def test_memory_limits_the_workers_and_the_rest_gets_their_threads() -> None:
    """Where memory has room for two workers only, these two use all cores, and the plan says why."""
    plan = plans.make(Wishes(), Machine(4, None, 6 * GIB, bf16=False))
    assert (plan.count, plan.threads) == (2, 2)
    assert "memory" in " ".join(plan.reasons)


def test_there_is_always_a_worker() -> None:
    """A machine with too little memory still gets one worker, and is told."""
    plan = plans.make(Wishes(), Machine(4, None, 100 * MIB, bf16=False))
    assert (plan.count, plan.threads) == (1, 4)
    assert "smaller max_edge" in " ".join(plan.reasons)


def test_need_follows_precision_and_pixels() -> None:
    """Half the precision or the edge needs less; `auto` believes the processor's flags."""
    auto = plans.worker_memory(Wishes(), NAS)
    assert auto == plans.worker_memory(Wishes(precision="float32"), NAS)
    bf16 = plans.worker_memory(Wishes(precision="bfloat16"), NAS)
    assert bf16 == plans.worker_memory(Wishes(), Machine(4, None, None, bf16=True)) < auto
    quarter = plans.worker_memory(Wishes(max_edge=512), NAS) - plans.IMPORT
    assert quarter == pytest.approx((auto - plans.IMPORT) / 4, abs=4)


def test_need_counts_photos_of_their_own_size() -> None:
    """Full-size pictures need room for their photos, beside the network and whatever it takes."""
    for wishes in (Wishes(), Wishes(max_edge=256), Wishes(styles=3)):
        more = plans.worker_memory(replace(wishes, full=True), NAS) - plans.worker_memory(wishes, NAS)
        assert more == plans.FULL


def test_configured_memory_limits_a_worker_generously() -> None:
    """max_memory is when a worker is replaced; the hard limit lies far above, and a value that is too low is named."""
    plan = plans.make(Wishes(max_memory=GIB), NAS)
    assert plan.max_memory == GIB
    assert plan.data_limit is not None
    assert plan.data_limit > 4 * GIB
    assert "max_memory" in " ".join(plan.reasons)


@given(
    st.integers(1, 256),
    st.none() | st.floats(0.01, 300),
    st.none() | st.integers(0, 1 << 44),
    st.none() | st.integers(1, 64),
    st.none() | st.integers(1, 64),
)
def test_a_plan_is_always_usable(
    cores: int, quota: float | None, memory: int | None, count: int | None, threads: int | None
) -> None:
    """For any machine and wish there is a worker with a thread, replaced only above what a photo needs."""
    machine = Machine(cores, quota, memory, bf16=False)
    wishes = Wishes(count=count, threads=threads)
    plan = plans.make(wishes, machine)
    assert plan.count >= 1
    assert plan.total_threads == plan.count * plan.threads >= 1
    assert plan.max_memory > plans.worker_memory(wishes, machine)
    if count is None and threads is None:
        assert plan.total_threads <= plans.usable_cores(machine)


def test_hardware_threads_of_a_core_count_once(tmp_path: Path) -> None:
    """Four processors on two cores are two cores, and of those only what the affinity mask allows."""
    topology = {
        f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n % 2},{n % 2 + 2}\n" for n in range(4)
    }
    root = tree(tmp_path, topology)
    assert machines.read(root, frozenset({0, 1, 2, 3})).cores == 2
    assert machines.read(root, frozenset({0, 2})).cores == 1


def test_nothing_need_be_readable(tmp_path: Path) -> None:
    """With /proc and /sys hidden, the affinity mask is what there is."""
    assert machines.read(str(tmp_path), frozenset({3, 5})) == Machine(2, None, None, bf16=False)
    assert machines.unshared(str(tmp_path)) == 0
    assert machines.anonymous(str(tmp_path)) == 0


def test_the_tightest_group_counts(tmp_path: Path) -> None:
    """Quota and memory limits of every group from this one up to the root are read; page cache is not in use."""
    group = "sys/fs/cgroup/system.slice/animed.service"
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/system.slice/animed.service\n",
            "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable:   {8 << 20} kB\n",
            f"{group}/cpu.max": "max 100000\n",
            "sys/fs/cgroup/system.slice/cpu.max": "150000 100000\n",
            f"{group}/memory.max": f"{4 * GIB}\n",
            f"{group}/memory.high": f"{3 * GIB}\n",
            f"{group}/memory.current": f"{2 * GIB}\n",
            f"{group}/memory.stat": f"anon 1\ninactive_file {GIB}\n",
            "sys/fs/cgroup/system.slice/memory.max": "max\n",
            "sys/fs/cgroup/system.slice/memory.current": "9\n",
        },
    )
    assert machines.cpu_quota(root) == 1.5
    assert machines.available_memory(root) == 2 * GIB


def test_the_first_kind_of_groups_is_read_too(tmp_path: Path) -> None:
    """Groups of the first version, seen from inside a container whose path is the host's, are found at the mount."""
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n0::/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB // 2}\n",
        },
    )
    assert machines.cpu_quota(root) == 2.0
    assert machines.available_memory(root) == GIB // 2


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    """-1 and a number near 2**63 are how the first version says "unlimited"."""
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu:/\nnonsense\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
        },
    )
    assert (machines.cpu_quota(root), machines.available_memory(root)) == (None, None)


@pytest.mark.parametrize(("flags", "found"), [("fma avx512_bf16", True), ("fma avx2", False)])
def test_flags_name_the_arithmetic(tmp_path: Path, flags: str, found: bool) -> None:
    """bfloat16 is there when the processor's flags say so."""
    root = tree(tmp_path, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\n"})
    assert machines.has_bf16(root) is found


def test_this_machine_can_be_read() -> None:
    """The real files are understood: some cores, some memory, some of it this process's own."""
    machine = machines.read()
    assert 1 <= machine.cores <= len(os.sched_getaffinity(0))
    assert machine.memory is not None
    assert machines.unshared() > MIB
    assert machines.anonymous() > MIB
