"""The configurations that a run goes through: small pictures, one worker, short times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .ground import INBOXES, MARKED

if TYPE_CHECKING:
    import random

    from .ground import Ground

EDGES: Final = (64, 80, 96)  # what max_edge may be
_DEDUPE: Final = ("similar", "similar", "similar", "content", "path")
_LAYOUTS: Final = ("mirror", "mirror", "flat", "date")
_NAMES: Final = (
    "{stem}.{style}{ext}", "{stem}.{style}{ext}", "{stem}{counter}{ext}", "{inbox}.{folder}.{stem}{counter}{ext}",
    "{year}-{month}-{day}_{stem}.{style}{counter}{ext}",
)  # fmt: skip
_FORMATS: Final = ("same", "same", "jpeg", "png", "webp", "avif")
_WATCHES: Final = ("native", "native", "auto", "poll", "both")


@dataclass(frozen=True, slots=True)
class Habits:
    """What an inbox does with its photos."""

    dedupe: str = "content"
    layout: str = "mirror"
    name: str = "{stem}.{style}{ext}"
    size: str = "styled"
    format: str = "same"

    @classmethod
    def drawn(cls, dice: random.Random) -> Habits:
        """Return habits at random."""
        return cls(
            dice.choice(_DEDUPE), dice.choice(_LAYOUTS), dice.choice(_NAMES), dice.choice(("styled", "original")),
            dice.choice(_FORMATS),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What changes from one configuration to the next."""

    watch: str = "native"
    quality: int = 90
    max_edge: int = 64
    strength: float = 1.0
    batch: int = 8
    workers: int = 1
    habits: tuple[Habits, ...] = tuple(Habits() for _ in INBOXES)

    @classmethod
    def drawn(cls, dice: random.Random) -> Settings:
        """Return settings at random."""
        return cls(
            dice.choice(_WATCHES), dice.randint(60, 95), dice.choice(EDGES), dice.choice((1.0, 1.0, 0.6)),
            dice.choice((1, 3, 8)), dice.choice((1, 1, 2)), tuple(Habits.drawn(dice) for _ in INBOXES),
        )  # fmt: skip

    def text(self, ground: Ground) -> str:
        """Return the configuration file."""
        head = (
            f"version: 1\nstate_dir: {ground.state}\n"
            "limits: {min_free: 0}\n"
            f"workers: {{count: {self.workers}, threads: 1, nice: 0, stop_timeout: 5s}}\n"
            f"batch: {{max_size: {self.batch}, max_wait: 50ms}}\n"
            # A photo that is in a worker when that is killed must not be given up for it: we kill many.
            "retry: {attempts: 3, delay: 500ms, factor: 2, max_delay: 2s, crash_attempts: 50}\n"
            "logging: {format: json}\n"
            f"defaults: {{watch: {self.watch}, quality: {self.quality}, max_edge: {self.max_edge}, "
            f"strength: {self.strength}, stable_for: 300ms, stable_max: 3s, rescan_interval: 4s, poll_interval: 1s}}\n"
            "inboxes:\n"
        )
        return head + "".join(
            self._inbox(ground, name, habits) for name, habits in zip(INBOXES, self.habits, strict=True)
        )

    def _inbox(self, ground: Ground, name: str, habits: Habits) -> str:
        text = (
            f"  - name: {name}\n    path: {ground.inbox(name)}\n    output: {ground.output(name)}\n"
            f"    dedupe: {habits.dedupe}\n    layout: {habits.layout}\n    output_name: '{habits.name}'\n"
            f"    output_size: {habits.size}\n    output_format: {habits.format}\n"
        )
        if name in MARKED:
            text += "    require_marker: true\n"
        if name == "moving":
            text += f"    originals: move\n    processed_dir: {ground.processed}\n"
        return text
