"""Names that some file systems take for one: those that differ in the case of letters, or in the form of accents."""

from __future__ import annotations

import unicodedata


def folded(path: bytes) -> bytes:
    """Return what all spellings of a name have in common: its letters in one case, in composed form.

    It may take more names for one than a file system does (it knows that the German sharp s is a double one), never
    fewer. Bytes that are not UTF-8 stand for themselves.
    """
    if path.isascii():
        return path.lower()
    text = unicodedata.normalize("NFD", path.decode("utf-8", "surrogateescape")).casefold()
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")
