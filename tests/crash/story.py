"""What the writers did: every photo's history, each version of it with its content, written down as it happens.

The checker judges by this and never by what the service says of itself.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that a writer made. A photo carries its `mark` in its EXIF title, and so does the picture made of it."""

    mark: str
    sha256: str
    size: int
    shape: tuple[int, int] | None  # width, height; None: no photo
    reasons: tuple[str, ...] = ()  # for what is no photo: how it may fail

    @classmethod
    def of(cls, data: bytes, mark: str, shape: tuple[int, int] | None, reasons: tuple[str, ...] = ()) -> Content:
        """Describe these bytes."""
        return cls(mark, hashlib.sha256(data).hexdigest(), len(data), shape, reasons)


@dataclass(slots=True)
class Version:
    """One content under a photo's name. The same content again, after an absence too, is the same version."""

    content: Content
    stats: int = 1  # how many stats the file has had: a failed photo is tried again when that changes


@dataclass(slots=True)
class Photo:
    """A name in an inbox that is a photo's, and all that happened to it."""

    inbox: str
    path: str  # below the inbox
    versions: list[Version] = field(default_factory=list)
    present: bool = False  # a complete file is there, as far as the writer knows
    unfinished: set[int] = field(default_factory=set)  # sizes that the file had while it was not complete
    acts: list[tuple[float, str]] = field(default_factory=list)

    @property
    def stem(self) -> str:
        """Return its name without folder and ending; no other photo of its inbox has the same."""
        return self.path.rpartition("/")[2].rpartition(".")[0]

    @property
    def last(self) -> Version | None:
        """Return the version that is to have an outcome: the last one, where it was left in place."""
        return self.versions[-1] if self.versions and self.present else None

    def runs(self, mark: str) -> int:
        """Return how many versions had this content: each may have one picture."""
        return sum(version.content.mark == mark for version in self.versions)

    def marked(self, mark: str) -> Content | None:
        """Return the content with that mark, if the photo ever had it."""
        return next((version.content for version in self.versions if version.content.mark == mark), None)


class Story:
    """All photos, and all files that are never to be taken. Several writers may tell it things at once."""

    def __init__(self) -> None:
        self.photos: dict[tuple[str, str], Photo] = {}
        self.litter: dict[tuple[str, str], str] = {}  # digest of each file that is never to be taken
        self.habits: Counter[str] = Counter()
        self.faults: list[tuple[float, str]] = []
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def photo(self, inbox: str, path: str) -> Photo:
        """Return a photo's history, a new one if need be."""
        with self._lock:
            return self.photos.setdefault((inbox, path), Photo(inbox, path))

    def say(self, photo: Photo, text: str) -> None:
        """Write down an act."""
        photo.acts.append((self.now(), text))

    def unfinished(self, photo: Photo, size: int) -> None:
        """Tell that the file will be seen with this size, and is not complete then."""
        photo.unfinished.add(size)
        photo.present = False

    def complete(self, photo: Photo, content: Content, how: str) -> None:
        """Tell that the photo holds this content now."""
        self.say(photo, f"{how}: {content.mark}, {content.size} bytes, sha256 {content.sha256[:12]}")
        if not photo.versions or photo.versions[-1].content != content:
            photo.versions.append(Version(content))
        else:
            photo.versions[-1].stats += 1
        photo.present = True

    def restat(self, photo: Photo, how: str) -> None:
        """Tell that the file's stat changed, but not its content."""
        self.say(photo, how)
        if photo.versions:
            photo.versions[-1].stats += 1

    def removed(self, photo: Photo, how: str) -> None:
        """Tell that the file is taken away."""
        self.say(photo, how)
        photo.present = False

    def litters(self, inbox: str, path: str, data: bytes | None) -> None:
        """Tell of a file that is never to be taken, or (None) that it is taken away."""
        with self._lock:
            if data is None:
                self.litter.pop((inbox, path), None)
            else:
                self.litter[inbox, path] = hashlib.sha256(data).hexdigest()

    def out_of_sight(self, inbox: str) -> None:
        """Tell that all files of an inbox are gone and come back, and nothing says that they will."""
        with self._lock:
            for photo in self.photos.values():
                if photo.inbox == inbox and photo.versions:
                    photo.versions[-1].stats += 1

    def fault(self, text: str) -> None:
        """Write down what was done to the service or its places."""
        self.faults.append((self.now(), text))

    def now(self) -> float:
        """Return the seconds since the story began."""
        return round(time.monotonic() - self._began, 3)

    def save(self, path: Path) -> None:
        """Write all of it to a file, for people."""
        photos = [asdict(photo) | {"unfinished": sorted(photo.unfinished)} for photo in self.photos.values()]
        path.write_text(json.dumps({"faults": self.faults, "photos": photos}, indent=1))
