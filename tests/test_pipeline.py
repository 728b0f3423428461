"""One photo's way through a worker: what comes out of each step, and what each thing that goes wrong is called."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from engine_fakes import Unheard
from fault_system import FaultySystem
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from animed.engine import pipeline, reading
from animed.engine.pipeline import Drawn, Loaded, Pipeline
from animed.errors import PhotoError, PlaceError, StyleError
from animed.records import FileStat, Picture, Recipe, Skip, Stage, Staged, Task, WeightsFile
from animed.style import weights
from animed.style.network import Generator
from animed.style.runtime import Precision
from animed.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.style.network import Beat

CEL = Path(__file__).parent.parent / "weights" / "cel.safetensors"
PRECISION = Precision("float32", "a test")
RECIPE = Recipe("cel", "0" * 64, "half_pixel", 1.0, 64, "same", 92, exif=True, gps=True)


def cel() -> WeightsFile:
    return WeightsFile("cel", str(CEL), hashlib.sha256(CEL.read_bytes()).hexdigest(), "half_pixel")


def untrained() -> Generator:
    torch.manual_seed(1)
    return Generator("half_pixel").eval().to(memory_format=torch.channels_last)


@dataclass
class Shelf:
    """Takes finished pictures in place of a disk."""

    fault: Exception | None = None
    kept: list[tuple[bytes, Stage, int]] = field(default_factory=list)

    def __call__(
        self, data: bytes, stage: Stage, mtime_ns: int, /, *, system: System, beat: Callable[[], None]
    ) -> tuple[Staged, int | None]:
        """Keep the picture, or be full."""
        if self.fault:
            raise self.fault
        self.kept.append((data, stage, mtime_ns))
        return Staged(1, 2, len(data), hashlib.sha256(data).hexdigest(), None), 77


class Failing(Generator):
    """A network that gives up, or gives what is no picture."""

    def __init__(self, fault: Exception | float) -> None:
        super().__init__("half_pixel")
        self.fault = fault

    def forward(self, x: torch.Tensor, beat: Beat | None = None) -> torch.Tensor:
        """Raise the fault, or fill the picture with it."""
        if isinstance(self.fault, Exception):
            raise self.fault
        return torch.full_like(x, self.fault)


class Short(FaultySystem):
    """Gives at most 100 bytes at a time, and the file ends after so many."""

    def __init__(self, end: int = 1 << 30) -> None:
        super().__init__()
        self.left = end

    def read(self, descriptor: int, size: int) -> bytes:
        """Read a little."""
        chunk = super().read(descriptor, min(size, 100, self.left))
        self.left -= len(chunk)
        return chunk


def built(network: Generator | None = None, **seams: Any) -> Pipeline:
    seams = {"stage_writer": Shelf(), **seams}
    return Pipeline({"cel": network or untrained()}, precision=PRECISION, **seams)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _process() -> Iterator[None]:
    """Put back what a worker sets for its whole process: other tests compute with the smallest of numbers."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)


def photo(width: int = 60, height: int = 45, form: str = "jpeg", **options: Any) -> bytes:
    corners = np.array([[[255, 0, 0], [0, 255, 0]], [[255, 255, 255], [0, 0, 255]]], np.uint8)
    target = io.BytesIO()
    Image.fromarray(corners).resize((width, height), Image.Resampling.BILINEAR).save(target, form, **options)
    return target.getvalue()


def task(inbox: Path, content: bytes | None = None, recipe: Recipe = RECIPE, **changes: Any) -> Task:
    """Put a photo into the inbox and return the task to draw it."""
    path = inbox / "a.jpg"
    path.write_bytes(photo() if content is None else content)
    stat = FileStat.of(path.lstat())
    stage = Stage("/nowhere", ".temp-", None, keep_mtime=True)
    given = Task(1, str(inbox), b"a.jpg", stat, recipe, 10**6, "first", stage, 1)
    return replace(given, **changes)


def loaded(line: Pipeline, given: Task) -> Loaded:
    result = line.load(given, Unheard())
    assert isinstance(result, Loaded)
    return result


def silent() -> None:
    """Hear a beat, and do nothing."""


