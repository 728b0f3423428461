"""The ledger under any sequence of steps: totals are a recount, and no two photos share an output."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from ledger_steps import STAT, fail, finish, publish, recount, retrying, status

from animed.records import FileStat, PhotoKey
from animed.schedule.ledger import Ledger, OutputTakenError

KEYS = st.sampled_from([PhotoKey(inbox, name) for inbox in ("phone", "scans") for name in (b"a", b"b\xff", b"c")])
OUTPUTS = st.sampled_from([b"/out/1", b"/out/2", b"/out/3"])


class AnyLife(RuleBasedStateMachine):
    """Any sequence of steps keeps totals, claims and single outcomes right."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "ledger.db")
        self.ledger = Ledger.open(self.path)
        self.now = 0.0

    def teardown(self) -> None:
        """Close what was opened."""
        self.ledger.close()
        self.folder.cleanup()

    @rule(key=KEYS, output=OUTPUTS, size=st.integers(1, 2))
    def publish(self, key: PhotoKey, output: bytes, size: int) -> None:
        """Give a picture its name exactly when no other photo has claimed it."""
        self.now += 1
        owner = self.ledger.output_owner(output)
        stat = FileStat(size, 1, 1, 1, 1, 0o100644)
        if owner in {None, key}:
            publish(self.ledger, key, output, stat=stat, now=self.now)
            assert self.ledger.output_owner(output) == key
        else:
            before = self.ledger.get(key)
            with pytest.raises(OutputTakenError):
                publish(self.ledger, key, output, stat=stat, now=self.now)
            assert self.ledger.get(key) == before

    @rule(key=KEYS, duplicate=st.booleans(), pending=st.sampled_from([None, None, "{}"]))
    def finish(self, key: PhotoKey, duplicate: bool, pending: str | None) -> None:
        """End a placing, or be told that there was none."""
        if status(self.ledger, key) != "publishing":
            with pytest.raises(LookupError):
                finish(self.ledger, key)
            return
        word = "duplicate" if duplicate else "done"
        row = self.ledger.finish(key, status="duplicate" if duplicate else "done", original_pending=pending, now=1.0)
        assert row.status == word == status(self.ledger, key)

    @rule(key=KEYS)
    def unpublish(self, key: PhotoKey) -> None:
        """Give up a placing, or be told that there was none."""
        if status(self.ledger, key) != "publishing":
            with pytest.raises(LookupError):
                self.ledger.unpublish(key, now=1.0)
            return
        assert self.ledger.unpublish(key, now=1.0).output is None

    @rule(key=KEYS, end=st.sampled_from(["fail", "retry", "skip"]))
    def end(self, key: PhotoKey, end: str) -> None:
        """End without a picture: a claim that was not placed is free."""
        was_publishing = status(self.ledger, key) == "publishing"
        if end == "fail":
            fail(self.ledger, key)
        elif end == "retry":
            retrying(self.ledger, key)
        else:
            self.ledger.skip(key, STAT, sha256="", recipe="", style="", cause="animated", now=1.0)
        row = self.ledger.get(key)
        assert row is not None
        assert row.output is None or not was_publishing

    @rule(key=KEYS, step=st.sampled_from(["requeue", "requeue all", "forget", "put away", "touch"]))
    def command(self, key: PhotoKey, step: str) -> None:
        """Let people and chores come in between: what is in someone's hands is left alone."""
        before = self.ledger.get(key)
        busy = before is None or before.status == "publishing" or before.original_pending is not None
        if step == "requeue":
            assert (self.ledger.requeue([key]) == []) == busy
        elif step == "requeue all":
            failing = before in self.ledger.failures()
            assert (key in self.ledger.requeue([row.key for row in self.ledger.failures()])) == (failing and not busy)
        elif step == "forget":
            assert (self.ledger.forget([key]) == []) == busy
        elif step == "put away":
            assert self.ledger.original_done(key) == (before is not None)
        else:
            assert self.ledger.touch(key, STAT) == (before is not None)

    @rule()
    def reopen(self) -> None:
        """Restart: nothing changes."""
        before = self.ledger.totals()
        self.ledger.close()
        self.ledger = Ledger.open(self.path, create=False)
        assert self.ledger.totals() == before

    @invariant()
    def totals_are_a_recount(self) -> None:
        """Compare the counts that are kept in step with the rows."""
        assert recount(self.ledger) == {inbox: +Counter(found) for inbox, found in self.ledger.totals().items()}

    @invariant()
    def outputs_have_one_owner(self) -> None:
        """Expect no output to be claimed twice, and every finished photo to have one."""
        rows = [row for inbox in ("phone", "scans") for row in self.rows(inbox)]
        claims = [row.output for row in rows if row.output is not None]
        assert len(claims) == len(set(claims))
        assert all((row.output is None) == (row.staged is None) for row in rows)
        assert all(row.output is not None for row in rows if row.status in {"publishing", "done", "duplicate"})

    def rows(self, inbox: str) -> list[Any]:
        """Return all rows of an inbox."""
        return list(self.ledger.get_many([PhotoKey(inbox, name) for name in (b"a", b"b\xff", b"c")]).values())


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
