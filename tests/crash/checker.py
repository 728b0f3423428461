"""Proves the promises, or names each that was broken. It knows the story and the evidence, and nothing of animed.

The rules, where they need a word:

* A version is a content under a name; the same content again under that name, with another time or after an absence, is
  the same version. A version that was left in place must have its outcome; one that was replaced or taken away may.
* A photo's outcome is a picture that carries its mark. What was saved once more carries the mark of the first, and may
  share its picture, of whatever size that is. A file that is no photo fails, with a reason of its kind.
* A version has one picture at most, whatever the recipes were, and one outcome line at most. A kill -9 of the service
  may cost one line, never the outcome; a failure is then among those that `animed failed` tells.
* A failed file is tried again when its stat changes, and may then fail once more for each such change.
* An original whose stat changed between its drawing and its moving is not the file that was read: it may be kept, and
  the log says so.
* A file that was seen before it was complete may fail with that size; one that changed meanwhile may fail as `changed`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .settings import EDGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .evidence import Drawn, Evidence, Line
    from .service import Life
    from .story import Photo, Story, Version

_UNFINISHED: Final = ("truncated", "not_an_image", "empty", "changed")
# What a service manager does not start again: configuration, workers, a second instance.
_FINAL_STATUSES: Final = frozenset({4, 69, 78})
_MONTH: Final = re.compile("[0-9]{4}/[0-9]{2}")
_BY_SIGNAL: Final = {"TERM": -15, "KILL": -9}


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken promise; with the photo that it was given to, where there is one."""

    what: str
    photo: Photo | None = None


def check(story: Story, evidence: Evidence) -> list[Breach]:
    """Return every broken promise."""
    return list(_Check(story, evidence).all())


