"""A System for tests of delivery: it records every call, and breaks or dies at any of them."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING, Any, Literal

from animed.records import Stage, Staged
from animed.system import Entry, System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Kind = Literal["native", "no_noreplace", "no_links", "cross"]
KINDS: tuple[Kind, ...] = ("native", "no_noreplace", "no_links", "cross")
CALLS = (
    "open",
    "close",
    "read",
    "write",
    "fsync",
    "fstat",
    "lstat",
    "names",
    "entries",
    "mkdir",
    "link",
    "link_descriptor",
    "rename",
    "rename_free",
    "unlink",
    "chmod",
    "chgrp",
    "utime",
    "clone",
    "statvfs",
)
PREFIX = ".syncthing.animed-test-"


class Crash(BaseException):
    """The process was killed: nothing that it does afterwards happens."""


class FakeSystem(System):
    """The real calls, of a file system of some `kind`, with a fault at the call number `at` (counted from 1).

    `fault` None kills the process there: a write is cut in half, later calls do nothing, the kernel closes descriptors.
    `hook` sees each call before it happens, and may raise.
    """

    def __init__(
        self,
        kind: Kind = "native",
        *,
        at: int | None = None,
        fault: int | None = None,
        hook: Callable[[str, tuple[Any, ...]], None] | None = None,
    ) -> None:
        self.calls: list[str] = []
        self.fired = False
        self._dead = False
        self._kind = kind
        self._at = at
        self._fault = fault
        self._hook = hook
        for name in CALLS:
            setattr(self, name, self._watched(name, getattr(self, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self._dead:
                if name == "close":
                    return real(*args)
                raise Crash
            self.calls.append(name)
            if len(self.calls) == self._at:
                self._break(name, args, real)
            if self._hook is not None:
                self._hook(name, args)
            refused = self._refuses(name, args)
            if refused:
                raise OSError(refused, os.strerror(refused))
            return real(*args)

        return call

    def _break(self, name: str, args: tuple[Any, ...], real: Callable[..., Any]) -> None:
        self.fired = True
        if name == "close":
            real(*args)  # Linux frees the descriptor, whatever close reports.
        if self._fault is not None:
            raise OSError(self._fault, os.strerror(self._fault))
        self._dead = True
        if name == "write":
            real(args[0], bytes(args[1])[: len(args[1]) // 2])
        raise Crash

    def _refuses(self, name: str, args: tuple[Any, ...]) -> int:
        """Return the errno with which this kind of file system answers a call, or 0."""
        if self._kind == "cross":
            crossing = name in {"rename", "rename_free", "link", "link_descriptor"} and _crosses(*args)
            return errno.EXDEV if crossing or name == "clone" else 0
        unnamed = name == "open" and args[1] & os.O_TMPFILE == os.O_TMPFILE
        if self._kind == "no_noreplace" and (unnamed or name in {"rename_free", "clone"}):
            return errno.EOPNOTSUPP if unnamed or name == "clone" else errno.EINVAL
        if self._kind == "no_links" and (unnamed or name in {"rename_free", "link", "link_descriptor", "clone"}):
            return errno.EOPNOTSUPP if unnamed or name == "clone" else errno.EPERM if "link" in name else errno.EINVAL
        return 0


def _crosses(source: int | Entry, target: Entry) -> bool:
    return _folder_of(source) != _folder_of(target)


def _folder_of(one: int | Entry) -> bytes:
    if isinstance(one, int):
        return os.path.dirname(os.readlink(b"/proc/self/fd/%d" % one))
    if one.folder is None:
        return os.path.realpath(os.path.dirname(one.name))
    return os.readlink(b"/proc/self/fd/%d" % one.folder)


def stage_of(output: Path, *, mode: int | None = None, keep_mtime: bool = False) -> Stage:
    return Stage(str(output), PREFIX, mode, keep_mtime)


def stage_picture(output: Path, content: bytes, *, named: bool) -> tuple[Staged, int | None]:
    """Stage a picture as a worker does: durable, and without a name or with a hidden one."""
    name = f"{PREFIX}0123abcd.tmp" if named else None
    if name is None:
        descriptor = os.open(output, os.O_TMPFILE | os.O_RDWR, 0o644)
    else:
        descriptor = os.open(output / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(descriptor, content)
    os.fsync(descriptor)
    found = os.fstat(descriptor)
    staged = Staged(found.st_dev, found.st_ino, len(content), hashlib.sha256(content).hexdigest(), name)
    if name is None:
        return staged, descriptor
    os.close(descriptor)
    return staged, None


def tree(root: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
