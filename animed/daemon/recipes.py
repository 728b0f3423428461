"""From configuration to the values that travel: recipes, stages, tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed import detector
from animed.delivery.moment import EPOCH
from animed.delivery.naming import Subject, candidates
from animed.records import SUFFIXES, Recipe, Stage, Task
from animed.template import Template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from animed.catalog import Style
    from animed.config import InboxConfig
    from animed.delivery.portable import NameRules
    from animed.records import Job

# Of what `output_format: same` makes of photos by their own extension; a picture of any other kind is a JPEG.
_SAME: Final = {
    **dict.fromkeys((".png", ".tif", ".tiff", ".bmp", ".gif"), ".png"),
    ".webp": ".webp",
    ".avif": ".avif",
}


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
        subsampling=inbox.subsampling,
        progressive=inbox.progressive,
        detector_sha256=detector.FACES.sha256 if inbox.faces == "auto" else "",
    )


def temp_prefix(instance: str) -> str:
    """Return how the names of this instance's temporary pictures begin; sync programs skip such names."""
    return f".syncthing.animed-{instance}-"


def stage_of(inbox: InboxConfig, instance: str, run: str) -> Stage:
    """Return where and how the pictures of an inbox are staged; `run` marks the names of this run."""
    return Stage(os.fspath(inbox.output), temp_prefix(instance) + run, inbox.mode.file, inbox.preserve.mtime)


def task_of(job: Job, inbox: InboxConfig, stage: Stage, *, number: int, threads: int, compare: bool = False) -> Task:
    """Return what a worker is told of a photo."""
    root = os.fspath(inbox.path)
    return Task(
        *(number, root, job.key.path, job.stat, job.recipe, inbox.max_pixels, inbox.animated, stage),
        threads=threads,
        compare=compare,
    )


def names_of(
    inbox: InboxConfig, path: bytes, style: str, ext: str, *, when: datetime, rules: NameRules
) -> Iterator[bytes]:
    """Yield the names that a photo's picture may get, below the output, best first, without end."""
    subject = Subject(path, style, ext, inbox.name, when)
    return candidates(subject, template=inbox.output_name, layout=inbox.layout, rules=rules)


def is_dated(inbox: InboxConfig) -> bool:
    """Say whether the names of an inbox's pictures depend on when the photos were taken."""
    return inbox.layout == "date" or Template.parse(inbox.output_name).dated


def likely_ext(inbox: InboxConfig, path: bytes) -> str:
    """Return the extension that the picture of a photo will have, if the photo is what its name says."""
    if inbox.output_format != "same":
        return SUFFIXES[inbox.output_format]
    return _SAME.get(os.fsdecode(os.path.splitext(path)[1]).lower(), ".jpg")


def early_name(inbox: InboxConfig, job: Job, rules: NameRules) -> bytes:
    """Return the full path that a picture would most likely get; b"" where a taken name would not end the matter.

    The format of the picture is only guessed from the photo's name: a wrong guess costs a drawing, nothing else. When
    the photo was taken cannot be guessed: where names tell of it, b"" as well.
    """
    if inbox.on_conflict not in {"skip", "fail"} or is_dated(inbox):
        return b""
    ext = likely_ext(inbox, job.key.path)
    names = names_of(inbox, job.key.path, job.recipe.style, ext, when=EPOCH, rules=rules)
    return os.path.join(os.fsencode(inbox.output), next(names))
