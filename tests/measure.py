"""Measurements of the whole service, by hand; docs/performance.md keeps the figures.

    python tests/measure.py import PHOTOS          all photos of a folder at once: outcomes, photos/s, memory growth
    python tests/measure.py kills PHOTOS           the daemon killed at random moments, restarted each time
    python tests/measure.py idle                   what an idle service costs
    python tests/measure.py corpus PHOTOS          every file below a folder through `once`: outcomes by reason, memory

Options: --edge N (max_edge), --kills N, --seconds N, --seed N, --limit N (photos), --keys YAML (of the inbox).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from harness import Service, whole
from measure_corpus import measure_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MIB = 1 << 20
PATIENCE_S = 3600
FIRST = 200  # photos after which memory must not grow


def main() -> None:
    """Run one measurement and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("import", "kills", "idle", "corpus"))
    parser.add_argument("photos", type=Path, nargs="?")
    parser.add_argument("--edge", type=int, default=512)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--keys", default="")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="animed-measure-"))
    service = Service(root, inbox_keys=f"max_edge: {options.edge}")
    measures: dict[str, Callable[[Service, argparse.Namespace], dict[str, Any]]] = {
        "import": measure_import,
        "kills": measure_kills,
        "idle": measure_idle,
        "corpus": measure_corpus,
    }
    try:
        print(json.dumps(measures[options.what](service, options), indent=2))  # noqa: T201 - its whole purpose
    finally:
        service.close()
        shutil.rmtree(root)


def drop(service: Service, options: argparse.Namespace) -> int:
    """Copy the photos into the inbox and return how many there are."""
    photos = sorted(path for path in options.photos.iterdir() if path.is_file())[: options.limit]
    for path in photos:
        shutil.copy(path, service.inbox)
    return len(photos)


def measure_import(service: Service, options: argparse.Namespace) -> dict[str, Any]:
    """Work through all photos of a folder that come at once; watch the memory of every process."""
    service.start()
    processes = {"parent": psutil.Process(service.process.pid)} if service.process else {}
    processes |= {f"worker {number}": process for number, process in enumerate(service.workers())}
    count = drop(service, options)
    began = time.monotonic()
    rows: list[dict[str, int]] = []
    done = 0
    while done < count and time.monotonic() - began < PATIENCE_S:
        time.sleep(1)
        done = sum(len(service.events(name)) for name in ("file.done", "file.duplicate", "file.failed", "file.skipped"))
        rows.append({"done": done} | {name: process.memory_full_info().uss for name, process in processes.items()})
    seconds = time.monotonic() - began
    pictures = service.pictures()
    return {
        "photos": count,
        "outcomes": {name: len(service.events(f"file.{name}")) for name in ("done", "duplicate", "failed", "skipped")},
        "pictures": len(pictures),
        "whole": sum(whole(service.outbox / name) for name in pictures),
        "seconds": round(seconds, 1),
        "photos_per_s": round(done / seconds, 2),
        "infer_s_mean": round(statistics.mean(row["infer_s"] for row in service.events("file.done")), 4),
        "memory": {name: growth(rows, name) for name in processes},
        "worker_events": len(service.events("worker.died", "worker.recycled", "worker.timeout")),
        "exit": service.stop(),
    }


def growth(rows: Iterable[dict[str, int]], name: str) -> dict[str, float]:
    """Return the memory of a process up to the 200th photo and after it; a sample is taken every second."""
    early = [row[name] for row in rows if row["done"] < FIRST]
    later = [row[name] for row in rows if row["done"] >= FIRST]
    if not early or not later:
        return {}
    return {
        "at_200_mib": round(later[0] / MIB, 1),
        "last_mib": round(later[-1] / MIB, 1),
        "growth_percent": round(100 * (later[-1] / later[0] - 1), 2),
        "peak_to_200_mib": round(max(early) / MIB, 1),
        "peak_after_mib": round(max(later) / MIB, 1),
        "peak_growth_percent": round(100 * (max(later) / max(early) - 1), 2),
    }


def measure_kills(service: Service, options: argparse.Namespace) -> dict[str, Any]:
    """Kill -9 the daemon at random moments of an import, restart it each time, and count what came out."""
    chance = random.Random(options.seed)
    count = drop(service, options)
    moments = []
    for _ in range(options.kills):
        # One kill in five hits the start; the others spread over the whole import.
        early = chance.random() < 0.2
        service.start(ready=not early)
        time.sleep(chance.uniform(0, 4 if early else 1.5))
        moments.append(len(service.pictures()))
        service.kill()
    service.start()
    service.until(lambda: service.status()["totals"]["done"] + service.status()["totals"]["duplicate"] >= count,
                  "the last photo", PATIENCE_S)  # fmt: skip
    status = service.status()
    service.stop()
    names = service.pictures()
    return {
        "photos": count,
        "kills_at_pictures": moments,
        "totals": status["totals"],
        "pictures": len(names),
        "second_names": [name for name in names if "-2." in name],
        "hidden": [name for name in names if os.path.basename(name).startswith(".")],
        "whole": sum(whole(service.outbox / name) for name in names),
        "processes_left": [p.pid for p in psutil.process_iter(["cmdline"]) if str(service.root) in str(p.info)],
    }


def measure_idle(service: Service, options: argparse.Namespace) -> dict[str, Any]:
    """Count the context switches and processor ticks of all processes of an idle service."""
    service.start()
    time.sleep(5)
    assert service.process
    parent = psutil.Process(service.process.pid)
    family = [parent, *parent.children(recursive=True)]
    before = [usage(process) for process in family]
    time.sleep(options.seconds)
    after = [usage(process) for process in family]
    switches = [sum(late[0].values()) - sum(early[0].values()) for early, late in zip(before, after, strict=True)]
    ticks = [late[1] - early[1] for early, late in zip(before, after, strict=True)]
    return {
        "seconds": options.seconds,
        "processes": len(family),
        "switches_per_s": round(sum(switches) / options.seconds, 2),
        "switches": switches,
        "ticks": sum(ticks),
        "exit": service.stop(),
    }


def usage(process: psutil.Process) -> tuple[dict[int, int], int]:
    """Return the context switches of each thread, and the processor ticks of the process."""
    tasks = Path(f"/proc/{process.pid}/task")
    switches = {}
    for task in tasks.iterdir():
        lines = (task / "status").read_text().splitlines()
        switches[int(task.name)] = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return switches, int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    main()
