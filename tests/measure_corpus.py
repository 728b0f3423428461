"""All photos of a folder through `animed once`: what became of each, and what that took. See measure.py."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import psutil
from harness import whole

from animed import config
from animed.daemon.workforce import plan_of

if TYPE_CHECKING:
    import argparse

    from harness import Service

MIB: Final = 1 << 20
OUTCOMES: Final = ("file.done", "file.duplicate", "file.failed", "file.skipped")
WORKERS: Final = ("worker.died", "worker.timeout", "worker.recycled", "worker.output")
SAMPLE_S: Final = 0.05


def measure_corpus(service: Service, options: argparse.Namespace) -> dict[str, Any]:
    """Draw every file below a folder, whatever its name ends in, and count the outcomes by reason."""
    files = [path for path in sorted(options.photos.rglob("*")) if path.is_file()][: options.limit]
    for path in files:
        target = service.inbox / path.relative_to(options.photos)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    endings = sorted({path.suffix[1:].lower() for path in files})
    keys = f"max_edge: {options.edge}\nextensions: {json.dumps(endings)}\nfailed: leave\n{options.keys}"
    service.write(keys)
    began = time.monotonic()
    status, peaks = _run(service)
    rows = service.events(*OUTCOMES)
    names = {os.path.relpath(row["path"], service.inbox): _outcome(row) for row in rows}
    seconds = time.monotonic() - began
    the_plan = plan_of(config.load(service.config, environ={}, cwd=service.root))
    return {
        "files": len(files),
        "without_an_outcome": sorted({str(path.relative_to(options.photos)) for path in files} - set(names)),
        "outcomes": dict(Counter(names.values()).most_common()),
        "refused": {name: outcome for name, outcome in sorted(names.items()) if outcome not in {"done", "duplicate"}},
        "pictures": (pictures := len(service.pictures())),
        "whole": sum(whole(service.outbox / name) for name in service.pictures()),
        "seconds": round(seconds, 1),
        "files_per_s": round(pictures / seconds, 2),
        "exit": status,
        "workers": {name: len(service.events(name)) for name in WORKERS},
        "output_of_workers": sorted({row["line"][:150] for row in service.events("worker.output")})[:40],
        "peak_mib": {f"worker {number}": peak // MIB for number, peak in enumerate(peaks.values())},
        "budget_mib": the_plan.max_memory // MIB,
        "stderr": service.errors.read_text()[-2000:],
    }


def _run(service: Service) -> tuple[int, dict[int, int]]:
    """Run `animed once`; return its exit status, and the most memory that each worker ever held, in bytes."""
    command = [sys.executable, "-m", "animed", "once", "-c", str(service.config)]
    peaks: dict[int, int] = {}
    with service.log.open("wb") as out, service.errors.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=service.environment, cwd=service.root)
        while process.poll() is None:
            for child in _workers(process.pid):
                peaks[child] = max(peaks.get(child, 0), _peak(child))
            time.sleep(SAMPLE_S)
    return process.returncode, peaks


def _workers(parent: int) -> list[int]:
    """Return the workers that there are now."""
    try:
        children = psutil.Process(parent).children()
        return [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]
    except psutil.NoSuchProcess:
        return []


def _peak(pid: int) -> int:
    """Return the most that a process has held in memory so far, files that it maps included; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) * 1024 if found else 0


def _outcome(row: dict[str, Any]) -> str:
    """Return `done` or the like, or the reason of a failure."""
    return str(row.get("reason") or row["event"][5:])
