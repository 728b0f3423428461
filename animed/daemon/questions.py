"""What the control socket is asked: each command is one method, its answer a JSON object."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

from animed.daemon.again import Again
from animed.daemon.failures import entry
from animed.daemon.steering import steering
from animed.daemon.whereabouts import whereabouts
from animed.records import PhotoKey
from animed.service.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from animed.daemon.backlog import Backlog
    from animed.daemon.desk import Desk
    from animed.daemon.gate import Gate

    Answer = dict[str, Any]
    Reload = Callable[[Answer, float], Answer]  # arguments and the loop's time; raises AnimedError


class Questions:
    """Answers from the main thread, between two turns of the loop; nothing here may block."""

    def __init__(
        self,
        desk: Desk,
        backlog: Backlog,
        gate: Gate,
        *,
        status: Callable[[], Answer],
        clock: Callable[[], float],
        reload: Reload,
    ) -> None:
        self._desk = desk
        self._gate = gate
        self._status = status
        self._clock = clock
        self._again = Again(desk, backlog, clock)
        self._answers: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "status": lambda _: status(),
            "failed": self._failed,
            "retry": self._retry,
            "forget": self._forget,
            "where": self._where,
            **steering(desk, gate, clock),
            "reload": lambda arguments: reload(arguments, clock()),
        }

    def answer(self, command: str, arguments: dict[str, Any]) -> Answer:
        """Return the answer; raises RequestError for what is not known."""
        try:
            handler = self._answers[command]
        except KeyError:
            raise RequestError(f"unknown command: {command}") from None
        return handler(arguments)

    def _failed(self, _arguments: dict[str, Any]) -> Answer:
        roots = {inbox.name: inbox.root for inbox in self._desk.inboxes.values()}
        return {"failed": [entry(row, roots.get(row.key.inbox)) for row in self._desk.ledger.failures()]}

    def _retry(self, arguments: dict[str, Any]) -> Answer:
        """Queue photos again: failed ones (all, or those with these full paths, base64 of bytes), or outdated ones."""
        if arguments.get("outdated"):
            return self._again.outdated()
        return self._again.retry(None if arguments.get("all") else self._keys(arguments.get("paths")))

    def _forget(self, arguments: dict[str, Any]) -> Answer:
        """Treat the photos at and below these full paths (base64 of bytes) as never seen."""
        return self._again.forget(self._keys(arguments.get("paths")))

    def _where(self, arguments: dict[str, Any]) -> Answer:
        """Say where the photo with this full path (base64 of bytes) stands, and what holds it back."""
        (key,) = self._keys([arguments.get("path")]).values()
        if key is None:
            return {"where": None}
        return whereabouts(self._desk, self._gate, key, state=self._status()["state"], now=self._clock())

    def _keys(self, paths: object) -> dict[str, PhotoKey | None]:
        if not isinstance(paths, list) or not all(isinstance(text, str) for text in paths):
            raise RequestError("paths must be a list of texts")
        try:
            return {text: self._key(base64.b64decode(text, validate=True)) for text in paths}
        except ValueError as error:  # binascii.Error, and a bare one for text that is not ASCII
            raise RequestError(f"a path is not base64: {error}") from error

    def _key(self, full: bytes) -> PhotoKey | None:
        for inbox in self._desk.inboxes.values():
            root = os.path.join(os.fsencode(inbox.root), b"")
            if os.path.join(full, b"").startswith(root):
                return PhotoKey(inbox.name, full[len(root) :])  # An empty path means the inbox itself.
        return None