class _Check:
    def __init__(self, story: Story, evidence: Evidence) -> None:
        self._story, self._evidence = story, evidence
        self._photos: defaultdict[tuple[str, str], list[Photo]] = defaultdict(list)  # by inbox and stem
        for photo in story.photos.values():
            self._photos[photo.inbox, evidence.spelling(photo.inbox, photo.stem)].append(photo)
        self._shapes: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)  # of all that carry a mark
        for version in (version for photo in story.photos.values() for version in photo.versions):
            if version.content.shape is not None:
                self._shapes[version.content.mark].add(version.content.shape)
        self._pictures: defaultdict[tuple[str, str, str], list[Drawn]] = defaultdict(list)  # inbox, path, mark
        self._lines: defaultdict[tuple[str, str], list[Line]] = defaultdict(list)
        self._lost = 0  # outcomes without a line
        for line in evidence.outcomes:
            self._lines[line.inbox, line.path].append(line)

    def all(self) -> Iterator[Breach]:
        yield from self._service()
        yield from self._placed()
        yield from self._picture_lines()
        yield from self._taken()
        for photo in self._story.photos.values():
            yield from self._outcome(photo)
            yield from self._failures(photo)
        yield from self._originals()
        yield from self._moved()
        if self._lost > self._evidence.kills:
            yield Breach(f"{self._lost} outcomes have no line, after {self._evidence.kills} kills of the service")

    # The service itself.

    def _service(self) -> Iterator[Breach]:
        found = self._evidence
        yield from (Breach(f"a line that must not be: {line}") for line in found.bad_lines)
        yield from (Breach(f"an original was moved before its picture was there: {text}") for text in found.moved_early)
        for life in found.lives:
            yield from _end_of(life)
        excused = {life.number for life in found.lives if life.state_full and not life.asked}
        for number, text in found.complaints:
            if number not in excused or "Traceback" in text:
                yield Breach(f"life {number}: wrote on stderr: {text}")
        yield from self._rest()

    def _rest(self) -> Iterator[Breach]:
        found = self._evidence
        if found.unsettled:
            yield Breach(f"it did not come to rest: {found.unsettled}")
        if found.check_status:
            yield Breach(f"`status --check` gave {found.check_status} after all faults had ended")
        if found.unanswered:
            yield Breach(f"{found.unanswered} reloads were not answered")

    # Pictures.

    def _placed(self) -> Iterator[Breach]:
        """Judge every file in the outputs, and sort the pictures by what they are of."""
        for drawn in self._evidence.pictures:
            photo = self._photo_of(drawn)
            content = photo.marked(drawn.mark) if photo and drawn.mark is not None else None
            if photo is None:
                yield Breach(f"a file in the output that is no photo's picture: {drawn.full}")
            elif drawn.mark is None or drawn.size is None:
                yield Breach(f"a picture that is not whole: {drawn.full}", photo)
            elif content is None:
                yield Breach(f"a picture of a content that its photo never had ({drawn.mark!r}): {drawn.full}", photo)
            else:
                self._pictures[photo.inbox, photo.path, drawn.mark].append(drawn)
                yield from self._looked_at(drawn, photo, _sizes(self._shapes[drawn.mark]))
        for (inbox, path, mark), drawn_ones in self._pictures.items():
            photo = self._story.photos[inbox, path]
            if len(drawn_ones) > photo.runs(mark):
                names = ", ".join(drawn.path for drawn in drawn_ones)
                yield Breach(f"{len(drawn_ones)} pictures of {photo.runs(mark)} version(s) {mark!r}: {names}", photo)

    @staticmethod
    def _looked_at(drawn: Drawn, photo: Photo, sizes: set[tuple[int, int]]) -> Iterator[Breach]:
        if drawn.size not in sizes:
            yield Breach(f"a picture of the wrong size {drawn.size}, not one of {sizes}: {drawn.full}", photo)
        if not _may_lie(drawn, photo):
            yield Breach(f"a picture in a folder that no layout leads to: {drawn.full}", photo)

    def _photo_of(self, drawn: Drawn) -> Photo | None:
        """Return the photo that a picture is named after; of several the one that had what is drawn."""
        parts = dict.fromkeys(self._evidence.spelling(drawn.inbox, part) for part in drawn.parts)
        named = [photo for part in parts for photo in self._photos.get((drawn.inbox, part), ())]
        fitting = [photo for photo in named if drawn.mark is not None and photo.marked(drawn.mark)]
        return next(iter(fitting or named), None)

    def _picture_lines(self) -> Iterator[Breach]:
        """Hold outcome lines against pictures: each names a picture of its photo, no two the same."""
        spelling = self._evidence.spelling
        pictures = [drawn for found in self._pictures.values() for drawn in found]
        there = {spelling(drawn.inbox, drawn.full): drawn for drawn in pictures}
        told: Counter[str] = Counter()
        for line in self._evidence.outcomes:
            photo = self._story.photos.get((line.inbox, line.path))
            if line.event not in {"done", "duplicate"} or photo is None:
                continue
            output = spelling(line.inbox, str(line.fields["output"]))
            told[output] += 1
            if (drawn := there.get(output)) is None or self._photo_of(drawn) is not photo:
                yield Breach(f"life {line.life}: {line.event} without a picture of that photo: {output}", photo)
            elif (size := (line.fields["out_width"], line.fields["out_height"])) not in {drawn.size, (None, None)}:
                yield Breach(f"life {line.life}: {line.event} says {size}, the picture is {drawn.size}", photo)
            elif told[output] > 1:
                yield Breach(f"a second outcome for one picture: {output}", photo)
        self._lost += len(there.keys() - told.keys())

    def _taken(self) -> Iterator[Breach]:
        """Find outcomes of files that are none of the photos'."""
        for (inbox, path), lines in self._lines.items():
            photo = self._story.photos.get((inbox, path))
            if photo is None:
                yield Breach(f"{lines[0].event}: {inbox}/{path}, which is never to be taken")
            yield from (Breach(f"skipped: {inbox}/{path}", photo) for line in lines if line.event == "skipped")

    # Outcomes.

    def _outcome(self, photo: Photo) -> Iterator[Breach]:
        """Find the outcome of the version that was left in place."""
        if (last := photo.last) is None:
            return
        content = last.content
        reasons = [
            reason for inbox, path, reason in self._evidence.failed if (inbox, path) == (photo.inbox, photo.path)
        ]
        if content.shape is not None:
            if not self._pictures.get((photo.inbox, photo.path, content.mark)):
                yield Breach(f"no outcome: {photo.inbox}/{photo.path} has no picture of {content.mark!r}", photo)
            if reasons:
                yield Breach(f"a photo that can be drawn stands among the failures: {reasons}", photo)
            return
        if len(reasons) != 1 or not _is_of(reasons[0], content.reasons):
            yield Breach(f"no outcome: {photo.inbox}/{photo.path} stands among the failures as {reasons}", photo)
        elif not any(line.fields.get("bytes_in") == content.size for line in self._failed_lines(photo)):
            self._lost += 1

    def _failed_lines(self, photo: Photo) -> list[Line]:
        return [line for line in self._lines.get((photo.inbox, photo.path), []) if line.event == "failed"]

    def _failures(self, photo: Photo) -> Iterator[Breach]:
        """Account for every failure that the log tells of."""
        left = Counter({id(version): version.stats for version in photo.versions})
        for line in self._failed_lines(photo):
            reason, size = str(line.fields["reason"]), line.fields["bytes_in"]
            if size in photo.unfinished and _is_of(reason, _UNFINISHED):
                continue
            version = _excuse(photo, reason, size, left)
            if version is None:
                yield Breach(f"life {line.life}: failed as {reason} with {size} bytes, for no known cause", photo)
            else:
                left[id(version)] -= 1

    # Originals.

    def _originals(self) -> Iterator[Breach]:
        """Hold what lies in the inboxes against what the writers left there."""
        expected = {key: photo.last.content.sha256 for key, photo in self._story.photos.items() if photo.last}
        for key, digest in self._evidence.originals.items():
            wanted = expected.get(key) or self._story.litter.get(key)
            if wanted is None:
                yield Breach(f"a file in an inbox that nobody left there: {'/'.join(key)}", self._story.photos.get(key))
            elif digest != wanted:
                yield Breach(f"a file was changed: {'/'.join(key)}", self._story.photos.get(key))
        gone = (expected | self._story.litter).keys() - self._evidence.originals.keys()
        for key in sorted(gone):
            photo = self._story.photos.get(key)
            if key[0] != "moving" or photo is None or photo.last is None or photo.last.content.shape is None:
                yield Breach(f"a file was lost: {'/'.join(key)}", photo)

    def _moved(self) -> Iterator[Breach]:
        """Hold the folder of processed originals against the photos of the moving inbox."""
        moving = [photo for photo in self._story.photos.values() if photo.inbox == "moving"]
        made = Counter(version.content.sha256 for photo in moving for version in photo.versions)
        there = Counter(digest for _, digest in self._evidence.processed)
        for path, digest in self._evidence.processed:
            if digest not in made or path.rpartition("/")[2].startswith("."):
                yield Breach(f"a processed file that is no original: {path}")
        waiting: Counter[str] = Counter()
        for photo in moving:
            if photo.last is None or photo.last.content.shape is None:
                continue
            key = photo.inbox, photo.path
            if key in self._evidence.originals:
                if photo.last.stats == 1 or key not in self._evidence.kept:
                    yield Breach(f"an original was not moved: {photo.path}", photo)
                continue
            waiting[photo.last.content.sha256] += 1
            if waiting[photo.last.content.sha256] > there[photo.last.content.sha256]:
                yield Breach(f"an original was lost: {photo.path} is not among the processed ones", photo)


