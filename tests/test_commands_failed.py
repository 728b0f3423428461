"""What failed, from the service or from the ledger, and what people are told to do."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from command_support import NOON, STAT, Service, Setup, fail, no_service

from animed.cli import main
from animed.commands import failed
from animed.records import PhotoKey, Reason

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return one inbox without a ledger."""
    return Setup.make(tmp_path)


def listed(setup: Setup, capsys: pytest.CaptureFixture[str], ask: Any = no_service) -> list[dict[str, Any]]:
    """Return what `failed --json` prints."""
    assert failed.run(setup.config, as_json=True, ask=ask) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_the_ledger_answers_without_a_service(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Each failure has its inbox, absolute path, reason, tries, RFC 3339 time, and whether it is tried again."""
    with setup.ledger() as ledger:
        fail(ledger, b"sub/broken.jpg", Reason.TRUNCATED)
        ledger.retrying(
            PhotoKey("phone", b"slow.jpg"),
            STAT,
            sha256="",
            recipe="",
            style="cel",
            reason=Reason.TIMEOUT,
            detail="",
            attempts=1,
            crashes=0,
            next_try=NOON + 60,
            now=NOON + 1,
        )
    assert listed(setup, capsys) == [
        {
            "inbox": "phone",
            "path": f"{setup.inbox}/slow.jpg",
            "reason": "timeout",
            "attempts": 1,
            "since": "2025-06-15T15:06:41.125Z",
            "will_retry": True,
        },
        {
            "inbox": "phone",
            "path": f"{setup.inbox}/sub/broken.jpg",
            "reason": "truncated",
            "attempts": 2,
            "since": "2025-06-15T15:06:40.125Z",
            "will_retry": False,
        },
    ]


def test_a_photo_that_was_asked_for_again_says_so(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed photo that is queued again by hand is one that will be tried again."""
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.ENCODE)
        ledger.requeue([row.key for row in ledger.failures()])
    assert [row["will_retry"] for row in listed(setup, capsys)] == [True]


def test_a_photo_that_was_moved_away_is_named_by_its_new_place(
    setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `failed: move` took away is listed with where it lies now, for programs and for people."""
    moved = f"{setup.root}/phone-failed/a.jpg"
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.NOT_AN_IMAGE, pending="{}")
        ledger.original_done(PhotoKey("phone", b"a.jpg"), moved=moved.encode())
        fail(ledger, b"b.jpg", Reason.NOT_AN_IMAGE)
    rows = {row["path"]: row.get("moved_to") for row in listed(setup, capsys)}
    assert rows == {f"{setup.inbox}/a.jpg": moved, f"{setup.inbox}/b.jpg": None}
    assert failed.run(setup.config, as_json=False, ask=no_service) == 0
    said = capsys.readouterr().out
    assert f"{setup.inbox}/a.jpg (now {moved})" in said
    assert f"{setup.inbox}/b.jpg\n" in said


def test_a_name_that_is_not_text_is_kept(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is not UTF-8 is escaped, with its bytes in base64 beside it."""
    with setup.ledger() as ledger:
        fail(ledger, b"\xff.jpg", Reason.EMPTY)
    (row,) = listed(setup, capsys)
    assert row["path"] == f"{setup.inbox}/\\xff.jpg"
    assert base64.b64decode(row["path_b64"]) == str(setup.inbox).encode() + b"/\xff.jpg"


def test_a_photo_of_a_removed_inbox_is_listed(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """What failed in an inbox that has left the configuration is still listed, by its path in there."""
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.EMPTY)
    setup.config.write_text(setup.config.read_text().replace("name: phone", "name: camera"))
    (row,) = listed(setup, capsys)
    assert (row["inbox"], row["path"]) == ("phone", "a.jpg")


def test_no_ledger_is_no_failure(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no service ever ran nothing failed: an empty list, a note on stderr, and no folder made."""
    assert main(["failed", "-c", str(setup.config), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == []
    assert "there is no ledger yet" in said.err
    assert not setup.state.exists()


def test_a_running_service_answers_itself(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """With a service its answer is printed, and the ledger is left alone."""
    row = {"inbox": "phone", "path": "/a", "reason": "x", "attempts": 1, "since": "now", "will_retry": False}
    service = Service(lambda _command, _arguments: {"failed": [row]})
    assert listed(setup, capsys, service) == [row]
    assert service.asked == [(setup.state, "failed", {})]


def test_people_are_told_what_to_do(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The text shows every photo, and the advice for each reason once."""
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.TRUNCATED)
        fail(ledger, b"b\n.jpg", Reason.TRUNCATED)
        fail(ledger, b"c.jpg", f"{Reason.UNSUPPORTED}:cmyk16")
    assert failed.run(setup.config, as_json=False, ask=no_service) == 0
    said = capsys.readouterr().out
    assert all(f"{setup.inbox}/{name}" in said for name in ("a.jpg", r"b\n.jpg", "c.jpg"))
    assert said.count(failed.HELP[Reason.TRUNCATED]) == 1
    assert said.count(failed.HELP[Reason.UNSUPPORTED]) == 1


def test_nothing_failed_is_said(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty ledger is told in words."""
    setup.ledger().close()
    assert failed.run(setup.config, as_json=False, ask=no_service) == 0
    assert capsys.readouterr().out == "nothing has failed\n"


def test_every_reason_has_advice() -> None:
    """Each stable reason has its own advice, and there is advice for no other."""
    reasons = {value for name, value in vars(Reason).items() if name.isupper()}
    assert set(failed.HELP) == reasons
    assert failed.what_to_do("worker_crashed:SIGKILL") == failed.HELP[Reason.WORKER_CRASHED]
    assert failed.what_to_do("of a newer version") == "look into the log"
