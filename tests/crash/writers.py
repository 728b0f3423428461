"""Writers of different habits. Each works in one inbox, on names of its own, and decides by its own dice only.

What a writer does next never depends on what the service did, so that a seed gives the same story again.
"""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, Final

from . import contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .story import Content, Photo, Story

_EXTENSIONS: Final = ("jpg", "jpg", "jpg", *contents.EXTENSIONS)
_SPELLINGS: Final = (  # names that some file systems take for one
    ("Strand", "STRAND"), ("wei\u00df", "WEISS"), ("caf\u00e9", "cafe\u0301"),
    ("\u00c5ngstr\u00f6m", "a\u030angstro\u0308m"),
)  # fmt: skip
_LITTER: Final = (
    ".syncthing.{}.jpg.tmp", "{}.jpg.part", ".{}.jpg", "~${}.jpg", "{}.txt", "{}.jpg.crdownload", "._{}.jpg",
    "{}.sync-conflict-20260131-101500-ABCDEFG.jpg", "@eaDir/{}.jpg", ".stversions/{}.jpg", "{}.jpg.tmp", "{}",
)  # fmt: skip
_TIMES: Final = (0, 86_400, 1_000_000_000, 4_000_000_000)  # mtimes of all ages, one of them to come


class Writer:
    """One program, or person, that brings photos into an inbox."""

    def __init__(
        self,
        inbox: str,
        root: Path,
        outside: Path,
        *,
        seed: int,
        story: Story,
        in_place: bool,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self.inbox = inbox
        self.dice = random.Random(f"{seed} writer {inbox}")
        self.problem: BaseException | None = None
        self._root, self._outside, self._story = root, outside, story
        self._crowded = crowded
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"writer-{inbox}")
        self._photos: list[Photo] = []
        self._goods: list[tuple[bytes, Content, str]] = []  # what may be brought once more, with its ending
        self._numbers = 0
        self._habits: list[tuple[Callable[[], None], int]] = [
            (self.slow, 12), (self.rename, 14), (self.link, 8), (self.replace, 7), (self.delete, 5),
            (self.fleeting, 5), (self.folder, 4), (self.syncthing, 12), (self.duplicate, 8), (self.broken, 8),
            (self.litter, 6), (self.touch, 5), (self.burst, 2), (self.repair, 3), (self.resave, 10), (self.series, 6),
            (self.spelling, 4),
        ]  # fmt: skip
        if in_place:
            # Not where originals are moved away: a writer that still holds the file open would write to what was moved.
            self._habits.append((self.rewrite, 6))

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the habit that is being followed."""
        self._stop.set()

    def end(self) -> None:
        """Stop, and wait for the end, if it ever began."""
        self.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def join(self) -> None:
        """Wait for the end; raises what ended the writer otherwise."""
        self._thread.join()
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.act()
                self._stop.wait(min(self.dice.expovariate(3.0), 2.0))
                # A slow machine gets the same story, told more slowly.
                while self._crowded() and not self._stop.is_set():
                    self._stop.wait(0.2)
        except BaseException as problem:
            self.problem = problem
            raise

    def act(self) -> None:
        """Follow one habit."""
        habit = self.dice.choices([one for one, _ in self._habits], [weight for _, weight in self._habits])[0]
        self._story.habits[habit.__name__] += 1
        habit()

    # Habits.

    def slow(self) -> None:
        """Write under the final name, bit by bit; now and then with a break that is longer than the service waits."""
        photo, data, content = self._new()
        parts = self.dice.randint(2, 5)
        step = len(data) // parts + 1
        pauses = [self.dice.choice((0.02, 0.05, 0.1, 0.1, 0.6)) for _ in range(parts)]
        self._story.unfinished(photo, 0)
        with self._path(photo).open("wb", buffering=0) as file:
            for number, pause in enumerate(pauses):
                file.write(data[number * step : (number + 1) * step])
                if file.tell() < len(data):
                    self._story.unfinished(photo, file.tell())
                    self._wait(pause)
        self._story.complete(photo, content, "written slowly")

    def rename(self) -> None:
        """Write under a temporary name, then rename."""
        photo, data, content = self._new()
        self._rename_in(photo, data, content)

    def link(self) -> None:
        """Write elsewhere, and link it in by a second name; the first goes later."""
        photo, data, content = self._new()
        source = self._outside / "linked"
        source.write_bytes(data)
        self._story.complete(photo, content, "linked in")
        os.link(source, self._path(photo))
        self._wait(self.dice.choice((0, 0.4)))
        self._story.restat(photo, "the other link is removed")
        source.unlink()

    def replace(self) -> None:
        """Put other content under a known name, in one step."""
        if (photo := self._known()) is not None:
            data, content = self._good(photo.path.rpartition(".")[2])
            self._rename_in(photo, data, content, "replaced")

    def rewrite(self) -> None:
        """Write other content over the old one, in the same file."""
        if (photo := self._known()) is None:
            return
        data, content = self._good(photo.path.rpartition(".")[2])
        self._story.say(photo, "is being rewritten in place")
        self._story.unfinished(photo, 0)
        self._story.unfinished(photo, len(data) // 2)
        with self._path(photo).open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            self._wait(self.dice.choice((0, 0.05, 0.2)))
            file.write(data[len(data) // 2 :])
        self._story.complete(photo, content, "rewritten")

    def delete(self) -> None:
        """Take a photo away that has been there for a while."""
        if (photo := self._known()) is not None:
            self._delete(photo)

    def fleeting(self) -> None:
        """Bring a photo, and take it away while it is queued, or just drawn."""
        photo, data, content = self._new()
        self._rename_in(photo, data, content)
        self._wait(self.dice.uniform(0, 0.8))
        self._delete(photo)

    def folder(self) -> None:
        """Move a folder of photos in."""
        name = f"folder{self._number()}"
        away = self._outside / name
        away.mkdir()
        members = [self._new(f"{name}/") for _ in range(self.dice.randint(2, 5))]
        for photo, data, content in members:
            (away / photo.path.rpartition("/")[2]).write_bytes(data)
            self._story.complete(photo, content, "moved in with its folder")
        away.rename(self._root / name)

    def syncthing(self) -> None:
        """Write under Syncthing's temporary name, rename, and only then set the old time of the original."""
        photo, data, content = self._new()
        temp = self._root / f".syncthing.{photo.path}.tmp"
        temp.write_bytes(data)
        temp.rename(self._path(photo))
        self._story.complete(photo, content, "synced")
        self._set_time(photo, self.dice.choice(_TIMES) + self.dice.randrange(100_000))

    def duplicate(self) -> None:
        """Bring the same bytes once more under another name."""
        photo, data, content = self._new()
        if self._goods and (same := [each for each in self._goods if each[2] == photo.path.rpartition(".")[2]]):
            data, content, _ = self.dice.choice(same)
        self._rename_in(photo, data, content)

    def resave(self) -> None:
        """Bring an earlier photo as another program has saved it, perhaps smaller."""
        first = self._recent()
        if first is not None:
            self._resave_in(*first)

    def series(self) -> None:
        """Bring a photo and copies of it that other programs saved, all at once."""
        photo, data, content = self._new()
        self._rename_in(photo, data, content)
        if not photo.path.endswith(".heic"):
            for _ in range(self.dice.randint(1, 4)):
                self._resave_in(data, content)

    def spelling(self) -> None:
        """Bring two photos at once whose names differ in the case of letters, or in the form of an accent."""
        number, ext = self._number(), self.dice.choice(_EXTENSIONS)
        for name in self.dice.choice(_SPELLINGS):
            self._rename_in(self._open(f"p{number}{name}.{ext}"), *self._good(ext))

    def broken(self) -> None:
        """Bring what is named like a photo and is none."""
        kind = self.dice.choice(contents.BAD)
        number = self._number()
        ext = {"huge": "png", "cut": self.dice.choice(contents.EXTENSIONS)}.get(kind, "jpg")
        photo = self._open(f"bad{number}.{ext}")
        data, content = contents.bad(self.dice, f"{self.inbox} {kind} {number}", kind, ext)
        self._rename_in(photo, data, content, f"broken ({kind})")

    def repair(self) -> None:
        """Put a good photo over one that cannot be drawn."""
        bads = [photo for photo in self._photos if photo.present and photo.versions[-1].content.shape is None]
        if bads:
            photo = self.dice.choice(bads)
            data, content = self._good(photo.path.rpartition(".")[2])
            self._rename_in(photo, data, content, "repaired")

    def litter(self) -> None:
        """Leave a file that is never to be taken, with a real photo in it; take some away again."""
        data, _ = self._good("jpg")
        path = self.dice.choice(_LITTER).format(f"litter{self._number()}")
        (self._root / path).parent.mkdir(exist_ok=True)
        self._story.litters(self.inbox, path, data)
        (self._root / path).write_bytes(data)
        if self.dice.random() < 0.3:
            self._wait(0.2)
            (self._root / path).unlink()
            self._story.litters(self.inbox, path, None)

    def touch(self) -> None:
        """Give a known photo another time: it is the same photo."""
        if (photo := self._known()) is not None:
            self._set_time(photo, self.dice.choice(_TIMES) + self.dice.randrange(100_000))

    def burst(self) -> None:
        """Bring many photos at once."""
        for _ in range(self.dice.randint(10, 30)):
            self.rename()

    # What habits are made of.

    def _wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _path(self, photo: Photo) -> Path:
        return self._root / photo.path

    def _open(self, path: str) -> Photo:
        photo = self._story.photo(self.inbox, path)
        self._photos.append(photo)
        return photo

    def _good(self, ext: str) -> tuple[bytes, Content]:
        data, content = contents.good(self.dice, f"{self.inbox} {self._number()}", ext)
        self._goods.append((data, content, ext))
        return data, content

    def _new(self, folder: str = "") -> tuple[Photo, bytes, Content]:
        ext = self.dice.choice(_EXTENSIONS)
        photo = self._open(f"{folder}p{self._number()}.{ext}")
        return photo, *self._good(ext)

    def _known(self) -> Photo | None:
        """Return a photo that is there as far as this writer's own doings go, more often a late one."""
        there = [photo for photo in self._photos if photo.present]
        recent = there[-8:] if self.dice.random() < 0.7 else there
        return self.dice.choice(recent) if recent else None

    def _recent(self) -> tuple[bytes, Content] | None:
        """Return what was brought lately, of a kind that can be read here."""
        there = [(data, content) for data, content, ext in self._goods[-30:] if ext != "heic"]
        return self.dice.choice(there) if there else None

    def _resave_in(self, data: bytes, content: Content) -> None:
        ext = self.dice.choice(_EXTENSIONS)
        photo = self._open(f"p{self._number()}.{ext}")
        self._rename_in(photo, *contents.resaved(self.dice, data, content.mark, ext), "saved again")

    def _rename_in(self, photo: Photo, data: bytes, content: Content, how: str = "renamed in") -> None:
        temp = self._root / f".{photo.path.replace('/', '-')}.Xa3dE9"
        temp.write_bytes(data)
        self._story.complete(photo, content, how)
        self._path(photo).parent.mkdir(exist_ok=True)
        temp.rename(self._path(photo))

    def _delete(self, photo: Photo) -> None:
        self._story.removed(photo, "deleted")
        self._path(photo).unlink(missing_ok=True)  # where originals are moved, the service may have been quicker

    def _set_time(self, photo: Photo, seconds: int) -> None:
        self._story.restat(photo, f"mtime set to {seconds}")
        try:
            os.utime(self._path(photo), (seconds, seconds))
        except FileNotFoundError:
            self._story.say(photo, "which was gone by then")
