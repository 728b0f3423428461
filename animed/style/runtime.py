"""Set up a worker process for the network: threads, device, precision, warm-up; `prepare` before the first tensor."""

from __future__ import annotations

import copy
import math
import mmap
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import torch
from torch import Tensor

from animed.errors import WorkersError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from animed.style.network import Beat, Generator

PrecisionSetting = Literal["auto", "float32", "bfloat16"]
DeviceSetting = str  # "auto", "cpu", "cuda", "cuda:1" …

CPUINFO: Final = "/proc/cpuinfo"
# Without one of these a processor imitates bfloat16, slower than it computes float32.
BF16_FLAGS: Final = frozenset({"avx512_bf16", "amx_bf16"})
# On the [-1, 1] scale one step of a byte is 0.0078. Real weights on real photos measured 0.0017 at most for the mean
# and 0.058 for the worst value; a broken kernel is off by far more than these limits.
MEAN_LIMIT: Final = 0.0078
WORST_LIMIT: Final = 0.25
PROOF_SIDE: Final = 128  # pixels; 30 ms, and every layer still has a picture to work on


@dataclass(frozen=True, slots=True)
class Precision:
    """The arithmetic that a worker uses, and why."""

    name: Literal["float32", "bfloat16"]
    why: str

    @property
    def dtype(self) -> torch.dtype:
        """Return torch's name of it."""
        return torch.bfloat16 if self.name == "bfloat16" else torch.float32


def prepare(threads: int) -> None:
    """Fix threads and number handling of this process; call once, before the first tensor is made."""
    torch.set_num_threads(threads)
    if torch.get_num_interop_threads() != 1:
        # The layers form one chain, so a second pool of threads could only get in the way.
        torch.set_num_interop_threads(1)
    # Numbers too small to see would otherwise be computed in microcode, a hundred times slower.
    torch.set_flush_denormal(True)


def pick_device(setting: DeviceSetting) -> torch.device:
    """Return the device to compute on; raise WorkersError where the one that was asked for is not there."""
    if setting == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(setting)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # An assertion is how torch says that it was built without CUDA.
        reason = str(error).partition("\n")[0]
        raise WorkersError(
            f"workers.device: {setting!r} cannot be used: {reason}", remedy='use "auto" or "cpu"'
        ) from error
    return device


def choose(setting: PrecisionSetting, reference: Generator, *, cpuinfo: str | None = None) -> Precision:
    """Return the precision to draw in; `reference` is a float32 network whose picture has to be met.

    `auto` is bfloat16 where the processor computes in it and one synthetic picture comes out as in float32.
    """
    if setting != "auto":
        return Precision(setting, "asked for")
    refusal = _lacks_bf16(next(reference.parameters()).device, cpuinfo)
    if refusal:
        return Precision("float32", refusal)
    mean, worst = deviation(reference)
    measured = f"one picture differs from float32 by {mean:.4f} on average, {worst:.3f} at most"
    # A picture that is not a number fails both comparisons.
    close = mean <= MEAN_LIMIT and worst <= WORST_LIMIT
    return Precision("bfloat16" if close else "float32", measured)


def bf16_flags(cpuinfo: str) -> frozenset[str]:
    """Return the bfloat16 abilities in the text of /proc/cpuinfo that all its processors share."""
    lines = [line for line in cpuinfo.splitlines() if line.startswith("flags")]
    shared = [frozenset(line.partition(":")[2].split()) for line in lines]
    return BF16_FLAGS.intersection(*shared) if shared else frozenset()


def deviation(reference: Generator) -> tuple[float, float]:
    """Return the mean and the largest absolute difference that bfloat16 makes, on the [-1, 1] scale."""
    device = next(reference.parameters()).device
    picture = synthetic(PROOF_SIDE, PROOF_SIDE).to(device)
    rounded = copy.deepcopy(reference).to(torch.bfloat16)
    with torch.inference_mode():
        difference = (rounded(picture.to(torch.bfloat16)) - reference(picture)).abs()
        return float(difference.mean()), float(difference.max())


def synthetic(height: int, width: int) -> Tensor:
    """Return a picture of a slope per channel with waves and a hard-edged disc: (1, 3, H, W), float32 in [-1, 1]."""
    rows = torch.linspace(-1, 1, height)[:, None].expand(height, width)
    columns = torch.linspace(-1, 1, width)[None, :].expand(height, width)
    waves = torch.sin(rows * 6 * math.pi) * torch.cos(columns * 4 * math.pi)
    disc = (rows.square() + columns.square() < 0.4).float()  # noqa: PLR2004 - a disc of a quarter of the picture
    planes = (0.8 * rows + 0.2 * waves, 0.8 * columns - 0.2 * waves, 0.6 * waves * (1 - disc) + 0.7 * disc - 0.2)
    picture = torch.stack(planes)[None].clamp(-1, 1)  # (1, 3, H, W)
    return picture.contiguous(memory_format=torch.channels_last)


def warm(network: Generator, sizes: Iterable[tuple[int, int]], *, beat: Beat | None = None) -> None:
    """Draw one picture of each (height, width), so that kernels exist and memory is mapped before the first photo."""
    parameter = next(network.parameters())
    with torch.inference_mode():
        for height, width in sizes:
            network(synthetic(height, width).to(device=parameter.device, dtype=parameter.dtype), beat)


def _lacks_bf16(device: torch.device, cpuinfo: str | None) -> str:
    """Say why a device has no bfloat16 arithmetic; an empty text where it has."""
    if device.type == "cuda":
        return "" if torch.cuda.is_bf16_supported(including_emulation=False) else "the GPU has no bfloat16 arithmetic"
    if bf16_flags(_read_cpuinfo() if cpuinfo is None else cpuinfo):
        return ""
    return "the processor has no bfloat16 arithmetic"


def _read_cpuinfo() -> str:
    """Return the kernel's description of the processors; empty where /proc is not mounted, which means float32."""
    try:
        with open(CPUINFO, encoding="ascii", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


@contextmanager
def explained() -> Iterator[None]:
    """Tell a sandbox in which the network cannot run from other failures of its library: raise WorkersError then."""
    try:
        yield
    except RuntimeError as error:
        if _may_make_code():
            raise
        title = f"this sandbox forbids machine code that is made at run time, which the network needs: {error}"
        raise WorkersError(title, remedy="set MemoryDenyWriteExecute=no in the unit, or allow execmem") from error


def _may_make_code() -> bool:
    """Say whether memory may be written and executed."""
    try:
        mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()
    except OSError:
        return False
    return True
