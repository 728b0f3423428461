"""Files that do not ship: fetched from a server or taken from the user, whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest
from command_support import Setup

from animed import detector
from animed.cli import main
from animed.commands import fetching, shelving
from animed.detector import Download
from animed.errors import AnimedError, OutputError, StyleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from animed.commands.fetching import Progress

DATA = os.urandom(200_000)
WANTED = Download(
    "faces",
    "detector.onnx",
    len(DATA),
    hashlib.sha256(DATA).hexdigest(),
    "a detector",
    "MIT",
    "https://nowhere.invalid/",
)


class Answering(BaseHTTPRequestHandler):
    """A server of a few files, good and bad."""

    files: ClassVar[dict[str, bytes]] = {
        "/good": DATA,
        "/other": DATA[:-1] + bytes([DATA[-1] ^ 1]),
        "/short": DATA[:1000],
        "/endless": DATA * 40,
    }

    def do_GET(self) -> None:
        """Answer with a file, a redirect, half of what was promised, or 404."""
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        data = DATA if self.path == "/broken" else self.files.get(self.path)
        if data is None:
            self.send_error(404, "nothing here")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data[: len(data) // 2] if self.path == "/broken" else data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # who asked has seen enough

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """Run the server, and give its address."""
    server = HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def silent(received: int, expected: int) -> None:
    """Hear of progress, and do nothing."""


def at(url: str) -> Download:
    """Return the file of the test with another address."""
    return replace(WANTED, url=url)


def from_server(url: str) -> Callable[[Download, Progress], bytes]:
    """Fetch from the server of the test."""
    return lambda wanted, progress: fetching.download(replace(wanted, url=url), progress=progress)


@pytest.mark.parametrize("path", ["/good", "/moved"])
def test_a_file_comes_whole(path: str) -> None:
    """The bytes are those that were wanted, and progress ends at all of them."""
    shown: list[tuple[int, int]] = []
    with served() as server:
        data = fetching.download(at(server + path), progress=lambda *at: shown.append(at))
    assert data == DATA
    assert shown[-1] == (len(DATA), len(DATA))
    assert shown == sorted(shown)


@pytest.mark.parametrize(
    ("path", "words"),
    [("/other", "sha256 is"), ("/short", "1000 of 200000 bytes"), ("/endless", "more than 200000 bytes")],
)
def test_another_file_is_not_kept(path: str, words: str) -> None:
    """Changed, too short and without end: each is said, and no more is read than tells it."""
    with served() as server, pytest.raises(StyleError, match=words) as caught:
        fetching.download(at(server + path), progress=silent)
    assert caught.value.path == server + path


def test_a_server_that_does_not_have_it() -> None:
    """What the server answers is told in one line, with another way to get the file."""
    with served() as server, pytest.raises(AnimedError, match="the server answers 404 nothing here") as caught:
        fetching.download(at(f"{server}/absent"), progress=silent)
    assert "styles import FILE" in caught.value.remedy


def test_a_connection_that_breaks() -> None:
    """Half a file is no file."""
    with served() as server, pytest.raises(AnimedError):
        fetching.download(at(f"{server}/broken"), progress=silent)


def test_no_network() -> None:
    """Where nobody listens the error has a cause, and says what else can be done."""
    with pytest.raises(AnimedError, match="cannot be fetched: Connection refused") as caught:
        fetching.download(at("http://127.0.0.1:9/file"), progress=silent)
    assert "styles import FILE" in caught.value.remedy


def test_every_address_in_the_table_is_safe() -> None:
    """Only https, only digests, and one name each."""
    for each in detector.DOWNLOADS:
        assert each.url.startswith("https://")
        assert each.url.endswith(each.file_name)
        assert len(bytes.fromhex(each.sha256)) == 32
    assert len({each.name for each in detector.DOWNLOADS}) == len(detector.DOWNLOADS)


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    """The folder is made, the service may read the file, and nothing else is left."""
    target = tmp_path / "a" / "styles" / "file"
    fetching.store(b"old", target)
    fetching.store(DATA, target)
    assert target.read_bytes() == DATA
    assert os.listdir(target.parent) == ["file"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """A name that is a folder's, as a full disk would, ends in words and without a half file."""
    (tmp_path / "file" / "below").mkdir(parents=True)
    with pytest.raises(OutputError, match="cannot be written") as caught:
        fetching.store(DATA, tmp_path / "file")
    assert caught.value.exit_status == 73
    assert os.listdir(tmp_path) == ["file"]


