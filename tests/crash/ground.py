"""The folders that everything happens in, and the mounts that let disks fill, turn read-only and go away.

Everything lies in one throw-away folder. Mounts are made only inside a mount namespace of our own, which ends with us.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

INBOXES: Final = ("phone", "camera", "moving")
MARKED: Final = ("phone", "moving")  # these prove by a marker file that their disk is there
MARKER: Final = ".animed-inbox"
FOLDING: Final = "camera"  # whose output may be a disk that takes all spellings of a name for one
MIB: Final = 1 << 20
_FOLDER: Final = ("setpriv", "--pdeathsig", "KILL", "lowntfs-3g", "-o", "ignore_case,no_detach")
_MOUNT_S: Final = 20.0
_BUSY_S: Final = 3.0  # how long a disk that is being written to is asked to turn read-only


class Ground:
    """Inboxes, outputs, state and all that belongs to a run.

    `mounts`: this process may mount file systems. `folding`: one output is to fold names, where a file system for that
    is to be had.
    """

    def __init__(self, *, mounts: bool, disk_mib: int, folding: bool = False, above: Path | None = None) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="animed-crash-", dir=above)).resolve()
        self.mounts = mounts
        self.real, self.disk, self.state = self.root / "real", self.root / "disk", self.root / "state"
        self.outside, self.logs, self.temporary = self.root / "outside", self.root / "logs", self.root / "tmp"
        self.config, self.clock = self.root / "config.yaml", self.root / "clock"
        self.read_only = False
        self.folding = mounts and folding and all(map(shutil.which, ("mkntfs", _FOLDER[0], _FOLDER[3])))
        self.away: set[str] = set()  # inboxes that are unmounted
        self.ballast: set[str] = set()  # disks that are full
        self._mounted: list[Path] = []
        self._server: subprocess.Popen[bytes] | None = None  # of the disk that folds names
        self._make(disk_mib)

    def _make(self, disk_mib: int) -> None:
        folders = (self.real, self.disk, self.state, self.outside, self.logs, self.temporary, self.root / "inbox")
        for folder in folders:
            folder.mkdir()
        self.clock.write_text("0")
        if self.mounts:
            self._mount(self.disk, "-t", "tmpfs", "-o", f"size={disk_mib}m", "animed-crash-disk")
            self._mount(self.state, "-t", "tmpfs", "-o", f"size={disk_mib // 2}m", "animed-crash-state")
        for name in INBOXES:
            (self.real / name).mkdir()
            (self.outside / name).mkdir()
            (self.disk / name).mkdir()
            if name in MARKED:
                (self.real / name / MARKER).touch()
            if self.mounts:
                (self.root / "inbox" / name).mkdir()
                self._mount(self.inbox(name), "--bind", str(self.real / name))
        (self.disk / "processed").mkdir()
        if self.folding:
            self._serve(self.output(FOLDING), disk_mib)

    def _serve(self, place: Path, mib: int) -> None:
        """Mount a disk of Windows. It neither fills nor turns read-only, for it is none of memory."""
        image = self.root / "windows.img"
        with image.open("wb") as file:
            file.truncate(mib * MIB)
        _call("mkntfs", "-F", "-q", str(image))
        self._server = subprocess.Popen(
            [*_FOLDER, str(image), str(place)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._mounted.append(place)
        end = time.monotonic() + _MOUNT_S
        while not place.is_mount():
            if self._server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{place} cannot be mounted")
            time.sleep(0.05)

    def inbox(self, name: str) -> Path:
        """Return the folder that the service watches; the writers use `real`, which is never unmounted."""
        return self.root / "inbox" / name if self.mounts else self.real / name

    def output(self, name: str) -> Path:
        """Return the folder that the pictures of an inbox appear in."""
        return self.disk / name

    @property
    def processed(self) -> Path:
        """Return where the originals of the moving inbox go: to another disk than the inbox's."""
        return self.disk / "processed"

    # Faults of places.

    def fill(self, which: str, *, leave: int = 0) -> None:
        """Fill the disk of the outputs or of the state folder to its last byte, or but for a few."""
        with (self._disk(which) / "ballast").open("ab", buffering=0) as file:
            for size in (MIB, 4096, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue
            file.truncate(max(0, file.tell() - leave))
        self.ballast.add(which)

    def empty(self, which: str) -> None:
        """Give the room back."""
        (self._disk(which) / "ballast").unlink(missing_ok=True)
        self.ballast.discard(which)

    def _disk(self, which: str) -> Path:
        return {"output": self.disk, "state": self.state}[which]

    def seal(self) -> bool:
        """Turn the outputs read-only; False where that cannot be: the disk stays busy."""
        if not self.mounts:
            for name in INBOXES:
                self.output(name).chmod(0o555)
            self.read_only = True
            return True
        end = time.monotonic() + _BUSY_S
        # A file system that is being written to refuses, and the next moment it may not.
        while not self.read_only and time.monotonic() < end:
            self.read_only = _tried("mount", "-o", "remount,ro", str(self.disk))
        return self.read_only

    def unseal(self) -> None:
        """Let the outputs take writes again."""
        if self.mounts:
            _call("mount", "-o", "remount,rw", str(self.disk))
        else:
            for name in INBOXES:
                self.output(name).chmod(0o755)
        self.read_only = False

    def take_away(self, inbox: str) -> None:
        """Unmount an inbox under the service's feet."""
        self.away.add(inbox)
        _call("umount", "-l", str(self.inbox(inbox)))

    def bring_back(self, inbox: str) -> None:
        """Mount it again."""
        _call("mount", "--bind", str(self.real / inbox), str(self.inbox(inbox)))
        self.away.discard(inbox)

    def heal(self) -> None:
        """End all faults of places."""
        if self.read_only:
            self.unseal()
        for which in tuple(self.ballast):
            self.empty(which)
        for inbox in tuple(self.away):
            self.bring_back(inbox)

    def storm(self, inbox: str, files: int) -> None:
        """Make and remove files in an inbox as fast as can be; each gives four events."""
        with_number = os.fspath(self.real / inbox / ".storm-{}.tmp")
        for number in range(files):
            name = with_number.format(number)
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.unlink(name)

    # The end.

    def close(self, *, keep: bool) -> None:
        """Leave nothing behind; or keep everything, what lies on disks of memory too."""
        if keep and self.mounts:
            for name in ("disk", "state"):
                shutil.copytree(self.root / name, self.root / f"{name}-kept", ignore=shutil.ignore_patterns("*.sock"))
        for place in reversed(self._mounted):
            _tried("umount", "-l", str(place))
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        if not keep:
            shutil.rmtree(self.root)

    def _mount(self, place: Path, *how: str) -> None:
        _call("mount", *how, str(place))
        self._mounted.append(place)


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _tried(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def may_mount(prefix: tuple[str, ...]) -> bool:
    """Say whether a process behind this prefix can make the mounts that the faults need."""
    script = 'mount -t tmpfs none "$1" && mount -o remount,ro "$1" && mount --bind "$1" "$1" && umount -l "$1"'
    with tempfile.TemporaryDirectory(prefix="animed-crash-probe-") as place:
        command = [*prefix, "sh", "-c", script, "sh", place]
        try:
            return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def namespace() -> tuple[str, ...] | None:
    """Return the command that gives a process a mount namespace of its own, or None where there is none to be had."""
    choices = [("unshare", "--mount")] if os.geteuid() == 0 else [("unshare", "--map-root-user", "--mount")]
    return next((prefix for prefix in choices if may_mount(prefix)), None)
