"""Which photos the paths of a command line mean, and where their pictures go."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from animed.config import Config, InboxConfig, locate
from animed.daemon.errands import Errand
from animed.delivery.publish import prepare_output
from animed.errors import AnimedError, OutputError
from animed.intake.rules import Rules
from animed.intake.scan import Found, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def settings_of(
    base: Config | None, paths: Sequence[Path], output: Path | None, style: str | None, environ: Mapping[str, str]
) -> Config:
    """Return a configuration with one inbox-like entry for each path; `base` gives the rest, where there is one."""
    entries = tuple(_entry(number, path, output, style) for number, path in enumerate(paths))
    if base is not None:
        return base.model_copy(update={"inboxes": entries})
    return Config(state_dir=Path(os.devnull), styles_dir=styles_dir_of(base, environ), inboxes=entries)


def styles_dir_of(base: Config | None, environ: Mapping[str, str]) -> Path:
    """Return where further styles are looked for."""
    if base is not None:
        return base.styles_dir
    return Path(os.path.expanduser(environ.get("ANIMED_STYLES_DIR") or locate.styles_dir(environ)))


def _entry(number: int, path: Path, output: Path | None, style: str | None) -> InboxConfig:
    real = Path(os.path.realpath(path))
    # "Beside it" is beside what was named: what a link points to may lie where nobody wants pictures.
    folder, beside = (real, real) if real.is_dir() else (real.parent, Path(os.path.realpath(path.parent)))
    return InboxConfig(
        name=f"path-{number}",
        path=folder,
        output=beside if output is None else Path(os.path.abspath(output)),
        style=style or "cel",
    )


def errands_of(inbox: InboxConfig, path: Path, pictures: re.Pattern[bytes]) -> Iterator[Errand]:
    """Yield the photo that a path means, or those below it that are not our own pictures.

    A file that is named is taken whatever its name is.
    """
    real = os.path.realpath(os.fsencode(path))
    if not os.path.isdir(real):
        yield Errand(inbox, os.path.basename(real))
        return
    rules = Rules(extensions=inbox.extensions, ignore=inbox.ignore, max_depth=inbox.max_depth)
    for found in Scanner(os.fspath(inbox.path), rules).scan():
        if isinstance(found, Found) and not pictures.search(found.path):
            yield Errand(inbox, found.path)


def pictures_of(styles: Iterable[str]) -> re.Pattern[bytes]:
    """Return what the names of pictures end in that an earlier call may have put beside the photos of a folder."""
    names = b"|".join(re.escape(os.fsencode(style)) for style in styles)
    return re.compile(rb"\.(?:" + names + rb")(?:-\d+)?\.[^./]+$")


def make_output(output: Path) -> None:
    """Make the folder for the pictures; raises OutputError."""
    try:
        prepare_output(os.path.abspath(output))
    except AnimedError as error:
        remedy = f"{error.title}; the folder that it is to be in must be there"
        raise OutputError("the output cannot be made", remedy=remedy, path=os.fspath(output)) from error