def whole(line: Pipeline, given: Task) -> tuple[Picture, int | None]:
    ready = loaded(line, given)
    return line.finish(given, line.draw(given, ready, silent), Unheard())


def photo_fault(step: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(PhotoError) as caught:
        step()
    return caught.value.reason, caught.value.detail


def test_a_photo_becomes_a_picture(inbox: Path) -> None:
    """The three steps give the figures of the canonical line, and bytes that are the picture."""
    shelf, beats = Shelf(), list[int]()
    ticks: Iterator[float] = iter(range(0, 60, 2))
    line = built(stage_writer=shelf, clock=lambda: float(next(ticks)))
    exif = Image.Exif()
    exif[0x0112], exif[0x0110] = 6, "Model 1"
    given = task(inbox, photo(160, 120, exif=exif))
    ready = loaded(line, given)
    drawn = line.draw(given, ready, lambda: beats.append(1))
    picture, descriptor = line.finish(given, drawn, Unheard())
    data, stage, mtime_ns = shelf.kept[0]
    assert (picture.width, picture.height, picture.out_width, picture.out_height) == (120, 160, 48, 64)
    assert (picture.bytes_in, picture.bytes_out, picture.ext) == (given.stat.size, len(data), ".jpg")
    assert (picture.decode_s, picture.infer_s, picture.encode_s) == (2, 2, 2)
    assert (descriptor, stage, mtime_ns) == (77, given.stage, given.stat.mtime_ns)
    assert picture.staged.sha256 == hashlib.sha256(data).hexdigest()
    assert beats
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.size) == ("JPEG", (48, 64))
        assert image.getexif()[0x0110] == "Model 1"
        assert image.getexif()[0x0112] == 1
        assert np.abs(np.asarray(image).astype(int) - drawn.pixels).mean() < 12


@given(width=st.integers(1, 70), height=st.integers(1, 70))
@settings(deadline=None, max_examples=12)
def test_every_size_from_one_pixel_on_comes_back(width: int, height: int) -> None:
    """The picture has the photo's size to the pixel, odd and tiny ones too."""
    pixels = np.random.default_rng(1).integers(0, 255, (height, width, 3), np.uint8)
    assert pipeline.draw(untrained(), pixels).shape == pixels.shape


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_a_picture_may_have_its_photos_own_size(inbox: Path, strength: float) -> None:
    """`original`: the network sees max_edge pixels, the picture has all of them, and strength 0 is the photo."""
    line = built()
    given = task(inbox, photo(161, 120, "png"), replace(RECIPE, strength=strength, output_size="original"))
    ready = loaded(line, given)
    drawn = line.draw(given, ready, silent)
    picture, _ = line.finish(given, drawn, Unheard())
    assert (picture.width, picture.height, picture.out_width, picture.out_height) == (161, 120, 161, 120)
    assert max(ready.decoded.pixels.shape) == RECIPE.max_edge
    assert np.array_equal(drawn.pixels, ready.decoded.photo) == (strength == 0)


def test_tiny_photos_come_back_in_their_size_and_colour() -> None:
    """From one pixel on, thin or square: a flat photo comes out flat, in the colour of a large one."""
    network = untrained()
    large = pipeline.draw(network, np.full((64, 64, 3), (200, 90, 40), np.uint8))[32, 32].astype(int)
    for size in ((1, 1), (1, 2), (7, 1), (8, 9), (15, 17), (16, 3), (40, 1), (39, 21)):
        drawn = pipeline.draw(network, np.full((*size, 3), (200, 90, 40), np.uint8))
        assert drawn.shape == (*size, 3)
        assert np.abs(drawn.astype(int) - large).max() <= 1


def test_equal_sizes_may_be_stacked() -> None:
    """Pictures of the built-in style come out the same alone or stacked, to one step of a byte."""
    network = weights.load(cel())
    photos = torch.rand(2, 3, 64, 96).mul(2).sub(1).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        together = network(photos)
        alone = torch.cat([network(photos[:1]), network(photos[1:])])
    assert float((together - alone).abs().max()) <= 2 / 255


