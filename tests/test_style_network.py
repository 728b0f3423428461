"""The generator is AnimeGANv2's to the last tensor, and draws each picture as if it were alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch.nn import functional

from animed.style import network
from animed.style.network import Generator

if TYPE_CHECKING:
    from animed.records import Upsampling

CONVENTIONS: tuple[Upsampling, ...] = ("half_pixel", "align_corners", "asymmetric")


def generator(upsampling: Upsampling = "half_pixel", seed: int = 1) -> Generator:
    torch.manual_seed(seed)
    return Generator(upsampling).eval().to(memory_format=torch.channels_last)


def noise(*shape: int, seed: int = 2) -> torch.Tensor:
    torch.manual_seed(seed)
    return (torch.rand(shape) * 2 - 1).contiguous(memory_format=torch.channels_last)


def test_the_tensors_are_those_of_the_public_checkpoints() -> None:
    """77 tensors, 2,143,552 parameters, under the names that public weights use."""
    state = generator().state_dict()
    assert len(state) == 77
    assert sum(tensor.numel() for tensor in state.values()) == 2_143_552
    wanted = {f"block_a.{i}.1.weight" for i in range(3)} | {f"block_a.{i}.2.bias" for i in range(3)}
    wanted |= {f"block_{block}.{i}.2.weight" for block in "bd" for i in range(2)} | {"block_c.0.1.weight"}
    wanted |= {f"block_c.{i}.layers.{part}" for i in range(1, 5) for part in ("0.1.weight", "1.1.bias", "2.weight")}
    wanted |= {"block_c.4.layers.3.bias", "block_c.5.2.bias", "block_e.2.1.weight", "out_layer.0.weight"}
    assert wanted <= set(state)
    assert not any(name.endswith("0.1.bias") for name in state), "only depthwise convolutions have a bias"
    assert tuple(state["block_a.0.1.weight"].shape) == (32, 3, 7, 7)
    assert tuple(state["block_c.1.layers.1.1.weight"].shape) == (256, 1, 3, 3)
    assert tuple(state["block_c.2.layers.1.1.weight"].shape) == (512, 1, 3, 3)


@pytest.mark.parametrize("upsampling", CONVENTIONS)
@pytest.mark.parametrize("size", [(8, 8), (16, 44), (60, 12)])
def test_a_picture_keeps_its_size(upsampling: Upsampling, size: tuple[int, int]) -> None:
    """Every size of multiples of four from 8 on comes back, as float32 in [-1, 1]."""
    with torch.inference_mode():
        drawn = generator(upsampling)(noise(1, 3, *size))
    assert drawn.shape == (1, 3, *size)
    assert drawn.dtype == torch.float32
    assert float(drawn.abs().max()) <= 1


@pytest.mark.parametrize("shape", [(1, 3, 4, 16), (1, 3, 16, 18), (1, 1, 16, 16), (3, 16, 16)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    """A shape that would come back as another one is an error that names it."""
    with pytest.raises(ValueError, match="got"):
        generator()(torch.zeros(shape))


def test_the_conventions_of_upsampling_draw_different_pictures() -> None:
    """The same weights under another convention are another picture."""
    photo = noise(1, 3, 32, 32)
    with torch.inference_mode():
        drawn = [generator(upsampling)(photo) for upsampling in CONVENTIONS]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert float((drawn[one] - drawn[other]).abs().max()) > 2 / 255


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_asymmetric_doubling_is_that_of_tensorflow_1(layout: torch.memory_format, dtype: torch.dtype) -> None:
    """Even places repeat the input, odd ones are the mean with the next, the last is repeated; the layout stays."""
    x = noise(2, 5, 6, 7).to(dtype).contiguous(memory_format=layout)
    doubled = network.asymmetric(x)
    assert doubled.is_contiguous(memory_format=layout)
    assert torch.equal(doubled[:, :, ::2, ::2], x)
    wide = functional.pad(x.float(), (0, 1, 0, 1), mode="replicate")
    right = (wide[:, :, :-1, :-1] + wide[:, :, :-1, 1:]) / 2
    below = (wide[:, :, :-1, :-1] + wide[:, :, 1:, :-1]) / 2
    corner = (wide[:, :, :-1, :-1] + wide[:, :, :-1, 1:] + wide[:, :, 1:, :-1] + wide[:, :, 1:, 1:]) / 4
    allowed = 1e-6 if dtype == torch.float32 else 0.01
    for rows, columns, expected in ((0, 1, right), (1, 0, below), (1, 1, corner)):
        assert torch.allclose(doubled[:, :, rows::2, columns::2].float(), expected, atol=allowed)


def test_a_single_pixel_doubles_to_itself() -> None:
    """The smallest input has no next pixel."""
    assert network.asymmetric(torch.full((1, 1, 1, 1), 0.5)).tolist() == [[[[0.5, 0.5], [0.5, 0.5]]]]


@pytest.mark.parametrize("upsampling", CONVENTIONS)
def test_stacked_pictures_are_drawn_as_alone(upsampling: Upsampling) -> None:
    """No picture is influenced by those beside it: at most one step of a byte apart."""
    drawer = generator(upsampling)
    photos = noise(3, 3, 32, 48)
    with torch.inference_mode():
        together = drawer(photos)
        alone = torch.cat([drawer(photos[i : i + 1]) for i in range(3)])
    assert float((together - alone).abs().max()) <= 2 / 255


def test_bfloat16_draws_nearly_the_same_picture() -> None:
    """Halving the digits costs less than a step of a byte on average."""
    drawer, photo = generator(), noise(1, 3, 64, 64)
    with torch.inference_mode():
        exact = drawer(photo)
        rounded = drawer.to(torch.bfloat16)(photo.to(torch.bfloat16))
    assert rounded.dtype == torch.float32
    assert float((rounded - exact).abs().mean()) < 2 / 255


def test_norms_of_large_bfloat16_pictures_add_up_in_float32() -> None:
    """Sums over a megapixel would end at 256 times their first summand in bfloat16; the norm stays a norm."""
    wide = (noise(1, 8, 512, 512) * 2 + 1).to(torch.bfloat16)
    with torch.inference_mode():
        normed = functional.group_norm(wide, 1).float()
    assert abs(float(normed.mean())) < 0.01
    assert abs(float(normed.std()) - 1) < 0.01


def test_the_heart_beats_between_the_layers() -> None:
    """A listener hears every layer, so a long picture is not taken for a hang."""
    beats: list[int] = []
    with torch.inference_mode():
        generator()(noise(1, 3, 16, 16), lambda: beats.append(1))
    assert len(beats) == 17
