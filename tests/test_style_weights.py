"""Only a file that is exactly what its card says becomes a network."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file

from animed.errors import StyleError
from animed.records import WeightsFile
from animed.style import runtime, weights
from animed.style.network import Generator

if TYPE_CHECKING:
    from animed.records import Upsampling

CEL = Path(__file__).parent.parent / "weights" / "cel.safetensors"

# What cel draws on the synthetic picture of 96 x 128, averaged over a grid of 4 x 4 cells, on the [-1, 1] scale.
RED = "-0.869 -0.799 -0.707 -0.694 -0.494 -0.231 -0.224 -0.161 0.086 0.469 0.412 0.388 0.77 0.869 0.889 0.845"
GREEN = "-0.849 -0.425 0.406 0.846 -0.791 -0.181 0.465 0.85 -0.705 -0.081 0.456 0.837 -0.563 -0.099 0.437 0.813"
BLUE = "-0.632 -0.299 -0.006 -0.066 -0.407 0.668 0.794 0.02 -0.225 0.791 0.804 -0.023 -0.184 0.024 -0.029 -0.226"
GOLDEN = torch.tensor([float(cell) for cell in f"{RED} {GREEN} {BLUE}".split()]).reshape(3, 4, 4)


def card(path: Path, upsampling: Upsampling = "half_pixel") -> WeightsFile:
    return WeightsFile("test", str(path), hashlib.sha256(path.read_bytes()).hexdigest(), upsampling)


def drawn(path: Path, upsampling: Upsampling, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    picture = runtime.synthetic(96, 128).to(dtype)
    with torch.inference_mode():
        result: torch.Tensor = weights.load(card(path, upsampling), dtype=dtype)(picture)
    return result


def refused(path: Path, file: WeightsFile | None = None) -> str:
    with pytest.raises(StyleError) as caught:
        weights.load(file or card(path))
    assert caught.value.path == str(path)
    return caught.value.title


def test_a_loaded_network_is_ready_to_draw() -> None:
    """Eval mode, no gradients, channels_last, in the precision that was asked for."""
    network = weights.load(card(CEL), dtype=torch.bfloat16)
    assert not network.training
    assert {parameter.dtype for parameter in network.parameters()} == {torch.bfloat16}
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert network.state_dict()["block_b.0.1.weight"].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 0.003), (torch.bfloat16, 0.02)])
def test_the_built_in_style_draws_its_golden_picture(dtype: torch.dtype, allowed: float) -> None:
    """The picture of the built-in style is what it was, within what other processors may differ by."""
    cells = torch.nn.functional.adaptive_avg_pool2d(drawn(CEL, "half_pixel", dtype), 4)[0]
    assert float((cells - GOLDEN).abs().max()) < allowed


def test_the_wrong_convention_of_upsampling_shows() -> None:
    """The built-in style under another convention is visibly another picture."""
    right = drawn(CEL, "half_pixel")
    conventions: tuple[Upsampling, ...] = ("align_corners", "asymmetric")
    for wrong in conventions:
        assert float((drawn(CEL, wrong) - right).abs().mean()) > 0.03


def test_public_weights_load(weights_of_others: Path) -> None:
    """Weights that others trained have the same names and shapes, and draw something else than the built-in style."""
    public = drawn(weights_of_others / "animeganv2_hayao.safetensors", "asymmetric")
    assert 0.1 < float(public.std()) < 1
    assert float((public - drawn(CEL, "half_pixel")).abs().mean()) > 0.05


def test_half_precision_files_are_accepted(tmp_path: Path) -> None:
    """A file of half the size draws the same picture, nearly."""
    path = tmp_path / "half.safetensors"
    save_file({name: tensor.half() for name, tensor in load_file(CEL).items()}, path)
    assert float((drawn(path, "half_pixel") - drawn(CEL, "half_pixel")).abs().mean()) < 0.01


def test_another_digest_is_refused_before_the_file_is_parsed(tmp_path: Path) -> None:
    """Content that nobody vouched for is not even looked at."""
    path = tmp_path / "style.safetensors"
    path.write_bytes(b"no safetensors at all")
    assert "SHA-256" in refused(path, replace(card(path), sha256="0" * 64))


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    """The path and the cause are in the message."""
    path = tmp_path / "none.safetensors"
    assert "No such file" in refused(path, WeightsFile("test", str(path), "0" * 64, "half_pixel"))


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"\xff" * 64, pickle.dumps({"block_a.0.1.weight": 1})])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty files, garbage and pickles are refused, and nothing in them runs."""
    path = tmp_path / "style.safetensors"
    path.write_bytes(content)
    assert "not a safetensors file" in refused(path)


def test_all_mismatches_are_named_at_once(tmp_path: Path) -> None:
    """Missing, unexpected, misshapen, mistyped and non-finite tensors stand in one message."""
    tensors = dict(load_file(CEL))
    del tensors["out_layer.0.weight"]
    tensors["discriminator.weight"] = torch.zeros(1)
    tensors["block_a.0.1.weight"] = torch.zeros(32, 3, 3, 3)
    tensors["block_a.0.2.bias"] = torch.zeros(32, dtype=torch.int64)
    tensors["block_a.0.2.weight"] = torch.full((32,), float("nan"))
    path = tmp_path / "style.safetensors"
    save_file(tensors, path)
    title = refused(path)
    assert "missing: out_layer.0.weight" in title
    assert "unexpected: discriminator.weight" in title
    assert "block_a.0.1.weight (32, 3, 3, 3), wanted (32, 3, 7, 7)" in title
    assert "wrong type: block_a.0.2.bias torch.int64" in title
    assert "not finite: block_a.0.2.weight" in title


def test_long_lists_of_mismatches_are_cut() -> None:
    """Another architecture's names do not fill the terminal."""
    wanted = Generator("half_pixel").state_dict()
    (fault,) = weights.mismatches(wanted, {})
    assert fault.endswith("and 73 more")
