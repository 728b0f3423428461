"""Rights, umasks, full disks, photos that go away: what is refused is told, and an original is never lost for it."""

from __future__ import annotations

import errno
import json
import os
import stat as bits
from typing import TYPE_CHECKING, Any

import pytest
from daemon_fakes import sha_of
from delivery_fakes import FakeSystem
from fault_system import FaultySystem, reading_refused

from animed.commands import check
from animed.commands.access import open_config
from animed.commands.settings import is_open_to_others, look_at_settings
from animed.delivery.publish import Placed, discard, place
from animed.engine.staging import write
from animed.errors import PhotoError, PlaceError
from animed.records import VANISHED, Reason, Stage
from animed.service.lock import InstanceLock
from animed.system import REAL, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from daemon_bench import Bench


@pytest.fixture
def tight() -> Iterator[None]:
    """Set a umask without search bits, as some containers are configured."""
    before = os.umask(0o117)
    yield
    os.umask(before)


def staged(folder: Path, system: System = REAL) -> tuple[Any, int | None, Stage]:
    """Stage a picture."""
    stage = Stage(str(folder), ".syncthing.animed-test-", None, keep_mtime=False)
    done, fd = write(b"picture", stage, 1, system=system)
    return done, fd, stage


@pytest.mark.usefixtures("tight")
def test_folders_can_be_entered_whatever_the_umask(tmp_path: Path) -> None:
    """A umask that takes the search bits away makes no output folder, and no state folder, that cannot be entered."""
    done, fd, stage = staged(tmp_path)
    assert isinstance(place(done, fd, stage=stage, output=str(tmp_path), target=b"a/b/c.jpg"), Placed)
    discard(done, fd, stage=stage)
    for folder in ("a", "a/b"):
        assert bits.S_IMODE((tmp_path / folder).stat().st_mode) == 0o770
    with InstanceLock(str(tmp_path / "deep" / "state")):
        for folder in ("deep", "deep/state"):
            assert bits.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


def test_an_unreadable_photo_is_told_with_mode_and_user(tmp_path: Path) -> None:
    """The failure says what the photo's mode is, and as whom it was to be read."""
    error = reading_refused(tmp_path, errno.EACCES, 0o100000)
    assert error.reason == Reason.UNREADABLE
    for part in ("mode 0000", f"uid {os.geteuid()}", f"gid {os.getegid()}"):
        assert part in error.detail


@pytest.mark.parametrize("call", ["write", "fsync", "close"])
def test_a_full_disk_keeps_the_original(tmp_path: Path, call: str) -> None:
    """ENOSPC on writing, syncing and closing: a fault of the output, and nothing is left of the picture."""
    system = FaultySystem()
    system.arm("open", errno.EOPNOTSUPP)  # no unnamed files here
    system.arm(call, errno.ENOSPC, times=None)
    with pytest.raises(PlaceError) as caught:
        staged(tmp_path, system)
    assert (caught.value.role, caught.value.code) == ("output", errno.ENOSPC)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("originals", ["move", "delete"])
def test_a_picture_that_is_not_placed_costs_no_original(
    bench: Callable[..., Bench], originals: str, late: bool
) -> None:
    """While the final step fails the original stays, is not done, and goes only after the picture is there."""
    run = bench(originals=originals)
    run.sight()
    run.draw()
    run.world.break_output(late=late)
    run.turn()
    run.run(100)
    assert run.status() != "done"
    assert run.world.put_away == []
    assert b"a.jpg" in run.world.photos
    run.world.heal()
    run.run(100)
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "done")]
    assert [path for path, _ in run.world.put_away] == [b"a.jpg"]


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV])
def test_an_error_at_the_final_step_leaves_no_temporary_file(tmp_path: Path, code: int) -> None:
    """EXDEV leads to a copy on the other file system, EBUSY to a refusal; neither leaves anything behind."""
    (tmp_path / "sub").mkdir()
    done, fd, stage = staged(tmp_path)

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        crosses = name == "link_descriptor" and arguments[0] == fd
        if crosses or (code == errno.EBUSY and name in {"link", "link_descriptor", "rename", "rename_free"}):
            raise OSError(code, os.strerror(code))

    try:
        found: object = place(
            done, fd, stage=stage, output=str(tmp_path), target=b"sub/a.jpg", system=FakeSystem(hook=hook)
        )
    except (PhotoError, PlaceError) as error:
        found = error
    discard(done, fd, stage=stage)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    if code == errno.EXDEV:
        assert isinstance(found, Placed)
        assert left == ["sub/a.jpg"]
    else:
        assert isinstance(found, PhotoError | PlaceError)
        assert left == []


