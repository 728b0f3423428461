"""From configuration to the values that travel: recipes, stages, tasks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from animed.delivery.naming import Layout, candidates
from animed.records import Recipe, Stage, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.catalog import Style
    from animed.config import InboxConfig
    from animed.records import Job

_EXTENSIONS: Final = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "avif": ".avif"}


def recipe_of(inbox: InboxConfig, style: Style) -> Recipe:
    """Return every option of an inbox that decides the bytes of a picture."""
    return Recipe(
        style=inbox.style,
        weights_sha256=style.weights_file.sha256,
        upsampling=style.weights_file.upsampling,
        strength=inbox.strength,
        max_edge=inbox.max_edge,
        output_format=inbox.output_format,
        quality=inbox.quality,
        exif=inbox.preserve.exif,
        gps=inbox.preserve.gps,
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
