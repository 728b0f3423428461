"""Large photos through a real worker, by hand; docs/performance.md keeps the figures.

    python tests/measure_large.py make FOLDER --tile PHOTO --megapixels 100    photos of all kinds, in FOLDER
    python tests/measure_large.py run FOLDER CASE...                           each case in a worker of its own

A case is PHOTO:SIZE:FORMAT and perhaps more, such as `jpeg:original:avif:keep:faces` or `png-alpha:styled:webp`: a file
of FOLDER without its ending, `output_size`, `output_format`, `icc: keep`, `faces: auto`; `full` is strength 1, which is
0.5 otherwise. Options: --styles DIR (where the face detector is), --max-memory SIZE, --edge N (max_edge).
Prints a line a case: what became of it; seconds, and seconds of processor time; the most memory that the worker alone
held (USS, MiB), the same when it was warm and 2 s after the photo; the longest silence between two of its messages, in
seconds, and its share of the time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import tempfile
import threading
import time
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psutil
from icc_profiles import P3
from PIL import Image

from animed import config
from animed.catalog import Catalog
from animed.daemon import demands, recipes, workforce
from animed.engine.events import PhotoFinished
from animed.engine.pool import Pool
from animed.engine.spawn import WorkerProcess, spawn
from animed.records import FileStat, Job, PhotoKey, Picture, Stage, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.engine.protocol import Channel, Message, WorkerSpec

MIB: Final = 1 << 20
SAMPLE_S: Final = 0.2
SETTLE_S: Final = 2.0
PATIENCE_S: Final = 1800
MOST_WEBP: Final = 16_383  # pixels a side


def main() -> None:
    """Make photos, or run cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("make", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--tile", type=Path)
    parser.add_argument("--megapixels", type=float, default=100)
    parser.add_argument("--styles", type=Path)
    parser.add_argument("--max-memory", default="auto")
    parser.add_argument("--edge", type=int, default=1024)
    options = parser.parse_intermixed_args()
    if options.what == "make":
        make(options.folder, options.tile, options.megapixels)
        return
    for case in options.cases:
        print(f"{case:40}", run(case, options), flush=True)  # noqa: T201 - its whole purpose


def make(folder: Path, tile: Path, megapixels: float) -> None:
    """Write photos of 4 to 3 and of so many millions of pixels: two by two of a small photo, enlarged, with noise."""
    height = int((megapixels * 1e6 * 3 / 4) ** 0.5)
    width = height * 4 // 3
    with Image.open(tile) as opened:
        small = np.asarray(opened.convert("RGB").resize((512, 384)))
    large = Image.fromarray(np.tile(small, (2, 2, 1))).resize((width, height), Image.Resampling.BICUBIC)
    pixels = np.array(large)
    chance = np.random.default_rng(1)
    for top in range(0, height, 256):
        strip = pixels[top : top + 256]
        strip[:] = (strip + chance.normal(0, 3, strip.shape)).clip(0, 255)
    photo = Image.fromarray(pixels)
    photo.info["icc_profile"] = P3.profile()
    photo.save(folder / "jpeg.jpg", quality=92, icc_profile=P3.profile())
    photo.save(folder / "png.png", compress_level=1)
    cover = np.linspace(0, 255, width).astype(np.uint8)[None].repeat(height, 0)
    alpha = photo.copy()
    alpha.putalpha(Image.fromarray(cover))
    alpha.save(folder / "png-alpha.png", compress_level=1)
    photo.save(folder / "tiff.tif", compression="tiff_lzw")
    photo.save(folder / "avif.avif", speed=10, max_threads=2)
    photo.resize((MOST_WEBP, int(megapixels * 1e6 / MOST_WEBP))).save(folder / "webp.webp", method=0)
    _save_heic(photo, folder / "heic.heic")


def _save_heic(photo: Image.Image, path: Path) -> None:
    import pillow_heif  # noqa: PLC0415 - it takes a while, and only this needs it

    pillow_heif.from_pillow(photo).save(path, quality=60, enc_params={"preset": "ultrafast"})


class Recorder:
    """A worker's pipe that notes when something came."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.heard = [time.monotonic()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def receive(self) -> tuple[Message, int | None] | None:
        """Note the time of a message."""
        received = self._channel.receive()
        self.heard.append(time.monotonic())
        return received


class Sampler(threading.Thread):
    """Looks at a process again and again until it is told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process = psutil.Process(pid)
        self.peak = 0  # bytes
        self._over = threading.Event()

    def run(self) -> None:
        """Keep the largest figure."""
        while not self._over.wait(SAMPLE_S):
            try:
                self.peak = max(self.peak, self.process.memory_full_info().uss)
            except psutil.NoSuchProcess:
                return

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        self.join()


def run(case: str, options: argparse.Namespace) -> str:
    """Draw one photo in a new worker and tell what that took."""
    root = Path(tempfile.mkdtemp(prefix="animed-large-"))
    try:
        return _run(root, case.split(":"), options)
    finally:
        shutil.rmtree(root)


def _run(root: Path, words: list[str], options: argparse.Namespace) -> str:
    settings = _settings(root, words, options)
    inbox = settings.inboxes[0]
    photo = next(options.folder.glob(f"{words[0]}.*"))
    style = Catalog.read(styles_dir=settings.styles_dir).get(inbox.style)
    plan = workforce.plan_of(settings)
    spec = workforce.spec_of(settings, (style.weights_file,), plan, detector=demands.detector_of(settings))
    recorders: list[Recorder] = []

    def start(spec: WorkerSpec, threads: int) -> WorkerProcess:
        process = spawn(spec, threads)
        recorders.append(Recorder(process.channel))
        process.channel = recorders[-1]  # type: ignore[assignment]  # it is one in all that matters
        return process

    pool = Pool(plan, spec, start=start)
    pool.start(time.monotonic())
    _turn(pool, lambda: pool.ready)
    sampler = Sampler(pool.workers[0].pid)
    warm, before = sampler.process.memory_full_info().uss, sampler.process.cpu_times()
    sampler.start()
    stat = FileStat.of(photo.stat())
    stage = Stage(str(root / "out"), ".syncthing.animed-measure-", None, keep_mtime=True)
    recipe = recipes.recipe_of(inbox, style)
    job = Job(PhotoKey("in", os.fsencode(photo.name)), stat, recipe, 0.0)
    began = time.monotonic()
    pool.submit(
        job,
        lambda number, threads: Task(
            number, str(photo.parent), job.key.path, stat, recipe, inbox.max_pixels, "first", stage, threads
        ),
        began,
        queued=True,
    )
    recorders[0].heard.append(began)
    events = _turn(pool, lambda: pool.idle)
    took, mark = time.monotonic() - began, len(recorders[0].heard)
    outcome = next((event.outcome for event in events if isinstance(event, PhotoFinished)), events[-1])
    time.sleep(SETTLE_S)
    sampler.stop()
    told = _told(outcome)
    if sampler.process.is_running() and sampler.process.status() != psutil.STATUS_ZOMBIE:
        after, usage = sampler.process.memory_full_info().uss, sampler.process.cpu_times()
        cpu = usage.user + usage.system - before.user - before.system
        heard = [at for at in recorders[0].heard[:mark] if at >= began]
        silence = max(late - early for early, late in itertools.pairwise(heard))
        told += (
            f" {took:.1f} s, cpu {cpu:.1f} s, peak {sampler.peak // MIB}, warm {warm // MIB}, after {after // MIB} MiB"
        )
        told += f", silence {silence:.1f} s"
    pool.kill(time.monotonic())
    return told


def _settings(root: Path, words: list[str], options: argparse.Namespace) -> config.Config:
    """Return the configuration of a case."""
    for name in ("in", "out", "state"):
        (root / name).mkdir()
    styles = f"styles_dir: {options.styles}\n" if options.styles else ""
    (root / "config.yaml").write_text(
        f"version: 1\nstate_dir: state\n{styles}"
        f"workers: {{count: 1, threads: 1, nice: 0, max_memory: {options.max_memory}}}\n"
        "inboxes:\n"
        f"  - {{name: in, path: in, output: out, max_edge: {options.edge}, strength: {1 if 'full' in words else 0.5},\n"
        f"     output_size: {words[1]}, output_format: {words[2]}, faces: {'auto' if 'faces' in words else 'off'},\n"
        f"     preserve: {{icc: {'keep' if 'keep' in words else 'srgb'}}}}}\n"
    )
    return config.load(root / "config.yaml", environ={}, cwd=root)


def _turn(pool: Pool, over: Callable[[], bool]) -> list[Any]:
    """Let the pool work until something holds; return what happened."""
    events: list[Any] = []
    end = time.monotonic() + PATIENCE_S
    while not over() and time.monotonic() < end:
        ready = connection.wait(pool.waitables(), 0.2)
        events += pool.poll([fd for fd in ready if isinstance(fd, int)], time.monotonic())
        events += pool.tick(time.monotonic())
    return events


def _told(outcome: object) -> str:
    """Say what became of a photo."""
    if isinstance(outcome, Picture):
        parts = f"decode {outcome.decode_s:.1f}, draw {outcome.infer_s:.1f}, encode {outcome.encode_s:.1f}"
        size = f"{outcome.out_width}x{outcome.out_height}, {outcome.bytes_out / 1e6:.0f} MB"
        return f"done {size}, faces {outcome.faces} ({parts})"
    return str(outcome)


if __name__ == "__main__":
    main()
