"""Trying failed photos again: which ones, by whom, and what is said of the others."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from command_support import Service, Setup, fail, no_service
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from ledger_steps import finish, publish

from animed.cli import main
from animed.commands import retry
from animed.commands.access import find_photo, full_path, open_config
from animed.config import InboxConfig
from animed.daemon.styles import recipes_in_use
from animed.errors import LockedError
from animed.records import PhotoKey, Reason
from animed.schedule.ledger import Ledger
from animed.service.lock import InstanceLock


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return one inbox with two photos that failed."""
    setup = Setup.make(tmp_path)
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.TRUNCATED)
        fail(ledger, b"sub/b.jpg", Reason.ENCODE)
    return setup


def again(setup: Setup) -> list[bytes]:
    """Return the photos that the ledger was asked to try again."""
    with Ledger.open(str(setup.state / "ledger.db"), create=False) as ledger:
        return sorted(row.key.path for row in ledger.failures() if row.again)


def test_one_path_is_tried_again(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A photo named by its absolute path is queued, and no other."""
    assert main(["retry", str(setup.inbox / "a.jpg"), "-c", str(setup.config)]) == 0
    assert again(setup) == [b"a.jpg"]
    assert capsys.readouterr().out == "1 photo will be tried again\n"


def test_all_are_tried_again(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """--all queues every photo that failed, and a second time just the same."""
    for _ in range(2):
        assert main(["-c", str(setup.config), "retry", "--all"]) == 0
        assert again(setup) == [b"a.jpg", b"sub/b.jpg"]
        assert capsys.readouterr().out == "2 photos will be tried again\n"


def test_a_relative_path_starts_at_the_current_folder(setup: Setup) -> None:
    """Relative paths, with dots and through a link to the inbox, mean the same photo."""
    (setup.root / "link").symlink_to(setup.inbox)
    before = os.getcwd()
    os.chdir(setup.root)
    try:
        assert retry.run(setup.config, [Path("link/./sub/../a.jpg")], which="named", ask=no_service) == 0
    finally:
        os.chdir(before)
    assert again(setup) == [b"a.jpg"]


def test_the_others_are_still_done(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A path in no inbox exits 2, one that has not failed exits 1, and the rest is queued all the same."""
    fine, stranger = setup.inbox / "fine.jpg", setup.output / "x.jpg"
    assert retry.run(setup.config, [fine, setup.inbox / "a.jpg"], which="named", ask=no_service) == 1
    assert f"{fine}: has not failed" in capsys.readouterr().err
    assert retry.run(setup.config, [stranger, fine, setup.inbox / "sub/b.jpg"], which="named", ask=no_service) == 2
    said = capsys.readouterr()
    assert f"{stranger}: lies in no inbox" in said.err
    assert said.out == "1 photo will be tried again\n"
    assert again(setup) == [b"a.jpg", b"sub/b.jpg"]


def test_a_photo_in_someones_hands_is_told(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed photo whose original is still to be put away is left as it is, exit 1."""
    with setup.ledger() as ledger:
        fail(ledger, b"c.jpg", Reason.EMPTY, pending="{}")
    assert retry.run(setup.config, [setup.inbox / "c.jpg"], which="named", ask=no_service) == 1
    assert "is still to be put into the failed folder" in capsys.readouterr().err
    assert again(setup) == []


def test_a_photo_that_was_taken_away_keeps_its_failure(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """What `failed: move` put elsewhere is not there to be tried: where it lies is told, and its record stays."""
    with setup.ledger() as ledger:
        ledger.original_done(PhotoKey("phone", b"a.jpg"), moved=b"/failed/a.jpg")
    for arguments, status in (([str(setup.inbox / "a.jpg")], 1), (["--all"], 0)):
        assert main(["retry", *arguments, "-c", str(setup.config)]) == status
        assert "/failed/a.jpg: put it back into the inbox, and it is tried again" in capsys.readouterr().err
    assert again(setup) == [b"sub/b.jpg"]


def test_without_a_ledger_nothing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no service ever ran the command says so, exit 1, and makes no state folder."""
    setup = Setup.make(tmp_path)
    assert main(["retry", "--all", "-c", str(setup.config)]) == 1
    assert "there is no ledger yet" in capsys.readouterr().err
    assert not setup.state.exists()


def test_the_ledger_of_another_is_left_alone(setup: Setup) -> None:
    """While an instance holds the state folder without answering, nothing is written behind its back."""
    with InstanceLock(str(setup.state)), pytest.raises(LockedError):
        retry.run(setup.config, [], which="failed", ask=no_service)
    assert again(setup) == []


def test_a_running_service_is_asked(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The service gets absolute paths as base64 of their bytes; its answer is what is said."""

    def answer(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert (command, arguments["all"]) == ("retry", False)
        first, *others = arguments["paths"]
        return {"queued": len(others), "unknown": [first], "busy": [], "moved": []}

    odd = Path(os.fsdecode(os.fsencode(setup.inbox) + b"/\xff.jpg"))
    service = Service(answer)
    assert retry.run(setup.config, [odd, setup.inbox / "a.jpg"], which="named", ask=service) == 1
    sent = [base64.b64decode(path) for path in service.asked[0][2]["paths"]]
    assert sent == [os.fsencode(odd), os.fsencode(setup.inbox / "a.jpg")]
    said = capsys.readouterr()
    assert said.out == "1 photo will be tried again\n"
    assert f"{setup.inbox}/\\xff.jpg: has not failed" in said.err
    assert again(setup) == []


def test_all_is_one_question(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """--all is left to the service."""
    service = Service(lambda _command, _arguments: {"queued": 7, "unknown": [], "busy": [], "moved": ["/failed/c.jpg"]})
    assert retry.run(setup.config, [], which="failed", ask=service) == 0
    assert service.asked == [(setup.state, "retry", {"paths": [], "all": True})]
    assert capsys.readouterr().out == "7 photos will be tried again\n"


def test_many_paths_fit_into_requests(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Thousands of paths are sent in portions below the size of a request, each exactly once."""
    service = Service(
        lambda _command, arguments: {"queued": len(arguments["paths"]), "unknown": [], "busy": [], "moved": []}
    )
    paths = [setup.inbox / f"{number:04}-{'x' * 200}.jpg" for number in range(1000)]
    assert retry.run(setup.config, [*paths, paths[0]], which="named", ask=service) == 0
    assert capsys.readouterr().out == "1000 photos will be tried again\n"
    portions = [arguments["paths"] for _, _, arguments in service.asked]
    assert max(sum(map(len, portion)) for portion in portions) <= 40_000
    assert [base64.b64decode(path) for portion in portions for path in portion] == [os.fsencode(path) for path in paths]


NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: not set(name) & set(b"/\0") and name not in {b".", b".."}
)


@hypothesis_settings(deadline=None, max_examples=60)
@given(parts=st.lists(NAMES, min_size=1, max_size=4))
def test_any_name_finds_its_photo(parts: list[bytes]) -> None:
    """Every path below an inbox, whatever its bytes, is the photo of that inbox under the rest of the path."""
    inboxes = [
        InboxConfig(name="one", path=Path("/nowhere/in"), output=Path("/nowhere/out")),
        InboxConfig(name="two", path=Path("/nowhere/in-two"), output=Path("/nowhere/out")),
    ]
    below = b"/".join(parts)
    for inbox in inboxes:
        path = Path(os.fsdecode(os.fsencode(inbox.path) + b"/" + below))
        assert find_photo(full_path(path), inboxes) == PhotoKey(inbox.name, below)
    assert find_photo(b"/nowhere/in", inboxes) is None
    assert find_photo(b"/nowhere/inside/" + below, inboxes) is None


def finished(setup: Setup, recipe: str, *paths: bytes) -> None:
    """Record pictures that a recipe made."""
    with setup.ledger() as ledger:
        for path in paths:
            publish(ledger, PhotoKey("phone", path), b"/out/" + path, recipe=recipe)
            finish(ledger, PhotoKey("phone", path))


def test_outdated_pictures_are_drawn_again(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """--outdated marks the pictures of another recipe than today's in the ledger, says how many, and no others."""
    (today,) = recipes_in_use(open_config(setup.config))["phone"]
    finished(setup, "another", b"old.jpg", b"sub/older.jpg")
    finished(setup, today, b"new.jpg")
    assert main(["retry", "--outdated", "-c", str(setup.config)]) == 0
    assert capsys.readouterr().out == "2 photos will be drawn again, where the original is still in its inbox\n"
    with setup.ledger() as ledger:
        rows = ledger.get_many(ledger.below(PhotoKey("phone", b"")))
    assert sorted(key.path for key, row in rows.items() if row.again) == [b"old.jpg", b"sub/older.jpg"]
    assert {row.status for key, row in rows.items() if row.again} == {"done"}
    setup.write(quality=50)
    assert main(["retry", "--outdated", "-c", str(setup.config)]) == 0
    assert capsys.readouterr().out == "3 photos will be drawn again, where the original is still in its inbox\n"


def test_a_service_draws_outdated_pictures_again(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """With a service --outdated is one question to it, and its answer is what is said."""
    service = Service(lambda _command, _arguments: {"queued": 1, "unknown": [], "busy": []})
    assert retry.run(setup.config, [], which="outdated", ask=service) == 0
    assert service.asked == [(setup.state, "retry", {"paths": [], "all": False, "outdated": True})]
    assert capsys.readouterr().out == "1 photo will be drawn again, where the original is still in its inbox\n"


def test_outdated_needs_the_styles_that_are_named(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration whose style does not exist has no recipe of today: exit 78, and nothing is marked."""
    finished(setup, "another", b"old.jpg")
    setup.write(style="cell")
    assert main(["retry", "--outdated", "-c", str(setup.config)]) == 78
    assert "inboxes[0].style: got cell" in capsys.readouterr().err
    with setup.ledger() as ledger:
        row = ledger.get(PhotoKey("phone", b"old.jpg"))
    assert row is not None
    assert not row.again
