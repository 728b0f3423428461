"""A worker computes in what its processor is good at, after proving that the picture stays the same."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Literal

import pytest
import torch

from animed.engine.environment import environment
from animed.errors import WorkersError
from animed.style import runtime
from animed.style.network import Generator

if TYPE_CHECKING:
    from animed.style.network import Beat

ABLE = "processor\t: 0\nflags\t\t: fpu avx2 avx512_bf16\n\nprocessor\t: 1\nflags\t\t: fpu avx512_bf16\n"
PLAIN = "processor\t: 0\nflags\t\t: fpu avx2 avx512f\n"


class Crooked(Generator):
    """A network whose bfloat16 is broken."""

    def __init__(self, value: float) -> None:
        super().__init__("half_pixel")
        self.value = value

    def forward(self, x: torch.Tensor, beat: Beat | None = None) -> torch.Tensor:
        """Draw nothing in float32, and a constant in bfloat16."""
        return torch.full_like(x, self.value if x.dtype == torch.bfloat16 else 0.0, dtype=torch.float32)


def reference() -> Generator:
    torch.manual_seed(1)
    return Generator("half_pixel").eval()


def test_the_precision_that_was_asked_for_is_taken() -> None:
    """Only `auto` looks at the processor."""
    settings: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
    for setting in settings:
        chosen = runtime.choose(setting, reference(), cpuinfo=PLAIN)
        assert (chosen.name, chosen.why) == (setting, "asked for")
        assert chosen.dtype == getattr(torch, setting)


@pytest.mark.parametrize("cpuinfo", [PLAIN, "", ABLE.replace("fpu avx512_bf16", "fpu")])
def test_a_processor_without_bfloat16_computes_in_float32(cpuinfo: str) -> None:
    """All processors must have the flag; no flags at all mean no."""
    chosen = runtime.choose("auto", reference(), cpuinfo=cpuinfo)
    assert (chosen.name, chosen.why) == ("float32", "the processor has no bfloat16 arithmetic")


def test_a_processor_with_bfloat16_uses_it_when_the_picture_agrees() -> None:
    """The flag allows it, one picture decides, and the figures are told."""
    chosen = runtime.choose("auto", reference(), cpuinfo=ABLE)
    assert chosen.name == "bfloat16"
    assert "differs from float32 by 0.00" in chosen.why


@pytest.mark.parametrize("value", [0.1, float("nan")])
def test_a_wrong_picture_forbids_bfloat16(value: float) -> None:
    """A difference beyond the limits, or a picture that is no number, means float32."""
    assert runtime.choose("auto", Crooked(value).eval(), cpuinfo=ABLE).name == "float32"


def test_the_synthetic_picture_fills_the_range() -> None:
    """It is deterministic, within [-1, 1], and has dark and light in every channel."""
    picture = runtime.synthetic(48, 64)
    assert picture.shape == (1, 3, 48, 64)
    assert torch.equal(picture, runtime.synthetic(48, 64))
    assert float(picture.abs().max()) <= 1
    assert all(float(channel.max() - channel.min()) > 1 for channel in picture[0])


def test_warming_draws_every_size_and_beats() -> None:
    """Each size is drawn once, in the network's own precision, with signs of life."""
    beats: list[int] = []
    runtime.warm(reference().to(torch.bfloat16), [(16, 32), (48, 16)], beat=lambda: beats.append(1))
    assert len(beats) == 34


def test_a_device_that_is_not_there_is_refused() -> None:
    """A wrong device is an error with a remedy, before any photo is touched."""
    assert runtime.pick_device("cpu").type == "cpu"
    for absent in ("cuda:77", "toaster"):
        with pytest.raises(WorkersError, match=absent) as caught:
            runtime.pick_device(absent)
        assert caught.value.remedy


def test_the_process_is_set_up_before_its_first_tensor() -> None:
    """In a fresh process with a worker's environment: threads as told, one chain of layers, tiny numbers are zero."""
    code = (
        "import torch; from animed.style import runtime; runtime.prepare(2); runtime.prepare(2);"
        "print(torch.get_num_threads(), torch.get_num_interop_threads(), (torch.tensor([1e-40]) * 1).item())"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment(threads=1)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["2", "1", "0.0"]
