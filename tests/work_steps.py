"""Counts what Python does, so that a test can hold the work for a file down without a clock."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class TooMuchWork(BaseException):
    """A call took more steps than it may; no net for faults of files catches this."""


def within(limit: int, call: Callable[[], Any]) -> Any:
    """Return what a call returns. Raise TooMuchWork where it takes more than `limit` steps of Python's interpreter."""
    taken = 0

    def watch(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal taken
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            taken += 1
            if taken > limit:
                raise TooMuchWork
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        return call()
    finally:
        sys.settrace(before)
