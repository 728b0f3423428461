"""Which file systems are polled, and what the mount table says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from animed.intake.filesystem import InotifyLimits, fs_type, inotify_limits, wants_polling
from animed.mounts import kind_at, mounted

if TYPE_CHECKING:
    from pathlib import Path

TABLE = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /srv/photos rw - nfs4 nas:/photos rw,vers=4.2
31 30 8:1 / /srv/photos/disk rw shared:3 master:2 - fuseblk /dev/sdb1 rw
32 27 0:41 / /srv/my\040photos\134x rw - cifs //nas/p rw
33 27 0:42 / /over rw - ext4 /dev/vdb rw
34 33 0:43 / /over rw - fuse.sshfs host: rw

broken line"""
POLLED = """nfs nfs4 cifs smb3 smbfs 9p fuse.sshfs fuse.rclone fuse.grpcfuse fuse virtiofs vboxsf prl_fs vmhgfs afs ceph
glusterfs lustre beegfs davfs autofs"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "ext4"),
        ("/home/a", "ext4"),
        ("/srv/photos", "nfs4"),
        ("/srv/photos/inbox", "nfs4"),
        ("/srv/photosynthesis", "ext4"),
        ("/srv/photos/disk/x", "fuseblk"),
        ("/srv/my photos\\x/inbox", "cifs"),
        ("/over/x", "fuse.sshfs"),
    ],
)
def test_the_nearest_mount_decides(tmp_path: Path, path: str, expected: str) -> None:
    """The longest mount point that holds the path decides, the top one of several; octal escapes are undone."""
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    assert kind_at(path, mounted(str(table))) == expected


@pytest.mark.parametrize(
    "name",
    POLLED.split(),
)
def test_shares_are_polled(name: str) -> None:
    """Where others can change files unseen by this kernel, events are not enough."""
    assert wants_polling(name)


@pytest.mark.parametrize(
    "name", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "ntfs3", "vfat", "unknown"]
)
def test_local_disks_are_watched(name: str) -> None:
    """A local disk reports its changes."""
    assert not wants_polling(name)


def test_this_machine_answers(tmp_path: Path) -> None:
    """The real mount table names a type, also for a path that is not there, and the real limits are numbers."""
    assert fs_type(str(tmp_path / "away")) == fs_type(str(tmp_path))
    assert fs_type("/proc/self") == "proc"
    limits = inotify_limits()
    assert limits.max_user_watches is None or limits.max_user_watches > 0


def test_hidden_kernel_files_are_unknown(tmp_path: Path) -> None:
    """A hardened service may not see /proc: that is said, and nothing breaks."""
    assert fs_type("/", table=str(tmp_path / "none")) == "unknown"
    (tmp_path / "max_user_watches").write_text("123\n")
    (tmp_path / "max_queued_events").write_text("many\n")
    assert inotify_limits(folder=str(tmp_path)) == InotifyLimits(123, None, None)
