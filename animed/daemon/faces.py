"""The face detector that a configuration needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animed import detector
from animed.config import ConfigProblemsError, Problem
from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.config import Config
    from animed.records import DetectorFile


def wants_faces(config: Config) -> bool:
    """Say whether any inbox asks for it."""
    return any(inbox.faces == "auto" for inbox in config.inboxes)


def detector_of(config: Config, *, has_library: Callable[[], bool] = detector.has_library) -> DetectorFile | None:
    """Return the verified detector, or None where no inbox asks for one.

    Raise ConfigError without the library that runs it or without its file, StyleError where the file is damaged.
    """
    if not wants_faces(config):
        return None
    if not has_library():
        raise _problems(config, detector.EXTRA)
    try:
        return detector.find(config.styles_dir)
    except ConfigError as error:
        raise _problems(config, f"the face detector {detector.FACES.file_name}", hint=error.remedy) from error


def _problems(config: Config, needed: str, *, hint: str = "") -> ConfigProblemsError:
    """Return the error that names every inbox that asks for what is not there."""
    asking = [at for at, inbox in enumerate(config.inboxes) if inbox.faces == "auto"]
    problems = [Problem(f"inboxes[{at}].faces", "auto", f"auto with {needed}; off without", hint) for at in asking]
    return ConfigProblemsError(problems, path=str(config.source or ""))
