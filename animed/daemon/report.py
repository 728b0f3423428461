"""What the daemon says: one canonical log line an outcome, and the counts behind `status`."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import TYPE_CHECKING, Final

from animed.daemon.outcomes import BatchEnded, Ending, PhotoEnded
from animed.logs import path_fields
from animed.records import absolute

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from structlog.typing import FilteringBoundLogger

    from animed.daemon.active import Active, BatchTally
    from animed.daemon.outcomes import Listener
    from animed.records import PhotoKey

OUTCOMES: Final = ("done", "failed", "duplicate", "skipped", "ignored")
_REMEMBERED: Final = 20_000  # ignored paths that are not logged again; the oldest are forgotten first
_RATE_WINDOW_S: Final = 600.0
_TIMES: Final = ("decode_s", "infer_s", "encode_s")
_SIZES: Final = ("width", "height", "out_width", "out_height", "bytes_in", "bytes_out")


class Reporter:
    """Logs events about photos and keeps the tallies since the start."""

    def __init__(self, log: FilteringBoundLogger, roots: Mapping[str, str]) -> None:
        self._log = log
        self.roots = dict(roots)  # by inbox
        self._ignored: OrderedDict[tuple[str, bytes, str], None] = OrderedDict()
        self._noted: set[tuple[str, str]] = set()
        self._finished: deque[float] = deque(maxlen=100_000)
        self.since_start: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.listeners: list[Listener] = []

    def path(self, key: PhotoKey) -> dict[str, str]:
        """Return the fields that name a photo."""
        return {"inbox": key.inbox, **path_fields(absolute(self.roots[key.inbox], key.path))}

    def note(self, event: str, key: PhotoKey, **fields: object) -> None:
        """Log an event on a photo's way that is not its outcome."""
        level = {"file.seen": self._log.debug, "file.waiting": self._log.debug}.get(event, self._log.info)
        level(event, **self.path(key), **fields)

    def ignored(self, key: PhotoKey, rule: str, **fields: object) -> bool:
        """Log a path that is not taken, once for each path and rule; say whether it was new."""
        known = (key.inbox, key.path, rule)
        if known in self._ignored:
            return False
        self._ignored[known] = None
        if len(self._ignored) > _REMEMBERED:
            self._ignored.popitem(last=False)
        self.since_start["ignored"] += 1
        self._log.info("file.ignored", **self.path(key), rule=rule, **fields)
        return True

    def done(self, active: Active, now: float) -> None:
        """Log a picture that is durable under its final name."""
        self._outcome("done", active, now, attempt=active.job.attempt, **_faces(active))
        self._tell(active, "done", output=active.output)

    def duplicate(self, active: Active, now: float) -> None:
        """Log a photo that got its own copy of the picture that the same bytes, or a similar photo, have already."""
        self._outcome("duplicate", active, now, **path_fields(active.of, "of"), distance=active.distance)
        self._tell(active, "duplicate", output=active.output)

    def skipped(self, active: Active, cause: str, now: float) -> None:
        """Log a photo that a policy left out."""
        self._outcome("skipped", active, now, cause=cause)
        self._tell(active, "skipped", reason=cause)

    def failed(self, active: Active, reason: str, detail: str, now: float) -> None:
        """Log a photo that is given up."""
        self._outcome("failed", active, now, reason=reason, detail=detail, attempt=active.job.attempt)
        self._tell(active, "failed", reason=reason, detail=detail)

    def recovered(self, key: PhotoKey, status: Ending, output: bytes, style: str) -> None:
        """Log a photo whose picture was placed, but whose outcome a crash kept from being recorded."""
        figures = dict.fromkeys((*_SIZES, *_TIMES, "wait_s", "total_s", "batch", "batch_size", "worker", "attempt"))
        self.since_start[status] += 1
        self._log.info(
            f"file.{status}", **self.path(key), **path_fields(output, "output"), style=style, recovered=True, **figures
        )
        self._each(PhotoEnded(key, status, absolute(self.roots[key.inbox], key.path), output, style))

    def forgotten(self, key: PhotoKey) -> None:
        """Tell the listeners that a photo's record is gone."""
        for listener in self.listeners:
            listener.photo_forgotten(key)

    def original_kept(self, key: PhotoKey, why: str) -> None:
        """Log an original that stays although it was to go."""
        self._log.warning("original.kept", **self.path(key), detail=why)

    def place_notes(self, inbox: str, notes: Iterable[str]) -> None:
        """Log what a file system would not do for a picture, once for each inbox and note."""
        for note in notes:
            if (inbox, note) not in self._noted:
                self._noted.add((inbox, note))
                self._log.warning("place.note", inbox=inbox, detail=note)

    def worker_notes(self, worker: int, notes: Iterable[str]) -> None:
        """Log what the system would not grant a worker, once for all workers that are refused the same."""
        for note in notes:
            if ("", note) not in self._noted:
                self._noted.add(("", note))
                self._log.warning("worker.note", worker=worker, detail=note)

    def batch(self, tally: BatchTally, now: float) -> None:
        """Log a batch whose last photo has its outcome."""
        seconds = round(now - tally.began_at, 3)
        self._log.info("batch.done", batch=tally.number, batch_size=tally.size, seconds=seconds, **tally.ended)
        ended = BatchEnded(tally.number, tally.size, tally.inboxes, seconds, dict(tally.ended))
        for listener in self.listeners:
            listener.batch_ended(ended)

    def rate_per_min(self, now: float) -> float:
        """Return the pictures a minute over the last ten minutes, or since the first of them."""
        while self._finished and now - self._finished[0] > _RATE_WINDOW_S:
            self._finished.popleft()
        if not self._finished:
            return 0.0
        return round(60 * len(self._finished) / max(now - self._finished[0], 1.0), 2)

    def _outcome(self, status: str, active: Active, now: float, **fields: object) -> None:
        self.since_start[status] += 1
        if status in {"done", "duplicate"}:
            self._finished.append(now)
        level = self._log.warning if status == "failed" else self._log.info
        level(f"file.{status}", **self.path(active.job.key), **_figures(active, now), **fields)

    def _tell(self, active: Active, status: Ending, *, output: bytes = b"", reason: str = "", detail: str = "") -> None:
        job = active.job
        photo = absolute(self.roots[job.key.inbox], job.key.path)
        style, attempt = job.recipe.style, job.attempt
        self._each(PhotoEnded(job.key, status, photo, output, style, reason, detail, attempt, active.batch))

    def _each(self, ended: PhotoEnded) -> None:
        for listener in self.listeners:
            listener.photo_ended(ended)


def _figures(active: Active, now: float) -> dict[str, object]:
    """Return the figures of the canonical line; what was never measured is null."""
    job, picture = active.job, active.picture
    figures: dict[str, object] = dict.fromkeys((*_SIZES, *_TIMES))
    if picture is not None:
        figures = {name: getattr(picture, name) for name in _SIZES}
        figures |= {name: round(getattr(picture, name), 4) for name in _TIMES}
    else:
        figures["bytes_in"] = job.stat.size
    output = path_fields(active.output, "output") if active.output else {"output": None}
    return {
        **output,
        "style": job.recipe.style,
        **figures,
        "wait_s": round(active.sent_at - job.settled_at, 4) if active.sent_at else None,
        "total_s": round(now - job.settled_at, 4),
        "batch": active.batch,
        "batch_size": active.batch_size,
        "worker": active.worker or None,
    }


def _faces(active: Active) -> dict[str, int]:
    """Return how many faces were drawn by themselves, where they were looked for."""
    count = None if active.picture is None else active.picture.faces
    return {} if count is None else {"faces": count}
