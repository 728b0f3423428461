"""Why a file is or is not taken, and where it stands."""

from __future__ import annotations

import base64
import json
import os
import socket
from typing import TYPE_CHECKING, Any, Literal

import pytest
from command_support import NOON, STAT, Service, Setup, fail, no_service, nobody
from ledger_steps import publish, retrying

from animed.cli import main
from animed.commands import explain
from animed.commands.access import open_config
from animed.commands.verdict import judge, locate
from animed.daemon.styles import recipes_in_use
from animed.errors import AnimedError
from animed.records import FileStat, PhotoKey, Reason, Staged
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
        "service": False,
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
    answer = told(setup, setup.inbox / "way/b.jpg", capsys)
    assert (answer["rule"], answer["inbox"]) == ("symlink", "phone")
    assert "way on the way to it is a symlink" in answer["why"]


def test_an_inbox_that_is_reached_through_a_link(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A photo is the same one by the inbox's own path, by a link to it, and by the link that the file names."""
    photo(setup)
    (setup.root / "link").symlink_to(setup.inbox)
    for _ in range(2):
        for root in (setup.inbox, setup.root / "link"):
            answer = told(setup, root / "a.jpg", capsys)
            assert (answer["taken"], answer["inbox"]) == (True, "phone")
        setup.config.write_text(setup.config.read_text().replace(f"path: {setup.inbox}", f"path: {setup.root}/link"))


def test_a_folder_is_judged_as_one(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder has no ending to be judged by: it is looked into, or left alone by a rule of folders."""
    setup.write(max_depth=1)
    for name in ("sub/deep", "@eaDir"):
        (setup.inbox / name).mkdir(parents=True)
    assert told(setup, setup.inbox / "sub", capsys)["rule"] == "directory"
    assert told(setup, setup.inbox / "sub/deep", capsys)["rule"] == "too-deep"
    assert told(setup, setup.inbox / "@eaDir", capsys)["rule"] == "builtin:synology:@eadir"
    assert told(setup, setup.inbox, capsys)["rule"] == "inbox"


def test_a_folder_that_may_not_be_listed(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A photo that could be read, in a folder that may not be listed, is never found: the folder is named."""
    path = photo(setup, "sub/deep/a.jpg")
    with nobody(setup):
        for mode in (0o311, 0o644):
            (setup.inbox / "sub").chmod(mode)
            answer = told(setup, path, capsys)
            assert (answer["taken"], answer["rule"]) == (False, "unreadable")
            assert "may not list the folder sub," in answer["why"]
        (setup.inbox / "sub").chmod(0o755)
        assert told(setup, path, capsys)["taken"] is True


def test_an_output_inside_an_inbox(setup: Setup) -> None:
    """Where a mount has brought an output into an inbox, by whatever name, its pictures are not taken for photos."""
    path = photo(setup, "sub/deep/a.jpg")
    config = open_config(setup.config)
    (inbox,) = config.inboxes
    # A folder of the inbox stands for the mount: what counts is that it is the same folder as the output.
    mounted = config.model_copy(update={"inboxes": (inbox.model_copy(update={"output": setup.inbox / "sub"}),)})
    verdict = judge(mounted, *locate(mounted, path))
    assert (verdict.taken, verdict.rule) == (False, "output")


def test_what_is_not_there(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file, an empty one, and a file in no inbox are told apart."""
    assert told(setup, setup.inbox / "a.jpg", capsys)["rule"] == "absent"
    assert told(setup, photo(setup, content=b""), capsys)["rule"] == "empty"
    answer = told(setup, setup.root / "a.jpg", capsys)
    assert (answer["rule"], answer["inbox"], answer["where"]) == ("outside", None, "unknown")


def test_animeds_own_folders(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in an output, or where originals are put away, is told which folder it lies in."""
    setup.write(originals="move", failed="move")
    places = {"out": "output", "phone-processed": "processed", "phone-failed": "failed"}
    for folder, rule in places.items():
        answer = told(setup, setup.root / folder / "sub/a.jpg", capsys)
        assert (answer["taken"], answer["rule"]) == (False, rule)
        assert "of inbox phone" in answer["why"]


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
    answer = told(setup, setup.inbox / "a.jpg", capsys)
    assert (answer["where"], answer["again"], answer["will_retry"]) == ("retry", True, True)
    answer = told(setup, setup.inbox / "b.jpg", capsys)
    assert (answer["where"], answer["output"]) == ("done", str(setup.output / "b.cel.jpg"))
    assert (answer["picture_there"], answer["outdated"], answer["style"]) == (False, True, "cel")


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
    assert f"{path} (inbox phone)\n  taken: nothing stands against it\n  failed: it failed (since 2025-06" in said
    assert "reason: truncated after 2 tries; the end of the file is missing" in said


def drawn(
    setup: Setup, name: str, *, stat: FileStat, recipe: str, status: Literal["done", "duplicate"] = "done"
) -> None:
    """Record a finished picture."""
    key = PhotoKey("phone", name.encode())
    with setup.ledger() as ledger:
        publish(ledger, key, os.fsencode(setup.output / f"{name}.cel"), stat=stat, recipe=recipe)
        ledger.finish(key, status=status, original_pending=None, now=NOON)


def test_what_made_a_picture(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A finished picture is told with its recipe's age, whether it is there, and what it was shared from."""
    (today,) = recipes_in_use(open_config(setup.config))["phone"]
    path, twin = photo(setup), photo(setup, "twin.jpg")
    drawn(setup, "a.jpg", stat=FileStat.of(path.stat()), recipe=today)
    drawn(setup, "twin.jpg", stat=FileStat.of(twin.stat()), recipe=today, status="duplicate")
    (setup.output / "a.jpg.cel").write_bytes(b"picture")
    answer = told(setup, path, capsys)
    assert (answer["where"], answer["outdated"], answer["picture_there"]) == ("done", False, True)
    assert "changed" not in answer
    answer = told(setup, twin, capsys)
    assert (answer["where"], answer["of"]) == ("duplicate", str(setup.output / "a.jpg.cel"))
    assert answer["picture_there"] is False
    setup.write(quality=50)
    assert told(setup, path, capsys)["outdated"] is True
    setup.write(style="nosuch")
    assert explain.run(setup.config, path, as_json=True, ask=no_service) == 0
    said = capsys.readouterr()
    assert "outdated" not in json.loads(said.out)
    assert "inboxes[0].style: got nosuch" in said.err


def test_a_file_that_has_changed_since(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A record of other content does not stand for the file that is there now; a failure lies where it was moved."""
    path = photo(setup)
    drawn(setup, "a.jpg", stat=FileStat.of(path.stat()), recipe="r")
    path.write_bytes(b"something else")
    assert told(setup, path, capsys)["changed"] is True
    with setup.ledger() as ledger:
        fail(ledger, b"gone.jpg", Reason.NOT_AN_IMAGE, pending="{}")
        assert told(setup, setup.inbox / "gone.jpg", capsys)["original"] == "to be put away"
        ledger.original_done(PhotoKey("phone", b"gone.jpg"), moved=b"/elsewhere/gone.jpg")
    answer = told(setup, setup.inbox / "gone.jpg", capsys)
    assert (answer["rule"], answer["where"], answer["moved_to"]) == ("absent", "failed", "/elsewhere/gone.jpg")


def test_when_the_next_try_comes(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A photo that waits out a back-off is told with its tries so far, the reason, and the time of the next one."""
    path = photo(setup)
    with setup.ledger() as ledger:
        retrying(ledger, PhotoKey("phone", b"a.jpg"), NOON)
    answer = told(setup, path, capsys)
    assert (answer["where"], answer["attempts"], answer["reason"]) == ("retry", 2, "changed")
    assert answer["next_try"] == "2025-06-15T15:06:55.125Z"
    assert explain.run(setup.config, path, as_json=False, ask=no_service) == 0
    said = capsys.readouterr().out
    assert "next: tried again at 2025-06-15T15:06:55.125Z" in said
    assert "service: none is running" in said


FULL = {"by": "output", "detail": "/out: full"}
PAUSED = {"by": "paused", "detail": "paused by the user"}


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            {"where": "waiting", "quiet_s": 1.2, "look_in_s": 0.8, "held": []},
            ["waiting: it is watched until it has stopped changing: quiet for 1 s, looked at in 1 s"],
        ),
        (
            {"where": "queued", "step": "waiting", "for_s": 61.0, "attempt": 2, "alone": False, "held": [FULL, PAUSED]},
            [
                "queued: an equal or similar photo is on its way, whose picture it will share, for 1 min 1 s (try 2)",
                "held back: /out: full [output]",
                "held back: paused by the user [paused]",
            ],
        ),
        (
            {"where": "running", "step": "running", "for_s": 3.0, "attempt": 1, "alone": True, "held": []},
            ["running: a worker has it, for 3 s (try 1, alone in its worker because a worker died with it)"],
        ),
        (
            {"where": None, "held": []},
            ["unknown: there is no record of it", "next: the service has not met it; the next scan does"],
        ),
    ],
)
def test_what_the_service_says_is_told(
    answer: dict[str, Any], lines: list[str], setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each stage of a photo's way is told in words, with what holds it back."""
    assert explain.run(setup.config, photo(setup), as_json=False, ask=Service(lambda *_: answer)) == 0
    said = capsys.readouterr().out
    assert [line for line in lines if f"  {line}" not in said] == []
    assert told(setup, setup.inbox / "a.jpg", capsys, Service(lambda *_: answer))["service"] is True
