"""How libraries say that memory ran out, so that it is not taken for a fault of the photo."""

from __future__ import annotations

import re
from typing import Final

# torch and oneDNN, OpenCV, libwebp, libavif, libheif, libtiff, zlib by way of Pillow, the C++ library.
_WORDS: Final = re.compile(
    r"(?i)can(?:'|no)t allocate|out of memory|bad_alloc|(?:not enough|insufficient) memory|memory allocation|"
    r"failed to (?:re)?allocate|allocation failed|encoding error [12]\b"
)


def starved(error: BaseException) -> bool:
    """Say whether an error is one of the many ways to run out of memory."""
    return isinstance(error, MemoryError) or bool(_WORDS.search(str(error)))
