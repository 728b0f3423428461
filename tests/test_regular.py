"""What is opened by name: only regular files, so that nothing is waited for that never comes."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from animed import catalog, detector, regular
from animed.commands import fetching
from animed.config import locate
from animed.errors import AnimedError, ConfigError, StyleError
from animed.records import WeightsFile
from animed.style import weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READERS: list[tuple[Callable[[Path], Any], type[AnimedError], int]] = [
    (locate.read, ConfigError, 78),
    (catalog.read_card, StyleError, 4),
    (detector.verify, StyleError, 4),
    (lambda path: detector.read(str(path), "00"), StyleError, 4),
    (lambda path: weights.load(WeightsFile("mine", str(path), "00", "half_pixel")), StyleError, 4),
    (fetching.read, AnimedError, 1),
]


@pytest.mark.parametrize(("reader", "kind", "status"), READERS)
def test_whoever_reads_a_file_by_name_refuses_a_pipe(
    reader: Callable[[Path], Any], kind: type[AnimedError], status: int, tmp_path: Path
) -> None:
    """A pipe that nobody writes to, also behind a link, is an error with its path at once, and so is a device."""
    pipe, link, device = tmp_path / "pipe", tmp_path / "link", tmp_path / "device"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, link, device):
        with pytest.raises(kind, match="it is not a regular file") as caught:
            reader(path)
        assert (caught.value.exit_status, caught.value.path) == (status, str(path))


def test_a_pipe_for_weights_of_a_sound_card_is_refused(tmp_path: Path) -> None:
    """Where it takes the place of the weights after they were looked at, their digest is not waited for either."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        catalog.sha256(tmp_path / "pipe")


def test_links_to_regular_files_are_followed(tmp_path: Path) -> None:
    """No more is read than was asked for."""
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert regular.read(tmp_path / "link", 4) == b"cont"


def test_what_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look before the open is not the last one, and no descriptor is left behind."""
    (tmp_path / "file").write_bytes(b"content")
    os.mkfifo(tmp_path / "pipe")
    looked = os.stat(tmp_path / "file")
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda *_args, **_keys: looked)
        with pytest.raises(OSError, match="not a regular file"):
            regular.read(tmp_path / "pipe", 4)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_and_a_socket_are_no_files(tmp_path: Path) -> None:
    """Each is told as what it is, or at least as what it is not."""
    with pytest.raises(IsADirectoryError):
        regular.opened(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="not a regular file"):
            regular.opened(tmp_path / "socket")
