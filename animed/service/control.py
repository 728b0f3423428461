"""The control socket: one request line in, one reply line out, for a loop of one thread; and the call that asks it.

The server never blocks and trusts no one: a request has 64 KB and 5 s, its reply 5 s more; 16 may ask at a time.
"""

from __future__ import annotations

import os
import select
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from animed.errors import AnimedError, NotRunningError
from animed.service.endpoint import client_path, listen, unlink_own
from animed.service.peer import Peer
from animed.service.protocol import (
    REQUEST_BYTES,
    DeniedError,
    ReplyError,
    RequestError,
    failure_line,
    read_reply,
    read_request,
    request_line,
    success_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

CHUNK_BYTES: Final = 65536
MOST_CONNECTIONS: Final = 16
PATIENCE_S: Final = 5.0
ACCEPT_PAUSE_S: Final = 1.0  # after a refused accept (no descriptors left): else the waiting caller would spin the loop
BUSY_PAUSE_S: Final = 0.05  # between two tries to get into a full queue


@dataclass(slots=True, eq=False)
class _Connection:
    channel: socket.socket
    deadline: float
    request: bytearray = field(default_factory=bytearray)
    reply: memoryview | None = None


class ControlServer:
    """Answers on the control socket of a state folder whose lock this process holds.

    `handler(command, arguments)` returns the result, or raises AnimedError, whose title, remedy and exit status become
    the reply; RequestError is for what it does not know. `may_speak` judges a peer. The daemon waits for `waitables()`
    to become readable, or for `next_deadline`, and calls `poll`.
    """

    def __init__(
        self,
        path: str,
        handler: Callable[[str, dict[str, Any]], dict[str, Any]],
        *,
        may_speak: Callable[[Peer, int], bool] | None = None,
    ) -> None:
        self.path = path
        self._handler = handler
        self._may_speak = may_speak or _own_or_group
        self._listener = listen(path)
        found = os.lstat(path)
        self._identity, self._group = (found.st_dev, found.st_ino), found.st_gid
        self._connections: dict[int, _Connection] = {}
        self._accept_at: float | None = None  # when a paused listener is looked at again
        self._listening = False
        # An epoll is itself readable when anything in it is ready, for reading or for writing: one thing to wait for.
        self._epoll = select.epoll()
        self._listen_or_not()

    def waitables(self) -> list[int]:
        """Return the descriptors to wait for: readable when `poll` has work, a reply to continue included."""
        return [self._epoll.fileno()]

    def wants_write(self) -> bool:
        """Say whether a reply is still on its way; `waitables` covers that, this is for a tidy end."""
        return any(connection.reply is not None for connection in self._connections.values())

    def next_deadline(self) -> float | None:
        """Return the monotonic time at which `poll` must be called even if nothing is ready."""
        times = [connection.deadline for connection in self._connections.values()]
        return min([*times, *([] if self._accept_at is None else [self._accept_at])], default=None)

    def poll(self, ready: Collection[object], now: float) -> None:
        """Do what can be done at once; `ready` are the waitables that are readable, `now` the monotonic time."""
        if self._accept_at is not None and now >= self._accept_at:
            self._accept_at = None
        for connection in [each for each in self._connections.values() if now >= each.deadline]:
            self._close(connection)
        if self._epoll.fileno() in ready:
            for descriptor, _ in self._epoll.poll(0):
                self._serve(descriptor, now)
        self._listen_or_not()

    def close(self) -> None:
        """Hang up, and remove the socket if it is still this server's own."""
        for connection in list(self._connections.values()):
            self._close(connection)
        self._epoll.close()
        unlink_own(self.path, self._identity)  # Before the close: until then nothing else can have this inode.
        self._listener.close()

    def _listen_or_not(self) -> None:
        wanted = len(self._connections) < MOST_CONNECTIONS and self._accept_at is None
        if wanted and not self._listening:
            self._epoll.register(self._listener, select.EPOLLIN)
        elif self._listening and not wanted:
            self._epoll.unregister(self._listener)
        self._listening = wanted

    def _serve(self, descriptor: int, now: float) -> None:
        if descriptor == self._listener.fileno():
            self._accept(now)
            return
        connection = self._connections[descriptor]
        try:
            chunk = self._exchange(connection)
        except BlockingIOError:
            return
        except OSError:  # The caller hung up; there is no one to answer.
            chunk = b""
        if not chunk:
            self._close(connection)
        elif connection.reply is None:
            self._read(connection, chunk, now)

    def _exchange(self, connection: _Connection) -> bytes | memoryview:
        """Move bytes once: return what came in or what is still to go out; nothing means the end."""
        if connection.reply is None:
            return connection.channel.recv(CHUNK_BYTES)
        connection.reply = connection.reply[connection.channel.send(connection.reply) :]
        return connection.reply

    def _accept(self, now: float) -> None:
        try:
            channel, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            self._accept_at = now + ACCEPT_PAUSE_S
            return
        channel.settimeout(0)
        connection = _Connection(channel, now + PATIENCE_S)
        self._connections[channel.fileno()] = connection
        self._epoll.register(channel, select.EPOLLIN)
        if not self._admits(channel):
            self._answer(connection, failure_line(DeniedError()), now)

    def _admits(self, channel: socket.socket) -> bool:
        try:
            return self._may_speak(Peer.of(channel), self._group)
        except OSError:
            return False

    def _read(self, connection: _Connection, chunk: bytes | memoryview, now: float) -> None:
        connection.request += chunk
        line, found, _ = connection.request.partition(b"\n")
        if len(line) > REQUEST_BYTES:
            self._answer(connection, failure_line(_too_long()), now)
        elif found:
            self._answer(connection, self._reply(bytes(line)), now)

    def _reply(self, line: bytes) -> bytes:
        try:
            return success_line(self._handler(*read_request(line)))
        except AnimedError as error:
            return failure_line(error)

    def _answer(self, connection: _Connection, reply: bytes, now: float) -> None:
        connection.reply = memoryview(reply)
        connection.deadline = now + PATIENCE_S
        self._epoll.modify(connection.channel, select.EPOLLOUT)

    def _close(self, connection: _Connection) -> None:
        del self._connections[connection.channel.fileno()]
        self._epoll.unregister(connection.channel)
        connection.channel.close()


def _own_or_group(peer: Peer, group: int) -> bool:
    return peer.may_speak(owner=os.geteuid(), group=group)


def _too_long() -> RequestError:
    return RequestError(f"the request is longer than {REQUEST_BYTES} bytes")


def call(
    state_dir: str, command: str, *, environ: Mapping[str, str], timeout: float = 10.0, **arguments: Any
) -> dict[str, Any]:
    """Ask the service of a state folder, for at most `timeout` seconds, and return its result.

    Raises NotRunningError when there is none, DeniedError when this user may not ask, ReplyError with the service's own
    title, remedy and exit status when it refuses, and RequestError when the arguments are too long to send.
    """
    line = request_line(command, arguments)
    path = client_path(state_dir, environ)
    if path is None:
        raise _not_running(state_dir)
    deadline = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as channel:
        try:
            _connect(channel, path, deadline)
            _send(channel, line, deadline)
            return read_reply(_receive(channel, deadline))
        except TimeoutError as error:
            raise ReplyError(
                f"the service did not answer within {timeout:g} s", remedy="look into its log", path=path
            ) from error
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
            raise _not_running(state_dir) from error
        except PermissionError as error:
            raise DeniedError(path) from error
        except OSError as error:
            raise ReplyError(f"the service cannot be asked: {error.strerror or error}", path=path) from error


def _not_running(state_dir: str) -> NotRunningError:
    remedy = "start it with `animed run`, or see whether state_dir is the service's"
    return NotRunningError(f"no service is running for {state_dir}", remedy=remedy)


def _connect(channel: socket.socket, path: str, deadline: float) -> None:
    while True:
        channel.settimeout(_left(deadline))
        try:
            channel.connect(path)
        except BlockingIOError:  # Its queue is full; a socket with a timeout does not wait for a place.
            time.sleep(BUSY_PAUSE_S)
        else:
            return


def _send(channel: socket.socket, line: bytes, deadline: float) -> None:
    channel.settimeout(_left(deadline))
    try:
        channel.sendall(line)
    except (BrokenPipeError, ConnectionResetError):
        return  # It has answered before it read everything: the answer says why.


def _receive(channel: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    while not (parts and parts[-1].endswith(b"\n")):
        channel.settimeout(_left(deadline))
        try:
            chunk = channel.recv(CHUNK_BYTES)
        except ConnectionResetError:
            break
        if not chunk:
            break
        parts.append(chunk)
    return b"".join(parts)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
