"""Transparency: what lies under clear pixels, and what stands behind them where a format has no alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def on_white(pixels: NDArray[np.uint8], alpha: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Lay an (H, W, 3) picture with (H, W) alpha on white."""
    cover = alpha[..., None].astype(np.uint16)
    return ((pixels * cover + 255 * (255 - cover) + 127) // 255).astype(np.uint8)
