"""Whether the service could work here: every finding, and the exit status that it leads to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_support import Setup, nobody

from animed.catalog import builtin_dir
from animed.cli import main
from animed.commands import check
from animed.commands.access import open_config
from animed.commands.capacity import look_at_inotify, look_at_workers
from animed.commands.depths import look_below
from animed.commands.places import look_at_inbox, look_at_state
from animed.engine.machine import Machine
from animed.errors import WorkersError
from animed.intake.filesystem import InotifyLimits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from animed.commands.findings import Finding
    from animed.config import Config


class Trial:
    """Draws nothing, and counts how often it was asked to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.drawn = 0

    def __call__(self, config: Config) -> Mapping[str, object]:
        """Answer with figures, or fail."""
        self.drawn += 1
        if self.error:
            raise self.error
        return {"infer_s": 0.3333, "worker": 4711}


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Return one inbox whose disk is never too full."""
    setup = Setup.make(tmp_path)
    setup.write(limits__min_free=0)
    return setup


def findings(setup: Setup, capsys: pytest.CaptureFixture[str], status: int, draw: Any = None) -> dict[str, Any]:
    """Run `check --json`, demand its exit status, and return the findings by what was looked at."""
    assert check.run(setup.config, as_json=True, draw=draw or Trial()) == status
    return {found["check"]: found for found in json.loads(capsys.readouterr().out)}


def everything(root: Path) -> dict[str, tuple[int, int]]:
    """Return every path below a folder with what would betray a change of it."""
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in sorted(root.rglob("*"))}


def test_all_is_well(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A good set-up exits 0, with one line for each thing that was looked at, the test picture's figures last."""
    trial = Trial()
    assert check.run(setup.config, as_json=False, draw=trial) == 0
    lines = capsys.readouterr().out.splitlines()
    checks = ["config", "state", "inbox", "watch", "output", "space", "inotify", "weights", "workers", "picture"]
    assert [line.split()[1].rstrip(":") for line in lines] == checks
    assert not [line for line in lines if line.startswith("FAIL")]
    assert lines[-1] == "ok    picture: infer_s 0.33, worker 4711"
    assert trial.drawn == 1


