"""The control socket: who may ask, what is answered, and that no caller can hold the loop up."""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import socket
import stat
import tempfile
import threading
import time
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.errors import ConfigError, NotRunningError
from animed.service.control import MOST_CONNECTIONS, PATIENCE_S, ControlServer, call
from animed.service.endpoint import client_path, server_path
from animed.service.lock import StateFolderError
from animed.service.peer import Peer
from animed.service.protocol import DeniedError, ReplyError, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534


def answer(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Be a small service: echo, a long list, two kinds of refusal."""
    match command:
        case "echo":
            return {"arguments": arguments}
        case "failed":
            return {"failures": [{"path": f"/inbox/{number}-\udcff.jpg"} for number in range(arguments["count"])]}
        case "refuse":
            raise ConfigError("the key is wrong", remedy="set it right", path="/etc/a.yaml")
    raise RequestError(f"unknown command {command!r}", remedy="see `animed --help`")


def turn(server: ControlServer, now: float = 0.0, *, patience: float = 0.2) -> None:
    """Let the server work until it has had nothing to do for a moment, at one frozen time."""
    while ready := wait(server.waitables(), timeout=patience):
        server.poll(ready, now)
        patience = 0.05


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ControlServer]:
    """Yield a server that nobody turns yet."""
    made = ControlServer(server_path(str(tmp_path), {}, uid=os.geteuid()), answer)
    yield made
    made.close()


@contextmanager
def running(server: ControlServer) -> Iterator[None]:
    """Turn the server in a thread, as the daemon's loop does."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            server.poll(wait(server.waitables(), timeout=0.02), time.monotonic())

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def connect(server: ControlServer) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.connect(server.path)
    caller.settimeout(0)
    return caller


def ask(server: ControlServer, raw: bytes) -> dict[str, Any]:
    """Send raw bytes, and return the reply."""
    with connect(server) as caller:
        caller.sendall(raw)
        turn(server)
        reply = json.loads(caller.recv(1 << 20))
        assert isinstance(reply, dict)
        return reply


# ---- Talking -------------------------------------------------------------------------------------------------------


def test_a_call_returns_the_result(tmp_path: Path, server: ControlServer) -> None:
    """The client gets what the handler returned, with its arguments unharmed."""
    with running(server):
        result = call(str(tmp_path), "echo", environ={}, paths=["/a b\n", "é\udcff"], all=True)
    assert result == {"arguments": {"paths": ["/a b\n", "é\udcff"], "all": True}}


def test_a_long_reply_arrives_whole(tmp_path: Path, server: ControlServer) -> None:
    """Ten thousand failures, more than any socket buffer holds, arrive whole."""
    with running(server):
        result = call(str(tmp_path), "failed", environ={}, count=10_000)
    assert len(result["failures"]) == 10_000
    assert result["failures"][9_999] == {"path": "/inbox/9999-\udcff.jpg"}


def test_a_refusal_keeps_title_remedy_and_status(tmp_path: Path, server: ControlServer) -> None:
    """An error of the handler reaches the caller with everything a user needs, and the service's exit status."""
    with running(server), pytest.raises(ReplyError) as caught:
        call(str(tmp_path), "refuse", environ={})
    assert caught.value.title == "/etc/a.yaml: the key is wrong"
    assert caught.value.remedy == "set it right"
    assert caught.value.exit_status == 78


@pytest.mark.parametrize(
    "raw",
    [
        b"\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b'"status"\n',
        b"{}\n",
        b'{"command": 5}\n',
        b'{"command": "echo", "arguments": []}\n',
        b'{"command": "echo", "arguments": null}\n',
        b'{"command": "fly"}\n',
        b"\xff\xfe\n",
        b"[" * 60_000 + b"\n",
        b"9" * 60_000 + b"\n",
        b'{"command": "echo"' + b" " * 70_000 + b"}\n",
        b"x" * 70_000,
    ],
)
def test_a_bad_request_gets_an_error_reply(server: ControlServer, raw: bytes) -> None:
    """Whatever is not a request gets an error reply with a title and exit status 2, and the server goes on."""
    reply = ask(server, raw)
    assert reply["ok"] is False
    assert reply["error"]
    assert reply["exit"] == 2
    assert ask(server, b'{"command": "echo"}\n') == {"ok": True, "result": {"arguments": {}}}


@given(raw=st.binary(max_size=300))
@settings(deadline=None, max_examples=60)
def test_no_line_stops_the_server(raw: bytes) -> None:
    """Any line of bytes gets exactly one reply line."""
    with tempfile.TemporaryDirectory() as folder:
        server = ControlServer(server_path(folder, {}, uid=os.geteuid()), answer)
        try:
            assert ask(server, raw.replace(b"\n", b"") + b"\n")["ok"] is False
        finally:
            server.close()


def test_a_request_may_come_in_pieces(server: ControlServer) -> None:
    """A request that arrives byte by byte is answered once, when its line is complete."""
    with connect(server) as caller:
        for byte in b'{"command": "echo"}':
            caller.sendall(bytes([byte]))
            turn(server, patience=0.05)
            with pytest.raises(BlockingIOError):
                caller.recv(1)
        caller.sendall(b"\n")
        turn(server)
        assert json.loads(caller.recv(4096))["ok"] is True
        assert caller.recv(1) == b""


# ---- Slow and hostile callers --------------------------------------------------------------------------------------


def test_a_silent_caller_is_hung_up_on(server: ControlServer) -> None:
    """Who sends no full line within the time allowed is dropped, not before, and the deadline is known."""
    with connect(server) as caller:
        turn(server, now=100.0)
        assert server.next_deadline() == 100.0 + PATIENCE_S
        server.poll([], 100.0 + PATIENCE_S - 0.01)
        with pytest.raises(BlockingIOError):
            caller.recv(1)
        server.poll([], 100.0 + PATIENCE_S)
        assert caller.recv(1) == b""
        assert server.next_deadline() is None


def test_a_caller_that_does_not_read_holds_nothing_up(server: ControlServer) -> None:
    """A reply that nobody reads waits without spinning the loop, and is given up in time."""
    with connect(server) as caller:
        caller.sendall(b'{"command": "failed", "arguments": {"count": 20000}}\n')
        turn(server, now=7.0)
        assert server.wants_write()
        assert wait(server.waitables(), timeout=0) == []
        assert ask(server, b'{"command": "echo"}\n')["ok"] is True
        server.poll([], 7.0 + PATIENCE_S)
        assert not server.wants_write()


def test_a_caller_that_leaves_is_forgotten(server: ControlServer) -> None:
    """Hanging up before, during or after the request leaves nothing behind."""
    for sent in (b"", b'{"comm', b'{"command": "failed", "arguments": {"count": 20000}}\n'):
        with connect(server) as caller:
            caller.sendall(sent)
        turn(server)
        assert server.next_deadline() is None


def test_more_callers_than_places_wait_their_turn(server: ControlServer) -> None:
    """The seventeenth caller waits in the queue without spinning the loop, and is served when a place is free."""
    silent = [connect(server) for _ in range(MOST_CONNECTIONS)]
    turn(server, now=0.0)
    with connect(server) as caller:
        caller.sendall(b'{"command": "echo"}\n')
        assert wait(server.waitables(), timeout=0.05) == []
        silent.pop().close()
        turn(server, now=1.0)
        assert json.loads(caller.recv(4096))["ok"] is True
    for each in silent:
        each.close()


def test_an_accept_that_fails_is_tried_again_later(server: ControlServer) -> None:
    """Without free descriptors the server lets callers wait a second instead of spinning."""

    class Full:
        """A listener of a process that has no descriptor left."""

        def fileno(self) -> int:
            return listener.fileno()

        def accept(self) -> tuple[socket.socket, str]:
            raise OSError(errno.EMFILE, "Too many open files")

    listener = server._listener
    with connect(server) as caller:
        caller.sendall(b'{"command": "echo"}\n')
        server._listener = Full()  # type: ignore[assignment]  # it has what the server calls
        turn(server, now=50.0)
        assert wait(server.waitables(), timeout=0) == []
        assert server.next_deadline() == 51.0
        server._listener = listener
        server.poll([], 51.0)
        turn(server, now=51.0)
        assert json.loads(caller.recv(4096))["ok"] is True


# ---- Who may speak -------------------------------------------------------------------------------------------------


def test_the_kernel_names_the_peer() -> None:
    """The peer is who connected: this very process, with its groups."""
    one, two = socket.socketpair()
    with one, two:
        peer = Peer.of(one)
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.geteuid(), os.getegid())
    assert peer.groups == frozenset(os.getgroups())


