"""One real service for many known faults at once: odd names, junk, links, special files, every kind of picture."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import unicodedata
from typing import TYPE_CHECKING

import psutil
import pytest
from harness import WITHOUT_OVERRIDE, Service, photo, whole
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NFC, NFD = (unicodedata.normalize(form, "\u00e9t\u00e9.jpg") for form in ("NFC", "NFD"))
ODD_NAMES = (
    "a\nb.jpg", " lead.jpg", "trail .jpg", "-rf.jpg", "$(touch pwned).jpg", "`touch pwned`.jpg", "a;b&c|d.jpg",
    "'quoted' \"twice\".jpg", "100%.jpg", "back\\slash.jpg", "#1 place.jpg", "tab\there.jpg", NFC, NFD,
    os.fsdecode(b"latin-\xe9.jpg"), "UPPER.JPEG", "Mixed.Jpg", "x" * 240 + ".jpg", "\u202egpj.jpg", "two  spaces.jpg",
)  # fmt: skip
JUNK = (
    "._photo.jpg", ".syncthing.a.jpg.tmp", "~syncthing~a.jpg.tmp", "a.jpg:Zone.Identifier", ".trashed-1690000000-a.jpg",
    ".pending-1690000000-a.jpg", "a.jpg.tacitpart", "a.jpg.part", ".a.jpg.Ab12Cd", "@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg",
    ".stversions/a.jpg", "#recycle/a.jpg", ".Trash-1000/files/a.jpg", "a.sync-conflict-20240131-235959-ABCDEFG.jpg",
    "notes.txt", "film.mp4", "Thumbs.db",
)  # fmt: skip
MODES = {
    "mode-1.png": "1", "mode-L.png": "L", "mode-LA.png": "LA", "mode-P.png": "P", "mode-RGBA.png": "RGBA",
    "mode-16.png": "I;16", "mode-CMYK.jpg": "CMYK", "mode-RGB.webp": "RGB", "mode-P.gif": "P", "mode-RGB.bmp": "RGB",
}  # fmt: skip
BAD = {"text.jpg": b"no picture\n", "film.jpg": b"\0\0\0\x20ftypmp42" + bytes(40), "zeros.png": bytes(5000)}


class Story:
    """One run of the service over an inbox with everything in it, and what was seen of it."""

    def __init__(self, root: Path) -> None:
        keys = "workers: {count: 1}\nlogging: {level: debug}"
        inbox_keys = "originals: move\nstable_for: 0.5s"
        self.service = run = Service(root, inbox_keys=inbox_keys, top_keys=keys, prefix=WITHOUT_OVERRIDE)
        for number, name in enumerate(ODD_NAMES):
            photo(run.inbox / name, number)
        good = photo(run.root / "good.jpg", 99).read_bytes()
        for name in JUNK:
            (run.inbox / name).parent.mkdir(parents=True, exist_ok=True)
            (run.inbox / name).write_bytes(good)
        for number, (name, mode) in enumerate(MODES.items()):
            Image.new("L", (40 + number, 30), 90).convert(mode).save(run.inbox / name)
        for name, content in BAD.items():
            (run.inbox / name).write_bytes(content)
        self.special = self._specials(good)
        run.start()
        # An original on its way out may just have its private name.
        there = [path for path in run.inbox.rglob("*") if not path.name.startswith(".animed-")]
        self.before = {str(path.relative_to(run.inbox)) for path in there}
        self._write_slowly(good)
        self.outcomes = run.wait_outcomes(len(ODD_NAMES) + len(MODES) + len(BAD) + 2, 150)
        run.until(lambda: not (run.inbox / "slow.jpg").exists(), "the last original's leaving")
        self.descriptors = self._descriptors()
        self.code = self._interrupt()

    def _specials(self, good: bytes) -> dict[str, str]:
        """Make what only looks like a photo."""
        inbox = self.service.inbox
        (self.service.root / "secret.jpg").write_bytes(good)
        os.mkfifo(inbox / "pipe.jpg")
        (inbox / "link.jpg").symlink_to("../secret.jpg")
        (inbox / "folder-link").symlink_to("..")
        (inbox / "folder.jpg").mkdir()
        # A socket's path may have 108 bytes only.
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(inbox):
            server.bind("socket.jpg")
        return {"pipe.jpg": "fifo", "link.jpg": "symlink", "folder-link": "symlink", "socket.jpg": "socket"}

    def _write_slowly(self, good: bytes) -> None:
        """Write one photo under a temporary name, and one with a pause that is too long."""
        inbox = self.service.inbox
        (inbox / "renamed.jpg.part").write_bytes(good + b"1")
        (inbox / "renamed.jpg.part").rename(inbox / "renamed.jpg")
        half = len(good) // 2
        with (inbox / "slow.jpg").open("wb", buffering=0) as file:
            file.write(good[:half])
            self.service.until(lambda: self.service.events("file.retry"), "a first try of half a photo")
            file.write(good[half:] + b"2")

    def _descriptors(self) -> set[str]:
        """Return what the service's processes hold open, or mapped, in the shared memory."""
        assert self.service.process
        me = psutil.Process(self.service.process.pid)
        processes = (me, *me.children())
        held = {file.path for process in processes for file in process.open_files()}
        held |= {area.path for process in processes for area in process.memory_maps()}
        return {path for path in held if "/dev/shm" in path}  # noqa: S108 - looked at, not written to

    def _interrupt(self) -> int:
        """Send what Ctrl-C sends: an interrupt to the whole group."""
        assert self.service.process
        os.killpg(self.service.process.pid, signal.SIGINT)
        return self.service.process.wait(60)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Run the service once for all tests of this module."""
    root = tmp_path_factory.mktemp("known")
    for folder in (root, *root.parents[:2]):
        folder.chmod(0o755)
    told = Story(root)
    yield told
    told.service.close()


def shown(name: str) -> str:
    """Return a name as the log has it."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def test_odd_names_are_drawn(story: Story) -> None:
    """Newlines, blanks, dashes, quotes, both forms of an accent, bytes that are no text: each photo has its picture."""
    assert {name: story.outcomes.get(shown(name)) for name in ODD_NAMES} == dict.fromkeys(ODD_NAMES, "done")
    assert not (story.service.root / "pwned").exists()


