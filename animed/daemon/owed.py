"""What is owed to an original, as the ledger keeps it until it is done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from animed.delivery.originals import Disposed, Kept, dispose
from animed.delivery.quarantine import FailureRecord, Quarantined, quarantine
from animed.records import FileStat
from animed.system import REAL, System

if TYPE_CHECKING:
    from animed.errors import PlaceRole

What = Literal["move", "delete", "failed-move", "failed-copy"]


@dataclass(frozen=True, slots=True)
class Owed:
    """One act, with all that it needs after a restart under another configuration."""

    what: What
    stat: FileStat  # what the original must still be
    target_dir: str
    record: FailureRecord | None = None  # of a failed photo

    @property
    def role(self) -> PlaceRole | None:
        """Return the place where the original goes; None where it goes nowhere."""
        if self.what == "delete":
            return None
        return "processed" if self.what == "move" else "failed"

    def text(self) -> str:
        """Return it as the ledger keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Owed:
        """Read what `text` made."""
        fields = json.loads(text)
        record = fields["record"] and FailureRecord(**fields["record"])
        return cls(fields["what"], FileStat(**fields["stat"]), fields["target_dir"], record or None)

    def pay(self, root: str, path: bytes, private: bytes, system: System = REAL) -> Disposed | Quarantined | Kept:
        """Do it; repeatable. Raises PlaceError when the place fails: to be done again later."""
        if self.record is None:
            action: Literal["move", "delete"] = "move" if self.what == "move" else "delete"
            target = self.target_dir if action == "move" else None
            return dispose(root, path, self.stat, action=action, private=private, target_dir=target, system=system)
        return quarantine(
            root, path, self.stat, action="move" if self.what == "failed-move" else "copy",
            private=private, target_dir=self.target_dir, record=self.record, system=system,
        )  # fmt: skip
