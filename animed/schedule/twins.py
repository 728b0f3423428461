"""Photos of equal content under equal recipes that are on their way at the same time: one is drawn, the others wait.

Pure and in memory only: after a restart the scan brings all of them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from animed.records import Job, PhotoKey, Recipe

_Content = tuple[str, "Recipe"]


class Twins:
    """Who draws which content, and who waits for it."""

    def __init__(self) -> None:
        self._leaders: dict[_Content, PhotoKey] = {}
        self._waiting: dict[_Content, dict[PhotoKey, Job]] = {}
        self._contents: dict[PhotoKey, _Content] = {}

    def __len__(self) -> int:
        """Return how many photos wait for another one."""
        return sum(len(jobs) for jobs in self._waiting.values())

    def join(self, job: Job) -> bool:
        """Return True when this photo is to be drawn; False when it waits, because an equal one is on its way.

        A job without a digest is always drawn. A photo may join again: a retry keeps its lead.
        Raise ValueError when the photo has joined with other content and not left.
        """
        if not job.sha256:
            return True
        content = (job.sha256, job.recipe)
        if self._contents.setdefault(job.key, content) != content:
            raise ValueError(f"{job.key} must leave before it joins with other content")
        if self._leaders.setdefault(content, job.key) == job.key:
            return True
        self._waiting.setdefault(content, {})[job.key] = job
        return False

    def waits(self, key: PhotoKey) -> bool:
        """Say whether this photo waits for another one."""
        content = self._contents.get(key)
        return content is not None and key in self._waiting.get(content, ())

    def leave(self, key: PhotoKey) -> tuple[Job, ...]:
        """Note that a photo has ended; return those that waited for it, in order: each is decided anew."""
        content = self._contents.pop(key, None)
        if content is None:
            return ()
        if self._leaders[content] != key:
            del self._waiting[content][key]
            return ()
        del self._leaders[content]
        jobs = tuple(self._waiting.pop(content, {}).values())
        for job in jobs:
            del self._contents[job.key]
        return jobs
