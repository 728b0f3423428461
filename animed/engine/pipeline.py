"""One photo's way through a worker: load (read and decode), draw (the network), finish (encode and stage).

Only the worker process imports this module: it brings in torch. `load` runs in the thread that decodes ahead, `draw`
and `finish` in the main one; they share nothing but the values that they hand on.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import torch

from animed.engine import staging
from animed.engine.reading import read
from animed.engine.room import HERE, Room
from animed.errors import PhotoError, StyleError, starved
from animed.imaging import encode, fingerprint, geometry, metadata, rendering, tensors
from animed.imaging.decode import decode
from animed.imaging.decoded import Decoded, Wanted
from animed.imaging.exif import Frame
from animed.imaging.facefinder import FaceFinder
from animed.imaging.secondlook import small_faces
from animed.records import SUFFIXES, Picture, Reason, Skip, Stage, Staged, Task, WeightsFile
from animed.style import runtime, weights
from animed.style.shelf import Shelf
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from animed.engine.protocol import Life
    from animed.imaging.decoded import Found
    from animed.imaging.encode import Coding
    from animed.imaging.faces import Face
    from animed.imaging.metadata import Imprint
    from animed.records import DetectorFile, Fingerprint, Recipe
    from animed.style.network import Beat, Generator
    from animed.style.runtime import DeviceSetting, PrecisionSetting

WARM_SIZES: Final = ((512, 512),)  # height, width, where the caller knows of none
WARM_EDGE: Final = 1056  # pixels; to draw a larger picture for nothing costs more than it saves


class StageWriter(Protocol):
    """Make a picture's bytes durable, out of sight; give the descriptor of an unnamed file."""

    def __call__(
        self, data: bytes, stage: Stage, mtime_ns: int, /, *, system: System, beat: Beat
    ) -> tuple[Staged, int | None]:
        """Raise PlaceError where the output is at fault; `beat` is called now and then while a large one is written."""


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

    loaded: Loaded  # its pixels are the picture's: (H, W, 3) in the colours that it is to have
    infer_s: float
    faces: int | None = None  # drawn again by themselves; None where none were looked for

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """Return the picture."""
        return self.loaded.decoded.photo


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
        room: Room = HERE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._room = room
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

    def load(self, task: Task, life: Life) -> Loaded | Skip:
        """Read and decode a photo; touches neither networks nor torch, so it may run beside `draw`.

        Raise PhotoError (`vanished` among its reasons, `encode` where the picture would be too large for its format) or
        PlaceError("inbox").
        """
        began = self._clock()
        data = read(task, self._system, life.beat)
        try:
            decoded = decode(data, wanted(task), name=task.path, announce=lambda found: self._admit(found, task, life))
        except MemoryError as error:
            raise PhotoError(Reason.OUT_OF_MEMORY, f"decoding {len(data)} bytes took more than there is") from error
        if isinstance(decoded, Skip):
            return decoded
        coding = encode.coding(decoded.kind, task.recipe, task.threads)
        imprint = imprint_of(decoded, task.recipe, coding, source=hashlib.sha256(data).hexdigest())
        return Loaded(decoded, coding, imprint, len(data), self._clock() - began)

    def _admit(self, found: Found, task: Task, life: Life) -> None:
        """Let a photo be decoded, unless there is no memory for it. Raise PhotoError: too_large or out_of_memory."""
        life.announce(found.width * found.height)
        self._room.demand(found, task.recipe)

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
            picture = _in_place(loaded, pixels)
            return Drawn(picture, self._clock() - began, None if faces is None else len(faces))
        except (RuntimeError, MemoryError) as error:
            if not starved(error):
                raise
            height, width = loaded.decoded.pixels.shape[:2]
            detail = f"drawing {width}x{height} took more memory than there is"
            raise PhotoError(Reason.OUT_OF_MEMORY, detail) from error

    def finish(self, task: Task, drawn: Drawn, life: Life) -> tuple[Picture, int | None]:
        """Encode a picture and stage it; return the descriptor too where the staged file has no name.

        Raise PhotoError (encode, out_of_memory), or PlaceError("output").
        """
        began = self._clock()
        loaded, decoded, coding = drawn.loaded, drawn.loaded.decoded, drawn.loaded.coding
        height, width = decoded.photo.shape[:2]
        life.announce(width * height)
        data = encode.encode(
            decoded.photo, coding, alpha=decoded.alpha, profile=decoded.profile, imprint=loaded.imprint
        )
        staged, descriptor = self._stage_writer(
            data, task.stage, task.stat.mtime_ns, system=self._system, beat=life.beat
        )
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
        if not _seeks_faces(task.recipe):
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
        faces=_seeks_faces(recipe),
    )


def _seeks_faces(recipe: Recipe) -> bool:
    """Say whether small faces are to be drawn by themselves; at strength 0 nothing is drawn."""
    return recipe.faces == "auto" and recipe.strength > 0


def _in_place(loaded: Loaded, picture: NDArray[np.uint8]) -> Loaded:
    """Return a photo with its picture in place of its pixels: nobody needs these while the picture is encoded."""
    decoded = replace(loaded.decoded, pixels=picture, photo=picture, native=None, detail=None)
    return replace(loaded, decoded=decoded)


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