def test_strength_is_what_the_recipe_says(inbox: Path) -> None:
    """0 leaves the photo as it is, without the network; 1 is the network's picture; 0.5 lies between."""
    line = built()
    drawn = {}
    for strength in (0.0, 0.5, 1.0):
        given = task(inbox, recipe=replace(RECIPE, strength=strength))
        ready = loaded(line, given)
        drawn[strength] = line.draw(given, ready, silent).pixels.astype(int)
        if strength == 0:
            assert np.array_equal(drawn[strength], ready.decoded.pixels)
    assert np.abs(drawn[0.0] + drawn[1.0] - 2 * drawn[0.5]).max() <= 1
    assert np.abs(drawn[0.0] - drawn[1.0]).max() > 10


def test_each_photo_gets_its_own_threads(inbox: Path) -> None:
    """A photo alone may use more threads than one among many."""
    for threads in (2, 1):
        whole(built(), task(inbox, threads=threads))
        assert torch.get_num_threads() == threads


def test_formats_follow_the_recipe(inbox: Path) -> None:
    """`same` makes a PNG of a BMP; a format by name is obeyed."""
    assert whole(built(), task(inbox, photo(form="bmp")))[0].ext == ".png"
    given = task(inbox, recipe=replace(RECIPE, output_format="webp"))
    assert whole(built(), given)[0].ext == ".webp"


def test_what_is_kept_follows_the_recipe(inbox: Path) -> None:
    """Where EXIF is off the picture says how it came about, and nothing else; the digest is that of the file read."""
    given = task(inbox)
    digest = hashlib.sha256((inbox / "a.jpg").read_bytes()).hexdigest().encode()
    whole_imprint = loaded(built(), given).imprint
    bare_imprint = loaded(built(), task(inbox, recipe=replace(RECIPE, exif=False))).imprint
    assert whole_imprint.exif
    assert not bare_imprint.exif
    assert digest in whole_imprint.xmp
    assert digest in bare_imprint.xmp


def test_a_picture_that_its_format_cannot_hold_is_not_drawn_first(inbox: Path) -> None:
    """The size of a picture is known before the network begins, and so is the reason encode."""
    recipe = replace(RECIPE, output_format="webp", output_size="original")
    with pytest.raises(PhotoError, match="16384\u00d72 is too large for webp") as caught:
        built().load(task(inbox, photo(16384, 2), recipe), Unheard())
    assert caught.value.reason == "encode"
    smaller = replace(recipe, output_size="styled")
    assert max(loaded(built(), task(inbox, photo(16384, 2), smaller)).decoded.photo.shape) == 64


def test_an_animation_is_skipped_where_the_inbox_says_so(inbox: Path) -> None:
    """A Skip goes through load; first draws the first frame."""
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
    target = io.BytesIO()
    frames[0].save(target, "gif", save_all=True, append_images=frames[1:])
    assert isinstance(built().load(task(inbox, target.getvalue(), animated="skip"), Unheard()), Skip)
    assert isinstance(built().load(task(inbox, target.getvalue()), Unheard()), Loaded)


def test_a_photo_that_changed_is_not_drawn(inbox: Path) -> None:
    """The file must be the one that settled: size, time and inode, when it is opened and when it was read."""
    given = task(inbox)
    for stat in (replace(given.stat, size=given.stat.size - 1), replace(given.stat, mtime_ns=1)):
        assert photo_fault(lambda stat=stat: built().load(replace(given, stat=stat), Unheard()))[0] == "changed"  # type: ignore[misc]  # mypy knows no defaults of lambdas


def test_a_photo_that_changes_while_it_is_read_is_not_drawn(inbox: Path) -> None:
    """A writer that comes back between the two looks is noticed."""
    given = task(inbox)

    class Meddling(System):
        """A writer comes back."""

        def read(self, descriptor: int, size: int) -> bytes:
            """Read, and let the file change."""
            os.utime(inbox / "a.jpg", ns=(1, given.stat.mtime_ns + 1))
            return super().read(descriptor, size)

    fault = photo_fault(lambda: built(system=Meddling()).load(given, Unheard()))
    assert fault == ("changed", "the file changed while it was read")


