"""Times of day to work in, as people write them: `22:00-07:00`."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from animed.config.fields import refused

Window = tuple[int, int]  # minutes after midnight: the first of the window, and the first after it (1440 at the most)

DAY_MIN: Final = 1440
WINDOW: Final = "a time of day such as 22:00-07:00: hours and minutes, from 00:00 to 24:00, with different ends"
_WINDOW: Final = re.compile(r"\s*([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})\s*")
_HOUR_MIN: Final = 60


def parse_window(written: object) -> Window:
    """Return a window of the day; one whose end is not after its start goes on over midnight.

    Raises ValueError for what is no such text, and for equal ends: `00:00-24:00` is the whole day.
    """
    found = _WINDOW.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise ValueError(WINDOW)
    start, end = _minutes(found[1], found[2]), _minutes(found[3], found[4])
    if start in {DAY_MIN, end}:
        raise ValueError(f"{WINDOW} (00:00-24:00 is the whole day)")
    return start, end


def format_window(window: Window) -> str:
    """Write a window as `parse_window` reads it."""
    return "-".join(f"{minute // _HOUR_MIN:02}:{minute % _HOUR_MIN:02}" for minute in window)


def _minutes(hours: str, minutes: str) -> int:
    count = int(hours) * _HOUR_MIN + int(minutes)
    if int(minutes) >= _HOUR_MIN or count > DAY_MIN:
        raise ValueError(WINDOW)
    return count


def _check(value: object) -> Window:
    try:
        return parse_window(value)
    except ValueError as error:
        raise refused(str(error)) from error


def _listed(value: object) -> object:
    """Take a YAML list for a tuple; a text alone is a common slip, and is told what is wanted."""
    if not isinstance(value, list | tuple):
        raise refused(f'a list such as ["22:00-07:00"], each of them {WINDOW}; [] is always')
    return tuple(value)


_TIME: Final = "([01]?[0-9]|2[0-3]):[0-5][0-9]"
Windows = Annotated[
    tuple[
        Annotated[
            Window,
            BeforeValidator(_check),
            PlainSerializer(format_window),
            WithJsonSchema({"type": "string", "pattern": rf"^\s*{_TIME}\s*-\s*({_TIME}|24:00)\s*$"}),
        ],
        ...,
    ],
    BeforeValidator(_listed),
    PlainSerializer(lambda windows: [format_window(window) for window in windows]),
]