def test_a_photo_that_goes_away_is_no_failure(bench: Callable[..., Bench]) -> None:
    """Removed before it is read, while a worker reads it, or before it is put away: told as such, never as failed."""
    run = bench(originals="move", workers=1)
    run.sight(b"worker.jpg", b"1")
    run.fail(VANISHED)
    assert run.log.events("file.vanished")[0]["path"].endswith("worker.jpg")
    run.sight(b"late.jpg", b"2")
    del run.world.photos[b"late.jpg"]
    run.draw_all()
    run.run(60)
    assert run.outcomes() == [("late.jpg", "done")]
    assert not run.log.events("file.failed", "original.kept")
    assert run.daemon.status()["totals"]["failed"] == 0
    assert run.row(b"worker.jpg") is None


def test_a_new_time_alone_is_no_new_photo(bench: Callable[..., Bench]) -> None:
    """Only the attributes of a known file change: it is read once, and not drawn again."""
    run = bench(poll_interval=30.0)
    run.sight()
    run.draw_all()
    for mtime in range(2, 6):
        run.world.write(b"a.jpg", b"photo", mtime_ns=mtime)
        run.run(33)
    assert not run.pool.jobs
    assert run.outcomes() == [("a.jpg", "done")]
    row = run.row()
    assert row is not None
    assert (row.mtime_ns, row.sha256) == (5, sha_of(b"photo"))


def test_an_output_is_tried_before_hours_of_work(bench: Callable[..., Bench]) -> None:
    """An output that refuses is known before the first photo is drawn, and again before each one after."""
    run = bench(start=False)
    run.world.write(b"a.jpg", b"one")
    run.world.break_output()
    run.start()
    run.run(10)
    assert not run.pool.tasks
    assert run.state() == "degraded"
    run.world.heal()
    run.run(70)
    run.draw_all()
    run.world.free = 0
    run.sight(b"b.jpg", b"two")
    run.run(3)
    assert len(run.pool.tasks) == 1
    assert run.outcomes() == [("a.jpg", "done")]


@pytest.fixture
def setup(tmp_path: Path) -> Path:
    """Write a configuration beside its folders."""
    for name in ("in", "out", "styles"):
        (tmp_path / name).mkdir(mode=0o755)
    return tmp_path


def settings(setup: Path, *, at: str = "config.yaml", styles: str = "styles") -> list[str]:
    """Return what the check says of the configuration's own file and of the folder of styles."""
    text = (
        f"version: 1\nstate_dir: {setup}/state\nstyles_dir: {setup}/{styles}\n"
        f"inboxes:\n  - {{name: a, path: {setup}/in, output: {setup}/out}}\n"
    )
    (setup / at).write_text(text)
    return [f"{found.level} {found.check} {found.text}" for found in look_at_settings(open_config(setup / at))]


def test_settings_among_the_photos_are_a_warning(setup: Path) -> None:
    """Who may drop photos, or reads pictures, should not be able to change the configuration or the styles."""
    assert settings(setup) == []
    for place_of in ("in", "out"):
        (told,) = settings(setup, at=f"{place_of}/config.yaml")
        assert told.startswith("warn settings")
        assert f"{setup}/{place_of}" in told
    (setup / "in" / "styles").mkdir()
    (setup / "link").symlink_to("in/styles")
    assert len(settings(setup, styles="link")) == 1


def test_settings_that_others_may_change_are_a_warning(setup: Path) -> None:
    """A configuration, or a folder of styles, that any user may write is told."""
    settings(setup)
    for path in (setup / "config.yaml", setup / "styles"):
        before = path.stat().st_mode
        path.chmod(before | 0o002)
        (told,) = look_at_settings(open_config(setup / "config.yaml"))
        assert str(path) in told.text
        path.chmod(before)
    assert list(look_at_settings(open_config(setup / "config.yaml"))) == []


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "is_open"),
    [(0o644, 5, 7, False), (0o664, 5, 7, True), (0o664, 5, 5, False), (0o646, 5, 5, True), (0o600, 0, 7, False)],
)
def test_a_shared_group_counts_as_others(mode: int, uid: int, gid: int, is_open: bool) -> None:
    """A file that its group may write is open to others, unless the group is the owner's own."""
    assert is_open_to_others(os.stat_result((mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))) == is_open


def test_the_check_tells_of_unsafe_settings(setup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command shows the warning, and a warning alone fails nothing."""
    settings(setup, at="in/config.yaml")
    check.run(setup / "in" / "config.yaml", as_json=True, draw=lambda _config: {})
    found = [row for row in json.loads(capsys.readouterr().out) if row["check"] == "settings"]
    assert [row["level"] for row in found] == ["warn"]
