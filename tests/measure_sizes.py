"""Measurements of sizes, by hand; docs/performance.md keeps the figures.

    python tests/measure_sizes.py aspect PHOTOS [--weights FILE --upsampling NAME]     how sides are made multiples
    python tests/measure_sizes.py shapes PHOTOS --multiple N                           what more shapes cost
    python tests/measure_sizes.py full PHOTOS --edge 1024                              pictures of the photos' own size

`aspect` draws photos reduced to sizes that the network takes as they are, and compares each way of bringing them to
other multiples with that; photos of odd sizes are compared with the network's picture of all but their last columns
and rows. `shapes` draws photos of many sizes. `full` takes large photos, and tells for each way of enlarging:
the time against the network's; how wide strong edges are (10 to 90 % of their height, in pixels, along rows); how many
values are beyond all that the style has within two pixels of it, by more than 4 steps; how far pixels are from their
neighbours where the style is flat. Start `shapes` and `full` in a worker's environment (animed/engine/environment.py).
Options: --edge N (longest side), --limit N (photos), --rounds N.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import psutil
import torch
from PIL import Image, ImageOps

from animed.engine import pipeline
from animed.imaging import geometry, tensors, upsample
from animed.records import WeightsFile
from animed.style import runtime, weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from animed.style.network import Generator

    Pixels = NDArray[np.uint8]  # (H, W, 3)
    Draw = Callable[[Pixels], Pixels]

ROOT: Final = Path(__file__).parent.parent
LANCZOS: Final = Image.Resampling.LANCZOS
# Taken from the longest side, and from the other one: remainders of 4, 8 and 12 when divided by 16 for the exact
# comparison, odd ones for the other.
EXACT: Final = ((4, 4), (12, 8), (8, 12), (4, 12), (0, 4))
ODD: Final = ((1, 3), (3, 2), (5, 9), (13, 6), (7, 11))


def main() -> None:
    """Run one measurement and print its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("aspect", "shapes", "full"))
    parser.add_argument("photos", type=Path)
    parser.add_argument("--weights", type=Path, default=ROOT / "weights" / "cel.safetensors")
    parser.add_argument("--upsampling", default="half_pixel")
    parser.add_argument("--edge", type=int, default=512)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--multiple", type=int, default=geometry.MULTIPLE)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    runtime.prepare(1)
    digest = hashlib.sha256(options.weights.read_bytes()).hexdigest()
    network = weights.load(WeightsFile("measured", str(options.weights), digest, options.upsampling))
    every = sorted(options.photos.iterdir())
    photos = every[:: max(1, len(every) // options.limit)][: options.limit]
    if options.what == "aspect":
        measure_aspect(network, photos, options.edge)
    elif options.what == "shapes":
        measure_shapes(network.to(torch.bfloat16), photos, options.edge, options.multiple)
    else:
        measure_full(network.to(torch.bfloat16), photos, options.edge, options.rounds)


def measure_aspect(network: Generator, paths: list[Path], edge: int) -> None:
    """Compare ways of making sides multiples with the network's picture of the size as it is."""

    def draw(pixels: Pixels) -> Pixels:
        with torch.inference_mode():
            return tensors.to_pixels(network(tensors.to_tensor(pixels)))

    for title, remainders in (("sides of 16n + 4, 8, 12", EXACT), ("odd sides", ODD)):
        rows: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in WAYS}
        for number, path in enumerate(paths):
            photo = reduced(path, edge, remainders[number % len(remainders)])
            height, width = (side // 4 * 4 for side in photo.shape[:2])
            exact = draw(photo[:height, :width])
            for name, way in WAYS.items():
                began = time.perf_counter()
                drawn = way(photo, draw)[:height, :width]
                rows[name].append((*difference(drawn, exact), time.perf_counter() - began))
        print(f"{title}: {len(paths)} photos")  # noqa: T201 - its whole purpose
        print("way | PSNR median, dB | PSNR worst | mean difference, steps | at the last 16 rows and columns | s")  # noqa: T201 - the same
        for name, found in rows.items():
            psnr, mean, border, seconds = zip(*found, strict=True)
            figures = (statistics.median(psnr), min(psnr), *map(statistics.mean, (mean, border, seconds)))
            print(name, *(f"{figure:.2f}" for figure in figures), sep=" | ", flush=True)  # noqa: T201 - the same


def measure_shapes(network: Generator, paths: list[Path], edge: int, multiple: int) -> None:
    """Draw pictures of the photos' sizes, rounded up to a multiple; tell processor time and memory at the end."""
    shapes: list[tuple[int, int]] = []
    for path in paths:
        with Image.open(path) as image:
            width, height = geometry.fit(*image.size, edge)
        shapes.append((-(-height // multiple) * multiple, -(-width // multiple) * multiple))
    runtime.warm(network, [(edge, edge)])
    began = time.process_time()
    runtime.warm(network, shapes)
    seconds = (time.process_time() - began) / len(shapes)
    memory = psutil.Process().memory_full_info().uss >> 20
    print(f"{multiple}: {len(set(shapes))} shapes, {seconds:.4f} s a photo, {memory} MiB")  # noqa: T201 - its whole purpose


def measure_full(network: Generator, paths: list[Path], edge: int, rounds: int) -> None:
    """Enlarge each photo's picture in each way."""
    for path in paths:
        with Image.open(path) as image:
            whole = ImageOps.exif_transpose(image).convert("RGB")
        photo = np.asarray(whole)
        seen = np.asarray(whole.resize(geometry.fit(*whole.size, edge), LANCZOS))
        times: dict[str, list[float]] = {name: [] for name in ("network", *LARGER)}
        for _ in range(rounds):
            style = timed(times["network"], partial(pipeline.draw, network, seen))
            pictures = {name: timed(times[name], partial(way, style, seen, photo)) for name, way in LARGER.items()}
        print(f"{path.name}: {whole.size} from {seen.shape[1::-1]}, network {min(times['network']):.2f} s")  # noqa: T201 - its whole purpose
        print("way | time, of the network's | edges, pixels | beyond, % | unrest of flat areas, steps")  # noqa: T201 - the same
        for name, full in pictures.items():
            share = min(times[name]) / min(times["network"])
            figures = (share, edge_width(full), beyond(full, style), unrest(full, style))
            print(name, *(f"{figure:.3f}" for figure in figures), sep=" | ", flush=True)  # noqa: T201 - the same


def timed(times: list[float], step: Callable[[], Pixels]) -> Pixels:
    """Do something, and note how long it took."""
    began = time.perf_counter()
    done = step()
    times.append(time.perf_counter() - began)
    return done


def edge_width(full: Pixels, height: float = 60, reach: int = 16) -> float:
    """Return the median width of edges of at least `height` steps: of each row, the thirty steepest places."""
    widths = []
    for row in full[:: max(1, len(full) // 400)] @ np.array([0.299, 0.587, 0.114]):
        for place in np.argsort(np.abs(np.diff(row)))[:-31:-1]:
            way = np.sign(row[place + 1] - row[place])
            first, last = int(place), int(place) + 1
            while first > max(0, place - reach) and (row[first] - row[first - 1]) * way > 0:
                first -= 1
            while last < min(len(row) - 1, place + reach) and (row[last + 1] - row[last]) * way > 0:
                last += 1
            if abs(row[last] - row[first]) >= height:
                rising = (row[first : last + 1] - row[first]) / (row[last] - row[first])
                low, high = np.interp((0.1, 0.9), rising, np.arange(len(rising)))
                widths.append(float(high - low))
    return statistics.median(widths) if widths else float("nan")


def surroundings(style: Pixels, size: tuple[int, ...]) -> tuple[Pixels, Pixels]:
    """Return the least and the greatest value within two pixels of the style, for each pixel of a larger size."""
    around = np.pad(style, ((2, 2), (2, 2), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(around, (5, 5), axis=(0, 1))
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, style.shape, strict=False)
    )
    low, high = windows.min((-2, -1)), windows.max((-2, -1))
    return low[rows][:, columns], high[rows][:, columns]


def beyond(full: Pixels, style: Pixels) -> float:
    """Return how many values of a hundred lie outside their surroundings by more than 4 steps: halos."""
    low, high = surroundings(style, full.shape[:2])
    value = full.astype(np.int16)
    return 100 * float(((value > high.astype(np.int16) + 4) | (value < low.astype(np.int16) - 4)).mean())


def unrest(full: Pixels, style: Pixels) -> float:
    """Return how far pixels are from the mean of three along a row, where the style is flat, in steps."""
    low, high = surroundings(style, full.shape[:2])
    flat = ((high - low).max(-1) <= 10)[:, 1:-1]
    value = full.astype(np.float32)
    away = np.abs(value[:, 1:-1] - (value[:, :-2] + value[:, 1:-1] + value[:, 2:]) / 3).mean(-1)
    return float(away[flat].mean()) if flat.any() else float("nan")


def reduced(path: Path, edge: int, less: tuple[int, int]) -> Pixels:
    """Return a photo with sides that leave a wanted remainder: a multiple of 16 less so many pixels."""
    with Image.open(path) as image:
        small = image.convert("RGB")
    width, height = geometry.fit(*small.size, edge)
    longer, other = less if width >= height else less[::-1]
    size = (width // 16 * 16 - longer % 16, height // 16 * 16 - other % 16)
    return np.asarray(small.resize(size, LANCZOS))


def difference(drawn: Pixels, exact: Pixels) -> tuple[float, float, float]:
    """Return PSNR in dB, and the mean difference in steps of a byte: all over, and at the right and lower border."""
    away = np.abs(drawn.astype(np.float64) - exact)
    border = np.concatenate([away[-16:].ravel(), away[:-16, -16:].ravel()])
    return float(20 * np.log10(255 / max(1e-3, np.sqrt((away**2).mean())))), float(away.mean()), float(border.mean())


def resized(style: Pixels, photo: Pixels, kernel: Image.Resampling) -> Pixels:
    """Return a picture in the size of a photo, by a kernel alone."""
    return np.asarray(Image.fromarray(style).resize(photo.shape[1::-1], kernel))


def padded(multiple: int, *, symmetric: bool = False, mode: str = "reflect") -> Callable[[Pixels, Draw], Pixels]:
    """Return the way of padding to a multiple and cropping; symmetric shifts by whole fours, as the network strides."""

    def way(photo: Pixels, draw: Draw) -> Pixels:
        height, width = photo.shape[:2]
        below, right = -height % multiple, -width % multiple
        above, left = (below // 2 // 4 * 4, right // 2 // 4 * 4) if symmetric else (0, 0)
        amounts = ((above, below - above), (left, right - left), (0, 0))
        wide = np.pad(photo, amounts, mode=mode)  # type: ignore[call-overload]  # one of two names of modes
        return draw(wide)[above : above + height, left : left + width]

    return way


def nearest(multiple: int) -> Callable[[Pixels, Draw], Pixels]:
    """Return the way of resizing to the nearest multiple and back."""

    def way(photo: Pixels, draw: Draw) -> Pixels:
        height, width = photo.shape[:2]
        size = tuple(max(multiple, round(side / multiple) * multiple) for side in (width, height))
        image = Image.fromarray(photo).resize(size, LANCZOS)
        return np.asarray(Image.fromarray(draw(np.asarray(image))).resize((width, height), LANCZOS))

    return way


WAYS: Final[Mapping[str, Callable[[Pixels, Draw], Pixels]]] = {
    "reflect to 4": padded(4),
    "reflect to 8": padded(8),
    "reflect to 16": padded(16),
    "reflect to 16, both sides": padded(16, symmetric=True),
    "repeat the edge to 16": padded(16, mode="edge"),
    "reflect to 32": padded(32),
    "nearest multiple of 4 and back": nearest(4),
    "nearest multiple of 16 and back": nearest(16),
}

LARGER: Final[Mapping[str, Callable[[Pixels, Pixels, Pixels], Pixels]]] = {
    "LANCZOS": lambda style, _, photo: resized(style, photo, LANCZOS),
    "bicubic": lambda style, _, photo: resized(style, photo, Image.Resampling.BICUBIC),
    "animed": upsample.enlarge,
}


if __name__ == "__main__":
    main()
