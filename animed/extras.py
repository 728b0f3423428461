"""The extras: what an installation can do without, and what to install where something asks for it."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Extra = Literal["faces", "raw", "similar"]

# Each with the module that it brings.
MODULES: Final[Mapping[Extra, str]] = {"faces": "cv2", "raw": "rawpy", "similar": "imagehash"}


def installed(extra: Extra) -> bool:
    """Say whether an extra is installed; its module, which may be large, is not imported."""
    return importlib.util.find_spec(MODULES[extra]) is not None


def remedy(extra: Extra) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'animed[{extra}]'"