def test_each_log_line_is_one_object(story: Story) -> None:
    """Whatever a name holds, its line is one line; a name that is no text has its bytes beside it."""
    lines = story.service.log.read_bytes().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    (odd,) = [row for row in story.service.events("file.done") if "path_b64" in row]
    assert odd["path"].endswith("latin-\\xe9.jpg")


def test_names_of_originals_are_kept(story: Story) -> None:
    """Photos keep their names, to the byte, also where they are moved."""
    processed = story.service.root / "phone-processed"
    moved = {os.fsencode(path.relative_to(processed)) for path in processed.rglob("*") if path.is_file()}
    assert moved == {os.fsencode(name) for name in (*ODD_NAMES, *MODES, "renamed.jpg", "slow.jpg")}


def test_what_is_no_photo_stays_where_it_is(story: Story) -> None:
    """Junk, text, failed photos, links and special files are neither drawn nor moved nor deleted."""
    left = {str(path.relative_to(story.service.inbox)) for path in story.service.inbox.rglob("*")}
    assert set(JUNK) | set(BAD) | set(story.special) | {"folder.jpg"} <= left
    assert left == story.before - set(ODD_NAMES) - set(MODES)
    assert not {name for name in story.outcomes if name.startswith(("._", "@", "link", "pipe", "SYNO", "notes"))}


def test_special_files_are_told_by_their_kind(story: Story) -> None:
    """A FIFO that nobody writes to holds up nothing; links are not followed."""
    rules = {os.path.basename(row["path"]): row["rule"] for row in story.service.events("file.ignored")}
    assert {name: rules.get(name) for name in story.special} == story.special


def test_pictures_of_all_modes_come_out_beside_bad_ones(story: Story) -> None:
    """Grey, palette, alpha, 16 bits and CMYK in one queue with broken files: each ends for itself."""
    assert {name: story.outcomes.get(name) for name in MODES} == dict.fromkeys(MODES, "done")
    assert {name: story.outcomes.get(name) for name in BAD} == {
        "text.jpg": "not_an_image", "film.jpg": "unsupported:mp4", "zeros.png": "not_an_image",
    }  # fmt: skip


def test_pictures_are_whole_and_nothing_else_is_there(story: Story) -> None:
    """As many pictures as photos, each decodes to its end, and no temporary file is left."""
    names = story.service.pictures()
    assert len(names) == len(ODD_NAMES) + len(MODES) + 2
    assert all(whole(story.service.outbox / name) for name in names)


def test_half_a_photo_was_no_picture(story: Story) -> None:
    """A photo whose upload paused too long has one outcome, of its whole content, after more than one try."""
    (row,) = [row for row in story.service.events("file.done") if row["path"].endswith("/slow.jpg")]
    assert row["bytes_in"] == (story.service.root / "phone-processed" / "slow.jpg").stat().st_size
    assert story.outcomes["renamed.jpg"] == "done"
    assert len([name for name in story.service.pictures() if name.startswith("renamed")]) == 1


def test_no_shared_memory_is_used(story: Story) -> None:
    """Photos travel as paths: nothing of them lies in /dev/shm, which containers keep small."""
    assert story.descriptors == set()


def test_ctrl_c_is_a_clean_stop(story: Story) -> None:
    """An interrupt of the whole group ends the service by that signal, with one word of it and no traceback."""
    assert story.code == -signal.SIGINT
    events = [row["event"] for row in story.service.events()]
    assert events.count("daemon.stopping") == events.count("daemon.stopped") == 1
    assert events[-1] == "daemon.stopped"
    assert not story.service.events("worker.died")
    assert "Traceback" not in story.service.log.read_text() + story.service.errors.read_text()


def test_levels_of_outcomes(story: Story) -> None:
    """What came out is information, what failed is a warning, and nothing was an error."""
    levels = {row["event"]: row["level"] for row in story.service.events()}
    assert levels["file.done"] == "info"
    assert levels["file.failed"] == "warning"
    assert "error" not in levels.values()


def test_a_photo_that_was_reduced_says_by_how_much(story: Story) -> None:
    """The network sees `max_edge` pixels: the line of the photo has the size before and after."""
    row = next(row for row in story.service.events("file.done") if row["path"].endswith("-rf.jpg"))
    assert (row["width"], row["height"], row["out_width"], row["out_height"]) == (96, 72, 64, 48)
