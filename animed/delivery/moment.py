"""When a photo was taken, as far as that can be told: what dates in names and folders are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - all moments here are what a clock on the wall showed.


def moment(taken: str, mtime_ns: int) -> datetime:
    """Return when a photo was taken, without a time zone: by the camera's clock, else its time of last change here.

    `taken` is a record of a worker: 2024-05-17T18:03:59, or empty. What is no date counts as empty; a time of last
    change that no calendar holds is the beginning of 1970.
    """
    try:
        return datetime.fromisoformat(taken).replace(tzinfo=None)
    except ValueError:
        return _local(mtime_ns)


def _local(mtime_ns: int) -> datetime:
    try:
        return datetime.fromtimestamp(mtime_ns // 10**9, tz=UTC).astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return EPOCH
