"""The two lines of a conversation on the control socket, made and read.

{"command": "pause", "arguments": {}}   →   {"ok": true, "result": {...}}
                                        →   {"ok": false, "error": "...", "remedy": "...", "exit": 2}
"""

from __future__ import annotations

import json
from typing import Any, Final

from animed.errors import EXIT_UNAVAILABLE, EXIT_USAGE, AnimedError

REQUEST_BYTES: Final = 65536


class RequestError(AnimedError):
    """A request that cannot be answered: not JSON, not of the expected form, or an unknown command.

    The handler raises it for commands and arguments that it does not know.
    """

    exit_status = EXIT_USAGE


class DeniedError(AnimedError):
    """The service does not answer this user."""

    exit_status = EXIT_UNAVAILABLE

    def __init__(self, path: str = "") -> None:
        remedy = "ask as the user that runs the service, as root, or as a member of its group"
        super().__init__("permission to speak to the service is denied", remedy=remedy, path=path)


class ReplyError(AnimedError):
    """The service could not be asked, or refused; the exit status is the service's own when it gave one."""

    exit_status = EXIT_UNAVAILABLE

    def __init__(self, title: str, *, remedy: str = "", path: str = "", exit_status: int = EXIT_UNAVAILABLE) -> None:
        super().__init__(title, remedy=remedy, path=path)
        self.exit_status = exit_status


def request_line(command: str, arguments: dict[str, Any]) -> bytes:
    """Return a request as one line; raises RequestError when it is longer than a server takes."""
    line = json.dumps({"command": command, "arguments": arguments}).encode()
    if len(line) > REQUEST_BYTES:
        raise RequestError(
            f"the request is longer than {REQUEST_BYTES} bytes", remedy="name fewer paths in one call of the command"
        )
    return line + b"\n"


def read_request(line: bytes) -> tuple[str, dict[str, Any]]:
    """Return the command and its arguments; raises RequestError."""
    request = _object(line)
    command, arguments = request.get("command"), request.get("arguments", {})
    if not isinstance(command, str):
        raise RequestError('the request has no "command", or it is not a text')
    if not isinstance(arguments, dict):
        raise RequestError('"arguments" is not a JSON object')
    return command, arguments


def success_line(result: dict[str, Any]) -> bytes:
    """Return the reply that carries a result."""
    return json.dumps({"ok": True, "result": result}).encode() + b"\n"


def failure_line(error: AnimedError) -> bytes:
    """Return the reply that carries an error."""
    title = f"{error.path}: {error.title}" if error.path else error.title
    reply = {"ok": False, "error": title, "remedy": error.remedy, "exit": error.exit_status}
    return json.dumps(reply).encode() + b"\n"


def read_reply(line: bytes) -> dict[str, Any]:
    """Return the result of a reply; raises ReplyError for a refusal and for what is no reply."""
    try:
        reply = _object(line)
    except RequestError as error:
        raise ReplyError("the service gave no complete answer", remedy="look into its log") from error
    if reply.get("ok") is True and isinstance(reply.get("result"), dict):
        return dict(reply["result"])
    status = reply.get("exit")
    raise ReplyError(
        str(reply.get("error", "the service gave an answer of an unknown form")),
        remedy=str(reply.get("remedy", "")),
        exit_status=status if isinstance(status, int) else EXIT_UNAVAILABLE,
    )


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:  # RecursionError: brackets nested by the thousand.
        raise RequestError("the request is not JSON in UTF-8") from error
    if not isinstance(value, dict):
        raise RequestError("the request is not a JSON object")
    return value
