"""Make tests/data/mode_colours.json and profile_colours.json, by hand: what another program reads from the files.

    python tests/reference_colours.py modes > tests/data/mode_colours.json
    python tests/reference_colours.py profiles > tests/data/profile_colours.json

It asks `convert` of ImageMagick (6.9.11, when the values were made), and `vips` (8.14) for AVIF and HEIC, whose alpha
ImageMagick leaves out. Both agree within one step on every other file, but for these: without a profile of their own
ImageMagick shows inks as 255 - (C + K - CK/255), as browsers do, and vips through a profile of a press; vips takes
floating-point TIFFs for linear light; and both take Lab for that of D65, where programs that write such files mean that
of ICC profiles: for it the values are those of `vips icc_export`. The colours by profiles are ImageMagick's too
(relative colorimetric, black point compensation), to the sRGB profile of Ghostscript. No test runs this.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from icc_profiles import PROFILES
from mode_samples import COLUMNS, ROWS, SAMPLES, SIDE, image, middles
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

LAB = "tiff lab 8"
SRGB = "/usr/share/color/icc/ghostscript/srgb.icc"  # of Ghostscript
SUFFIXES = {"apng": "png", "mpo": "jpeg"}


def main() -> None:
    """Print a table as JSON: for each name twelve colours."""
    rows = {"modes": modes, "profiles": profiles}[sys.argv[1]]()
    lines = [f"{json.dumps(name)}: {json.dumps(found, separators=(',', ':'))}" for name, found in rows.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


def modes() -> dict[str, Any]:
    """Return red, green, blue and alpha of the twelve colours of each file of mode_samples."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, build in SAMPLES.items():
            first = name.split()[0]
            path = Path(folder) / f"sample.{SUFFIXES.get(first, first)}"
            path.write_bytes(build())
            colours = np.rint(reader(first, name)(path)).astype(int)
            rows[name] = colours.tolist()
    return rows


def profiles() -> dict[str, Any]:
    """Return red, green and blue of the twelve colours of each space of icc_profiles, in sRGB."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (profile, mode) in PROFILES.items():
            path, own = Path(folder) / "sample.tiff", Path(folder) / "own.icc"
            image(mode).save(path)
            own.write_bytes(profile)
            command: list[str | Path] = [
                "/usr/bin/convert",
                path,
                "-intent",
                "relative",
                "-black-point-compensation",
                "-profile",
                own,
            ]
            command += ["-profile", SRGB, "-depth", "8", "rgb:-"]
            raw = subprocess.run(command, check=True, capture_output=True).stdout
            found = middles(np.frombuffer(raw, np.uint8).reshape(ROWS * SIDE, COLUMNS * SIDE, 3))
            rows[name] = np.rint(found).astype(int).tolist()
    return rows


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
    command: list[str | Path] = [
        "/usr/bin/vips",
        "icc_export",
        path,
        shown,
        "--output-profile",
        SRGB,
        "--intent",
        "relative",
    ]
    subprocess.run(command, check=True)
    return middles(np.asarray(Image.open(shown).convert("RGBA")))


def by_vips(path: Path) -> Array:
    """Return the twelve colours of a file."""
    wide, narrow = path.with_name("wide.v"), path.with_name("narrow.png")
    subprocess.run(["/usr/bin/vips", "colourspace", path, wide, "srgb"], check=True)
    subprocess.run(["/usr/bin/vips", "cast", wide, narrow, "uchar"], check=True)
    return middles(np.asarray(Image.open(narrow).convert("RGBA")))


if __name__ == "__main__":
    main()
