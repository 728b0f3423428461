"""A small file that asks for much is refused by what it says of itself, before memory or time are spent on it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from photo_files import heic, saved, scene
from picture_writers import RGB, Tiff, claimed_png, long, png, segment, tiff
from PIL import Image
from PIL.GifImagePlugin import GifImageFile

from animed.errors import PhotoError, starved
from animed.imaging import limits, openers
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted
from animed.imaging.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PIXELS = 120_000_000
ROOM = 256 << 20  # bytes that a process which refuses bombs may take besides what its libraries take


@cache
def packed(size: int) -> bytes:
    return zlib.compress(bytes(size), 9)


def noted(*chunks: tuple[bytes, bytes]) -> bytes:
    return png(np.asarray(scene(8, 8)), RGB, 8, early=chunks)


def claimed(data: bytes, mark: bytes, skip: int, sizes: bytes) -> bytes:
    """Return a file in which `sizes` stand `skip` bytes behind every `mark`."""
    at, out = 0, bytearray(data)
    while (at := data.find(mark, at)) >= 0:
        out[at + skip : at + skip + len(sizes)] = sizes
        at += len(mark)
    return bytes(out)


def header_of_png(width: int, height: int) -> bytes:
    return claimed_png(width, height, packed(1 << 16))


def canvas_of_webp(width: int, height: int) -> bytes:
    body = b"VP8X" + struct.pack("<I", 10) + b"\x02\x00\x00\x00"
    body += struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body += b"ANIM" + struct.pack("<I", 6) + bytes(6)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def wide_tiff() -> bytes:
    return Tiff(2, tags={256: long(90_000), 257: long(90_000)}).write(np.asarray(scene()))


def frame_of_gif(width: int, height: int) -> bytes:
    return claimed(
        saved(scene(8, 8).convert("P"), "gif"), b",\x00\x00\x00\x00\x08\x00\x08\x00", 5, sized("<HH", width, height)
    )


def sized(layout: str, width: int, height: int) -> bytes:
    return struct.pack(layout, width, height)


def commented_gif(size: int) -> bytes:
    data = saved(scene(8, 8).convert("P"), "gif")
    at = data.index(b",\x00\x00\x00\x00")
    return data[:at] + b"!\xfe" + (b"\xff" + b"c" * 255) * (size // 256) + b"\x00" + data[at:]


def long_exif() -> bytes:
    data = saved(scene(8, 8), "jpeg")
    return data[:2] + segment(0xE1, b"Exif\x00\x00" + bytes(65_000)) * 300 + data[2:]


BOMBS: dict[str, Callable[[], bytes]] = {
    "png": lambda: header_of_png(30_000, 30_000),
    "png line": lambda: header_of_png(1, 1_000_000_000),
    "png side": lambda: header_of_png(200_000, 2),
    "png profile": lambda: noted((b"iCCP", b"p\x00\x00" + packed(100 << 20))),
    "png text": lambda: noted((b"zTXt", b"Comment\x00\x00" + packed(100 << 20))),
    "png words": lambda: noted((b"iTXt", b"XML:com.adobe.xmp\x00\x01\x00\x00\x00" + packed(100 << 20))),
    "png texts": lambda: noted(*[(b"zTXt", b"K%d\x00\x00" % n + packed(15 << 20)) for n in range(40)]),
    "jpeg": lambda: claimed(saved(scene(8, 8), "jpeg"), b"\xff\xc0", 5, sized(">HH", 65_500, 65_500)),
    "jpeg progressive": lambda: claimed(
        saved(scene(8, 8), "jpeg", progressive=True), b"\xff\xc2", 5, sized(">HH", 65_500, 65_500)
    ),
    "jpeg metadata": long_exif,
    "gif": lambda: claimed(saved(scene(8, 8).convert("P"), "gif"), b"GIF87a", 6, sized("<HH", 65_535, 65_535)),
    "gif frame": lambda: frame_of_gif(65_535, 65_535),
    "gif metadata": lambda: commented_gif(8 << 20),
    "webp": lambda: canvas_of_webp(16_000, 16_000),
    "tiff": wide_tiff,
    "bmp": lambda: claimed(saved(scene(8, 8), "bmp"), b"BM", 18, sized("<ii", 60_000, 60_000)),
    "heic": lambda: claimed(heic(scene(64, 64)), b"ispe", 8, sized(">II", 30_000, 30_000)),
    "avif": lambda: claimed(saved(scene(), "avif"), b"ispe", 8, sized(">II", 16_000, 16_000)),
}


def outcome(data: bytes, *, full: bool = False) -> str:
    try:
        result = decode(data, Wanted(max_pixels=MAX_PIXELS, max_edge=512, full=full))
    except PhotoError as error:
        return error.reason if error.detail else "no detail"
    assert isinstance(result, Decoded)
    return "done"


def test_bombs_are_refused_within_little_memory(tmp_path: Path) -> None:
    """Each format's bomb is too_large, in a process that could not hold what it asks for."""
    for name, make in BOMBS.items():
        (tmp_path / name).write_bytes(make())
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_imaging_limits; "
        "test_imaging_limits.refuse_all(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == dict.fromkeys(BOMBS, "too_large")


