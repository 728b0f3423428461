"""What is wanted of a photo's file, and what decoding makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from animed.imaging.metadata import Notes
    from animed.imaging.sniff import Kind
    from animed.records import Icc


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is made of a file."""

    max_pixels: int
    max_edge: int  # longest side that the network sees, pixels
    animated: Literal["first", "skip"] = "first"
    full: bool = False  # the picture is to have the photo's own size
    icc: Icc = "srgb"
    faces: bool = False  # small faces are to be drawn by themselves


@dataclass(frozen=True, slots=True)
class Found:
    """What a file says of its picture."""

    kind: Kind
    width: int  # before turning
    height: int
    decoded: int  # pixels that are decoded: fewer than there are where a JPEG is decoded at a fraction


@dataclass(frozen=True, slots=True)
class Decoded:
    """A photo as the network takes it, and what its picture is made of besides."""

    pixels: NDArray[np.uint8]  # (H, W, 3) sRGB, upright, at most max_edge long: what the network sees
    photo: NDArray[np.uint8]  # (H', W', 3) sRGB in the size of the picture: `pixels` itself unless that is another one
    alpha: NDArray[np.uint8] | None  # (H', W') 0 clear … 255 opaque; None where all is opaque
    native: NDArray[np.uint8] | None  # (H', W', 3) in the space of `profile`; None where `photo` is
    profile: bytes  # the ICC profile that the picture carries; empty for none
    width: int  # of the photo, after orientation
    height: int
    kind: Kind
    notes: Notes  # for the picture's own metadata
    detail: NDArray[np.uint8] | None = None  # (H'', W'', 3) sRGB, larger than `pixels`, for faces; None for none

    @property
    def finest(self) -> NDArray[np.uint8]:
        """Return the (H, W, 3) sRGB pixels of the whole photo that show most."""
        detail = self.pixels if self.detail is None else self.detail
        return max((detail, self.photo), key=lambda pixels: pixels.size)
