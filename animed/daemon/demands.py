"""What inboxes ask for that an installation need not have: the extras, and the face detector's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animed import detector, extras
from animed.catalog import builtin_dir
from animed.config import ConfigProblemsError, Problem
from animed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from animed.config import Config, InboxConfig
    from animed.extras import Extra
    from animed.records import DetectorFile

    Installed = Callable[[Extra], bool]

# By extra: the key of an inbox whose value asks for it, that value, and what does without.
_ASKING: Final[Mapping[Extra, tuple[str, str, str]]] = {
    "faces": ("faces", "auto", "off"),
    "similar": ("dedupe", "similar", "content or path"),
}


def wants_faces(config: Config) -> bool:
    """Say whether any inbox asks for the face detector."""
    return any(_asks(inbox, "faces") for inbox in config.inboxes)


def demand_extras(config: Config, *, installed: Installed = extras.installed) -> None:
    """Raise ConfigError that names every inbox which asks for an extra that is not installed, and what installs it."""
    missing = [extra for extra in _ASKING if not installed(extra)]
    problems = [each for extra in missing for each in _problems(config, extra, f"the extra: {extras.remedy(extra)}")]
    if problems:
        raise _error(config, problems)


def detector_of(config: Config, *, wanted: detector.Download = detector.FACES) -> DetectorFile | None:
    """Return the verified detector, or None where no inbox asks for one.

    Raise ConfigError without its file, StyleError where the file is damaged.
    """
    if not wants_faces(config):
        return None
    try:
        return detector.find(config.styles_dir, builtin_dir(), wanted=wanted)
    except ConfigError as error:
        needed = f"the face detector {wanted.file_name}"
        raise _error(config, _problems(config, "faces", needed, hint=error.remedy)) from error


def _asks(inbox: InboxConfig, extra: Extra) -> bool:
    key, asking, _ = _ASKING[extra]
    value: str = getattr(inbox, key)
    return value == asking


def _problems(config: Config, extra: Extra, needed: str, *, hint: str = "") -> list[Problem]:
    """Return what is wrong with every inbox that asks for what is not there."""
    key, value, without = _ASKING[extra]
    asking = [at for at, inbox in enumerate(config.inboxes) if _asks(inbox, extra)]
    return [Problem(f"inboxes[{at}].{key}", value, f"{value} with {needed}; {without} without", hint) for at in asking]


def _error(config: Config, problems: list[Problem]) -> ConfigProblemsError:
    return ConfigProblemsError(problems, path=str(config.source or ""))
