"""What becomes of a decoded photo: the order of the steps between decoding and encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed.imaging import colour, geometry, portraits, upsample
from animed.imaging.tensors import blend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from animed.imaging.decoded import Decoded
    from animed.imaging.faces import Face
    from animed.records import Recipe

    Draw = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]  # (H, W, 3) sRGB to a new (H, W, 3) sRGB
    Beat = Callable[[], None]

BAND: Final = 256  # rows that are converted and mixed at a time: a large photo as a whole would take gigabytes


def render(
    decoded: Decoded, recipe: Recipe, draw: Draw, beat: Beat, *, faces: Sequence[Face] = ()
) -> NDArray[np.uint8]:
    """Return the (H, W, 3) pixels of a picture, in the space of `decoded.profile` where it keeps one, else in sRGB.

    `draw` runs the network over a picture of any size; what it returns is changed here. `faces`, in pixels of
    `decoded.pixels`, are drawn once more by themselves. `beat` is called now and then while a large photo is worked on.
    A strength of 0 is exactly the photo.
    """
    photo = decoded.photo if decoded.native is None else decoded.native
    if recipe.strength == 0:
        return photo
    before, after = portraits.stages(faces, decoded)
    drawn = portraits.refine(draw(decoded.pixels), decoded, before, draw)
    picture = upsample.enlarge(drawn, decoded.pixels, decoded.photo, beat)
    picture = portraits.refine(picture, decoded, after, draw)
    if decoded.native is None and recipe.strength == 1:
        return picture
    for band in geometry.bands(len(picture), BAND):
        part = picture[band]
        if decoded.native is not None:
            part = colour.from_srgb(part, decoded.profile)
        picture[band] = blend(photo[band], part, recipe.strength)
        beat()
    return picture
