"""Names that the file system of an output can take: pure text work, no look at any disk."""

from __future__ import annotations

import errno
import hashlib
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Final, Literal

Charset = Literal["any", "portable", "ascii"]

COMPONENT_BYTES: Final = 255
SHORT_BYTES: Final = 143  # what is left of a name where names are encrypted
LEAST_BYTES: Final = 128  # whatever a file system says: no template leaves less room than it needs for so much
NAME_REFUSED: Final = frozenset({errno.EINVAL, errno.EILSEQ, errno.ENAMETOOLONG})  # a file system cannot take a name
_DIGEST_DIGITS: Final = 10
_FORBIDDEN: Final = re.compile('[\x00-\x1f\x7f<>:"/\\\\|?*\udc80-\udcff]')  # the last are bytes that are not UTF-8
_AT_END: Final = re.compile("[. ]+$")
_DEVICE: Final = re.compile(
    "(?:CON|PRN|AUX|NUL|CONIN\\$|CONOUT\\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3]) *(?:\\.|$)", re.IGNORECASE
)
# Windows, or a server for it, will read these, whatever their drivers here would let pass.
_OF_WINDOWS: Final = frozenset(
    {"cifs", "exfat", "fat", "fuseblk", "msdos", "ntfs", "ntfs3", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "vfat"}
    | {"vmhgfs", "fuse.exfat", "fuse.exfat-fuse", "fuse.ntfs", "fuse.ntfs-3g", "fuse.vmhgfs-fuse"}
)


@dataclass(frozen=True, slots=True)
class NameRules:
    """What a file system makes of names."""

    limit: int = COMPONENT_BYTES  # bytes of one component
    charset: Charset = "any"  # any bytes; what Windows takes; of that, ASCII alone
    folds: bool = False  # names that differ only in the case of letters, or in the form of accents, are one

    def fit(self, component: bytes) -> bytes:
        """Return a component that this file system can take: itself, wherever that may be."""
        if self.charset != "any":
            component = portable(component, ascii_only=self.charset == "ascii")
        return shortened(component, self.limit)

    def stricter(self, code: int) -> NameRules | None:
        """Return the next rules to try after a name was refused with this errno; None where there are none."""
        if code == errno.ENAMETOOLONG:
            return replace(self, limit=SHORT_BYTES) if self.limit > SHORT_BYTES else None
        after: dict[Charset, Charset] = {"any": "portable", "portable": "ascii"}
        return replace(self, charset=after[self.charset]) if self.charset in after else None


PLAIN: Final = NameRules()  # of the usual file systems: names are kept as they are


def is_of_windows(kind: str) -> bool:
    """Say whether names on a file system of this type are to be such that Windows can read them."""
    return kind in _OF_WINDOWS


def portable(component: bytes, *, ascii_only: bool = False) -> bytes:
    """Return a name that Windows takes, as near to this one as can be: what it refuses becomes an underscore.

    It refuses some characters, dots and spaces at the end, and the names of devices (CON.jpg is one). The result is at
    most one byte longer, and stays as it is when it is made portable again.
    """
    text = _FORBIDDEN.sub("_", component.decode("utf-8", "surrogateescape"))
    if ascii_only:
        text = "".join(map(_in_ascii, text))
        text = f"_{text}" if not text or text.startswith(".") else text
    text = _AT_END.sub(lambda end: "_" * len(end[0]), text)
    return (f"_{text}" if _DEVICE.match(text) else text).encode()


def shortened(text: bytes, room: int) -> bytes:
    """Cut text to `room` bytes at a character's boundary; a digest of the whole keeps cut texts apart."""
    if len(text) <= room:
        return text
    mark = b"~" + hashlib.sha256(text).hexdigest()[:_DIGEST_DIGITS].encode()
    cut = room - len(mark)
    # Bytes 10xxxxxx continue a UTF-8 character: at most three of them can stand before its first byte.
    back = next((step for step in range(4) if text[cut - step] & 0xC0 != 0x80), 0)  # noqa: PLR2004 - the UTF-8 masks.
    return text[: max(cut - back, 1)] + mark


def _in_ascii(letter: str) -> str:
    """Return a letter without its accents, or an underscore; never longer than the letter is in UTF-8.

    An accent that stands by itself, after its letter, is nothing.
    """
    if unicodedata.combining(letter):
        return ""
    bare = "".join(each for each in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(each))
    usable = bare.isascii() and bare.isprintable() and not _FORBIDDEN.search(bare)
    return bare if usable and 0 < len(bare) <= len(letter.encode()) else "_"
