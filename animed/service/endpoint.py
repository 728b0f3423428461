"""Where the control socket is, and how it is made.

The socket lies in the state folder. A socket's path may have 108 bytes with its final zero, so that a longer one moves
to a short private folder; server and client work the place out by the same rules.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
from typing import TYPE_CHECKING, Final

from animed.service.lock import StateFolderError, make_state_dir

if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET_NAME: Final = "control.sock"
PATH_BYTES: Final = 107  # sizeof sun_path less the final zero: unix(7)
BACKLOG: Final = 16  # callers that the kernel lets wait


def server_path(state_dir: str, environ: Mapping[str, str], *, uid: int) -> str:
    """Return where the service of this state folder, run by `uid` in `environ`, puts its socket."""
    return next(path for path in _places(state_dir, _runtime_folders(environ), uid) if _fits(path))


def client_path(state_dir: str, environ: Mapping[str, str]) -> str | None:
    """Return the socket of the service that owns the state folder; None when it would be elsewhere and is not there.

    The one who asks may be root or of another group than the service, with other variables: the runtime folder of the
    owner counts as well. A short folder that does not belong to the owner is passed over: its socket could be anyone's.
    """
    if _fits(_beside(state_dir)):
        return _beside(state_dir)
    owner = _owner(state_dir)
    places = _places(state_dir, [*_runtime_folders(environ), f"/run/user/{owner}"], owner)
    return next((path for path in places if _fits(path) and _is_trusted(path, owner)), None)


def is_private(folder: str, uid: int) -> bool:
    """Say whether `folder` is a real folder of `uid` that no one else may enter; False when it is not there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077


def listen(path: str) -> socket.socket:
    """Make the socket, with mode 0660, in place of a dead one; raises StateFolderError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        _prepare(path)
        listener.bind(path)
        # Nobody can connect before listen(), so that the socket is never open to more than its mode says.
        os.chmod(path, 0o660)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise StateFolderError(
            f"the control socket cannot be made: {error.strerror or error}",
            remedy="make sure that this user may write the folder, and that nothing else is in its place",
            path=path,
        ) from error
    return listener


def unlink_own(path: str, identity: tuple[int, int]) -> None:
    """Remove the socket if it is still the one with this device and inode."""
    try:
        found = os.lstat(path)
        if (found.st_dev, found.st_ino) == identity:
            os.unlink(path)
    except FileNotFoundError:
        return


def _prepare(path: str) -> None:
    folder = os.path.dirname(path)
    if os.path.basename(path) != SOCKET_NAME:
        # A short folder in a place that others can write: only a private one of ours will do.
        make_state_dir(folder)
        if not is_private(folder, os.geteuid()):
            raise PermissionError(errno.EPERM, "its folder must belong to this user, with mode 0700")
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise FileExistsError(errno.EEXIST, "something that is not a socket has its name")
    os.unlink(path)  # Left behind by an instance that is dead: its lock is ours.


def _places(state_dir: str, runtime_folders: list[str], uid: int) -> list[str]:
    digest = hashlib.sha256(os.fsencode(os.path.realpath(state_dir))).hexdigest()[:16]
    folders = [*(os.path.join(folder, "animed") for folder in runtime_folders), f"/tmp/animed-{uid}"]  # noqa: S108 - owner and mode are checked before use
    return [_beside(state_dir), *(os.path.join(folder, f"{digest}.sock") for folder in folders)]


def _is_trusted(path: str, owner: int) -> bool:
    return is_private(os.path.dirname(path), owner) and os.path.exists(path)


def _beside(state_dir: str) -> str:
    return os.path.join(os.path.abspath(state_dir), SOCKET_NAME)


def _runtime_folders(environ: Mapping[str, str]) -> list[str]:
    folder = environ.get("XDG_RUNTIME_DIR", "")
    return [folder] if folder.startswith("/") else []  # The XDG rules: a relative path is not set.


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= PATH_BYTES


def _owner(state_dir: str) -> int:
    try:
        return os.stat(state_dir).st_uid
    except OSError:
        return os.getuid()
