"""Places that go away under a running service and come back: an unmounted share, a state folder that was moved."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hanging_fs import MNT_DETACH, may_mount
from harness import Service, photo

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


class Share:
    """A file system of its own that can be taken away; it comes back as `backing` is by then."""

    def __init__(self, point: Path, backing: Path) -> None:
        backing.mkdir()
        self.point, self.backing = point, backing
        (backing / ".animed-inbox").touch()
        self._library = ctypes.CDLL(None, use_errno=True)
        self.mount()

    def mount(self) -> None:
        """Bring it."""
        if self._library.mount(b"tmpfs", os.fsencode(self.point), b"tmpfs", 0, b"size=8m"):
            raise OSError(ctypes.get_errno(), "mount")
        shutil.copytree(self.backing, self.point, dirs_exist_ok=True)

    def unmount(self, flags: int = 0) -> None:
        """Take it away; without flags the kernel refuses while somebody holds it."""
        if self._library.umount2(os.fsencode(self.point), flags):
            raise OSError(ctypes.get_errno(), "umount")

    def close(self) -> None:
        """Leave nothing mounted."""
        while os.path.ismount(self.point) or str(self.point) in Path("/proc/self/mountinfo").read_text("utf-8"):
            self.unmount(MNT_DETACH)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path, inbox_keys="require_marker: true\npoll_interval: 1s", top_keys="workers: {count: 1}")
    yield made
    made.close()


@pytest.mark.skipif(not may_mount(), reason="this user may not mount")
def test_a_share_is_unmounted_and_mounted_again(service: Service) -> None:
    """It can be unmounted under the watch, is unavailable, then watched natively again, and nothing is lost."""
    share = Share(service.inbox, service.root / "backing")
    try:
        shutil.copy2(photo(share.backing / "before.jpg", 1), service.inbox)
        service.start()
        assert service.wait_outcomes(1) == {"before.jpg": "done"}
        assert service.status()["inboxes"][0]["watch"] == "native"
        share.unmount()
        service.until(lambda: service.status()["inboxes"][0]["state"] == "unavailable", "an unavailable inbox")
        photo(share.backing / "meanwhile.jpg", 2)
        share.mount()
        assert service.wait_outcomes(2)["meanwhile.jpg"] == "done"
        service.until(lambda: service.status()["inboxes"][0]["watch"] == "native", "the watch")
        photo(service.inbox / "after.jpg", 3)
        assert service.wait_outcomes(3)["after.jpg"] == "done"
        assert len(service.events("file.done")) == 3
        assert not service.events("file.vanished")
        assert service.stop() == -signal.SIGTERM
    finally:
        service.close()
        share.close()


def test_a_state_folder_that_is_moved_away_stops_the_drawing(service: Service) -> None:
    """Nothing is drawn that would be forgotten; when the folder is back, all goes on, and each photo is done once."""
    (service.inbox / ".animed-inbox").touch()
    service.start()
    photo(service.inbox / "first.jpg", 1)
    service.wait_outcomes(1)
    away = service.root / "away"
    service.state.rename(away)
    photo(service.inbox / "second.jpg", 2)
    (told,) = service.until(lambda: service.events("disk.low"), "the loss of the state folder")
    assert told["what"] == "state"
    assert "is gone" in told["detail"]
    assert service.outcomes() == {"first.jpg": "done"}
    assert not service.state.exists()
    away.rename(service.state)
    assert service.wait_outcomes(2)["second.jpg"] == "done"
    assert json.loads(service.call("status", "-c", str(service.config), "--json").stdout)["state"] == "running"
    assert service.stop() == -signal.SIGTERM
    service.start()
    third = photo(service.inbox / "third.jpg", 3)
    assert service.wait_outcomes(1) == {third.name: "done"}
    assert service.pictures() == ["first.cel.jpg", "second.cel.jpg", "third.cel.jpg"]