def test_a_default_that_no_inbox_takes_is_told(
    setup: Setup, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every inbox has a value of its own, what `defaults` or the environment says to it has no effect."""
    monkeypatch.setenv("ANIMED_DEFAULTS__PRESERVE__GPS", "no")
    monkeypatch.setenv("ANIMED_DEFAULTS__QUALITY", "80")
    setup.write(preserve="{gps: true}", limits__min_free=0)
    found = findings(setup, capsys, 0)["settings"]
    assert (found["level"], found["subject"]) == ("warn", "defaults.preserve.gps")
    assert "no effect" in found["text"]


def test_nothing_is_changed(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """No folder is made, and the file that proves the output is gone again."""
    (setup.inbox / "a.jpg").write_bytes(b"x")
    setup.write(originals="move", failed="move", limits__min_free=0)
    before = everything(setup.root)
    found = findings(setup, capsys, 0)
    after = everything(setup.root)
    # Making and removing a file touches the folder itself, and nothing else.
    before.pop(str(setup.output))
    after.pop(str(setup.output))
    assert before == after
    assert "is to be made" in found["processed"]["text"]
    assert "is to be made" in found["failed"]["text"]


def test_a_bad_configuration_is_a_finding_too(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration that cannot be used exits 78: on stderr, or as the only finding for programs."""
    setup.write(quality=300)
    assert main(["check", "-c", str(setup.config)]) == 78
    assert "quality" in capsys.readouterr().err
    found = findings(setup, capsys, 78)
    assert list(found) == ["config"]
    assert "quality" in found["config"]["text"]


def test_a_missing_inbox_exits_75(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """An inbox that is not there is exit 75, and the rest is still looked at."""
    setup.inbox.rmdir()
    found = findings(setup, capsys, 75)
    assert found["inbox"]["level"] == "fail"
    assert found["inbox"]["remedy"]
    assert found["output"]["level"] == "ok"


def test_a_missing_marker_exits_75(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """An inbox without the marker that it must have counts as not mounted."""
    setup.write(require_marker="true", limits__min_free=0)
    assert ".animed-inbox" in findings(setup, capsys, 75)["inbox"]["text"]
    (setup.inbox / ".animed-inbox").touch()
    findings(setup, capsys, 0)


def test_an_output_that_cannot_be_made_exits_73(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """The service makes an output only where its parent exists; a file in its place is no output either."""
    setup.output.rmdir()
    assert "is to be made" in findings(setup, capsys, 0)["output"]["text"]
    setup.output.write_text("")
    assert "Not a directory" in findings(setup, capsys, 73)["output"]["text"]
    setup.config.write_text(setup.config.read_text().replace(str(setup.output), f"{setup.root}/no/such/out"))
    assert "there is no folder" in findings(setup, capsys, 73)["output"]["text"]


def looked_at(setup: Setup) -> dict[str, Finding]:
    """Look at the inbox as a user without privileges."""
    config = open_config(setup.config)
    with nobody(setup):
        return {found.check: found for found in look_at_inbox(config.inboxes[0])}


def test_an_output_without_rights_exits_73(setup: Setup) -> None:
    """An output that this user may not write is a failure."""
    assert {found.level for found in looked_at(setup).values()} == {"ok"}
    setup.output.chmod(0o500)
    found = looked_at(setup)["output"]
    assert (found.level, found.status) == ("fail", 73)
    setup.output.chmod(0o700)


def test_an_inbox_without_rights_exits_75(setup: Setup) -> None:
    """An inbox must be readable; it must be writable only where photos are to be taken out of it."""
    setup.inbox.chmod(0o500)
    assert looked_at(setup)["inbox"].level == "ok"
    setup.write(originals="delete")
    found = looked_at(setup)["inbox"]
    assert (found.level, found.status) == ("fail", 75)
    assert "originals: delete" in found.text
    setup.write()
    setup.inbox.chmod(0o300)
    assert looked_at(setup)["inbox"].status == 75
    setup.inbox.chmod(0o700)


def test_a_state_folder_that_cannot_be_made_exits_73(setup: Setup) -> None:
    """The state folder may be missing where it can be made, with what is missing above it."""
    with nobody(setup):
        assert look_at_state(setup.root / "deep/er/state").level == "ok"
        setup.root.chmod(0o500)
        found = look_at_state(setup.root / "deep/er/state")
        setup.root.chmod(0o700)
    assert (found.level, found.status) == ("fail", 73)


def test_a_disk_without_room_exits_73(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Less free space than limits.min_free is a failure: the service would wait."""
    setup.write(limits__min_free="8000000TiB")
    assert "limits.min_free" in findings(setup, capsys, 73)["space"]["text"]


def test_an_inbox_that_nobody_looks_at_is_a_warning(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """An inbox that is neither watched nor scanned is allowed, but told; warnings alone exit 0."""
    setup.write(watch="'off'", rescan_interval=0, limits__min_free=0)
    found = findings(setup, capsys, 0)
    assert found["watch"]["level"] == "warn"
    assert "inotify" not in found


def test_limits_of_the_kernel(setup: Setup) -> None:
    """Folders are counted as they would be watched: ignored ones are not, and too many are a warning."""
    for name in ("one", "two/three", ".hidden/deep", "@eaDir/x"):
        (setup.inbox / name).mkdir(parents=True)
    config = open_config(setup.config)
    (found,) = look_at_inotify(config, InotifyLimits(100, 128, 16384))
    assert (found.level, found.text) == ("ok", "4 folders to watch, 100 allowed")
    (found,) = look_at_inotify(config, InotifyLimits(7, 128, 16384))
    assert found.level == "warn"
    assert "max_user_watches" in found.remedy
    (found,) = look_at_inotify(config, InotifyLimits(100, 1, 16384))
    assert "max_user_instances" in found.remedy
    (found,) = look_at_inotify(config, InotifyLimits(None, None, None))
    assert found.level == "ok"


def test_weights_that_are_wrong_exit_4(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights that their card does not speak of are exit 4, and no picture is drawn with them."""
    own = setup.root / "styles"
    own.mkdir()
    card = (builtin_dir() / "cel.yaml").read_text()
    (own / "damaged.yaml").write_text(card.replace("name: cel", "name: damaged"))
    (own / "damaged.safetensors").write_bytes(b"not what the card says")
    setup.write(style="damaged", limits__min_free=0)
    trial = Trial()
    found = findings(setup, capsys, 4, trial)
    assert "but the card says" in found["weights"]["text"]
    assert found["picture"]["level"] == "warn"
    assert trial.drawn == 0


def test_what_may_not_be_read_below_an_inbox(setup: Setup) -> None:
    """Folders that cannot be listed and photos that may not be read are named; those that are ignored are not."""
    for name in (
        "a/x.jpg",
        "b/deep/y.jpg",
        "@eaDir/z.jpg",
        "1.jpg",
        "2.jpg",
        "3.jpg",
        "4.jpg",
        "notes.txt",
        "fine.jpg",
    ):
        path = setup.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (inbox,) = open_config(setup.config).inboxes
    assert list(look_below(inbox)) == []
    for name in ("a", "b/deep", "@eaDir", "1.jpg", "2.jpg", "3.jpg", "4.jpg", "notes.txt"):
        (setup.inbox / name).chmod(0)
    with nobody(setup):
        folders, photos = look_below(inbox)
        for name in ("a", "b/deep", "@eaDir"):
            (setup.inbox / name).chmod(0o755)
    assert (folders.check, folders.level, photos.check, photos.level) == ("folders", "warn", "photos", "warn")
    assert folders.text.startswith("a, b/deep cannot be looked into")
    assert photos.text.startswith("1.jpg, 2.jpg, 3.jpg and 1 more may not be read")
    setup.inbox.rename(setup.root / "gone")
    assert list(look_below(inbox)) == []


def test_a_style_that_does_not_exist_is_the_configurations_fault(
    setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that no style has exits 78 for check, run and once, with its place and the nearest name."""
    setup.write(style="cell")
    found = findings(setup, capsys, 78, Trial())
    assert found.keys() == {"config"}
    for part in ("inboxes[0].style", "got cell", "the name of a style: cel", "did you mean cel?"):
        assert part in found["config"]["text"]
    for command in ("check", "run", "once"):
        assert main([command, "-c", str(setup.config)]) == 78
        assert "inboxes[0].style: got cell" in capsys.readouterr().err


def test_a_style_of_the_command_line_that_does_not_exist_is_a_usage_error(
    setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong --style exits 2 with the nearest name, for paths and for inboxes."""
    assert main(["once", "-c", str(setup.config), "--style", "cell"]) == 2
    assert "did you mean cel?" in capsys.readouterr().err
    assert main(["once", str(setup.inbox), "--style", "cell"]) == 2
    assert "did you mean cel?" in capsys.readouterr().err


def test_a_worker_that_cannot_draw_exits_4(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """What keeps the worker from drawing the test picture is told with its remedy."""
    trial = Trial(WorkersError("no torch", remedy="install it"))
    found = findings(setup, capsys, 4, trial)["picture"]
    assert (found["level"], found["text"], found["remedy"]) == ("fail", "no torch", "install it")


def test_memory_and_cores(setup: Setup) -> None:
    """Workers that memory or cores have no room for are a warning."""
    large = Machine(cores=4, quota=None, memory=64 << 30, bf16=True)
    small = Machine(cores=4, quota=None, memory=256 << 20, bf16=False)
    (found,) = look_at_workers(open_config(setup.config), large)
    assert found.level == "ok"
    assert found.text.startswith("4 workers of 1 thread")
    (found,) = look_at_workers(open_config(setup.config), small)
    assert (found.level, "needed" in found.text) == ("warn", True)
    setup.write(workers__count=9, limits__min_free=0)
    (found,) = look_at_workers(open_config(setup.config), large)
    assert found.level == "warn"


def test_the_first_failure_gives_the_status(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """With several failures the exit status is that of the first line that failed."""
    setup.inbox.rmdir()
    setup.output.rmdir()
    setup.output.write_text("")
    found = findings(setup, capsys, 75, Trial(WorkersError("broken")))
    assert [found[name]["level"] for name in ("inbox", "output", "picture")] == ["fail", "fail", "fail"]


def test_a_group_that_is_not_there_is_told(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    """What the service would refuse to start with is found by the check: a group that this machine does not have."""
    setup.write(mode="{group: no-such-group}", limits__min_free=0)
    assert check.run(setup.config, as_json=False, draw=lambda _config: {}) == 78
    assert "no-such-group" in capsys.readouterr().out
