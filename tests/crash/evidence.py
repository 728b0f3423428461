"""What is there at the end of a run: pictures, originals, log lines, exit statuses, answers of the commands."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from PIL import Image

from .contents import mark_of
from .ground import FOLDING, INBOXES, MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .ground import Ground
    from .service import Life

OUTCOMES: Final = ("file.done", "file.duplicate", "file.skipped", "file.failed")
_NAME: Final = re.compile(r"[^.].*\.(?:jpg|png|webp|avif)")
_BETWEEN: Final = re.compile(r"[._-]")  # what stands between the fields of a picture's name

# Errors that the run causes: a full state folder, and a configuration that cannot be used.
_BROUGHT_ABOUT: Final = frozenset({"disk.low", "config.rejected"})


@dataclass(frozen=True, slots=True)
class Drawn:
    """A file in an output. `mark` and `size` are the picture's, None when it does not decode to its end."""

    inbox: str
    path: str  # below the output
    full: str
    mark: str | None
    size: tuple[int, int] | None

    @property
    def parts(self) -> list[str]:
        """Return the parts of the name, one of which is the photo's; none when this is not called like a picture."""
        name = self.path.rpartition("/")[2]
        return _BETWEEN.split(name) if _NAME.fullmatch(name) else []


@dataclass(frozen=True, slots=True)
class Line:
    """An outcome in the log."""

    life: int
    inbox: str
    path: str  # below the inbox
    event: str  # without "file."
    fields: dict[str, Any]


@dataclass(slots=True)
class Evidence:
    """All of it."""

    pictures: list[Drawn] = field(default_factory=list)
    originals: dict[tuple[str, str], str] = field(default_factory=dict)  # sha256 by inbox and path
    processed: list[tuple[str, str]] = field(default_factory=list)  # path, sha256
    outcomes: list[Line] = field(default_factory=list)
    bad_lines: list[str] = field(default_factory=list)  # what no log line may be
    complaints: list[tuple[int, str]] = field(default_factory=list)  # life, what it wrote on stderr
    lives: list[Life] = field(default_factory=list)
    moved_early: list[str] = field(default_factory=list)  # originals that were moved while there was no picture
    failed: list[tuple[str, str, str]] = field(default_factory=list)  # inbox, path, reason
    unsettled: str = ""  # what was still going on when the service had had all the time it could want
    check_status: int = 0  # of `status --check`, when all was healed
    kept: set[tuple[str, str]] = field(default_factory=set)  # originals that the log says were kept
    unanswered: int = 0  # reloads that nothing was said of
    folding: str = ""  # the inbox whose output takes all cases of a name for one, and lists some of them in another

    @property
    def kills(self) -> int:
        """Return how often the service was killed: each may cost a log line, never an outcome."""
        return sum("KILL" in life.asked for life in self.lives)

    def spelling(self, inbox: str, name: str) -> str:
        """Return what all spellings of a name have in common that its disk takes for one."""
        return name.casefold() if inbox == self.folding else name


def gather(ground: Ground, lives: Iterable[Life]) -> Evidence:
    """Read the folders and the logs. Nothing may be running any more."""
    found = Evidence(lives=list(lives), folding=FOLDING if ground.folding else "")
    for name in INBOXES:
        found.pictures += pictures(ground.output(name), name)
        for path in _files(ground.real / name):
            if path.name != MARKER:
                relative = path.relative_to(ground.real / name).as_posix()
                found.originals[name, relative] = sha_of(path)
    found.processed = [
        (path.relative_to(ground.processed).as_posix(), sha_of(path)) for path in _files(ground.processed)
    ]
    roots = {name: f"{ground.inbox(name)}/" for name in INBOXES}
    for life in found.lives:
        _read_log(life, roots, found)
        if said := life.errors.read_text(errors="replace").strip():
            found.complaints.append((life.number, said))
    return found


def pictures(folder: Path, inbox: str) -> Iterator[Drawn]:
    """Look at every file below an output."""
    for path in _files(folder):
        mark, size = None, None
        try:
            with Image.open(path) as picture:
                picture.load()
                mark, size = mark_of(picture), picture.size
        except (OSError, SyntaxError, ValueError):
            mark, size = None, None  # No picture, or not all of it.
        yield Drawn(inbox, path.relative_to(folder).as_posix(), str(path), mark, size)


def sha_of(path: Path) -> str:
    """Digest a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def _read_log(life: Life, roots: dict[str, str], found: Evidence) -> None:
    for text in life.lines():
        try:
            fields = json.loads(text)
        except ValueError:
            found.bad_lines.append(f"life {life.number}: {text}")
            continue
        if not _is_sound(fields):
            found.bad_lines.append(f"life {life.number}: {text}")
        if fields.get("event") == "original.kept":
            found.kept.add((fields["inbox"], str(fields["path"]).removeprefix(roots[fields["inbox"]])))
        if fields.get("event") in OUTCOMES:
            path = str(fields["path"]).removeprefix(roots[fields["inbox"]])
            found.outcomes.append(Line(life.number, fields["inbox"], path, fields["event"][5:], fields))


def _is_sound(fields: dict[str, Any]) -> bool:
    """Say whether a line tells of nothing that must never happen; what the run itself brings about is no such thing."""
    error = fields.get("level") in {"error", "critical"} and fields.get("event") not in _BROUGHT_ABOUT
    return not error and "Traceback" not in json.dumps(fields)