def test_pull_puts_a_file_into_the_folder_of_styles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it fetches and under which licence, and fetches nothing twice; a damaged one is replaced."""
    setup = Setup.make(tmp_path)
    target = setup.root / "styles" / WANTED.file_name
    with served() as server:
        assert shelving.pull(setup.config, "faces", fetch=from_server(f"{server}/good"), downloads=(WANTED,)) == 0
        said = capsys.readouterr()
        assert said.out.strip() == str(target)
        assert "licence MIT" in said.err
        target.write_bytes(b"damaged")
        assert shelving.pull(setup.config, "faces", fetch=from_server(f"{server}/good"), downloads=(WANTED,)) == 0
    assert target.read_bytes() == DATA
    assert shelving.pull(setup.config, "faces", fetch=from_server("http://127.0.0.1:9/"), downloads=(WANTED,)) == 0
    assert "is there already" in capsys.readouterr().out


def test_pull_of_what_is_changed_keeps_nothing(tmp_path: Path) -> None:
    """No file, and not even the folder."""
    setup = Setup.make(tmp_path)
    with served() as server, pytest.raises(StyleError, match=WANTED.title):
        shelving.pull(setup.config, "faces", fetch=from_server(f"{server}/other"), downloads=(WANTED,))
    assert not (setup.root / "styles").exists()


def test_pull_of_an_unknown_name_is_a_wrong_use(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, with what there is."""
    assert main(["styles", "pull", "face", "-c", str(config_file)]) == 2
    assert "did you mean faces?" in capsys.readouterr().err


def test_import_knows_a_file_by_its_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is called; a name that is not its own is a wrong use."""
    setup = Setup.make(tmp_path)
    given = tmp_path / "download (1).bin"
    given.write_bytes(DATA)
    take = partial(shelving.take, setup.config, given, downloads=(WANTED,))
    assert take("mine") == 2
    assert not (setup.root / "styles").exists()
    assert take(None) == 0
    assert (setup.root / "styles" / WANTED.file_name).read_bytes() == DATA
    assert WANTED.title in capsys.readouterr().out
    assert take("faces") == 0


def test_import_refuses_other_files(config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is none of those, one that is not there, and a folder."""
    other = tmp_path / "other"
    other.write_bytes(b"something")
    assert main(["styles", "import", str(other), "--name", "faces", "-c", str(config_file)]) == 4
    assert detector.FACES.sha256 in capsys.readouterr().err
    for path in (tmp_path / "absent", tmp_path):
        assert main(["styles", "import", str(path), "-c", str(config_file)]) == 1
        assert "cannot be read" in capsys.readouterr().err


def test_the_detector_is_looked_for_in_the_folder_of_styles(tmp_path: Path) -> None:
    """A sound one is found, a damaged one and none are different errors, both with a remedy."""
    with pytest.raises(AnimedError, match="is not there") as caught:
        detector.find(tmp_path, wanted=WANTED)
    assert (caught.value.exit_status, "styles pull faces" in caught.value.remedy) == (78, True)
    path = tmp_path / WANTED.file_name
    for damaged in (DATA[:-1], DATA + b"x", bytes(len(DATA))):
        path.write_bytes(damaged)
        with pytest.raises(StyleError, match="is not the a detector"):
            detector.find(tmp_path, wanted=WANTED)
    path.write_bytes(DATA)
    assert detector.find(tmp_path, wanted=WANTED).path == str(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StyleError, match="cannot be read"):
        detector.find(tmp_path, wanted=WANTED)


@pytest.mark.parametrize("kind", ["file", "device", "nowhere"])
def test_a_folder_of_styles_that_is_none_is_told_as_such(kind: str, tmp_path: Path) -> None:
    """Not as a file that cannot be written, but by its own path, with the key that names it."""
    folder = tmp_path / "styles"
    if kind == "file":
        folder.write_bytes(b"")
    else:
        folder.symlink_to("/dev/null" if kind == "device" else tmp_path / "nowhere")
    why = "is a link to something that is not there" if kind == "nowhere" else "is not a folder"
    with pytest.raises(OutputError, match=f"^{folder}: {why} .*styles_dir"):
        fetching.store(DATA, folder / "file")