def test_short_reads_are_put_together(inbox: Path) -> None:
    """A share may give fewer bytes at a time than were asked for; a file that ends early has changed."""
    given = task(inbox)
    ready = loaded(built(system=Short()), given)
    assert np.array_equal(ready.decoded.pixels, loaded(built(), given).decoded.pixels)
    assert photo_fault(lambda: built(system=Short(300)).load(given, Unheard()))[0] == "changed"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOENT, "vanished"),
        (errno.ENOTDIR, "vanished"),
        (errno.ELOOP, "changed"),
        (errno.EACCES, "unreadable"),
        (errno.EPERM, "unreadable"),
        (errno.EIO, "unreadable"),
        (errno.EBUSY, "unreadable"),
    ],
)
def test_what_keeps_a_photo_from_being_opened(inbox: Path, code: int, reason: str) -> None:
    """Each system error has its reason, while the inbox can be listed."""
    given, system = task(inbox), FaultySystem()
    system.arm("open", code, under=bytes(inbox / "a.jpg"))
    assert photo_fault(lambda: built(system=system).load(given, Unheard()))[0] == reason


@pytest.mark.parametrize(
    "code", [errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.ENODEV]
)
def test_a_share_that_goes_away_is_no_fault_of_the_photo(inbox: Path, code: int) -> None:
    """The inbox, which cannot be listed either, is at fault, with the system's number: the photo is not charged."""
    given, system = task(inbox), FaultySystem()
    system.arm("read", code)
    system.arm("scandir", code)
    with pytest.raises(PlaceError) as caught:
        built(system=system).load(given, Unheard())
    assert (caught.value.role, caught.value.code, caught.value.path) == ("inbox", code, str(inbox))
    assert "a.jpg" in caught.value.detail


@pytest.mark.parametrize("call", ["open", "fstat", "lstat", "read"])
@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_machine_that_has_run_out_is_no_fault_of_the_photo(inbox: Path, call: str, code: int) -> None:
    """Too many open files, and no memory for the kernel, suspend the inbox for a moment and charge nobody."""
    given, system = task(inbox), FaultySystem()
    system.arm(call, code, skip=2 if call == "open" else 0)
    with pytest.raises(PlaceError) as caught:
        built(system=system).load(given, Unheard())
    assert (caught.value.role, caught.value.code) == ("inbox", code)


def test_a_read_that_fails_is_told_from_one_that_ends(inbox: Path) -> None:
    """An error of the disk in the middle of a file is not taken for a truncated photo."""
    given, system = task(inbox), Short()
    system.arm("read", errno.EIO, skip=3)
    assert photo_fault(lambda: built(system=system).load(given, Unheard())) == ("unreadable", os.strerror(errno.EIO))


def test_descriptors_are_closed_whatever_happens(inbox: Path) -> None:
    """No photo, good or bad, leaves a descriptor open."""
    given = task(inbox)
    before = len(os.listdir("/proc/self/fd"))
    built().load(given, Unheard())
    for bad in (task(inbox, b"text"), replace(given, stat=replace(given.stat, mtime_ns=5))):
        photo_fault(lambda bad=bad: built().load(bad, Unheard()))  # type: ignore[misc]  # mypy knows no defaults of lambdas
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"Dear diary", "not_an_image"),
        (b"%PDF-1.7 and so on", "unsupported:pdf"),
        (photo()[:400], "truncated"),
        (photo(2000, 1000, "png"), "too_large"),
    ],
)
def test_what_is_no_photo_is_named(inbox: Path, content: bytes, reason: str) -> None:
    """The reasons of the decoder come through."""
    assert photo_fault(lambda: built().load(task(inbox, content), Unheard()))[0] == reason


def test_a_file_of_absurd_length_is_not_read(inbox: Path) -> None:
    """A photo's first bytes before gigabytes of nothing are refused without reading them."""
    given = task(inbox, photo())
    with open(inbox / "a.jpg", "r+b") as file:
        file.truncate(reading.LEAST_BYTES + 1)
    given = replace(given, stat=FileStat.of((inbox / "a.jpg").lstat()))
    assert photo_fault(lambda: built().load(given, Unheard()))[0] == "too_large"


