"""What a run tells people: its figures, and of each broken promise the whole story of its photo."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .checker import Breach
    from .evidence import Evidence
    from .ground import Ground
    from .service import Service
    from .story import Story

_EXPLAINED: Final = 5  # photos that animed itself is asked about
_KEYS: Final = ("timestamp", "event", "reason", "detail", "output", "of", "attempt", "recovered", "bytes_in", "total_s")


def say(text: str) -> None:
    """Print, and at once: whoever watches a run wants to see it go on."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def summary(story: Story, evidence: Evidence) -> str:
    """Return the figures of a run."""
    versions = sum(len(photo.versions) for photo in story.photos.values())
    left = [photo.last for photo in story.photos.values() if photo.last is not None]
    good = sum(version.content.shape is not None for version in left)
    ends = Counter(str(life.status) for life in evidence.lives)
    alike = sum(bool(line.fields.get("distance")) for line in evidence.outcomes)
    endings = Counter(drawn.path.rpartition(".")[2] for drawn in evidence.pictures)
    return (
        f"photos: {len(story.photos)} names, {versions} versions, {good} good and {len(left) - good} broken ones left"
        f" in place, {len(story.litter)} files never to be taken\n"
        f"pictures: {len(evidence.pictures)} ({_counts(endings)}), {alike} shared with a photo that looks alike;"
        f" originals moved: {len(evidence.processed)}\n"
        f"lives of the service: {len(evidence.lives)}, ended by: {dict(sorted(ends.items()))}\n"
        f"log: {_events(evidence)}"
    )


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))


def _events(evidence: Evidence) -> str:
    """Count the events that tell that faults were felt."""
    told: Counter[str] = Counter()
    for life in evidence.lives:
        for text in life.lines():
            event = text.partition('"event": "')[2].partition('"')[0]
            if not event.startswith(("file.", "batch.", "daemon.dump", "worker.output")) or event == "file.retry":
                told[event] += 1
    return _counts(told)


def describe(breach: Breach, evidence: Evidence) -> str:
    """Return a broken promise, with all that is known of its photo."""
    rows = [f"\nBROKEN: {breach.what}"]
    if (photo := breach.photo) is None:
        return rows[0]
    rows += [f"  writer {seconds:9.3f}  {text}" for seconds, text in photo.acts]
    for life in evidence.lives:
        for text in life.lines():
            if f'/{photo.path}"' in text and photo.inbox in text:
                rows.append(f"  life {life.number:4}: {_short(text)}")
    for drawn in evidence.pictures:
        if drawn.inbox == photo.inbox and photo.stem in drawn.parts:
            rows.append(f"  picture {drawn.path}: mark {drawn.mark!r}, size {drawn.size}")
    failed = [reason for inbox, path, reason in evidence.failed if (inbox, path) == (photo.inbox, photo.path)]
    rows.append(f"  among the failures: {failed}")
    return "\n".join(rows)


def _short(text: str) -> str:
    try:
        fields = json.loads(text)
    except ValueError:
        return text
    return " ".join(f"{key}={fields[key]}" for key in _KEYS if fields.get(key) is not None)


def explained(breaches: Iterable[Breach], service: Service, ground: Ground) -> str:
    """Ask animed itself where some of the photos stand."""
    photos = {(breach.photo.inbox, breach.photo.path) for breach in breaches if breach.photo is not None}
    rows = []
    for inbox, path in sorted(photos)[:_EXPLAINED]:
        found = service.call("check", "--explain", str(ground.inbox(inbox) / path))
        rows.append(f"\nanimed on {inbox}/{path}:\n{found.stdout}{found.stderr}")
    return "\n".join(rows)
