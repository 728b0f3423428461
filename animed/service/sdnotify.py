"""Words to the service manager (the sd_notify protocol), without a dependency and silent outside systemd.

Protocol: sd_notify(3), sd_watchdog_enabled(3). Only the main process speaks: the unit has NotifyAccess=main, and a word
from a child would be a lie. A manager that is gone is no reason to stop drawing, so that nothing here raises.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
SEND_S: Final = 1.0  # READY=1 must not be lost to a full queue, and a manager that never reads must not stop the loop
LONGEST_NUMBER: Final = 20  # digits of a 64-bit number


def take(environ: MutableMapping[str, str]) -> dict[str, str]:
    """Remove the manager's variables from `environ`, so that no child inherits them, and return what they were.

    The daemon does this before it starts its first worker, and gives the result to Notifier.
    """
    return {name: environ.pop(name) for name in VARIABLES if name in environ}


def send_datagram(address: str, message: bytes) -> None:
    """Send one datagram to the manager's socket within a second; raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.settimeout(SEND_S)
        channel.sendto(message, address)


class Notifier:
    """Tells the manager how the service is.

    `environ` is what `take` returned (or the process environment); `pid` is the main process; `send` puts one datagram
    on its way to an address, and may raise OSError.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        pid: int,
        send: Callable[[str, bytes], None] = send_datagram,
        getpid: Callable[[], int] = os.getpid,
    ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._watchdog_s = _watchdog(environ, pid) if self._address else None
        self._pid = pid
        self._send = send
        self._getpid = getpid
        self._is_ready = False

    def ready(self, status: str) -> None:
        """Say that the service has started (READY=1)."""
        self._is_ready = True
        self._tell(f"READY=1\nSTATUS={_line(status)}")

    def reloading(self, now: float) -> None:
        """Say that the configuration is read again (RELOADING=1), at this time of the monotonic clock.

        Nothing is said before `ready`: the end of a reload would be taken for the end of the start.
        """
        if self._is_ready:
            self._tell(f"RELOADING=1\nMONOTONIC_USEC={round(now * 1_000_000)}\nSTATUS=Reading the configuration")

    def reloaded(self, status: str) -> None:
        """Say that a reload has ended, well or not."""
        if self._is_ready:
            self.ready(status)

    def stopping(self) -> None:
        """Say that the service is on its way out (STOPPING=1)."""
        self._tell("STOPPING=1\nSTATUS=Finishing the photos in work")

    def status(self, text: str) -> None:
        """Give the one line that `systemctl status` shows."""
        self._tell(f"STATUS={_line(text)}")

    def watchdog(self) -> None:
        """Say that the loop is alive and every busy worker makes progress (WATCHDOG=1)."""
        if self._watchdog_s is not None:
            self._tell("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        """Ask for this many seconds more to start or to stop."""
        self._tell(f"EXTEND_TIMEOUT_USEC={max(0, round(seconds * 1_000_000))}")

    def watchdog_interval(self) -> float | None:
        """Return the seconds between two watchdog words, half of what is allowed; None when no one watches."""
        return self._watchdog_s

    def _tell(self, message: str) -> None:
        # A forked child holds a copy of this object, and must not speak for its parent.
        if self._address is None or self._getpid() != self._pid:
            return
        with contextlib.suppress(OSError):  # The manager went away; there is no one left to tell.
            self._send(self._address, message.encode("utf-8", "backslashreplace"))


def _address(name: str) -> str | None:
    """Turn NOTIFY_SOCKET into a socket address: a path, or an abstract name; None for what we cannot speak to."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else None


def _watchdog(environ: Mapping[str, str], pid: int) -> float | None:
    """Return half of WATCHDOG_USEC in seconds, if it is a number and meant for this process."""
    owner = environ.get("WATCHDOG_PID", "")
    span = environ.get("WATCHDOG_USEC", "")
    if (owner and owner != str(pid)) or not (span.isascii() and span.isdigit() and len(span) <= LONGEST_NUMBER):
        return None
    return int(span) / 2_000_000 or None


def _line(text: str) -> str:
    """Keep a status on one line: a line break would start another assignment."""
    return " ".join(text.split())
