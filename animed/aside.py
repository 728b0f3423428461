"""Calls on file systems that may hang, made in a process of their own.

A call on a share that hangs can be beyond every signal, SIGKILL included, and a process with a thread in such a call
cannot be waited for by whoever started it. So a process that has to end on time makes none: it asks another one, waits
for the answer on a socket, which can always be given up, and leaves the other one behind when it must.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import signal
import socket
import struct
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from animed.errors import AnimedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Beat = Callable[[], None]
    # What is asked: it must pickle. It takes `beat` and the descriptor that came along, and returns its answer and the
    # descriptor that is to go along with that.
    Asked = Callable[[Beat, int | None], tuple[Any, int | None]]
    Message = tuple[str, Any]

_HEADER: Final = struct.Struct(">IB")  # bytes of the message, descriptors that come along
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]);from animed.aside import serve; serve(int(sys.argv[1]))"
)
_LEAVE_S: Final = 1.0  # for a process that has nothing to do to end


@dataclass(frozen=True, slots=True)
class Call:
    """A plain function of this package with its arguments, to be asked of another process."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def __call__(self, _beat: Beat, _descriptor: int | None) -> tuple[Any, int | None]:
        """Do it."""
        return self.function(*self.arguments), None


class Aside:
    """A process for calls that may hang. It starts with the first of them, and again when it was killed.

    One thread at a time may use it. `limit` is the longest silence in seconds; None waits for ever.
    """

    def __init__(self) -> None:
        self._pid: int | None = None
        self._socket: socket.socket | None = None
        self._stuck = False

    def call(
        self, asked: Asked, *, beat: Beat = lambda: None, descriptor: int | None = None, limit: float | None = None
    ) -> tuple[Any, int | None]:
        """Return the answer and the descriptor that came along; `beat` is called at each sign of life.

        Raises the AnimedError or OSError that the call raised, TimeoutError after `limit`, ConnectionResetError when
        the process was killed, RuntimeError with a traceback for a fault of this program.
        """
        return self._result(self._ask(("call", asked), descriptor), beat, limit)

    def iterate(self, asked: Callable[[], Iterator[Any]], *, limit: float | None = None) -> Iterator[Any]:
        """Yield one answer after the other, each fetched when it is wanted; raises as `call` does."""
        channel = self._ask(("iterate", asked), None)
        while True:
            more, value = self._result(channel, lambda: None, limit)[0]
            if not more:
                return
            yield value
            channel = self._ask(("more", None), None)

    def close(self) -> None:
        """End the process; one that hangs is killed and left behind."""
        channel, self._socket = self._socket, None
        if channel is None:
            return
        channel.close()
        if self._stuck or not self._wait(_LEAVE_S):
            self._kill()

    def _ask(self, message: Message, descriptor: int | None) -> socket.socket:
        channel = self._socket or self._start()
        try:
            _send(channel, message, descriptor)
        except (BrokenPipeError, ConnectionResetError):
            raise self._death() from None
        return channel

    def _start(self) -> socket.socket:
        """Start the process; OSError when the system has no room for one."""
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(os.getpid()), json.dumps(_search_path())]
            # Its stdin is the socket. It holds no stream of ours: whoever reads them waits until all have let go.
            away = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
            streams = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0), away, (os.POSIX_SPAWN_DUP2, 1, 2)]
            try:
                self._pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=streams, setsigmask=())
            except BaseException:
                ours.close()
                raise
        self._socket, self._stuck = ours, False
        return ours

    def _result(self, channel: socket.socket, beat: Beat, limit: float | None) -> tuple[Any, int | None]:
        channel.settimeout(limit)
        while True:
            try:
                received = _receive(channel)
            except TimeoutError:
                self._stuck = True
                raise TimeoutError(errno.ETIMEDOUT, "the file system does not answer") from None
            if received is None:
                raise self._death()
            (kind, value), descriptor = received
            if kind == "beat":
                beat()
            elif kind == "raised":
                raise _unpacked(value)
            elif kind == "fault":
                raise RuntimeError(f"a call on a file system failed unexpectedly:\n{value}")
            else:
                return value, descriptor

    def _death(self) -> ConnectionResetError:
        """Bury the process, so that another can be started."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._wait(_LEAVE_S)
        return ConnectionResetError(errno.ECONNRESET, "the process that works on this file system was killed")

    def _wait(self, seconds: float) -> bool:
        """Wait for the end of the process, and say whether it came."""
        end = time.monotonic() + seconds
        while self._pid is not None:
            if os.waitpid(self._pid, os.WNOHANG)[0]:
                self._pid = None
            elif time.monotonic() >= end:
                return False
            else:
                time.sleep(0.002)
        return True

    def _kill(self) -> None:
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            self._wait(0.05)
            self._pid = None


@contextlib.contextmanager
def aside() -> Iterator[Aside]:
    """Give a process for some calls, and end it."""
    one = Aside()
    try:
        yield one
    finally:
        one.close()


# The other side.


@dataclass(slots=True)
class _Server:
    """Does what it is asked, one thing after the other."""

    channel: socket.socket
    scans: list[Iterator[Any]] = field(default_factory=list)

    def run(self) -> None:
        """Work until the other side has gone."""
        while (received := _receive(self.channel)) is not None:
            (kind, asked), descriptor = received
            try:
                answer = self._call(asked, descriptor) if kind == "call" else self._next(kind, asked)
            except (AnimedError, OSError) as error:
                answer = ("raised", _packed(error)), None
            except BaseException:
                _send(self.channel, ("fault", traceback.format_exc()), None)
                raise
            _send(self.channel, *answer)
            if answer[1] is not None:
                os.close(answer[1])

    def _call(self, asked: Asked, descriptor: int | None) -> tuple[Message, int | None]:
        try:
            value, back = asked(lambda: _send(self.channel, ("beat", None), None), descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return ("value", value), back

    def _next(self, kind: str, asked: Callable[[], Iterator[Any]]) -> tuple[Message, None]:
        if kind == "iterate":
            self.scans[:] = [asked()]
        if not self.scans:
            raise ConnectionResetError(errno.ECONNRESET, "the process that had begun this was killed")
        for value in self.scans[0]:
            return ("value", (True, value)), None
        return ("value", (False, None)), None


def serve(parent: int) -> NoReturn:
    """Be the process that is asked, until the parent is gone; the socket is descriptor 0."""
    from animed.tie import own_signals, tie_to_parent  # noqa: PLC0415 -- only this side needs it, and what it brings

    os.chdir("/")  # No share that we work on shall be held by standing in it.
    os.closerange(3, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") > 0 else 1 << 16)
    own_signals()
    if tie_to_parent(parent, b"animed-io"):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # The parent has gone: nobody wants an answer.
            _Server(socket.socket(fileno=0)).run()
    os._exit(0)


def _packed(error: AnimedError | OSError) -> object:
    """Return an error so that it pickles: the constructors of ours want arguments by name."""
    return error if isinstance(error, OSError) else (type(error), error.args, error.__dict__)


def _unpacked(packed: Any) -> BaseException:
    """Return an error as it was."""
    if isinstance(packed, BaseException):
        return packed
    kind, arguments, fields = packed
    error: BaseException = kind.__new__(kind, *arguments)
    error.__dict__.update(fields)
    return error


def _search_path() -> list[str]:
    """Return where the other process finds this very package and all that it needs."""
    return [str(Path(__file__).parents[1]), *(os.path.abspath(path) for path in sys.path)]


def _send(channel: socket.socket, message: Message, descriptor: int | None) -> None:
    data = pickle.dumps(message)
    descriptors = [] if descriptor is None else [descriptor]
    socket.send_fds(channel, [_HEADER.pack(len(data), len(descriptors))], descriptors)
    channel.sendall(data)


def _receive(channel: socket.socket) -> tuple[Message, int | None] | None:
    """Return the next message and its descriptor; None when the other side is gone."""
    try:
        head, descriptors, _, _ = socket.recv_fds(channel, _HEADER.size, 1, socket.MSG_CMSG_CLOEXEC)
        head += _exactly(channel, _HEADER.size - len(head)) if head else b""
        data = _exactly(channel, _HEADER.unpack(head)[0]) if len(head) == _HEADER.size else b""
    except ConnectionResetError:
        return None
    if not data:
        return None
    message: Message = pickle.loads(data)  # noqa: S301 -- both ends are this program
    return message, descriptors[0] if descriptors else None


def _exactly(channel: socket.socket, size: int) -> bytes:
    """Read that many bytes; fewer when the other side is gone."""
    data = bytearray()
    while len(data) < size and (part := channel.recv(size - len(data))):
        data += part
    return bytes(data) if len(data) == size else b""
