"""A picture of the size that the network saw, brought to the size of its photo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray


def enlarge(style: NDArray[np.uint8], seen: NDArray[np.uint8], photo: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return (H, W, 3) `style`, which the network drew for (H, W, 3) `seen`, in the size of (H', W', 3) `photo`."""
    if seen.shape == photo.shape:
        return style
    height, width = photo.shape[:2]
    return np.asarray(Image.fromarray(style).resize((width, height), Image.Resampling.LANCZOS))
