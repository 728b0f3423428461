"""When a photo was taken, by the camera's own clock: galleries sort by it. Pure: text in, a moment out."""

from __future__ import annotations

import email.utils
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# EXIF writes 2024:05:17 18:03:59, XMP 2024-05-17T18:03:59.25+02:00 or less, some programs 2024/05/17.
_WRITTEN: Final = re.compile(
    r"(\d{4})([:/.-])(\d\d)\2(\d\d)"
    r"(?:[T ]\s*(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?)?(?:\s|\0)*",
    re.ASCII,
)
_COMPACT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)([+-]\d{4})?)?", re.ASCII)
_ZONE: Final = re.compile(r"[+-](?:0\d|1[0-4]):?[0-5]\d|Z", re.ASCII)
FIRST_YEAR: Final = 1826  # of the oldest photo that is left
_LONGEST: Final = 64  # characters of a date


class Moment(NamedTuple):
    """A moment by the clock of the place where the photo was taken."""

    when: str  # 2024-05-17T18:03:59
    zone: str = ""  # +02:00; empty where nobody wrote it down

    @property
    def exif(self) -> str:
        """Write it as EXIF does."""
        return self.when.replace("-", ":").replace("T", " ")


def parse(text: str) -> Moment | None:
    """Read a date as EXIF, XMP or a mail has it; None for what is none, such as blanks, zeros, or a month 13."""
    text = text.strip(" \t\r\n\0")[:_LONGEST]
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return _from_mail(text)
    year, _, month, day, *time, written = found.groups()
    return _moment((year, month, day, *time), written or "")


def parse_iptc(date: str, time: str) -> Moment | None:
    """Read IPTC's 20240517 and 180359+0200; the time may be missing."""
    found = _COMPACT.fullmatch(date.strip(" \0") + time.strip(" \0")) or _COMPACT.fullmatch(date.strip(" \0"))
    if found is None:
        return None
    *fields, written = found.groups()
    return _moment(tuple(fields), written or "")


def first(texts: Iterable[str]) -> Moment | None:
    """Return the first of several dates that is one."""
    return next((moment for text in texts if (moment := parse(text)) is not None), None)


def zone(text: str) -> str:
    """Return an offset as EXIF writes it, +02:00; empty for what is none."""
    text = text.strip(" \0")
    if not _ZONE.fullmatch(text):
        return ""
    return "+00:00" if text == "Z" else f"{text[:3]}:{text[-2:]}"


def _from_mail(text: str) -> Moment | None:
    """Read what the PNG standard recommends: Fri, 17 May 2024 18:03:59 +0200."""
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if found.year < FIRST_YEAR:
        return None
    offset = found.strftime("%z")
    return Moment(found.strftime("%Y-%m-%dT%H:%M:%S"), zone(offset[:5]))


def _moment(fields: tuple[str | None, ...], written: str) -> Moment | None:
    """Return year, month, day, hour, minute and second as a moment, if there was one such."""
    try:
        found = datetime(*(int(each or 0) for each in fields))  # type: ignore[arg-type]  # noqa: DTZ001 - the camera's clock has no zone
    except ValueError:
        return None
    return Moment(found.isoformat(), zone(written)) if found.year >= FIRST_YEAR else None