def refuse_all(folder: str) -> None:
    """Decode all files of a folder with little memory and print what came of them; for a process of its own."""
    import resource  # noqa: PLC0415 - only the process that runs this sets limits

    outcome(saved(scene(), "avif")), outcome(heic(scene()))  # what libraries take once is no bomb's doing
    held = next(line for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines() if "VmData" in line)
    limit = int(held.split()[1]) * 1024 + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    outcomes = {}
    for path in sorted(Path(folder).iterdir()):
        try:
            outcomes[path.name] = outcome(path.read_bytes())
        except MemoryError:
            outcomes[path.name] = "took too much memory"
    sys.stdout.write(json.dumps(outcomes))


def test_a_refusal_says_what_would_do() -> None:
    """The sizes, the limit, and the key that sets it stand in the detail."""
    with pytest.raises(PhotoError, match="30000\u00d730000 = 900 MP, limit 120 MP"):
        decode(header_of_png(30_000, 30_000), Wanted(max_pixels=MAX_PIXELS, max_edge=512))
    with pytest.raises(PhotoError, match="limit 100000 pixels a side"):
        decode(header_of_png(200_000, 2), Wanted(max_pixels=MAX_PIXELS, max_edge=512))


def test_large_but_sound_notes_are_no_bombs() -> None:
    """A colour profile or a text of a few megabytes is fine."""
    assert outcome(noted((b"zTXt", b"Comment\x00\x00" + packed(5 << 20)))) == "done"
    assert outcome(noted((b"iCCP", b"p\x00\x00" + packed(5 << 20)))) == "done"
    assert outcome(commented_gif(500_000)) == "done"


def test_a_film_of_a_million_frames_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first frame of an animation is decoded, and only the second one is looked for."""
    frame = b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00"
    data = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff" + frame * 1_000_000 + b";"
    seen: list[int] = []
    seek = GifImageFile._seek

    def watched(image: Any, frame: int, *rest: Any) -> None:
        seen.append(frame)
        seek(image, frame, *rest)

    monkeypatch.setattr(GifImageFile, "_seek", watched)
    assert outcome(data) == "done"
    assert len(seen) < 10


def test_a_hundred_megapixels_take_little_more_than_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large JPEG that becomes a small picture is never held in full size."""
    sizes: list[tuple[int, int]] = []
    original = openers.opened

    def watched(data: bytes, kind: Any) -> Any:
        image = original(data, kind)
        load = image.load

        def loaded() -> Any:
            result = load()
            sizes.append(image.size)
            return result

        monkeypatch.setattr(image, "load", loaded)
        return image

    monkeypatch.setattr(openers, "opened", watched)
    assert outcome(saved(scene(4000, 3000), "jpeg")) == "done"
    assert max(sizes[0]) < 2500


def test_the_limit_of_the_inbox_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's own limit, which some of its formats hold on to, gives way to a larger one."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    small = Tiff(2, tags={254: long(1)}), np.asarray(scene(8, 8))
    assert outcome(tiff(small, (Tiff(2), np.asarray(scene())))) == "done"
    assert outcome(saved(scene(), "webp")) == "done"


@pytest.mark.parametrize(("width", "height"), [(1, 1), (12_000, 10_000), (100_000, 1_200)])
def test_what_is_within_the_limits_passes(width: int, height: int) -> None:
    """The limits themselves are allowed."""
    limits.size(width, height, MAX_PIXELS)
    with pytest.raises(PhotoError):
        limits.size(width, height, width * height - 1)


def test_a_jpeg_of_endless_scans_is_refused() -> None:
    """Each scan of a progressive JPEG goes over the whole picture, so a small file of many would take minutes."""
    data = saved(scene(), "jpeg", progressive=True)
    last = data.rindex(b"\xff\xda")
    again = data[:last] + data[last:-2] * (limits.SCANS + 1) + data[-2:]
    assert outcome(again) == "too_large"
    # The film behind a photo may hold the same bytes as often as it likes.
    assert isinstance(decode(data + b"\xff\xda" * 1000, Wanted(max_pixels=MAX_PIXELS, max_edge=64)), Decoded)


def test_a_limit_of_a_library_is_not_a_lack_of_memory() -> None:
    """What a library refuses by its own rules is the file's fault, though it calls it a memory allocation error."""
    refused = "Memory allocation error: Security limit exceeded: Number of extents in iloc box (53249)"
    assert not starved(SyntaxError(refused))
    assert starved(RuntimeError("Memory allocation error: Allocating 4 GB exceeds what is there"))
    assert fault("heic", saved(scene(), "heic"), SyntaxError(refused)).reason == "too_large"
