"""What `animed check` found: one thing that was looked at, how it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `status` is the exit status that it asks for when it fails."""

    check: str  # stable word, such as "weights"
    subject: str  # what was looked at: the name of an inbox or a style, or nothing
    level: Level
    text: str
    remedy: str = ""
    status: int = 0

    def fields(self) -> dict[str, str]:
        """Return what programs get to see."""
        return {
            "check": self.check,
            "subject": self.subject,
            "level": self.level,
            "text": self.text,
            "remedy": self.remedy,
        }


def good(check: str, subject: str, text: str) -> Finding:
    """Return the finding of something that is well."""
    return Finding(check, subject, "ok", text)


def warning(check: str, subject: str, text: str, remedy: str) -> Finding:
    """Return the finding of something that works, but may not be meant."""
    return Finding(check, subject, "warn", text, remedy)


def failure(check: str, subject: str, text: str, remedy: str, *, status: int) -> Finding:
    """Return the finding of something that does not work."""
    return Finding(check, subject, "fail", text, remedy, status)
