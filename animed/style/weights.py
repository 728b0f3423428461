"""Load a style's weights: digest first, safetensors only (nothing in a file is ever executed), all mismatches named."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from animed import regular
from animed.errors import StyleError
from animed.style.network import Generator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animed.records import WeightsFile

ACCEPTED: Final = (torch.float32, torch.float16, torch.bfloat16)
LARGEST: Final = 256 * 2**20  # bytes; the weights are 8.6 MB, so what is far above is another file
SHOWN: Final = 4  # names per kind of mismatch, enough to recognise another architecture by


def load(file: WeightsFile, *, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Generator:
    """Return the network of a style, ready to draw: eval mode, channels_last, in `dtype`.

    Raise StyleError where the file is not there, its digest is another, or it does not fit the network.
    """
    data = _read(file)
    found = hashlib.sha256(data).hexdigest()
    if found != file.sha256.lower():
        raise StyleError(
            f"style {file.style}: the weights are not those of its card: SHA-256 {found}, the card says {file.sha256}",
            remedy="import or download the style again",
            path=file.path,
        )
    return build(parse(data, file), file, dtype=dtype, device=device)


def parse(data: bytes, file: WeightsFile) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; raise StyleError where it is none."""
    try:
        return safetensors.torch.load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise StyleError(
            f"style {file.style}: not a safetensors file: {error}",
            remedy="convert the weights with `animed styles import`",
            path=file.path,
        ) from error


def build(
    tensors: Mapping[str, Tensor], file: WeightsFile, *, dtype: torch.dtype, device: torch.device | None = None
) -> Generator:
    """Put tensors into a network; raise StyleError that names all that is missing, unexpected or of a wrong shape."""
    # Nothing is drawn at random only to be overwritten: the meta device gives shapes without memory.
    with torch.device("meta"):
        network = Generator(file.upsampling)
    faults = mismatches(network.state_dict(), tensors)
    if faults:
        raise StyleError(
            f"style {file.style}: these are not weights of an AnimeGANv2 generator: {'; '.join(faults)}",
            remedy="use weights of the AnimeGANv2 PyTorch layout",
            path=file.path,
        )
    network.load_state_dict(dict(tensors), assign=True)
    network.requires_grad_(requires_grad=False)
    return network.to(device, dtype).to(memory_format=torch.channels_last).eval()


def mismatches(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> list[str]:
    """Say what keeps `given` from being `wanted`, one phrase per kind of fault; empty where it fits."""
    common = [name for name in wanted if name in given]
    kinds = {
        "missing": [name for name in wanted if name not in given],
        "unexpected": [name for name in given if name not in wanted],
        "wrong shape": [
            f"{name} {tuple(given[name].shape)}, wanted {tuple(wanted[name].shape)}"
            for name in common
            if given[name].shape != wanted[name].shape
        ],
        "wrong type": [f"{name} {given[name].dtype}" for name in common if given[name].dtype not in ACCEPTED],
        "not finite": [name for name in common if not bool(torch.isfinite(given[name]).all())],
    }
    return [f"{kind}: {_listed(names)}" for kind, names in kinds.items() if names]


def _listed(names: list[str]) -> str:
    """Name the first few, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _read(file: WeightsFile) -> bytes:
    """Return the bytes of the weights file; raise StyleError where they cannot be had."""
    try:
        data = regular.read(file.path, LARGEST + 1)
    except OSError as error:
        raise StyleError(
            f"style {file.style}: the weights cannot be read: {error.strerror}",
            remedy="check the path and its rights, or import the style again",
            path=file.path,
        ) from error
    if len(data) > LARGEST:
        raise StyleError(f"style {file.style}: more than {LARGEST} bytes are no AnimeGANv2 weights", path=file.path)
    return data
