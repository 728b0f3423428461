"""What is in the files: turned, deep, bombs, panoramas, profiles, formats that are not read."""

from __future__ import annotations

import os
import resource
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from photo_files import decoded, saved
from picture_writers import claimed_png
from PIL import Image, ImageFile

from animed.engine.environment import environment
from animed.errors import PhotoError
from animed.records import Reason


def test_a_jpeg_cut_at_sixty_percent_is_truncated() -> None:
    """Nothing makes a grey half of a picture out of what is missing, whatever switch Pillow has for that."""
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 255, (300, 400, 3), np.uint8))
    data = saved(noise, "jpeg")
    assert not ImageFile.LOAD_TRUNCATED_IMAGES
    with pytest.raises(PhotoError) as caught:
        decoded(data[: len(data) * 6 // 10])
    assert caught.value.reason == Reason.TRUNCATED


def test_a_deep_gradient_stays_a_gradient() -> None:
    """A ramp of 16 bits becomes a ramp of 8 bits: never falling, from black to white, in many steps."""
    ramp = np.tile(np.linspace(0, 65535, 256).astype(np.uint16), (8, 1))
    row = decoded(saved(Image.fromarray(ramp), "png")).pixels[4, :, 0].astype(int)
    assert (np.diff(row) >= 0).all()
    assert (row[0], row[-1]) == (0, 255)
    assert len(set(row.tolist())) > 200


def huge_png() -> bytes:
    """Return a tiny file whose header claims 30,000 by 30,000 pixels, with the start of its data."""
    return claimed_png(30_000, 30_000, zlib.compress(bytes(10_000_000)))


def test_a_bomb_is_refused_by_its_header() -> None:
    """A file of a few kilobytes that claims 900 megapixels is refused before anything of its size is made."""
    bomb = huge_png()
    assert len(bomb) < 20_000
    decoded(saved(Image.new("RGB", (64, 64)), "png"))  # What decoding needs in any case is there.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        with pytest.raises(PhotoError) as caught:
            decoded(bomb)
        assert caught.value.reason == Reason.TOO_LARGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_a_panorama_is_a_photo() -> None:
    """12,000 by 3,000 pixels are drawn at the size that the network sees, and keep their own in the report."""
    wide = Image.linear_gradient("L").resize((12_000, 3_000)).convert("RGB")
    result = decoded(saved(wide, "jpeg", quality=80), max_edge=1024)
    assert (result.width, result.height) == (12_000, 3_000)
    assert result.pixels.shape == (256, 1024, 3)


def display_p3() -> bytes:
    """Return a minimal profile with the primaries of Display P3 and the transfer curve of sRGB, nearly."""
    curve = b"curv" + bytes(4) + struct.pack(">I", 1) + struct.pack(">H", round(2.2 * 256)) + bytes(2)

    def xyz(*values: float) -> bytes:
        return b"XYZ " + bytes(4) + b"".join(struct.pack(">i", round(value * 65536)) for value in values)

    text = "P3".encode("utf-16-be")
    name = b"mluc" + bytes(4) + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(text), 28) + text
    tags = {
        b"desc": name, b"wtpt": xyz(0.9642, 1.0, 0.8249),
        b"rXYZ": xyz(0.5151, 0.2412, -0.0011), b"gXYZ": xyz(0.2920, 0.6922, 0.0419),
        b"bXYZ": xyz(0.1571, 0.0666, 0.7841), b"rTRC": curve, b"gTRC": curve, b"bTRC": curve,
    }  # fmt: skip
    table, body, start = b"", b"", 132 + 12 * len(tags)
    for tag, data in tags.items():
        table += tag + struct.pack(">II", start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    size = start + len(body)
    head = struct.pack(">I4sI4s4s4s", size, b"lcms", 0x04200000, b"mntr", b"RGB ", b"XYZ ")
    head += struct.pack(">6H", 2024, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    head += struct.pack(">III", 0x0000F6D6, 0x00010000, 0x0000D32D) + bytes(48)
    return head + struct.pack(">I", len(tags)) + table + body


def test_colours_of_a_wide_gamut_are_converted() -> None:
    """The red of sRGB as Display P3 writes it, (234, 51, 35), comes out as (255, 0, 0); grey stays grey."""
    photo = Image.new("RGB", (16, 16), (234, 51, 35))
    red, green, blue = (int(value) for value in decoded(saved(photo, "png", icc_profile=display_p3())).pixels[8, 8])
    assert red >= 250
    assert max(green, blue) <= 16
    grey = decoded(saved(Image.new("RGB", (8, 8), (120, 120, 120)), "png", icc_profile=display_p3())).pixels
    assert int(np.ptp(grey)) <= 3


GROWTH = """
import io, random, sys
import torch
from animed.engine import machine
from animed.engine.pipeline import draw
from animed.style import runtime
from animed.style.network import Generator
import numpy as np
runtime.prepare(1)
torch.manual_seed(1)
network = Generator("half_pixel").eval().to(memory_format=torch.channels_last)
runtime.warm(network, [(96, 96)])
shapes = random.Random(1)
def some(count):
    for _ in range(count):
        draw(network, np.zeros((shapes.randint(8, 48), shapes.randint(8, 48), 3), np.uint8))
some(20)
before = machine.anonymous()
some(100)
print((machine.anonymous() - before) >> 20)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_variety_of_sizes() -> None:
    """A hundred random sizes through the real network add next to nothing to what the first twenty took."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, timeout=100, check=True,
        env=os.environ | environment(threads=1),
    )  # fmt: skip
    assert int(done.stdout) < 40, "MiB"
