"""From configuration to the values that travel: recipes, stages, tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.delivery.naming import Layout, candidates
from animed.records import Recipe, Stage, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from animed.catalog import Style
    from animed.config import InboxConfig
    from animed.records import Job

_EXTENSIONS: Final = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "avif": ".avif"}


@dataclass(frozen=True, slots=True)
class Recipes:
    """The recipes of one inbox, by style: one for all its photos, or one for each style that a folder can name."""

    by_style: Mapping[str, Recipe]
    from_folder: bool = False

    @property
    def digests(self) -> frozenset[str]:
        """Return what the ledger calls the recipes that are in use."""
        return frozenset(recipe.digest for recipe in self.by_style.values())

    def of(self, path: bytes) -> Recipe | None:
        """Return the recipe of a photo, by its path below the inbox; None where its folder names no style."""
        if not self.from_folder:
            return next(iter(self.by_style.values()))
        name = style_named_by(path, self.by_style)
        return None if name is None else self.by_style[name]

    def astray(self) -> str:
        """Say to people where photos without a style belong."""
        return f"the first folder names the style; there are: {', '.join(self.by_style)}"


def style_named_by(path: bytes, styles: Iterable[str]) -> str | None:
    """Return the style that the first folder of a path names; None for none.

    As written, or else in any case of letters, where that means one style only: many sync programs and cameras'
    owners do not tell the cases apart.
    """
    folder, inside, _ = path.partition(b"/")
    if not inside:
        return None
    name, known = os.fsdecode(folder), tuple(styles)
    if name in known:
        return name
    near = [style for style in known if style.casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def recipes_of(inbox: InboxConfig, styles: Mapping[str, Style]) -> Recipes:
    """Return the recipes of an inbox; `styles` are all that are in use, or that a folder can name."""
    if not inbox.style_from_folder:
        return Recipes({inbox.style: recipe_of(inbox, styles[inbox.style])})
    return Recipes({name: recipe_of(inbox, style) for name, style in styles.items()}, from_folder=True)


def recipe_of(inbox: InboxConfig, style: Style) -> Recipe:
    """Return every option of an inbox that decides the bytes of a picture."""
    return Recipe(
        style=style.name,
        weights_sha256=style.weights_file.sha256,
        upsampling=style.weights_file.upsampling,
        strength=inbox.strength,
        max_edge=inbox.max_edge,
        output_format=inbox.output_format,
        quality=inbox.quality,
        exif=inbox.preserve.exif,
        gps=inbox.preserve.gps,
        output_size=inbox.output_size,
        icc=inbox.preserve.icc,
        faces=inbox.faces,
    )


def temp_prefix(instance: str) -> str:
    """Return how the names of this instance's temporary pictures begin; sync programs skip such names."""
    return f".syncthing.animed-{instance}-"


def stage_of(inbox: InboxConfig, instance: str, run: str) -> Stage:
    """Return where and how the pictures of an inbox are staged; `run` marks the names of this run."""
    return Stage(os.fspath(inbox.output), temp_prefix(instance) + run, inbox.mode.file, inbox.preserve.mtime)


def task_of(job: Job, inbox: InboxConfig, stage: Stage, *, number: int, threads: int) -> Task:
    """Return what a worker is told of a photo."""
    root = os.fspath(inbox.path)
    return Task(
        number, root, job.key.path, job.stat, job.recipe, inbox.max_pixels, inbox.animated, stage, threads=threads
    )


def names_of(inbox: InboxConfig, path: bytes, style: str, ext: str) -> Iterator[bytes]:
    """Yield the names that a photo's picture may get, below the output, best first, without end."""
    layout: Layout = "flat" if inbox.layout == "flat" else "mirror"
    return candidates(path, template=inbox.output_name, style=style, ext=ext, layout=layout)


def early_name(inbox: InboxConfig, job: Job) -> bytes:
    """Return the full path that a picture would most likely get; b"" where a taken name would not end the matter.

    The format of the picture is only guessed from the photo's name: a wrong guess costs a drawing, nothing else.
    """
    if inbox.on_conflict not in {"skip", "fail"}:
        return b""
    ext = os.fsdecode(os.path.splitext(job.key.path)[1]).lower()
    ext = _EXTENSIONS.get(inbox.output_format, ".jpg" if ext == ".jpeg" else ext)
    return os.path.join(os.fsencode(inbox.output), next(names_of(inbox, job.key.path, job.recipe.style, ext)))
