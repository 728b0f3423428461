"""Why a file is or is not taken, and where it stands."""

from __future__ import annotations

import base64
import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from command_support import NOON, STAT, Service, Setup, fail, no_service, nobody

from animed.cli import main
from animed.commands import explain
from animed.errors import AnimedError
from animed.records import PhotoKey, Reason, Staged
from animed.schedule.ledger import FILE_NAME

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return one inbox."""
    return Setup.make(tmp_path)


def told(setup: Setup, path: Path, capsys: pytest.CaptureFixture[str], ask: Any = no_service) -> dict[str, Any]:
    """Return what `check --explain PATH --json` prints."""
    assert explain.run(setup.config, path, as_json=True, ask=ask) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def photo(setup: Setup, name: str = "a.jpg", content: bytes = b"x") -> Path:
    """Put a file into the inbox."""
    path = setup.inbox / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_photo_is_taken(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A regular file with a photo's ending is taken, and nothing is known of it before a service ran."""
    path = photo(setup)
    assert told(setup, path, capsys) == {
        "path": str(path),
        "inbox": "phone",
        "taken": True,
        "rule": None,
        "why": "nothing stands against it",
        "where": "unknown",
    }
    assert not setup.state.exists()


@pytest.mark.parametrize(
    ("name", "rule", "part"),
    [
        ("notes.txt", "extension", "its ending is none of"),
        (".hidden.jpg", "hidden", "begin with a dot"),
        ("a/.git/b.jpg", "hidden", "the folder .git"),
        ("@eaDir/a.jpg", None, "the folder @eaDir"),
        ("a.jpg.part", None, "makes for itself"),
        ("a.sync-conflict-20240101-120000-ABCDEFG.jpg", None, "conflict copy"),
        ("private/a.jpg", "user:private/", "the pattern private/ of ignore"),
        ("a/b/c/d.jpg", "too-deep", "max_depth: 2"),
    ],
)
def test_the_rule_that_decides_is_named(
    name: str, rule: str | None, part: str, setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left alone is told with the rule, and with the part of the path that it decides on."""
    setup.write(ignore="[private/]", max_depth=2)
    answer = told(setup, photo(setup, name), capsys)
    assert answer["taken"] is False
    assert answer["rule"]
    assert rule in {None, answer["rule"]}
    assert part in answer["why"]


def test_sub_folders_that_are_not_wanted(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Where sub-folders are not taken a photo in one is told so."""
    setup.write(recursive="false")
    answer = told(setup, photo(setup, "sub/a.jpg"), capsys)
    assert (answer["taken"], answer["rule"]) == (False, "too-deep")
    assert "recursive: false" in answer["why"]
    assert told(setup, photo(setup), capsys)["taken"] is True


def test_links_and_special_files(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Links, pipes, sockets and folders are told by their kind, as is a link among the folders."""
    elsewhere = setup.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.jpg").write_bytes(b"x")
    (setup.inbox / "link.jpg").symlink_to(elsewhere / "b.jpg")
    os.mkfifo(setup.inbox / "pipe.jpg")
    (setup.inbox / "folder.jpg").mkdir()
    before = os.getcwd()
    os.chdir(setup.inbox)
    with socket.socket(socket.AF_UNIX) as channel:
        channel.bind("socket.jpg")
    os.chdir(before)
    rules = {name: told(setup, setup.inbox / f"{name}.jpg", capsys)["rule"] for name in ("link", "pipe", "socket")}
    assert rules == {"link": "symlink", "pipe": "fifo", "socket": "socket"}
    assert told(setup, setup.inbox / "folder.jpg", capsys)["rule"] == "directory"
    (setup.inbox / "way").symlink_to(elsewhere)
    # A path through a link means the file behind it, and that lies in no inbox.
    assert told(setup, setup.inbox / "way/b.jpg", capsys)["rule"] == "outside"


def test_what_is_not_there(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file, an empty one, and a file in no inbox are told apart."""
    assert told(setup, setup.inbox / "a.jpg", capsys)["rule"] == "absent"
    assert told(setup, photo(setup, content=b""), capsys)["rule"] == "empty"
    answer = told(setup, setup.output / "a.jpg", capsys)
    assert (answer["rule"], answer["inbox"]) == ("outside", None)


def test_an_inbox_that_is_not_ready(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing marker, an inbox that nobody looks at, and one that is gone each say so."""
    path = photo(setup)
    setup.write(require_marker="true")
    assert told(setup, path, capsys)["rule"] == "marker"
    setup.write(watch="'off'", rescan_interval=0)
    assert told(setup, path, capsys)["rule"] == "off"
    setup.write()
    path.unlink()
    setup.inbox.rmdir()
    assert told(setup, path, capsys)["rule"] == "unavailable"


def test_a_photo_without_rights(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A photo that this user may not read is told with its mode."""
    path = photo(setup)
    path.chmod(0o200)
    with nobody(setup):
        answer = told(setup, path, capsys)
    assert (answer["taken"], answer["rule"]) == (False, "unreadable")
    assert "--w-------" in answer["why"]


def test_the_ledger_says_where_it_stands(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a service the ledger tells what failed and why, and where a finished picture is."""
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.TRUNCATED)
        key = PhotoKey("phone", b"b.jpg")
        staged = Staged(1, 2, 3, "0" * 64, None)
        output = os.fsencode(setup.output / "b.cel.jpg")
        ledger.publish(
            key,
            stat=STAT,
            sha256="1" * 64,
            recipe="r",
            style="cel",
            output=output,
            staged=staged,
            folder=str(setup.output),
            attempts=1,
            now=NOON,
        )
    answer = told(setup, photo(setup), capsys)
    assert (answer["where"], answer["reason"], answer["attempts"]) == ("failed", "truncated", 2)
    assert told(setup, photo(setup, "b.jpg"), capsys)["where"] == "running"
    with setup.ledger() as ledger:
        ledger.finish(key, status="done", original_pending=None, now=NOON)
        ledger.requeue([PhotoKey("phone", b"a.jpg")])
    assert told(setup, setup.inbox / "a.jpg", capsys)["where"] == "retry"
    answer = told(setup, setup.inbox / "b.jpg", capsys)
    assert (answer["where"], answer["output"]) == ("done", str(setup.output / "b.cel.jpg"))


def test_a_service_knows_what_is_under_way(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """What the service has in hand comes first; what it does not know is looked up in the ledger."""
    path = photo(setup)
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.TRUNCATED)
    service = Service(lambda _command, _arguments: {"where": "queued"})
    assert told(setup, path, capsys, service)["where"] == "queued"
    ((_, command, arguments),) = service.asked
    assert command == "where"
    assert base64.b64decode(arguments["path"]) == os.fsencode(path)
    assert told(setup, path, capsys, Service(lambda _command, _arguments: {"where": None}))["where"] == "failed"


def test_the_verdict_stands_by_itself(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A service that refuses and a ledger that cannot be read are noted, and the path is judged all the same."""

    def refuse(_command: str, _arguments: dict[str, Any]) -> dict[str, Any]:
        raise AnimedError("permission denied by the service")

    setup.state.mkdir()
    (setup.state / FILE_NAME).write_bytes(b"this is no database at all" * 100)
    assert explain.run(setup.config, photo(setup), as_json=True, ask=Service(refuse)) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert (answer["taken"], answer["where"]) == (True, "unknown")
    assert "permission denied by the service" in said.err
    assert FILE_NAME in said.err


def test_people_get_sentences(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The text names inbox, verdict, standing, reason and what to do, through the command line as well."""
    path = photo(setup)
    with setup.ledger() as ledger:
        fail(ledger, b"a.jpg", Reason.TRUNCATED)
    assert main(["check", "--explain", str(path), "-c", str(setup.config)]) == 0
    said = capsys.readouterr().out
    assert f"{path} (inbox phone)\n  taken: nothing stands against it\n  failed: it failed\n" in said
    assert "reason: truncated after 2 tries; the end of the file is missing" in said
