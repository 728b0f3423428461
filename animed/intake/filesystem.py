"""Which file system an inbox lies on, whether the kernel reports changes there, and the limits of inotify."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from animed import mounts

UNKNOWN: Final = "unknown"

# On these another machine, the host of a guest, or a program in user space can change files unseen by our kernel.
_POLLED: Final = frozenset(
    {
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "davfs2",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "prl_fs",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
    }
)
_LIMITS: Final = "/proc/sys/fs/inotify"


@dataclass(frozen=True, slots=True)
class InotifyLimits:
    """The kernel's limits for this user; None = it does not tell."""

    max_user_watches: int | None
    max_user_instances: int | None
    max_queued_events: int | None


def wants_polling(fs_type: str) -> bool:
    """Say whether changes on such a file system can go unreported, so that only regular scans find them.

    fuseblk (NTFS and exFAT disks) is local and reports like any other; overlay reports what happens through it.
    """
    return fs_type in _POLLED or fs_type == "fuse" or fs_type.startswith("fuse.")


def fs_type(path: str, *, table: str = mounts.TABLE) -> str:
    """Return the type of the file system that holds `path` (need not exist), or "unknown" without a mount table."""
    return mounts.kind_at(os.path.realpath(path), mounts.mounted(table)) or UNKNOWN


def inotify_limits(*, folder: str = _LIMITS) -> InotifyLimits:
    """Read the limits as they are now."""
    return InotifyLimits(
        max_user_watches=_number(folder, "max_user_watches"),
        max_user_instances=_number(folder, "max_user_instances"),
        max_queued_events=_number(folder, "max_queued_events"),
    )


def _number(folder: str, name: str) -> int | None:
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
