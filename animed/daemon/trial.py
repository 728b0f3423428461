"""Draws one made-up picture through a real worker, to prove that drawing works here."""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from animed.config import InboxConfig
from animed.daemon.demands import wants_faces
from animed.daemon.errands import Drawn, Errand, Errands
from animed.daemon.styles import styles_of
from animed.errors import WorkersError

if TYPE_CHECKING:
    from animed.config import Config

SIDE = 128  # pixels


def draw_test_picture(config: Config) -> dict[str, Any]:
    """Return the figures of one test picture in a folder that is removed again; raises StyleError, WorkersError."""
    styles = styles_of(config)
    style = styles.get(config.inboxes[0].style) or next(iter(styles.values()))
    with tempfile.TemporaryDirectory(prefix="animed-check-") as folder:
        photo = Path(folder, "test.png")
        photo.write_bytes(gradient_png(SIDE))
        settings = InboxConfig(
            name="check", path=photo.parent, output=photo.parent, style=style.name, max_edge=config.inboxes[0].max_edge,
            faces="auto" if wants_faces(config) else "off",
        )  # fmt: skip
        outcomes: list[Drawn] = []
        Errands.of(config, style).run([Errand(settings, os.fsencode(photo.name))], outcomes.append, lambda: None)
    drawn = outcomes[0]
    if drawn.picture is None:
        raise WorkersError(f"the test picture failed: {drawn.reason}", remedy=drawn.detail)
    picture = drawn.picture
    return {
        "style": style.name,
        "width": picture.out_width,
        "height": picture.out_height,
        "seconds": round(picture.decode_s + picture.infer_s + picture.encode_s, 2),
    }


def gradient_png(side: int) -> bytes:
    """Return a colourful PNG of that many pixels a side, made by hand: this process has no picture library."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(side) for v in (x * 255 // side, y * 255 // side, (x ^ y) & 255))
        for y in range(side)
    )
    header = side.to_bytes(4, "big") * 2 + bytes((8, 2, 0, 0, 0))
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big") for kind, data in chunks
    )
