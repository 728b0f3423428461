"""One photo's way through a worker: load (read and decode), draw (the network), finish (encode and stage).

Only the worker process imports this module: it brings in torch. `load` runs in the thread that decodes ahead, `draw`
and `finish` in the main one; they share nothing but the values that they hand on.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import torch

from animed.engine import rendering, staging
from animed.engine.reading import read
from animed.errors import PhotoError, StyleError
from animed.imaging import encode, fingerprint, geometry, metadata, tensors
from animed.imaging.closer import small_faces
from animed.imaging.decode import Decoded, Wanted, decode
from animed.imaging.exif import Frame
from animed.imaging.facefinder import FaceFinder
from animed.records import SUFFIXES, Picture, Reason, Skip, Stage, Staged, Task, WeightsFile
from animed.style import runtime, weights
from animed.style.shelf import Shelf
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from animed.imaging.encode import Coding
    from animed.imaging.faces import Face
    from animed.imaging.metadata import Imprint
    from animed.records import DetectorFile, Fingerprint, Recipe
    from animed.style.network import Beat, Generator
    from animed.style.runtime import DeviceSetting, PrecisionSetting

# How torch and oneDNN say in a RuntimeError that memory ran out.
NO_MEMORY: Final = (
    "can't allocate memory",
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "not enough memory",
)
WARM_SIZES: Final = ((512, 512),)  # height, width, where the caller knows of none
WARM_EDGE: Final = 1056  # pixels; to draw a larger picture for nothing costs more than it saves


class StageWriter(Protocol):
    """Make a picture's bytes durable, out of sight; give the descriptor of an unnamed file."""

    def __call__(self, data: bytes, stage: Stage, mtime_ns: int, /, *, system: System) -> tuple[Staged, int | None]:
        """Raise PlaceError where the output is at fault."""


