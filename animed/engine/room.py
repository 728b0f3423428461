"""Whether there is memory for a photo, before any of it is decoded: a worker that the kernel ends helps nobody."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animed.engine import machine
from animed.errors import PhotoError
from animed.imaging import encode, geometry, needs
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.imaging.decoded import Found
    from animed.records import Recipe

MIB: Final = 1 << 20
# Below this nothing is asked: such a photo takes no more than the network does, which the plan has room for.
SMALL: Final = 1024 * MIB
ITSELF: Final = 600 * MIB  # of its limit, what a worker's libraries, threads and heaps take besides
HELP: Final = "output_size: styled or a smaller picture needs less"


@dataclass(frozen=True, slots=True)
class Room:
    """What memory there is for this process, bytes; None where nothing says."""

    limit: Callable[[], int | None]  # of what it may hold
    free: Callable[[], int | None]  # on this machine, now

    def demand(self, found: Found, recipe: Recipe) -> None:
        """Refuse a photo that there is no memory for.

        Raise PhotoError: too_large where the worker's limit has never room for it, out_of_memory where the machine has
        none now.
        """
        need = needs.most(way_of(found, recipe))
        if need < SMALL:
            return
        what = f"a photo of {found.width}\u00d7{found.height} takes about {need // MIB} MiB"
        limit = self.limit()
        if limit is not None and need > limit - ITSELF:
            detail = f"{what}, and a worker may hold {limit // MIB} MiB by workers.max_memory"
            raise PhotoError(Reason.TOO_LARGE, f"{detail}; {HELP}")
        free = self.free()
        if free is not None and need > free:
            detail = f"{what}, and {free // MIB} MiB are free"
            raise PhotoError(Reason.OUT_OF_MEMORY, f"{detail}; {HELP}, and so do fewer workers")


def way_of(found: Found, recipe: Recipe) -> needs.Way:
    """Return what is done with a photo, as far as it takes memory."""
    coding = encode.coding(found.kind, recipe, 1)
    width, height = found.width, found.height
    full = recipe.output_size == "original"
    if not full:
        width, height = geometry.fit(width, height, recipe.max_edge)
    pixels, coarse = width * height, encode.is_coarse(coding, width * height)
    return needs.Way(found.kind, coding.form, found.decoded, pixels, full, native=recipe.icc == "keep", coarse=coarse)


def _limit() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return None if soft == resource.RLIM_INFINITY else soft


HERE: Final = Room(_limit, lambda: machine.available_memory("/"))
