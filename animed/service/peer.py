"""Who is at the other end of the control socket, and whether they may speak: unix(7), SO_PEERCRED and SO_PEERGROUPS."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Final

SO_PEERGROUPS: Final = 59  # asm-generic/socket.h; the socket module does not name it
CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: pid, uid, gid
GROUPS_BYTES: Final = 1024  # the most that getsockopt fetches here: 256 groups


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, by the kernel's word at the time of connect."""

    pid: int
    uid: int
    gid: int
    groups: frozenset[int]

    @classmethod
    def of(cls, connection: socket.socket) -> Peer:
        """Ask the kernel who connected; raises OSError."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, uid, gid = CREDENTIALS.unpack(raw)
        return cls(pid, uid, gid, _groups(connection))

    def may_speak(self, *, owner: int, group: int) -> bool:
        """Say whether this peer is the service's own user, root, or in the socket's group."""
        return self.uid in {owner, 0} or group in {self.gid, *self.groups}


def _groups(connection: socket.socket) -> frozenset[int]:
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, GROUPS_BYTES)
    except OSError:
        # An older kernel, or more than 256 groups: the primary group alone must do. Less is granted, never more.
        return frozenset()
    return frozenset(struct.unpack(f"{len(raw) // 4}I", raw))
