"""Programs that animed starts must not be open to those who drop photos: whoever may change one runs code as animed."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema

from animed.config.fields import Reading, folder, refused
from animed.config.problems import Told, dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from animed.config.overlap import Place

_ACCEPTED: Final = (
    "null, the path of a program, or a list of that and its first arguments, such as [/opt/tell, --quiet]"
)
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def open_to_others(program: Place, holder: Place, folders: Iterable[Place]) -> Iterator[Told]:
    """Yield what is wrong with a program; `holder` is the folder that its name lies in, which may be a link elsewhere.

    A program that is not there is no problem here: it may lie on a disk that comes later. Each start looks again.
    """
    if program.mode is not None and program.mode & _OTHERS:
        got = f"{program.path}, which other users may change (mode {stat.S_IMODE(program.mode):04o})"
        yield program.loc, got, "a program that only its owner may change", "run chmod go-w on it"
    for place in folders:
        if place.loc[0] == "inboxes" and (program.inside(place) or holder.inside(place) or holder.same(place)):
            got = f"{program.path}, which lies inside {dotted(place.loc)} {place.path}"
            accepted = "a program outside of all folders that photos and pictures go through"
            yield program.loc, got, accepted, "whoever fills such a folder could run code as animed"
            return


def _command(value: object, info: ValidationInfo) -> tuple[str, ...] | None:
    """Return a program's full path and its fixed arguments; None for no program."""
    if value is None:
        return None
    words = list(value) if isinstance(value, (list, tuple)) else [value]
    if not words or not all(isinstance(word, (str, Path)) and "\0" not in str(word) for word in words) or not words[0]:
        number = any(isinstance(word, (bool, int, float)) for word in words)
        raise refused(_ACCEPTED, hint="quote it" if number else "")
    reading = info.context if isinstance(info.context, Reading) else None
    return (str(folder(words[0], reading)), *map(str, words[1:]))


def _written_command(value: tuple[str, ...] | None) -> object:
    """Write a command as it stands in the file."""
    return value and (value[0] if len(value) == 1 else list(value))


Words = tuple[str, ...] | None
Command = Annotated[
    Words,
    BeforeValidator(_command),
    PlainSerializer(_written_command),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["string", "null"]},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]
