"""Make tests/data/mode_colours.json, by hand: what another program reads from each file of mode_samples.

    python tests/reference_colours.py > tests/data/mode_colours.json

It asks `convert` of ImageMagick (6.9.11, when the values were made), and `vips` (8.14) for AVIF and HEIC, whose alpha
ImageMagick leaves out. Both agree within one step on every other file, but for these: without a profile of their own
ImageMagick shows inks as 255 - (C + K - CK/255), as browsers do, and vips through a profile of a press; vips takes
floating-point TIFFs for linear light; and both take Lab for that of D65, where programs that write such files mean that
of ICC profiles: for it the values are those of `vips icc_export`. No test runs this.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mode_samples import COLUMNS, ROWS, SAMPLES, SIDE, middles
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

LAB = "tiff lab 8"
SRGB = "/usr/share/color/icc/ghostscript/srgb.icc"  # of Ghostscript
SUFFIXES = {"apng": "png", "mpo": "jpeg"}


def main() -> None:
    """Print the table as JSON: for each file the twelve colours as red, green, blue and alpha."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, build in SAMPLES.items():
            first = name.split()[0]
            path = Path(folder) / f"sample.{SUFFIXES.get(first, first)}"
            path.write_bytes(build())
            colours = np.rint(reader(first, name)(path)).astype(int)
            rows.append(f"{json.dumps(name)}: {json.dumps(colours.tolist(), separators=(',', ':'))}")
    sys.stdout.write("{\n" + ",\n".join(rows) + "\n}\n")


def reader(kind: str, name: str) -> Callable[[Path], Array]:
    """Say who reads a file."""
    if name == LAB:
        return by_profile
    return by_vips if kind in {"avif", "heic"} else by_imagemagick


def by_imagemagick(path: Path) -> Array:
    """Return the twelve colours of the first picture of a file."""
    command = ["/usr/bin/convert", f"{path}[0]", "-colorspace", "sRGB", "-depth", "8", "rgba:-"]
    raw = subprocess.run(command, check=True, capture_output=True).stdout
    return middles(np.frombuffer(raw, np.uint8).reshape(ROWS * SIDE, COLUMNS * SIDE, 4))


def by_profile(path: Path) -> Array:
    """Return the twelve colours of a file in Lab: that of ICC profiles, with the white of D50."""
    shown = path.with_name("shown.png")
    subprocess.run(["/usr/bin/vips", "icc_export", path, shown, "--output-profile", SRGB, "--intent", "relative"], check=True)
    return middles(np.asarray(Image.open(shown).convert("RGBA")))


def by_vips(path: Path) -> Array:
    """Return the twelve colours of a file."""
    wide, narrow = path.with_name("wide.v"), path.with_name("narrow.png")
    subprocess.run(["/usr/bin/vips", "colourspace", path, wide, "srgb"], check=True)
    subprocess.run(["/usr/bin/vips", "cast", wide, narrow, "uchar"], check=True)
    return middles(np.asarray(Image.open(narrow).convert("RGBA")))


if __name__ == "__main__":
    main()
