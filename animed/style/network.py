"""The AnimeGANv2 generator, and nothing else: building, loading and precision live elsewhere.

References
    TachibanaYoshino, AnimeGANv2 (the original, TensorFlow 1): https://github.com/TachibanaYoshino/AnimeGANv2
    bryandlee, animegan2-pytorch (the port whose state-dict names this file keeps)
    Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018
    Wu and He, Group Normalization, ECCV 2018

2,143,552 parameters in 77 tensors, 401,072 multiply-adds per pixel. Every norm spans the whole picture: pictures of one
size may be stacked, but padding to a common size, tiling and resizing change the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from animed.records import Upsampling

Beat = Callable[[], None]

MULTIPLE: Final = 4  # sides must be multiples of this: two halvings, two doublings
SMALLEST_SIDE: Final = 8  # below it a reflection would be wider than the picture that it mirrors
SLOPE: Final = 0.2  # of the LeakyReLU


class ConvNormLeaky(nn.Sequential):
    """Reflection pad → convolution → norm over the whole picture → LeakyReLU."""

    def __init__(self, cin: int, cout: int, kernel: int = 3, *, stride: int = 1, groups: int = 1) -> None:
        # A stride of 2 pads right and bottom only: TensorFlow's "same" rule for even sides.
        pad = (0, 1, 0, 1) if stride == 2 else (kernel // 2,) * 4  # noqa: PLR2004 - the one other stride there is
        super().__init__(
            nn.ReflectionPad2d(pad) if kernel > 1 else nn.Identity(),
            # The depthwise convolutions of the public checkpoints carry a bias, the others do not.
            nn.Conv2d(cin, cout, kernel, stride=stride, groups=groups, bias=groups > 1),
            nn.GroupNorm(1, cout, eps=1e-5),
            nn.LeakyReLU(SLOPE, inplace=True),
        )


class InvertedResidual(nn.Module):
    """Widen, filter each channel alone, narrow; the input is added where the widths agree."""

    def __init__(self, cin: int, cout: int) -> None:
        super().__init__()
        wide = cin * 2
        self.skip = cin == cout
        self.layers = nn.Sequential(
            ConvNormLeaky(cin, wide, 1),
            ConvNormLeaky(wide, wide, groups=wide),
            nn.Conv2d(wide, cout, 1, bias=False),
            nn.GroupNorm(1, cout, eps=1e-5),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, cin, H, W) to (N, cout, H, W)."""
        y: Tensor = self.layers(x)
        return y.add_(x) if self.skip else y


class Generator(nn.Module):
    """Turn a photo into a drawing: (N, 3, H, W) RGB in [-1, 1] to the same shape in float32.

    `upsampling` belongs to the weights: the same file draws visibly different pictures under another convention.
    """

    def __init__(self, upsampling: Upsampling) -> None:
        super().__init__()
        self.upsampling: Upsampling = upsampling
        self.block_a = nn.Sequential(
            ConvNormLeaky(3, 32, 7),  # (N, 32, H, W)
            ConvNormLeaky(32, 64, stride=2),  # (N, 64, H/2, W/2)
            ConvNormLeaky(64, 64),
        )
        self.block_b = nn.Sequential(
            ConvNormLeaky(64, 128, stride=2),  # (N, 128, H/4, W/4)
            ConvNormLeaky(128, 128),
        )
        self.block_c = nn.Sequential(
            ConvNormLeaky(128, 128),
            InvertedResidual(128, 256),  # (N, 256, H/4, W/4)
            InvertedResidual(256, 256),
            InvertedResidual(256, 256),
            InvertedResidual(256, 256),
            ConvNormLeaky(256, 128),  # (N, 128, H/4, W/4)
        )
        self.block_d = nn.Sequential(
            ConvNormLeaky(128, 128),  # (N, 128, H/2, W/2)
            ConvNormLeaky(128, 128),
        )
        self.block_e = nn.Sequential(
            ConvNormLeaky(128, 64),  # (N, 64, H, W)
            ConvNormLeaky(64, 64),
            ConvNormLeaky(64, 32, 7),  # (N, 32, H, W)
        )
        self.out_layer = nn.Sequential(nn.Conv2d(32, 3, 1, bias=False))  # (N, 3, H, W)

    def forward(self, x: Tensor, beat: Beat | None = None) -> Tensor:
        """Draw; `beat` is called after every layer, so that a long picture is not taken for a hang.

        Raise ValueError where a side is below 8 or no multiple of 4.
        """
        _check(x)
        alive = beat or _silent
        for block in (self.block_a, self.block_b, self.block_c):
            x = _through(block, x, alive)  # (N, 128, H/4, W/4) in the end
        x = _through(self.block_d, self._double(x), alive)  # (N, 128, H/2, W/2)
        x = _through(self.block_e, self._double(x), alive)  # (N, 32, H, W)
        # bfloat16 has too few digits near ±1 for a byte's steps, so the last curve is drawn in float32.
        return torch.tanh(_through(self.out_layer, x, alive).float())  # (N, 3, H, W)

    def _double(self, x: Tensor) -> Tensor:
        """Double height and width by the convention that the weights were made with."""
        if self.upsampling == "asymmetric":
            return asymmetric(x)
        aligned = self.upsampling == "align_corners"
        return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=aligned)


def asymmetric(x: Tensor) -> Tensor:
    """Double as TensorFlow 1 did: out[2i] = x[i], out[2i+1] = mean of x[i] and x[i+1], the last one repeated.

    Neither of torch's bilinear modes equals it.
    """
    count, channels, height, width = x.shape
    layout = torch.channels_last if x.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
    out = torch.empty((count, channels, 2 * height, 2 * width), dtype=x.dtype, device=x.device, memory_format=layout)
    even = out[:, :, ::2]  # The rows that the picture itself fills.
    even[..., ::2] = x
    _between(x[..., :-1], x[..., 1:], even[..., 1:-1:2])
    even[..., -1] = x[..., -1]
    _between(even[:, :, :-1], even[:, :, 1:], out[:, :, 1:-1:2])
    out[:, :, -1] = even[:, :, -1]
    return out


def _between(first: Tensor, second: Tensor, out: Tensor) -> None:
    """Write the mean of two neighbours into a strided view."""
    out.copy_(torch.lerp(first, second, 0.5))


def _through(block: nn.Sequential, x: Tensor, alive: Beat) -> Tensor:
    """Apply a block layer by layer, with a sign of life after each."""
    for layer in block:
        x = layer(x)
        alive()
    return x


def _check(x: Tensor) -> None:
    """Refuse a shape that the network would answer with another one, or not at all."""
    sides = x.shape[-2:]
    if x.ndim != 4 or x.shape[1] != 3 or min(sides) < SMALLEST_SIDE or any(side % MULTIPLE for side in sides):  # noqa: PLR2004 - (N, 3, H, W)
        raise ValueError(f"the network takes (N, 3, H, W) with sides of 8, 12, 16 …; got {tuple(x.shape)}")


def _silent() -> None:
    """Stand in where nobody listens."""
