"""`animed reload`: has the running service take its changed configuration, and says what came of it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from animed import config
from animed.commands.access import ask_service, open_config
from animed.commands.output import say
from animed.errors import EXIT_OK, ConfigError, NotRunningError
from animed.service.protocol import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.commands.access import Ask

PATIENCE_S: Final = 150.0  # more than two checks that the service gives up: an earlier one may be under way
PAUSE_S: Final = 0.1  # between two questions
_WORDS: Final = {"added": "added", "removed": "removed", "renewed": "starts anew with its changes"}


def run(
    config_file: Path | None,
    *,
    ask: Ask = ask_service,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Print what has changed, and return the exit status.

    Raises ConfigError or ReplyError (78) with what is wrong, in the words of `check`, and NotRunningError.
    """
    state_dir, wrong = _service(config_file)
    try:
        answer = _reload(ask, state_dir, sleep, clock)
    except NotRunningError:
        # Whoever asks about a wrong file wants to know first what is wrong with it.
        if wrong is not None:
            raise wrong from None
        raise NotRunningError(
            f"no service is running for {state_dir}",
            remedy="start it with `animed run`; one that runs with another state_dir is restarted, not reloaded",
        ) from None
    _describe(answer)
    return EXIT_OK


def _service(config_file: Path | None) -> tuple[Path, ConfigError | None]:
    """Return the state folder of the service, and what is wrong with the file; raises ConfigError without a folder."""
    try:
        return open_config(config_file).state_dir, None
    except ConfigError as error:
        found = config.find_state_dir(config_file, environ=os.environ, cwd=Path.cwd())
        if found is None:
            raise
        return found, error


def _reload(ask: Ask, state_dir: Path, sleep: Callable[[float], None], clock: Callable[[], float]) -> dict[str, Any]:
    """Ask for a reload, and ask again until it has its outcome."""
    ticket, end = ask(state_dir, "reload", {})["ticket"], clock() + PATIENCE_S
    while (answer := ask(state_dir, "reload", {"ticket": ticket}))["pending"]:
        if clock() >= end:
            raise ReplyError(f"the service has not reloaded within {PATIENCE_S:g} s", remedy="look into its log")
        sleep(PAUSE_S)
    return answer


def _describe(answer: dict[str, Any]) -> None:
    for key in answer["changed"]:
        say(f"changed  {key}")
    for what, words in _WORDS.items():
        for name in answer[what]:
            say(f"inbox {name}: {words}")
    if answer["workers"]:
        say("the workers are replaced, one by one")
    if not any(answer[part] for part in ("changed", "workers", *_WORDS)):
        say("nothing has changed")
