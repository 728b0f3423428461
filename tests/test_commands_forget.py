"""Forgetting photos: which ones, by whom, and what is said of the others."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

import pytest
from command_support import NOON, STAT, Service, Setup, fail, no_service

from animed.cli import main
from animed.commands import forget
from animed.errors import LockedError
from animed.records import PhotoKey, Reason, Staged
from animed.schedule.ledger import Ledger
from animed.service.lock import InstanceLock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return one inbox with four photos on record, two of them in a folder."""
    setup = Setup.make(tmp_path)
    with setup.ledger() as ledger:
        for name in (b"a.jpg", b"sub/b.jpg", b"sub/deep/c.jpg", b"sub.jpg"):
            fail(ledger, name, Reason.TRUNCATED)
    return setup


def known(setup: Setup) -> list[bytes]:
    """Return the photos that are on record."""
    with Ledger.open(str(setup.state / "ledger.db"), create=False) as ledger:
        return sorted(row.key.path for row in ledger.failures()) + sorted(
            row.key.path for row in ledger.publishing("phone")
        )


def test_one_photo_is_forgotten(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A photo named by its path leaves the record, and no other does; it need not be there."""
    assert main(["forget", str(setup.inbox / "a.jpg"), "-c", str(setup.config)]) == 0
    assert capsys.readouterr().out == "1 photo forgotten\n"
    assert known(setup) == [b"sub.jpg", b"sub/b.jpg", b"sub/deep/c.jpg"]


def test_a_folder_means_all_below_it(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder forgets every photo below it, at any depth, but not a photo whose name only begins alike."""
    assert main(["forget", str(setup.inbox / "sub"), "-c", str(setup.config)]) == 0
    assert capsys.readouterr().out == "2 photos forgotten\n"
    assert known(setup) == [b"a.jpg", b"sub.jpg"]


def test_an_inbox_means_all_of_it(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The inbox itself, also by a link to it, forgets every photo; paths that overlap count once."""
    (setup.root / "link").symlink_to(setup.inbox)
    paths = [setup.root / "link", setup.inbox / "sub", setup.inbox / "a.jpg"]
    assert forget.run(setup.config, paths, ask=no_service) == 0
    assert capsys.readouterr().out == "4 photos forgotten\n"
    assert known(setup) == []


def test_the_others_are_still_done(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A path in no inbox exits 2, one that nothing is known of exits 1, and the rest is forgotten all the same."""
    new, stranger = setup.inbox / "new.jpg", setup.output / "x.jpg"
    assert forget.run(setup.config, [new, setup.inbox / "a.jpg"], ask=no_service) == 1
    assert f"{new}: nothing is on record of it" in capsys.readouterr().err
    assert forget.run(setup.config, [stranger, new, setup.inbox / "sub.jpg"], ask=no_service) == 2
    said = capsys.readouterr()
    assert f"{stranger}: lies in no inbox" in said.err
    assert said.out == "1 photo forgotten\n"
    assert known(setup) == [b"sub/b.jpg", b"sub/deep/c.jpg"]


def test_a_photo_in_someones_hands_is_kept(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture that is being placed, and an original that is being put away, are told and kept; exit 1."""
    with setup.ledger() as ledger:
        fail(ledger, b"sub/owed.jpg", Reason.EMPTY, pending="{}")
        ledger.publish(
            PhotoKey("phone", b"sub/placing.jpg"), stat=STAT, sha256="1" * 64, recipe="r", style="cel",
            output=b"/out/x.jpg", staged=Staged(1, 2, 3, "0" * 64, None), folder="/out", attempts=1, now=NOON,
        )  # fmt: skip
    assert forget.run(setup.config, [setup.inbox / "sub"], ask=no_service) == 1
    said = capsys.readouterr()
    assert said.out == "2 photos forgotten\n"
    assert f"{setup.inbox}/sub/owed.jpg: is on its way" in said.err
    assert f"{setup.inbox}/sub/placing.jpg: is on its way" in said.err
    assert known(setup) == [b"a.jpg", b"sub.jpg", b"sub/owed.jpg", b"sub/placing.jpg"]


def test_without_a_ledger_nothing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no service ever ran the command says so, exit 1, and makes no state folder."""
    setup = Setup.make(tmp_path)
    assert main(["forget", str(setup.inbox), "-c", str(setup.config)]) == 1
    assert "there is no ledger yet" in capsys.readouterr().err
    assert not setup.state.exists()


def test_the_ledger_of_another_is_left_alone(setup: Setup) -> None:
    """While an instance holds the state folder without answering, nothing is written behind its back."""
    with InstanceLock(str(setup.state)), pytest.raises(LockedError):
        forget.run(setup.config, [setup.inbox], ask=no_service)
    assert len(known(setup)) == 4


def test_a_running_service_is_asked(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The service gets absolute paths as base64, in portions that fit; its answers are added up and told."""

    def answer(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert command == "forget"
        paths = arguments["paths"]
        busy = [{"inbox": "phone", "path": f"/busy/{number}.jpg"} for number in range(15)]
        return {"forgotten": len(paths) - 1, "unknown": paths[:1], "busy": busy, "busy_count": 20}

    service = Service(answer)
    paths = [setup.inbox, *(setup.inbox / f"{number:03}-{'x' * 240}.jpg" for number in range(100))]
    assert forget.run(setup.config, paths, ask=service) == 1
    sent = [base64.b64decode(path) for _, _, arguments in service.asked for path in arguments["paths"]]
    assert sent == [os.fsencode(path) for path in paths]
    assert len(service.asked) == 2
    said = capsys.readouterr()
    assert said.out == "99 photos forgotten\n"
    assert said.err.count("is on its way, and was not forgotten") == 20
    assert "20 more are on their way" in said.err
    assert len(known(setup)) == 4