class Finder(Protocol):
    """What looks for faces."""

    def find(self, pixels: NDArray[np.uint8], *, threads: int) -> tuple[Face, ...]:
        """Return the faces in an (H, W, 3) sRGB picture, in its pixels."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A photo that is ready for the network."""

    decoded: Decoded
    coding: Coding
    imprint: Imprint
    bytes_in: int
    decode_s: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture before it is encoded."""

    pixels: NDArray[np.uint8]  # (H, W, 3) of the size of Decoded.photo, in the colours that the picture is to have
    infer_s: float
    faces: int | None = None  # drawn again by themselves; None where none were looked for


class Pipeline:
    """The three steps of a photo, over networks that are loaded and warm."""

    def __init__(
        self,
        networks: Mapping[str, Generator],
        *,
        precision: runtime.Precision,
        system: System = REAL,
        stage_writer: StageWriter = staging.write,
        finder: Finder | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._networks = networks
        self._precision = precision
        self._system = system
        self._stage_writer = stage_writer
        self._finder = finder
        self._clock = clock

    @property
    def precision(self) -> str:
        """Name the arithmetic that the networks run in."""
        return self._precision.name

    @property
    def why(self) -> str:
        """Say why it is that arithmetic."""
        return self._precision.why

    def load(self, task: Task) -> Loaded | Skip:
        """Read and decode a photo; touches neither networks nor torch, so it may run beside `draw`.

        Raise PhotoError (`vanished` among its reasons, `encode` where the picture would be too large for its format) or
        PlaceError("inbox").
        """
        began = self._clock()
        data = read(task, self._system)
        try:
            decoded = decode(data, wanted(task), name=task.path)
        except MemoryError as error:
            raise PhotoError(Reason.OUT_OF_MEMORY, f"decoding {len(data)} bytes took more than there is") from error
        if isinstance(decoded, Skip):
            return decoded
        coding = encode.coding(decoded.kind, task.recipe, task.threads)
        imprint = imprint_of(decoded, task.recipe, coding, source=hashlib.sha256(data).hexdigest())
        return Loaded(decoded, coding, imprint, len(data), self._clock() - began)

    def fingerprint(self, loaded: Loaded) -> Fingerprint | None:
        """Say what a photo looks like; None for one that is too plain or too small to tell."""
        return fingerprint.of(loaded.decoded.pixels)

    def draw(self, task: Task, loaded: Loaded, beat: Beat) -> Drawn:
        """Run the network over a photo; `beat` is called after every layer.

        Raise PhotoError (out_of_memory, not_finite), or StyleError where the style is not loaded.
        """
        began = self._clock()
        network = self._network(task.recipe.style)
        if torch.get_num_threads() != task.threads:
            torch.set_num_threads(task.threads)
        try:
            faces = self._faces(task, loaded.decoded)
            pixels = rendering.render(
                loaded.decoded, task.recipe, lambda seen: draw(network, seen, beat), beat, faces=faces or ()
            )
            return Drawn(pixels, self._clock() - began, None if faces is None else len(faces))
        except (RuntimeError, MemoryError) as error:
            if not _out_of_memory(error):
                raise
            height, width = loaded.decoded.pixels.shape[:2]
            detail = f"drawing {width}x{height} took more memory than there is"
            raise PhotoError(Reason.OUT_OF_MEMORY, detail) from error

    def finish(self, task: Task, loaded: Loaded, drawn: Drawn) -> tuple[Picture, int | None]:
        """Encode a picture and stage it; return the descriptor too where the staged file has no name.

        Raise PhotoError (encode), or PlaceError("output").
        """
        began = self._clock()
        decoded, coding = loaded.decoded, loaded.coding
        data = encode.encode(drawn.pixels, coding, alpha=decoded.alpha, profile=decoded.profile, imprint=loaded.imprint)
        staged, descriptor = self._stage_writer(data, task.stage, task.stat.mtime_ns, system=self._system)
        height, width = drawn.pixels.shape[:2]
        picture = Picture(
            staged=staged,
            ext=SUFFIXES[coding.form],
            width=decoded.width,
            height=decoded.height,
            out_width=width,
            out_height=height,
            bytes_in=loaded.bytes_in,
            bytes_out=len(data),
            decode_s=loaded.decode_s,
            infer_s=drawn.infer_s,
            encode_s=self._clock() - began,
            faces=drawn.faces,
            taken=decoded.notes.taken,
        )
        return picture, descriptor

    def _faces(self, task: Task, decoded: Decoded) -> tuple[Face, ...] | None:
        """Return the faces that are to be drawn by themselves; None where none are asked for."""
        if task.recipe.faces == "off" or task.recipe.strength == 0:
            return None
        if self._finder is None:
            raise StyleError("faces: auto, but this worker has no face detector")
        return small_faces(decoded, partial(self._finder.find, threads=task.threads))

    def _network(self, style: str) -> Generator:
        """Return the network of a style."""
        network = self._networks.get(style)
        if network is None:
            raise StyleError(f"style {style} is not loaded in this worker; it has {', '.join(sorted(self._networks))}")
        return network


def make(
    weights_files: tuple[WeightsFile, ...],
    *,
    threads: int,
    precision: PrecisionSetting = "auto",
    device: DeviceSetting = "auto",
    sizes: tuple[tuple[int, int], ...] = WARM_SIZES,
    keep: int = 3,
    detector: DetectorFile | None = None,
    compare: bool = False,
    system: System = REAL,
) -> Pipeline:
    """Set up this process and return its pipeline, warm for photos of the (height, width) in `sizes`.

    It holds `keep` styles at a time, a face detector where one is given, and what it takes to `compare` photos. Raise
    StyleError, WorkersError or ImportError for what will not go away.
    """
    if compare:
        fingerprint.prepare()  # a library that is broken must not look like the fault of each photo
    if not weights_files:
        raise StyleError("a worker needs at least one style", remedy="configure a style")
    runtime.prepare(threads)
    first = weights.load(weights_files[0], device=(place := runtime.pick_device(device)))
    with runtime.explained():
        chosen = runtime.choose(precision, first)
        networks = Shelf(weights_files, keep=keep, load=partial(weights.load, dtype=chosen.dtype, device=place))
        # Kernels and mapped memory depend on shapes only, so one style warms the process for all.
        runtime.warm(networks.fill(first.to(chosen.dtype)), _warm_sizes(sizes))
    finder = None if detector is None else FaceFinder.load(detector, threads=threads)
    return Pipeline(networks, precision=chosen, finder=finder, system=system)


def _warm_sizes(sizes: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """Return the (height, width) that the network sees for photos of these sizes, each once."""
    seen = {geometry.padded(*geometry.fit(width, height, WARM_EDGE)) for height, width in sizes}
    return sorted((height, width) for width, height in seen)


def wanted(task: Task) -> Wanted:
    """Return what a task asks of decoding."""
    recipe = task.recipe
    return Wanted(
        max_pixels=task.max_pixels,
        max_edge=recipe.max_edge,
        animated=task.animated,
        full=recipe.output_size == "original",
        icc=recipe.icc,
        faces=recipe.faces == "auto" and recipe.strength > 0,
    )


def imprint_of(decoded: Decoded, recipe: Recipe, coding: Coding, *, source: str) -> Imprint:
    """Return what the picture of a photo carries; raise PhotoError("encode") where it is too large for its format."""
    height, width = decoded.photo.shape[:2]
    encode.demand_fit(coding.form, width, height)
    # Pillow writes EXIF data anew for AVIF where they name an orientation, and loses what it does not know.
    frame = Frame(width, height, srgb=decoded.native is None, upright=coding.form != "avif")
    return metadata.imprint(decoded.notes, recipe, frame, source=source)


def draw(network: Generator, pixels: NDArray[np.uint8], beat: Beat | None = None) -> NDArray[np.uint8]:
    """Return what a network draws for (H, W, 3) uint8 sRGB pixels, in the same size."""
    height, width = pixels.shape[:2]
    weight = next(network.parameters())
    with torch.inference_mode():
        photo = tensors.to_tensor(geometry.pad(pixels), dtype=weight.dtype, device=weight.device)
        drawn = tensors.to_pixels(network(photo, beat))
    return geometry.crop(drawn, width, height)


def _out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Say whether an error is one of the many ways to run out of memory."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in NO_MEMORY)
