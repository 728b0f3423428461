"""Colour profiles for tests, written by code: none of the usual files may be shipped, or need be there."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING

from animed.imaging import encode, icc

if TYPE_CHECKING:
    from animed.imaging.decode import Decoded
    from animed.records import PictureFormat

# The profiles of primaries and curve that photos come with, as their standards define them.
PROPHOTO = icc.rgb((0.7347, 0.2653, 0.1596, 0.8404, 0.0366, 0.0001, 0.3457, 0.3585), icc.power(1.8), "ProPhoto RGB")
ADOBE_RGB = icc.rgb(icc.ADOBE_PRIMARIES, icc.power(563 / 256), "Adobe RGB")
DISPLAY_P3 = icc.rgb(icc.P3_PRIMARIES, icc.srgb_curve(), "Display P3")
GREY_18 = icc.grey(icc.power(1.8), "grey 1.8")

_INKS = ((55, -37, -50), (48, 74, -3), (89, -5, 93), (16, 0, 0))  # L, a, b of cyan, magenta, yellow and black on paper
_STEPS = 3  # grid points an ink


def written(result: Decoded, form: PictureFormat, quality: int = 92) -> bytes:
    """Return a photo as a file, as it is at strength 0: without the network, and else as every picture."""
    pixels = result.photo if result.native is None else result.native
    return encode.encode(pixels, encode.Coding(form, quality), alpha=result.alpha, profile=result.profile)


def cmyk() -> bytes:
    """Return a small print profile: a table of 3 points an ink, from ink to Lab, of inks that resemble real ones."""
    nodes = itertools.product((0.0, 0.5, 1.0), repeat=len(_INKS))
    grid = b"".join(bytes((round(light * 2.55), round(a) + 128, round(b) + 128)) for light, a, b in map(_lab, nodes))
    ramp = bytes(range(256))
    identity = (65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    table = b"mft1" + bytes(4) + struct.pack(">4B9i", 4, 3, _STEPS, 0, *identity) + ramp * 4 + grid + ramp * 3
    name = b"desc" + bytes(4) + struct.pack(">I", 5) + b"inks\x00" + bytes(78)
    tags = {
        b"desc": name,
        b"cprt": b"text" + bytes(4) + b"CC0\x00",
        b"wtpt": b"XYZ " + bytes(4) + struct.pack(">3i", 63190, 65536, 54061),
        b"A2B0": table,
    }
    return profile(b"prtr", b"CMYK", b"Lab ", tags)


def profile(kind: bytes, space: bytes, meeting: bytes, tags: dict[bytes, bytes]) -> bytes:
    """Return a profile of a class, a colour space and a connection space, of version 2."""
    entries, body, start = b"", b"", 132 + 12 * len(tags)
    for tag, content in tags.items():
        entries += tag + struct.pack(">II", start + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    head = struct.pack(">I4xI4s4s4s", start + len(body), 0x02400000, kind, space, meeting)
    head += struct.pack(">6H4s28x3i48x", 2026, 1, 1, 0, 0, 0, b"acsp", 63190, 65536, 54061)
    return head + struct.pack(">I", len(tags)) + entries + body


def _lab(cover: tuple[float, ...]) -> tuple[float, float, float]:
    """Mix inks: each darkens what is below it, and adds its hue as far as the others leave light."""
    light = 1.0
    for part, (lightness, _, _) in zip(cover, _INKS, strict=True):
        light *= 1 - part * (1 - lightness / 100)
    a = sum(part * ink[1] for part, ink in zip(cover, _INKS, strict=True)) * light**0.5
    b = sum(part * ink[2] for part, ink in zip(cover, _INKS, strict=True)) * light**0.5
    return 100 * light, max(-100, min(100, a)), max(-100, min(100, b))
