"""The words to the service manager: what is sent, to whom, and when nothing is."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.service.sdnotify import Notifier, take

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PID = os.getpid()


class Manager:
    """A service manager's end: a datagram socket at a path or under an abstract name."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(0)

    def heard(self) -> list[str]:
        """Return every message that has come in."""
        messages = []
        while True:
            try:
                messages.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return messages


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Manager, str]]:
    """Yield a manager and its NOTIFY_SOCKET, for both kinds of address."""
    if request.param == "path":
        name = str(tmp_path / "notify")
        found = Manager(name)
    else:
        name = f"@animed-test-{secrets.token_hex(8)}"
        found = Manager("\0" + name[1:])
    yield found, name
    found.socket.close()


def test_every_word_reaches_the_manager(manager: tuple[Manager, str]) -> None:
    """Each method sends one datagram in the protocol's form, to a path and to an abstract name alike."""
    end, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "60000000"}, pid=PID)
    notifier.ready("2 inboxes")
    notifier.status("12 photos\nREADY=0")
    notifier.watchdog()
    notifier.extend(1.5)
    notifier.stopping()
    assert end.heard() == [
        "READY=1\nSTATUS=2 inboxes",
        "STATUS=12 photos READY=0",
        "WATCHDOG=1",
        "EXTEND_TIMEOUT_USEC=1500000",
        "STOPPING=1\nSTATUS=Finishing the photos in work",
    ]


def test_a_reload_is_told_once_the_service_is_ready(manager: tuple[Manager, str]) -> None:
    """RELOADING=1 carries the clock and ends with READY=1; during the start neither is said."""
    end, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name}, pid=PID)
    notifier.reloading(1.5)
    notifier.reloaded("Waiting")
    notifier.ready("Waiting")
    notifier.reloading(12.345678)
    notifier.reloaded("Waiting")
    assert end.heard() == [
        "READY=1\nSTATUS=Waiting",
        "RELOADING=1\nMONOTONIC_USEC=12345678\nSTATUS=Reading the configuration",
        "READY=1\nSTATUS=Waiting",
    ]


def test_a_copy_in_a_child_is_silent(manager: tuple[Manager, str]) -> None:
    """Only the main process speaks: with another process number nothing is sent."""
    end, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "60000000"}, pid=PID, getpid=lambda: PID + 1)
    notifier.ready("")
    notifier.watchdog()
    assert end.heard() == []


def test_no_watchdog_word_is_sent_unasked(manager: tuple[Manager, str]) -> None:
    """A manager that does not watch hears no watchdog words."""
    end, name = manager
    Notifier({"NOTIFY_SOCKET": name}, pid=PID).watchdog()
    assert end.heard() == []


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_outside_systemd_nothing_is_sent(environ: dict[str, str]) -> None:
    """Without an address that can be spoken to, no method sends or raises, and no one watches."""
    sent: list[str] = []
    notifier = Notifier(environ | {"WATCHDOG_USEC": "1000000"}, pid=PID, send=lambda to, _: sent.append(to))
    notifier.ready("up")
    notifier.watchdog()
    notifier.stopping()
    assert sent == []
    assert notifier.watchdog_interval() is None


@pytest.mark.parametrize("name", ["/nowhere/notify", "/" + "x" * 200, "@gone"])
def test_a_manager_that_is_gone_stops_nothing(name: str) -> None:
    """A socket that is not there, or cannot be, is no error."""
    Notifier({"NOTIFY_SOCKET": name}, pid=PID).ready("up")


def test_a_manager_that_does_not_read_stops_nothing(tmp_path: Path) -> None:
    """A full queue costs a bounded wait and no error."""
    end = Manager(str(tmp_path / "full"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
        filler.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                filler.sendto(b"x", str(tmp_path / "full"))
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "full")}, pid=PID).status("lost")
    assert "STATUS=lost" not in end.heard()
    end.socket.close()


@pytest.mark.parametrize(
    ("span", "owner", "interval"),
    [
        ("60000000", None, 30.0),
        ("60000000", 0, 30.0),
        ("60000000", 1, None),
        ("0", None, None),
        ("-5", None, None),
        ("soon", None, None),
        ("9" * 5000, None, None),
        ("", None, None),
    ],
)
def test_the_interval_is_half_and_only_ours(span: str, owner: int | None, interval: float | None) -> None:
    """The watchdog interval is half of WATCHDOG_USEC, for a positive number that is meant for this process."""
    environ = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": span}
    if owner is not None:
        environ["WATCHDOG_PID"] = str(PID + owner)
    assert Notifier(environ, pid=PID).watchdog_interval() == interval


def test_children_inherit_nothing_of_the_manager() -> None:
    """`take` removes the manager's variables, and only them, and returns them."""
    environ = {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "1", "HOME": "/root"}
    assert take(environ) == {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}
    assert environ == {"HOME": "/root"}
    assert take(environ) == {}


def test_take_reaches_the_real_environment() -> None:
    """Taken from os.environ, the variables are gone from what a child process sees."""
    program = (
        "import os, subprocess, sys; from animed.service.sdnotify import take; take(os.environ);"
        "subprocess.run([sys.executable, '-c', 'import os; print(sorted(os.environ))'], check=True)"
    )
    environ = {**os.environ, "NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}
    seen = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert "NOTIFY_SOCKET" not in seen.stdout
    assert "WATCHDOG" not in seen.stdout


@given(text=st.text())
@settings(deadline=None, max_examples=100)
def test_a_status_is_always_one_assignment(text: str) -> None:
    """Whatever a status holds, it stays one line, and it can be encoded."""
    sent: list[bytes] = []
    Notifier({"NOTIFY_SOCKET": "/n"}, pid=PID, send=lambda _, message: sent.append(message)).status(text + "\udcff")
    assert len(sent) == 1
    assert sent[0].startswith(b"STATUS=")
    assert b"\n" not in sent[0]