@pytest.mark.parametrize(
    "fault",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_running_out_of_memory_has_one_name(inbox: Path, fault: Exception) -> None:
    """However the libraries say it, the reason is out_of_memory, with the size that was tried."""
    line, given = built(Failing(fault)), task(inbox)
    ready = loaded(line, given)
    assert photo_fault(lambda: line.draw(given, ready, silent)) == (
        "out_of_memory",
        "drawing 60x45 took more memory than there is",
    )


def test_other_errors_of_the_network_stay_what_they_are(inbox: Path) -> None:
    """A defect is not dressed up as a fault of the photo."""
    line, given = built(Failing(RuntimeError("a defect"))), task(inbox)
    with pytest.raises(RuntimeError, match="a defect"):
        line.draw(given, loaded(line, given), silent)


def test_a_picture_that_is_no_number_is_refused(inbox: Path) -> None:
    """not_finite instead of a black picture."""
    line, given = built(Failing(float("nan"))), task(inbox)
    ready = loaded(line, given)
    assert photo_fault(lambda: line.draw(given, ready, silent))[0] == "not_finite"


def test_a_style_that_is_not_loaded_is_named(inbox: Path) -> None:
    """The error says which styles there are."""
    line, given = built(), task(inbox, recipe=replace(RECIPE, style="other"))
    with pytest.raises(StyleError, match=r"other is not loaded.*cel"):
        line.draw(given, loaded(line, given), silent)


def test_a_full_disk_is_the_outputs_fault(inbox: Path) -> None:
    """What staging raises comes through untouched."""
    full = PlaceError("output", errno.ENOSPC, "/nowhere")
    with pytest.raises(PlaceError) as caught:
        whole(built(stage_writer=Shelf(full)), task(inbox))
    assert caught.value is full


def test_a_photo_loads_while_another_is_drawn(inbox: Path) -> None:
    """Loading in one thread and drawing in another give what they give alone."""
    line, given = built(), task(inbox)
    ready = loaded(line, given)
    expected = line.draw(given, ready, silent).pixels
    results: list[Loaded | Skip] = []
    loader = threading.Thread(target=lambda: results.extend(line.load(given, Unheard()) for _ in range(20)))
    loader.start()
    drawn = [line.draw(given, ready, silent).pixels for _ in range(3)]
    loader.join()
    assert all(
        np.array_equal(result.decoded.pixels, ready.decoded.pixels) for result in results if isinstance(result, Loaded)
    )
    assert len(results) == 20
    assert all(np.array_equal(pixels, expected) for pixels in drawn)


def test_the_real_style_is_made_ready_and_draws(inbox: Path) -> None:
    """The factory checks and loads the weights, says what it computes in, and the picture is a drawing of the photo."""
    line = pipeline.make((cel(),), threads=1, precision="float32", device="cpu", sizes=((30, 41),))
    assert (line.precision, line.why) == ("float32", "asked for")
    given = task(inbox, photo(128, 96), recipe=replace(RECIPE, max_edge=128))
    ready = loaded(line, given)
    drawn = line.draw(given, ready, silent)
    assert isinstance(drawn, Drawn)
    assert 5 < np.abs(drawn.pixels.astype(int) - ready.decoded.pixels).mean() < 90
    for corner in ((2, 2), (2, -3), (-3, 2), (-3, -3)):
        assert int(np.argmax(drawn.pixels[corner])) == int(np.argmax(ready.decoded.pixels[corner])) or corner == (-3, 2)


def test_the_sizes_to_warm_are_those_that_the_network_sees() -> None:
    """Odd sizes are padded as photos are, huge ones are not drawn for nothing, and equal ones only once."""
    assert pipeline._warm_sizes(((750, 1000), (751, 1001), (3000, 4000))) == [(752, 1000), (752, 1004), (792, 1056)]


def test_a_worker_without_styles_is_refused() -> None:
    """Nothing to draw with is an error at the start."""
    with pytest.raises(StyleError, match="at least one style"):
        pipeline.make((), threads=1)
