"""What the control socket is asked: each command is one method, its answer a JSON object."""

from __future__ import annotations

import base64
import binascii
import os
from typing import TYPE_CHECKING, Any

from animed.daemon.active import Phase
from animed.daemon.failures import entry
from animed.daemon.steering import steering
from animed.records import PhotoKey
from animed.service.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from animed.daemon.desk import Desk
    from animed.daemon.gate import Gate

    Answer = dict[str, Any]
    Reload = Callable[[Answer, float], Answer]  # arguments and the loop's time; raises AnimedError


class Questions:
    """Answers from the main thread, between two turns of the loop; nothing here may block."""

    def __init__(
        self, desk: Desk, gate: Gate, status: Callable[[], Answer], clock: Callable[[], float], *, reload: Reload
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._answers: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "status": lambda _: status(),
            "failed": self._failed,
            "retry": self._retry,
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
        """Queue failed photos again: all of them, or those with these full paths (base64 of bytes)."""
        failing = {row.key for row in self._desk.ledger.failures()}
        asked = {} if arguments.get("all") else self._keys(arguments.get("paths"))
        wanted = failing if arguments.get("all") else {key for key in asked.values() if key in failing}
        queued = set(self._desk.ledger.requeue(wanted))
        self._hint(queued)
        return {
            "queued": len(queued),
            "unknown": [text for text, key in asked.items() if key not in failing],
            "busy": [text for text, key in asked.items() if key in failing - queued],
        }

    def _where(self, arguments: dict[str, Any]) -> Answer:
        """Say where the photo with this full path (base64 of bytes) stands, if it is on its way."""
        for key in self._keys([arguments.get("path")]).values():
            if key is None:
                break
            active = self._desk.actives.get(key)
            if active is not None:
                return {"where": "running" if active.phase in {Phase.RUNNING, Phase.PLACING} else "queued"}
            if key.path in self._desk.inbox_of(key).settling:
                return {"where": "waiting"}
        return {"where": None}

    def _hint(self, keys: Iterable[PhotoKey]) -> None:
        now = self._clock()
        for key in keys:
            if key.inbox in self._desk.inboxes:
                self._desk.inbox_of(key).hint(key.path, now)

    def _keys(self, paths: object) -> dict[str, PhotoKey | None]:
        if not isinstance(paths, list) or not all(isinstance(text, str) for text in paths):
            raise RequestError("paths must be a list of texts")
        try:
            return {text: self._key(base64.b64decode(text, validate=True)) for text in paths}
        except binascii.Error as error:
            raise RequestError(f"a path is not base64: {error}") from error

    def _key(self, full: bytes) -> PhotoKey | None:
        for inbox in self._desk.inboxes.values():
            root = os.path.join(os.fsencode(inbox.root), b"")
            if full.startswith(root) and full != root:
                return PhotoKey(inbox.name, full.removeprefix(root))
        return None