def _end_of(life: Life) -> Iterator[Breach]:
    """Judge how a life ended: as it was asked to, or, where its state folder was full, so that it is started again."""
    yield from (Breach(f"life {life.number}: outlived by {text}") for text in life.orphans)
    expected = _BY_SIGNAL[life.asked[-1]] if life.asked else None
    excused = expected is None and life.state_full and life.status not in _FINAL_STATUSES
    if life.hung:
        yield Breach(f"life {life.number}: did not end when it was asked to")
    elif life.status != expected and not excused:
        yield Breach(f"life {life.number}: ended with {life.status}, expected {expected}")


def _excuse(photo: Photo, reason: str, size: int, left: Counter[int]) -> Version | None:
    """Return the version that such a failure may be of, if one has a failure left."""
    for version in photo.versions:
        content, final = version.content, version is photo.last
        if content.size != size or left[id(version)] <= 0:
            continue
        # The last stat of a good photo that was left in place is one that it is drawn with.
        spare = left[id(version)] > 1 if final else True
        if _is_of(reason, content.reasons) or (reason == "changed" and spare):
            return version
    return None


def _is_of(reason: str, kinds: Iterable[str]) -> bool:
    return reason.partition(":")[0] in kinds


def _may_lie(drawn: Drawn, photo: Photo) -> bool:
    """Say whether some layout leads there: the photo's folder, none, or its month."""
    folder = drawn.path.rpartition("/")[0]
    return folder in {"", photo.path.rpartition("/")[0]} or bool(_MONTH.fullmatch(folder))


def _sizes(shapes: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the sizes that a picture of these may have, at every size that was ever configured."""
    return {size for shape in shapes for size in (shape, *(_fit(shape, edge) for edge in EDGES))}


def _fit(shape: tuple[int, int], edge: int) -> tuple[int, int]:
    """Reduce a size to a longest edge, half a pixel rounded up."""
    longest = max(shape)
    if longest <= edge:
        return shape
    width, height = ((2 * side * edge + longest) // (2 * longest) for side in shape)
    return width, height
