"""Reads a changed configuration in a thread of its own: its places may lie on a share that hangs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from animed.errors import AnimedError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.setup import Candidate


@dataclass(frozen=True, slots=True)
class Validated:
    """What one reading came to."""

    number: int
    outcome: Candidate | AnimedError


class Validation:
    """Starts readings, and posts what each came to. One that hangs is left behind: its thread ends with the process."""

    def __init__(self, load: Callable[[], Candidate], post: Callable[[Validated], None]) -> None:
        self._load = load
        self._post = post

    def start(self, number: int) -> None:
        """Begin a reading; never blocks."""
        threading.Thread(target=self._read, args=(number,), name=f"validation-{number}", daemon=True).start()

    def _read(self, number: int) -> None:
        # What is posted when something unexpected ends the thread, which then says so on stderr.
        outcome: Candidate | AnimedError = ConfigError(
            "the check of the configuration has failed", remedy="see the log"
        )
        try:
            outcome = self._load()
        except AnimedError as error:
            outcome = error
        except OSError as error:
            outcome = ConfigError(error.strerror or str(error), path=str(error.filename or ""))
        finally:
            self._post(Validated(number, outcome))
