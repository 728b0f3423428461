"""A file system that hangs on command: a pass-through FUSE server in plain Python, run as a process of its own.

    python hanging_fs.py MOUNTPOINT BACKING

A line of JSON on its stdin sets the rules ({"hang": ["read", …], "names": "part of a name", "who": "process name"}),
and is answered by a line. A hung request is not answered until the rules let it go, or after MOST_S. The end of stdin
unmounts, and the end of the server aborts what still hangs: nothing that waits here outlives the test.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MNT_DETACH: Final = 2
MOST_S: Final = 90.0  # of one hang: a test that waits for a process in it must come to its own end, and fail
OPS: Final = {
    1: "lookup", 3: "getattr", 4: "setattr", 9: "mkdir", 10: "unlink", 11: "rmdir", 12: "rename", 13: "link",
    14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release", 20: "fsync", 25: "flush", 26: "init",
    27: "opendir", 28: "readdir", 29: "release", 30: "fsync", 35: "create", 45: "rename",
}  # fmt: skip
SILENT: Final = frozenset({2, 36, 38, 42})  # forget, interrupt, destroy: no answer is expected
ALL: Final = tuple(sorted({*OPS.values()} - {"init"}))
_OPEN_OUT: Final = struct.Struct("<QII")
_DIRECT_IO: Final = 1


class HangingFs:
    """The test's side: mounts, sets the rules, unmounts."""

    def __init__(self, mount: Path, backing: Path) -> None:
        mount.mkdir(exist_ok=True)
        backing.mkdir(exist_ok=True)
        self.mount, self.backing = mount, backing
        command = [sys.executable, __file__, str(mount), str(backing)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._listen() == "mounted"

    def hang(self, *ops: str, names: str = "", who: str = "") -> None:
        """Answer these operations no more, on files with this in their name, of processes of this name."""
        self._tell({"hang": ops, "names": names, "who": who})

    def let_go(self) -> None:
        """Answer everything again, what hangs included."""
        if self._server.poll() is None:
            self._tell({"hang": []})

    def hung(self) -> int:
        """Count the requests that hang now."""
        return int(self._tell({}))

    def close(self) -> None:
        """Unmount; what hangs fails."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        ctypes.CDLL(None).umount2(os.fsencode(self.mount), MNT_DETACH)  # A server that was killed left it mounted.
        self._server.stdout.close()

    def _tell(self, rules: dict[str, Any]) -> str:
        assert self._server.stdin
        self._server.stdin.write(json.dumps(rules).encode() + b"\n")
        self._server.stdin.flush()
        return self._listen()

    def _listen(self) -> str:
        assert self._server.stdout
        return self._server.stdout.readline().decode().strip()


def refusal() -> str:
    """Say why nothing can be mounted here; nothing where it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse for this user"
    return "" if may_mount() else "this user may not mount"


def may_mount() -> bool:
    """Say whether this process has the right to mount (CAP_SYS_ADMIN)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> 21 & 1)


# The server.


class Server:
    """Answers the kernel, each request in a thread of its own."""

    def __init__(self, fd: int, backing: str) -> None:
        self._fd = fd
        self._paths = {1: os.fsencode(backing)}
        self._changed = threading.Condition()
        self._rules: dict[str, Any] = {"hang": []}
        self._hung = 0

    def obey(self) -> None:
        """Take rules from stdin until it ends."""
        for line in sys.stdin:
            rules = json.loads(line)
            with self._changed:
                if rules:
                    self._rules = rules
                    self._changed.notify_all()
                sys.stdout.write(f"{self._hung}\n")
                sys.stdout.flush()

    def serve(self) -> None:
        """Take requests until the file system is unmounted."""
        while True:
            try:
                data = os.read(self._fd, 1 << 18)
            except OSError as error:
                if error.errno in {errno.EINTR, errno.ENOENT, errno.EAGAIN}:
                    continue
                return
            threading.Thread(target=self._work, args=(data,), daemon=True).start()

    def _work(self, data: bytes) -> None:
        size, op, unique, node, _uid, _gid, pid, _pad = struct.unpack_from("<IIQQIIII", data)
        if op in SILENT:
            return
        name, body = OPS.get(op, ""), data[40:size]
        self._wait(name, node, body, pid)
        act: Callable[[int, bytes], bytes] | None = getattr(self, f"_{name}", None) if name else None
        try:
            answer, code = (b"", errno.ENOSYS) if act is None else (act(node, body), 0)
        except OSError as error:
            answer, code = b"", error.errno or errno.EIO
        try:
            os.write(self._fd, struct.pack("<IiQ", 16 + len(answer), -code, unique) + answer)
        except OSError:
            return  # Nobody waits any more, or all is over.

    def _wait(self, name: str, node: int, body: bytes, pid: int) -> None:
        """Hang while the rules want it."""
        path = self._paths.get(node, b"") + (body if name in {"lookup", "mkdir", "link", "create", "rename"} else b"")
        with self._changed:
            self._hung += 1
            self._changed.wait_for(lambda: not self._is_hung(name, path, pid), MOST_S)
            self._hung -= 1

    def _is_hung(self, name: str, path: bytes, pid: int) -> bool:
        rules = self._rules
        if name not in rules["hang"] or os.fsencode(rules.get("names", "")) not in path:
            return False
        return not rules.get("who") or rules["who"] == _comm(pid)

    # What the kernel asks.

    def _init(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0, *[0] * 7)

    def _lookup(self, node: int, body: bytes) -> bytes:
        return self._entry(self._below(node, body))

    def _getattr(self, node: int, _body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self._attributes(self._paths[node])[1]

    def _setattr(self, node: int, body: bytes) -> bytes:
        valid, _, _fh, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode = struct.unpack_from("<II6QIIII", body)
        path = self._paths[node]
        if valid & 1:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & 8:
            os.truncate(path, size)
        if valid & 48:
            now = time.time_ns()
            times = (now if valid & 128 else atime * 10**9 + atime_ns, now if valid & 256 else mtime * 10**9 + mtime_ns)
            os.utime(path, ns=times)
        return self._getattr(node, b"")

    def _mkdir(self, node: int, body: bytes) -> bytes:
        path = self._below(node, body[8:])
        os.mkdir(path, struct.unpack_from("<I", body)[0])
        return self._entry(path)

    def _unlink(self, node: int, body: bytes) -> bytes:
        os.unlink(self._below(node, body))
        return b""

    def _rmdir(self, node: int, body: bytes) -> bytes:
        os.rmdir(self._below(node, body))
        return b""

    def _rename(self, node: int, body: bytes) -> bytes:
        target = struct.unpack_from("<Q", body)[0]
        old, new = body.rstrip(b"\0").split(b"\0")[-2:]
        if len(body) - len(old) - len(new) - 2 > 8:  # The flags of renameat2 are not known here.
            raise OSError(errno.EINVAL, "flags")
        path = self._below(target, new)
        os.rename(self._below(node, old), path)
        self._attributes(path)
        return b""

    def _link(self, node: int, body: bytes) -> bytes:
        path = self._below(node, body[8:])
        os.link(self._paths[struct.unpack_from("<Q", body)[0]], path)
        return self._entry(path)

    def _open(self, node: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0] & (os.O_ACCMODE | os.O_TRUNC)
        return _OPEN_OUT.pack(os.open(self._paths[node], flags), _DIRECT_IO, 0)

    def _create(self, node: int, body: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", body)
        path = self._below(node, body[16:])
        handle = os.open(path, flags & (os.O_ACCMODE | os.O_TRUNC | os.O_EXCL) | os.O_CREAT, stat.S_IMODE(mode))
        return self._entry(path) + _OPEN_OUT.pack(handle, _DIRECT_IO, 0)

    def _read(self, _node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(handle, size, offset)

    def _write(self, _node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(handle, body[40 : 40 + size], offset), 0)

    def _release(self, _node: int, body: bytes) -> bytes:
        handle = struct.unpack_from("<Q", body)[0]
        if handle:
            os.close(handle)
        return b""

    def _flush(self, _node: int, _body: bytes) -> bytes:
        return b""

    _fsync = _flush

    def _opendir(self, node: int, _body: bytes) -> bytes:
        os.stat(self._paths[node])
        return _OPEN_OUT.pack(0, 0, 0)

    def _readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        path, out = self._paths[node], b""
        for at, name in enumerate(sorted(os.listdir(path))):
            if at < offset:
                continue
            found = os.lstat(os.path.join(path, name))
            record = struct.pack("<QQII", found.st_ino, at + 1, len(name), stat.S_IFMT(found.st_mode) >> 12) + name
            record += b"\0" * (-len(record) % 8)
            if len(out) + len(record) > size:
                break
            out += record
        return out

    def _statfs(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<5Q4I6I", 10**7, 10**7, 10**7, 10**6, 10**6, 4096, 255, 4096, 0, *[0] * 6)

    def _below(self, node: int, name: bytes) -> bytes:
        return os.path.join(self._paths[node], name.rstrip(b"\0"))

    def _entry(self, path: bytes) -> bytes:
        node, attributes = self._attributes(path)
        return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + attributes

    def _attributes(self, path: bytes) -> tuple[int, bytes]:
        """Return a file's number and its stat; the number is the inode's: it survives links and renames."""
        found = os.lstat(path)
        node = 1 if path == self._paths[1] else found.st_ino + 1
        self._paths[node] = path
        times = [divmod(t, 10**9) for t in (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)]
        return node, struct.pack(
            "<6Q10I", node, found.st_size, found.st_blocks, *[t[0] for t in times], *[t[1] for t in times],
            found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_rdev, 4096, 0,
        )  # fmt: skip


def _comm(thread: int) -> str:
    try:
        return Path(f"/proc/{thread}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def main(mount: str, backing: str) -> None:
    """Mount, and serve until stdin ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"hanging", os.fsencode(mount), b"fuse", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    sys.stdout.write("mounted\n")
    sys.stdout.flush()
    server = Server(fd, backing)
    threading.Thread(target=server.serve, daemon=True).start()
    server.obey()
    libc.umount2(os.fsencode(mount), MNT_DETACH)
    os._exit(0)  # What hangs is aborted with the descriptor.


if __name__ == "__main__":
    main(*sys.argv[1:])
