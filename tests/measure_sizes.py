"""Measurements of sizes, by hand; docs/performance.md keeps the figures.

    python tests/measure_sizes.py aspect PHOTOS [--weights FILE --upsampling NAME]     how sides are made multiples

`aspect` draws photos reduced to sizes that the network takes as they are, and compares each way of bringing them to
other multiples with that; photos of odd sizes are compared with the network's picture of all but their last columns
and rows. Options: --edge N (longest side), --limit N (photos).
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from PIL import Image

from animed.imaging import geometry, tensors
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
    parser.add_argument("what", choices=("aspect",))
    parser.add_argument("photos", type=Path)
    parser.add_argument("--weights", type=Path, default=ROOT / "weights" / "cel.safetensors")
    parser.add_argument("--upsampling", default="half_pixel")
    parser.add_argument("--edge", type=int, default=512)
    parser.add_argument("--limit", type=int, default=20)
    options = parser.parse_args()
    runtime.prepare(1)
    digest = hashlib.sha256(options.weights.read_bytes()).hexdigest()
    network = weights.load(WeightsFile("measured", str(options.weights), digest, options.upsampling))
    every = sorted(options.photos.iterdir())
    photos = every[:: max(1, len(every) // options.limit)][: options.limit]
    measure_aspect(network, photos, options.edge)


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


if __name__ == "__main__":
    main()
