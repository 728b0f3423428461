"""Commits in order, and what follows from them, while the state folder is full and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from daemon_fakes import ListLog
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.daemon.journal import Journal
from animed.daemon.presence import Presence
from animed.schedule.store import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Desk:
    """A journal over a list, with a disk that can be full."""

    def __init__(self) -> None:
        self.log = ListLog()
        log: Any = self.log
        self.missing = ""
        self.journal = Journal(log, lambda: self.missing)
        self.done: list[str] = []
        self.full = False
        self.tries = 0

    def write(self, what: object) -> Callable[[], None]:
        """Return a write that meets the disk as it is then."""

        def act() -> None:
            self.tries += 1
            if self.full:
                raise LedgerError("no space", full=True)
            self.done.append(f"write {what}")

        return act

    def commit(self, what: object, now: float = 0.0) -> None:
        """Commit something."""
        self.journal.commit(self.write(what), lambda: self.done.append(f"then {what}"), now)


def test_what_follows_comes_right_after_its_commit() -> None:
    """A commit is made at once, and what follows from it before the next one."""
    desk = Desk()
    desk.commit(1)
    desk.commit(2)
    assert desk.done == ["write 1", "then 1", "write 2", "then 2"]
    assert not desk.journal.blocked
    assert desk.journal.next_due() is None


def test_a_full_disk_holds_everything_back_in_order() -> None:
    """While the disk is full nothing follows and nothing overtakes; afterwards all goes on in order."""
    desk = Desk()
    desk.full = True
    for number in range(3):
        desk.commit(number)
    assert desk.done == []
    assert desk.tries == 1
    assert desk.journal.blocked
    desk.full = False
    desk.commit(3)
    assert desk.done == []
    desk.journal.tick(0.9)
    assert desk.done == []
    desk.journal.tick(1.0)
    assert desk.done == [f"{word} {number}" for number in range(4) for word in ("write", "then")]
    assert desk.log.names() == ["disk.low", "disk.recovered"]


def test_a_full_disk_is_tried_again_ever_less_often() -> None:
    """The waits grow to half a minute, and the trouble is logged once."""
    desk, now, waits = Desk(), 0.0, []
    desk.full = True
    desk.commit(0)
    for _ in range(8):
        due = desk.journal.next_due()
        assert due is not None
        waits.append(due - now)
        now = due
        desk.journal.tick(now)
    assert waits == [1, 2, 4, 8, 15, 30, 30, 30]
    assert desk.log.names() == ["disk.low"]


def test_a_disk_that_fills_up_halfway_keeps_the_rest() -> None:
    """When a later commit meets the full disk, the earlier ones are not made again."""
    desk = Desk()
    desk.full = True
    desk.commit(0)
    desk.journal.commit(desk.write(1), lambda: setattr(desk, "full", True), 0.0)
    desk.commit(2)
    desk.full = False
    desk.journal.tick(1.0)
    assert desk.done == ["write 0", "then 0", "write 1"]
    desk.full = False
    desk.journal.tick(2.0)
    assert desk.done == ["write 0", "then 0", "write 1", "write 2", "then 2"]


def test_another_error_is_not_waited_for() -> None:
    """What waiting does not heal is raised, and nothing follows."""
    desk = Desk()

    def damaged() -> None:
        raise LedgerError("damaged")

    with pytest.raises(LedgerError, match="damaged"):
        desk.journal.commit(damaged, lambda: desk.done.append("then"), 0.0)
    assert desk.done == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), max_size=6), st.integers(0, 20))
def test_commits_made_by_what_follows_queue_behind(nested: list[int], full_at: int) -> None:
    """Commits that follow from commits never nest, wherever the disk fills up meanwhile."""
    desk = Desk()

    def commit(name: str, children: int) -> None:
        """Commit something."""

        def then() -> None:
            desk.done.append(f"then {name}")
            desk.full = desk.tries == full_at
            for child in range(children):
                commit(f"{name}.{child}", 0)
            desk.done.append(f"end {name}")

        desk.journal.commit(desk.write(name), then, 0.0)

    for number, children in enumerate(nested):
        commit(str(number), children)
    desk.full = False
    desk.journal.tick(1e9)
    expected = sum(1 + children for children in nested)
    assert len(desk.done) == 3 * expected
    steps = [desk.done[at : at + 3] for at in range(0, len(desk.done), 3)]
    assert all([line.split()[0] for line in step] == ["write", "then", "end"] for step in steps)
    assert all(len({line.split()[1] for line in step}) == 1 for step in steps)


def test_a_missing_file_takes_no_commits() -> None:
    """While the ledger's file is away nothing is written into what is left of it; then all goes on in order."""
    desk = Desk()
    desk.commit(0)
    desk.missing = "gone"
    desk.commit(1, 10.0)
    desk.commit(2, 10.5)
    desk.journal.tick(11.0)
    assert desk.tries == 1
    assert desk.journal.blocked
    assert [line["detail"] for line in desk.log.events("disk.low")] == ["gone"]
    desk.missing = ""
    desk.journal.tick(60.0)
    assert desk.done == ["write 0", "then 0", "write 1", "then 1", "write 2", "then 2"]
    assert not desk.journal.blocked
    assert desk.log.names() == ["disk.low", "disk.recovered"]


def test_a_service_without_commits_notices_too() -> None:
    """A turn of the loop looks at the file, at most once a second; nothing is due for that while all is well."""
    desk = Desk()
    desk.journal.tick(10.0)
    assert desk.journal.next_due() is None
    desk.missing = "gone"
    desk.journal.tick(10.5)
    assert not desk.journal.blocked
    desk.journal.tick(11.0)
    assert desk.journal.blocked
    assert desk.journal.next_due() == 12.0
    desk.missing = ""
    desk.journal.tick(12.0)
    assert not desk.journal.blocked
    assert desk.log.names() == ["disk.low", "disk.recovered"]


def test_the_file_is_known_by_more_than_its_name(tmp_path: Path) -> None:
    """Removed, replaced by a copy, and brought back: only the very file that was opened counts."""
    file = tmp_path / "state" / "ledger.db"
    file.parent.mkdir()
    file.write_bytes(b"ledger")
    presence = Presence(str(file))
    assert presence.missing() == ""
    file.parent.rename(tmp_path / "away")
    assert "is gone" in presence.missing()
    file.parent.mkdir()
    file.write_bytes(b"ledger")
    assert "restart" in presence.missing()
    file.unlink()
    file.parent.rmdir()
    (tmp_path / "away").rename(file.parent)
    assert presence.missing() == ""
