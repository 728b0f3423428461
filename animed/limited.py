"""Looks at folders that must come to an end, whether or not the folders' file systems answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeVar

from animed import mounts
from animed.aside import Call, aside

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
PATIENCE_S: Final = 4.0  # seconds that a command, or a start, waits for one folder
# File systems whose calls end: on memory, of the kernel itself, or on a disk of this machine.
_LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs", "ntfs3", "overlay"}
    | {"squashfs", "udf", "vfat", "xfs", "zfs", "devtmpfs", "hugetlbfs", "ramfs", "rootfs", "tmpfs"}
    | {"binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs", "fusectl", "mqueue"}
    | {"nsfs", "proc", "pstore", "securityfs", "selinuxfs", "sysfs", "tracefs"}
)
_MOST_LINKS: Final = 40  # as the kernel has it


def limited(
    function: Callable[..., T], *arguments: object, folder: str | os.PathLike[str], limit: float = PATIENCE_S
) -> T:
    """Return what a function of this package returns, which looks at `folder` and what is in it.

    Raises TimeoutError when the folder's file system does not answer within `limit` seconds. Where it surely will, the
    function is simply called.
    """
    if not may_hang(os.fspath(folder)):
        return function(*arguments)
    with aside() as other:
        result: T = other.call(Call(function, arguments), limit=limit)[0]
        return result


def may_hang(path: str, *, table: str = mounts.TABLE) -> bool:
    """Say whether a path lies on, or leads through, a file system whose calls may never end.

    Asks such a one nothing: a link is only read where its folder is on a local disk.
    """
    kinds = mounts.mounted(table)
    here, links = "/", 0
    left = os.path.abspath(path).split("/")[::-1]
    while left:
        part = left.pop()
        here = os.path.dirname(here) if part == ".." else os.path.join(here, part)
        if mounts.kind_at(here, kinds) not in _LOCAL:
            return True
        target = _target(here)
        links += bool(target)
        if target and links <= _MOST_LINKS:
            here = os.path.dirname(here)
            left += target.split("/")[::-1]
            if target.startswith("/"):
                here = "/"
    return False


def whereabouts(path: str) -> tuple[str, list[tuple[int, int, int] | None]]:
    """Return the real path, and (device, inode, mode) of it and of each folder above; None where it cannot be asked."""
    real = os.path.realpath(path)
    folders = [real]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return real, [_named(folder) for folder in folders]


def _named(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # It is not there (yet), so no other path can lead to it.
    return found.st_dev, found.st_ino, found.st_mode


def _target(path: str) -> str:
    """Return where a link leads; nothing for what is none, or is not there."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
