"""Durations, sizes, percentages and permission bits as people write them, and back again.

Pure functions: each parser raises ValueError with a sentence that says what is accepted, and each formatter
writes a text that its parser reads back to the same value.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

DURATION: Final = "a duration such as 200ms, 5s, 10m or 1h (a bare number is seconds)"
SIZE: Final = "a size such as 500MB or 1GiB (a bare number is bytes)"
PERCENT: Final = "a percentage from 1% to 100%"
OCTAL: Final = "permission bits in octal, such as 0644"

_SECONDS: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_BYTES: Final = {
    "TiB": 2**40,
    "GiB": 2**30,
    "MiB": 2**20,
    "KiB": 2**10,
    "TB": 10**12,
    "GB": 10**9,
    "MB": 10**6,
    "KB": 10**3,
    "B": 1,
}
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?"
_DURATION: Final = re.compile(rf"(?:{_NUMBER}\s*(?:ms|s|m|h|d)\s*)+")
_DURATION_PART: Final = re.compile(rf"({_NUMBER})\s*(ms|s|m|h|d)")
_BARE: Final = re.compile(_NUMBER)
_SIZE: Final = re.compile(rf"({_NUMBER})\s*([kmgt]i?b|b)", re.IGNORECASE)
_OCTAL: Final = re.compile(r"(?:0o)?[0-7]{1,5}")
_MOST_BITS: Final = 0o7777
_MOST_SECONDS: Final = 100 * 366 * 86400
_MOST_BYTES: Final = 2**63 - 1


def parse_duration(written: object) -> float:
    """Return seconds, from `1h30m`, `200ms` or a bare number; ValueError if it is no duration of up to 100 years."""
    if isinstance(written, str) and _DURATION.fullmatch(written.strip()):
        parts = _DURATION_PART.findall(written)
        return _in_range(float(sum(Decimal(number) * _SECONDS[unit] for number, unit in parts)), DURATION)
    return _in_range(float(_bare(written, DURATION)), DURATION)


def format_duration(seconds: float) -> str:
    """Write seconds in the largest unit that keeps them exact."""
    for unit in ("d", "h", "m", "s"):
        count = seconds / float(_SECONDS[unit])
        if count >= 1 and count.is_integer() and count * float(_SECONDS[unit]) == seconds:
            return f"{int(count)}{unit}"
    if not seconds:
        return "0s"
    thousandths = round(seconds * 1000)
    return f"{thousandths}ms" if thousandths and thousandths / 1000 == seconds else f"{seconds!r}s"


def parse_size(written: object) -> int:
    """Return bytes, from `1GiB`, `500 MB` or a bare number; ValueError if it is no size."""
    found = _SIZE.fullmatch(written.strip()) if isinstance(written, str) else None
    if found is None:
        size = _bare(written, SIZE)
    else:
        size = Decimal(found[1]) * next(count for unit, count in _BYTES.items() if unit.lower() == found[2].lower())
    if size > _MOST_BYTES or size != int(size):
        raise ValueError(SIZE)
    return int(size)


def format_size(count: int) -> str:
    """Write bytes in the largest unit that keeps them exact."""
    if not count:
        return "0B"
    unit = next(unit for unit, size in _BYTES.items() if count % size == 0)
    return f"{count // _BYTES[unit]}{unit}"


def parse_percent(written: object) -> float:
    """Return per cent as a number in [1, 100], from `50%` or a bare number; ValueError otherwise."""
    bare = written.strip().removesuffix("%").rstrip() if isinstance(written, str) else written
    percent = float(_bare(bare, PERCENT))
    if not 1 <= percent <= 100:  # noqa: PLR2004 - a hundred per cent is what the word means.
        raise ValueError(PERCENT)
    return percent


def format_percent(percent: float) -> str:
    """Write a percentage, without a fraction where there is none."""
    return f"{int(percent)}%" if percent.is_integer() else f"{percent!r}%"


def parse_mode(written: object) -> int:
    """Return permission bits from octal digits (`0644`, `644`, `0o644`, or the number whose digits they are)."""
    text = str(written) if isinstance(written, int) and not isinstance(written, bool) else written
    if not isinstance(text, str) or not _OCTAL.fullmatch(text.strip()):
        raise ValueError(OCTAL)
    bits = int(text.strip().removeprefix("0o"), 8)
    if bits > _MOST_BITS:
        raise ValueError(OCTAL)
    return bits


def format_mode(bits: int) -> str:
    """Write permission bits as four octal digits."""
    return f"{bits:04o}"


def _bare(written: object, accepted: str) -> Decimal:
    """Return a number that stands without a unit, as itself or as text."""
    if isinstance(written, str) and _BARE.fullmatch(written.strip()):
        return Decimal(written.strip())
    whole = isinstance(written, int) and not isinstance(written, bool) and written >= 0
    if not whole and not (isinstance(written, float) and math.isfinite(written) and written >= 0):
        raise ValueError(accepted)
    return Decimal(repr(written))


def _in_range(seconds: float, accepted: str) -> float:
    """Refuse durations that no timer could hold."""
    if seconds > _MOST_SECONDS:
        raise ValueError(accepted)
    return seconds
