"""What there is no memory for is refused before it is decoded, with the reason and what helps."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from engine_fakes import RECIPE, Unheard
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pipeline import built, inbox, photo, task

from animed.engine.room import Room
from animed.errors import PhotoError
from animed.imaging import encode, needs
from animed.imaging.decoded import Found
from animed.imaging.encode import Coding
from animed.imaging.needs import Way

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["inbox"]  # the fixture
GIB = 1 << 30
LARGE = Found("jpeg", 12_000, 10_000, 120_000_000)
FULL = replace(RECIPE, output_size="original", output_format="avif")


def refusal(room: Room, found: Found = LARGE, recipe: object = FULL) -> tuple[str, str]:
    with pytest.raises(PhotoError) as caught:
        room.demand(found, recipe)  # type: ignore[arg-type]  # a recipe
    return caught.value.reason, caught.value.detail


def test_what_never_fits_is_refused_for_good() -> None:
    """A worker's own limit does not change: the reason is one that is not tried again, and names the key."""
    reason, detail = refusal(Room(lambda: 2 * GIB, lambda: 100 * GIB))
    assert reason == "too_large"
    assert detail.startswith("a photo of 12000\u00d710000 takes about ")
    assert "a worker may hold 2048 MiB by workers.max_memory" in detail
    assert "output_size: styled" in detail


def test_what_does_not_fit_now_is_tried_again() -> None:
    """The machine's memory may be free later."""
    reason, detail = refusal(Room(lambda: None, lambda: GIB))
    assert reason == "out_of_memory"
    assert "1024 MiB are free" in detail


@pytest.mark.parametrize("room", [Room(lambda: None, lambda: None), Room(lambda: 9 * GIB, lambda: 9 * GIB)])
def test_what_fits_is_let_through(room: Room) -> None:
    """Where there is room, or nothing says how much."""
    room.demand(LARGE, FULL)


def test_an_ordinary_photo_is_never_asked_about() -> None:
    """The plan has room for it, and to look at the machine's memory takes time."""

    def never() -> int:
        raise AssertionError

    Room(never, never).demand(Found("jpeg", 4000, 3000, 12_000_000), FULL)


@given(
    st.sampled_from(["jpeg", "png", "webp", "tiff", "avif", "heic", "gif", "bmp", "raw"]),
    st.sampled_from(["jpeg", "png", "webp", "avif"]),
    st.integers(1, 10**9),
    st.booleans(),
)
@settings(deadline=None, max_examples=100)
def test_more_takes_more(kind: str, form: str, pixels: int, native: bool) -> None:
    """A larger photo, one of full size, and one that keeps its own colours take no less."""
    small = Way(kind, form, pixels, 1000, full=False)  # type: ignore[arg-type]  # names of formats
    full = replace(small, picture=pixels, full=True, native=native)
    assert needs.most(small) <= needs.most(replace(small, decoded=2 * pixels))
    assert needs.most(replace(full, native=False)) <= needs.most(full) < needs.most(replace(full, picture=2 * pixels))
    assert needs.most(full) >= 3 * pixels


def test_a_photo_that_there_is_no_room_for_is_not_decoded(inbox: Path) -> None:
    """The pipeline asks once it knows the size, and not after that."""
    line = built(room=Room(lambda: 1, lambda: 1))
    large = replace(RECIPE, output_size="original", output_format="avif", max_edge=256)
    given = task(inbox, photo(8000, 4000, "png"), large, max_pixels=10**8)
    with pytest.raises(PhotoError) as caught:
        line.load(given, Unheard())
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError("broken data stream when writing image file"),
        RuntimeError("Failed to encode image: Encoding of color planes failed"),
        RuntimeError("Conversion to YUV failed: Out of memory"),
        ValueError("encoding error 1"),
        MemoryError("can't allocate picture frame"),
    ],
)
def test_an_encoder_without_memory_is_no_fault_of_the_picture(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a library says it, the reason is out_of_memory, with what was written."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("PIL.Image.Image.save", fail)
    with pytest.raises(PhotoError) as caught:
        encode.encode(np.zeros((30, 40, 3), np.uint8), Coding("jpeg"))
    assert caught.value.reason == "out_of_memory"
    assert caught.value.detail.startswith("writing 40x30 as jpeg took more memory than there is")


LIMITED = """
import resource, sys
import numpy as np
from animed.errors import PhotoError
from animed.imaging.encode import Coding, encode
form, beyond = sys.argv[1], int(sys.argv[2]) << 20
pixels = np.random.default_rng(1).integers(0, 256, (2000, 3000, 3), dtype=np.uint8)
encode(pixels[:64, :64], Coding(form))
with open("/proc/self/status") as file:
    held = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (held + beyond, held + beyond))
try:
    encode(pixels, Coding(form))
except PhotoError as error:
    sys.exit(error.reason)
sys.exit("done")
"""


STARVED = """
import io, resource, sys
import numpy as np
from PIL import Image
from animed.imaging.decode import decode
from animed.imaging.decoded import Wanted
pixels = np.random.default_rng(1).integers(0, 256, (500, 750, 4), dtype=np.uint8)
target = io.BytesIO()
Image.fromarray(pixels).resize((3000, 2000)).save(target, "WEBP", lossless=True, method=0)
with open("/proc/self/status") as file:
    held = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (held, held))
try:
    decode(target.getvalue(), Wanted(10**8, 512, full=True))
except MemoryError:
    sys.exit("out_of_memory")
"""


def test_a_decoder_without_memory_is_no_fault_of_the_photo() -> None:
    """WebP's library says then what it says of a damaged file, which would never be tried again."""
    environment = dict(os.environ) | {"MALLOC_MMAP_THRESHOLD_": "65536"}  # so that nothing freed is left to take
    ended = subprocess.run(
        [sys.executable, "-c", STARVED], capture_output=True, text=True, check=False, env=environment
    )
    assert ended.stderr.strip().splitlines()[-1] == "out_of_memory"


@pytest.mark.parametrize("form", ["jpeg", "webp", "avif"])
@pytest.mark.parametrize("beyond", [4, 40, 100])
def test_no_encoder_dies_of_a_limit(form: str, beyond: int) -> None:
    """With less memory than it needs an encoder ends its photo, not its process: the AVIF library would crash."""
    command = [sys.executable, "-c", LIMITED, form, str(beyond)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    said = ended.stderr.strip().splitlines()[-1]
    assert said in ({"out_of_memory", "done"} if beyond == 100 and form != "avif" else {"out_of_memory"})