@pytest.mark.parametrize(
    ("peer", "allowed"),
    [
        (Peer(1, 1000, 100, frozenset()), True),
        (Peer(1, 0, 0, frozenset()), True),
        (Peer(1, 2000, 50, frozenset()), True),
        (Peer(1, 2000, 100, frozenset({7, 50})), True),
        (Peer(1, 2000, 100, frozenset({7})), False),
        (Peer(1, NOBODY, NOBODY, frozenset()), False),
    ],
)
def test_own_user_root_and_group_may_speak(peer: Peer, *, allowed: bool) -> None:
    """The service's own user, root, and members of the socket's group may speak, and no one else."""
    assert peer.may_speak(owner=1000, group=50) is allowed


def test_a_stranger_is_told_and_never_heard(tmp_path: Path) -> None:
    """A peer that may not speak gets an error with exit status 69, and the handler never sees its request."""
    heard: list[str] = []

    def handler(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        heard.append(command)
        return arguments

    server = ControlServer(server_path(str(tmp_path), {}, uid=os.geteuid()), handler, may_speak=lambda *_: False)
    with running(server), pytest.raises(ReplyError, match="denied") as caught:
        call(str(tmp_path), "pause", environ={})
    server.close()
    assert heard == []
    assert caught.value.exit_status == 69


def test_the_socket_is_for_owner_and_group(server: ControlServer) -> None:
    """The socket's mode is 0660, whatever the umask is."""
    assert stat.S_IMODE(os.stat(server.path).st_mode) == 0o660


@contextmanager
def another_user(*folders: Path) -> Iterator[None]:
    """Be a user without rights, after opening the way to the folders; only root can."""
    for folder in folders:
        folder.chmod(0o755)
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user to be refused by the kernel")
def test_the_mode_keeps_others_out(tmp_path: Path, server: ControlServer) -> None:
    """Who has no right to the socket gets a clear error, not "not running"."""
    with (
        running(server),
        another_user(tmp_path, tmp_path.parent, tmp_path.parent.parent),
        pytest.raises(DeniedError, match="denied"),
    ):
        call(str(tmp_path), "echo", environ={})


# ---- Where it is ---------------------------------------------------------------------------------------------------


def deep(folder: Path) -> Path:
    """Make a state folder whose socket would have too long a path."""
    state = folder / ("x" * 100) / "state"
    state.mkdir(parents=True)
    return state


def test_a_short_path_is_beside_the_ledger(tmp_path: Path) -> None:
    """The socket lies in the state folder as long as its path has at most 107 bytes, and then no longer."""
    longest = "/" + "s" * (107 - len("//control.sock"))
    assert server_path(longest, {}, uid=5) == f"{longest}/control.sock"
    assert len(server_path(longest, {}, uid=5).encode()) == 107
    assert server_path(longest + "s", {}, uid=5).startswith("/tmp/animed-5/")  # noqa: S108 - the name is the law
    assert server_path("/é" * 50, {"XDG_RUNTIME_DIR": "/run/user/5"}, uid=5).startswith("/run/user/5/animed/")
    assert client_path(str(tmp_path), {"XDG_RUNTIME_DIR": "/nowhere"}) == str(tmp_path / "control.sock")


@pytest.mark.parametrize("runtime", [True, False])
def test_a_long_path_moves_and_is_found(tmp_path: Path, *, runtime: bool) -> None:
    """With a state folder deep down, server and client meet in the runtime folder, or in a private one in /tmp."""
    short = Path(tempfile.mkdtemp(prefix="animed-"))
    environ = {"XDG_RUNTIME_DIR": str(short)} if runtime else {}
    state = deep(tmp_path)
    server = ControlServer(server_path(str(state), environ, uid=os.geteuid()), answer)
    try:
        assert Path(server.path).parent == (short / "animed" if runtime else Path(f"/tmp/animed-{os.geteuid()}"))  # noqa: S108 - the name is the law
        assert stat.S_IMODE(os.stat(Path(server.path).parent).st_mode) == 0o700
        with running(server):
            assert call(str(state), "echo", environ=environ) == {"arguments": {}}
    finally:
        server.close()
        shutil.rmtree(short)
    assert not os.path.exists(server.path)


def test_two_state_folders_have_two_sockets(tmp_path: Path) -> None:
    """Different state folders never share a socket; another spelling of the same folder finds the same one."""
    one, two = deep(tmp_path / "a"), deep(tmp_path / "b")
    link = tmp_path / "link"
    link.symlink_to(one)
    assert server_path(str(one), {}, uid=5) != server_path(str(two), {}, uid=5)
    assert server_path(f"{one}/../state/", {}, uid=5) == server_path(str(one), {}, uid=5)


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_an_open_short_folder_is_refused(tmp_path: Path, mode: int) -> None:
    """A short folder that others may enter is not used by the server, and not believed by the client."""
    short = Path(tempfile.mkdtemp(prefix="animed-"))
    environ = {"XDG_RUNTIME_DIR": str(short)}
    (short / "animed").mkdir()
    (short / "animed").chmod(mode)
    state = deep(tmp_path)
    path = server_path(str(state), environ, uid=os.geteuid())
    try:
        with pytest.raises(StateFolderError, match="0700"):
            ControlServer(path, answer)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trap:
            trap.bind(path)
            trap.listen()
            with pytest.raises(NotRunningError):
                call(str(state), "echo", environ=environ)
    finally:
        shutil.rmtree(short)


# ---- Coming and going ----------------------------------------------------------------------------------------------


def test_a_dead_socket_is_replaced(tmp_path: Path) -> None:
    """What a killed instance left behind does not keep the next one from answering."""
    path = str(tmp_path / "control.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(path)
    with pytest.raises(NotRunningError):
        call(str(tmp_path), "echo", environ={})
    server = ControlServer(path, answer)
    with running(server):
        assert call(str(tmp_path), "echo", environ={}) == {"arguments": {}}
    server.close()


def test_only_a_socket_is_replaced(tmp_path: Path) -> None:
    """A file that is no socket is never removed: it is a clear error."""
    (tmp_path / "control.sock").write_text("mine")
    with pytest.raises(StateFolderError, match="not a socket"):
        ControlServer(str(tmp_path / "control.sock"), answer)
    assert (tmp_path / "control.sock").read_text() == "mine"


def test_close_leaves_another_ones_socket(tmp_path: Path) -> None:
    """Closing removes the server's own socket, and never one that has taken its name."""
    first = ControlServer(str(tmp_path / "control.sock"), answer)
    second = ControlServer(str(tmp_path / "control.sock"), answer)
    first.close()
    assert (tmp_path / "control.sock").is_socket()
    second.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "place", [lambda folder: folder, lambda folder: folder / "none", lambda folder: folder / "file" / "below"]
)
def test_no_service_is_said_with_a_remedy(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    """Without a service the error names the state folder, what to do, and exit status 69."""
    (tmp_path / "file").touch()
    with pytest.raises(NotRunningError, match="no service is running for") as caught:
        call(str(place(tmp_path)), "status", environ={})
    assert caught.value.exit_status == 69
    assert str(place(tmp_path)) in caught.value.title
    assert "animed run" in caught.value.remedy


def test_a_service_that_hangs_is_said(tmp_path: Path, server: ControlServer) -> None:
    """A service that accepts and never answers costs the caller its timeout and gives a clear error."""
    with pytest.raises(ReplyError, match=r"did not answer within 0.1 s"):
        call(str(tmp_path), "status", environ={}, timeout=0.1)


def test_a_full_queue_is_waited_for_and_then_said(tmp_path: Path) -> None:
    """When the kernel's queue is full, the caller waits for a place, and gives up in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "control.sock"))
        listener.listen(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as first:
            first.connect(str(tmp_path / "control.sock"))
            with pytest.raises(ReplyError, match="did not answer"):
                call(str(tmp_path), "status", environ={}, timeout=0.2)


@pytest.mark.parametrize("reply", [b"", b'{"ok": tr', b"[]\n", b'{"ok": true}\n', b"{}\n"])
def test_half_an_answer_is_an_error(tmp_path: Path, reply: bytes) -> None:
    """An answer that stops short, or has an unknown form, is never taken for a result."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "control.sock"))
        listener.listen(1)

        def serve() -> None:
            with listener.accept()[0] as channel:
                channel.recv(4096)
                channel.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ReplyError, match="answer"):
            call(str(tmp_path), "status", environ={})
        thread.join()


def test_too_many_arguments_are_refused_before_sending(tmp_path: Path) -> None:
    """More paths than a request holds are an error that says so, with or without a service."""
    with pytest.raises(RequestError, match="65536 bytes") as caught:
        call(str(tmp_path), "retry", environ={}, paths=["x" * 70_000])
    assert caught.value.remedy


def test_the_waitable_works_with_poll(server: ControlServer) -> None:
    """What `waitables` returns can be waited for with poll(2) as well."""
    waiting = select.poll()
    for each in server.waitables():
        waiting.register(each, select.POLLIN)
    assert waiting.poll(0) == []
    with connect(server):
        assert waiting.poll(5000) != []
