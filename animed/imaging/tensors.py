"""Pixels to numbers and back: (H, W, 3) uint8 arrays and (1, 3, H, W) float tensors in [-1, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]  # it ships no types

from animed.errors import PhotoError
from animed.records import Reason

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

HALF: Final = [0.5, 0.5, 0.5]  # mean and deviation that map [0, 1] to [-1, 1]
STEPS: Final = 127.5  # steps of a byte per unit of [-1, 1]


def to_tensor(
    pixels: NDArray[np.uint8], *, dtype: torch.dtype = torch.float32, device: torch.device | None = None
) -> Tensor:
    """Return (H, W, 3) uint8 RGB as (1, 3, H, W) in [-1, 1], channels_last."""
    # A copy of its own: arrays of decoded pictures are read-only, which torch cannot express, and views may be turned.
    image = torch.from_numpy(np.array(pixels, order="C")).permute(2, 0, 1)[None]  # (1, 3, H, W)
    unit = functional.to_dtype(image.to(device), torch.float32, scale=True)
    tensor: Tensor = functional.normalize(unit, mean=HALF, std=HALF)
    return tensor.to(dtype).contiguous(memory_format=torch.channels_last)


def to_pixels(tensor: Tensor) -> NDArray[np.uint8]:
    """Return (1, 3, H, W) in [-1, 1] as (H, W, 3) uint8, rounded to the nearest step.

    Raise PhotoError("not_finite") where a value is not a number: cast to bytes it would be a black picture.
    """
    image = tensor[0].detach().float().permute(1, 2, 0)  # (H, W, 3)
    if not bool(torch.isfinite(image).all()):
        raise PhotoError(Reason.NOT_FINITE, "the network gave values that are not numbers")
    steps = image.add(1).mul_(STEPS).round_().clamp_(0, 255)
    return steps.to(torch.uint8).cpu().contiguous().numpy()


def blend(photo: NDArray[np.uint8], style: NDArray[np.uint8], strength: float) -> NDArray[np.uint8]:
    """Return photo + strength · (style - photo), rounded; 0 is exactly the photo, 1 exactly the style."""
    if strength == 0:
        return photo
    if strength == 1:
        return style
    base = photo.astype(np.float32)
    mixed = base + np.float32(strength) * (style.astype(np.float32) - base)
    return np.rint(mixed).clip(0, 255).astype(np.uint8)
