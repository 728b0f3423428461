"""A photo's whole way through a worker at strength 0, from a file to the bytes of its picture."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from engine_fakes import Unheard
from PIL import Image
from skimage.color import deltaE_ciede2000, rgb2lab

from animed.engine.pipeline import Pipeline
from animed.records import FileStat, Picture, Recipe, Skip, Stage, Staged, Task
from animed.style.network import Generator
from animed.style.runtime import Precision

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from animed.system import System

    Array = NDArray[Any]


@dataclass
class Drawn:
    """A picture, and what the worker says of it."""

    data: bytes
    said: Picture

    def image(self, mode: str = "") -> Image.Image:
        """Return the picture as Pillow opens it."""
        image: Image.Image = Image.open(io.BytesIO(self.data))
        image.load()
        return image.convert(mode) if mode else image

    def pixels(self) -> Array:
        """Return the picture as (H, W, 4), straight alpha, in the space of its profile."""
        return np.asarray(self.image("RGBA"))


@dataclass
class Bench:
    """Draws photos that lie in a folder with a network that is not asked."""

    folder: Path
    kept: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set up the worker's pipeline."""
        precision = Precision("float32", "a test")
        self.line = Pipeline({"cel": Generator("half_pixel")}, precision=precision, stage_writer=self._keep)

    def _keep(
        self, data: bytes, stage: Stage, mtime_ns: int, /, *, system: System, beat: Callable[[], None]
    ) -> tuple[Staged, int | None]:
        """Take a picture in place of a disk."""
        self.kept.append(data)
        return Staged(1, 2, len(data), hashlib.sha256(data).hexdigest(), None), None

    def task(self, data: bytes, name: str = "photo", **changes: Any) -> Task:
        """Put a photo into the folder and return the task to draw it; `changes` are of the recipe or the task."""
        path = self.folder / name
        path.write_bytes(data)
        own = {key: changes.pop(key) for key in ("max_pixels", "animated") if key in changes}
        values = {"strength": 0.0, "max_edge": 1024, "output_format": "same", "quality": 92, **changes}
        recipe = Recipe("cel", "0" * 64, "half_pixel", **{"exif": True, "gps": True, **values})
        return Task(
            number=1,
            root=str(self.folder),
            path=name.encode(),
            stat=FileStat.of(path.lstat()),
            recipe=recipe,
            stage=Stage("/nowhere", ".temp-", None, keep_mtime=True),
            threads=1,
            **{"max_pixels": 10**7, "animated": "first", **own},
        )

    def draw(self, data: bytes, name: str = "photo", **changes: Any) -> Drawn:
        """Return a photo's picture. Raise PhotoError where it has none."""
        task = self.task(data, name, **changes)
        loaded = self.line.load(task, Unheard())
        assert not isinstance(loaded, Skip)
        said, _ = self.line.finish(task, self.line.draw(task, loaded, lambda: None), Unheard())
        return Drawn(self.kept.pop(), said)


def on_white(colours: Array) -> Array:
    """Lay (…, 4) colours with alpha on white."""
    alpha = colours[..., 3:] / 255
    shown: Array = colours[..., :3] * alpha + 255 * (1 - alpha)
    return shown


def delta_e(one: ArrayLike, other: ArrayLike) -> Array:
    """Return the CIE Delta E 2000 of (…, 3) sRGB colours of 0 … 255."""
    difference: Array = deltaE_ciede2000(  # type: ignore[no-untyped-call]  # the library gives no types
        rgb2lab(np.asarray(one) / 255), rgb2lab(np.asarray(other) / 255)
    )
    return difference
