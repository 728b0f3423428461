"""What names are made of, what their disk makes of them, and who of several photos gets which."""

from __future__ import annotations

import errno
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon_bench import Bench
from daemon_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.delivery.portable import PLAIN, NameRules
from animed.folding import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TAKEN = "2019-07-04T18:03:59"
MAY_2024 = 1_715_961_839_000_000_000  # 2024-05-17 16:03:59 UTC, in nanoseconds
FOLDS = NameRules(folds=True)


@pytest.fixture(autouse=True)
def _tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the machine be nine hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


# When a photo was taken.


@pytest.mark.parametrize(
    ("taken", "name"),
    [
        (TAKEN, "2019/07/a.cel.jpg"),
        ("", "2024/05/a.cel.jpg"),
        ("0000:00:00 00:00:00", "2024/05/a.cel.jpg"),
        ("2019-07-04T18:03:59+02:00", "2019/07/a.cel.jpg"),
    ],
)
def test_pictures_lie_by_date(bench: Callable[..., Bench], taken: str, name: str) -> None:
    """With `layout: date` a picture lies in the year and month of its photo, by the camera or else by its mtime."""
    run = bench(layout="date")
    run.sight(b"x/a.jpg", mtime_ns=MAY_2024)
    run.draw(taken=taken)
    run.turn()
    assert run.names() == [name]


def test_a_time_of_last_change_is_that_of_the_place(bench: Callable[..., Bench]) -> None:
    """Without a date of the camera the local time of the last change counts."""
    run = bench(output_name="{year}{month}{day}-{hour}{minute}{second}{counter}{ext}")
    run.sight(mtime_ns=MAY_2024)
    run.draw_all()
    assert run.names() == ["20240518-010359.jpg"]


@pytest.mark.parametrize("mtime_ns", [-(10**30), 10**30, -1, 0])
def test_any_time_of_last_change_makes_a_name(bench: Callable[..., Bench], mtime_ns: int) -> None:
    """A time that no calendar holds is that of the beginning."""
    run = bench(output_name="{year}{stem}{ext}")
    run.sight(mtime_ns=mtime_ns)
    run.draw_all()
    assert run.names() == ["1970a.jpg"]


def test_equal_photos_lie_by_the_same_date(bench: Callable[..., Bench]) -> None:
    """What repeats a photo was taken when that one was, also after a restart."""
    run = bench(layout="date")
    run.sight(b"a.jpg", mtime_ns=MAY_2024)
    run.sight(b"b.jpg", mtime_ns=MAY_2024 + 1)
    run.draw(taken=TAKEN)
    run.turn()
    run.restart()
    run.sight(b"c.jpg", mtime_ns=MAY_2024 + 2)
    assert run.names() == ["2019/07/a.cel.jpg", "2019/07/b.cel.jpg", "2019/07/c.cel.jpg"]
    assert [how for _, how in run.outcomes()] == ["done", "duplicate", "duplicate"]
    row = run.row(b"c.jpg")
    assert row is not None
    assert row.taken == TAKEN


def test_a_record_without_a_date_is_not_enough_for_a_name(bench: Callable[..., Bench]) -> None:
    """An equal photo is drawn where names need a date that the record of an older version does not have."""
    run = bench()
    run.sight(b"a.jpg")
    run.draw_all()
    with run.ledger._store.write() as db:
        db.execute("UPDATE photos SET taken = NULL")
    run.sight(b"b.jpg")
    assert [how for _, how in run.outcomes()] == ["done", "duplicate"]
    with run.ledger._store.write() as db:
        db.execute("UPDATE photos SET taken = NULL")
    run.reload(run.changed(layout="date"))
    run.turn()
    run.sight(b"c.jpg")
    run.draw(taken=TAKEN)
    run.turn()
    assert run.names()[-1] == "2019/07/c.cel.jpg"


def test_a_picture_without_its_extension_cannot_be_shared(bench: Callable[..., Bench]) -> None:
    """What kind a picture is must be seen from its name; otherwise an equal photo is drawn."""
    run = bench(output_name="{stem}.{style}")
    run.sight(b"a.jpg")
    run.draw_all()
    run.reload(run.changed(output_name="{stem}.{style}{ext}"))
    run.turn()
    run.sight(b"b.jpg")
    run.draw_all()
    assert run.names() == ["a.cel", "b.cel.jpg"]
    assert [how for _, how in run.outcomes()] == ["done", "done"]


@pytest.mark.parametrize("policy", ["skip", "fail"])
@pytest.mark.parametrize("keys", [{"layout": "date"}, {"output_name": "{year}{stem}{ext}"}])
def test_a_name_with_a_date_is_not_guessed(bench: Callable[..., Bench], policy: str, keys: dict[str, str]) -> None:
    """Whether such a name is taken turns out after the photo was drawn; a name that is free is never held up."""
    run = bench(on_conflict=policy, **keys)
    run.sight(mtime_ns=MAY_2024)
    assert run.pool.jobs
    run.draw_all()
    assert [how for _, how in run.outcomes()] == ["done"]


def test_a_date_survives_a_crash_between_the_commits(bench: Callable[..., Bench]) -> None:
    """A picture that has its name but not its outcome keeps both name and date."""
    run = bench(layout="date")
    run.sight(b"a.jpg", mtime_ns=MAY_2024)
    run.draw(taken=TAKEN)
    run.step()
    run.restart()
    run.sight(b"b.jpg", mtime_ns=MAY_2024)
    run.draw_all()
    assert run.names() == ["2019/07/a.cel.jpg", "2019/07/b.cel.jpg"]


# What the disk makes of names.


@pytest.mark.parametrize("policy", ["suffix", "overwrite"])
@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (b"A.jpg", b"a.jpg", "a.cel-2.jpg"),
        (b"X/a.jpg", b"x/a.jpg", "x/a.cel-2.jpg"),
        ("\u00e9.jpg".encode(), "e\u0301.jpg".encode(), "e\u0301.cel-2.jpg"),
    ],
)
def test_spellings_of_a_name_are_one_where_the_disk_says_so(
    bench: Callable[..., Bench], policy: str, first: bytes, second: bytes, name: str
) -> None:
    """Photos whose names differ in case or form both keep a picture, even where pictures may be replaced."""
    run = bench(world=World(names=FOLDS), on_conflict=policy)
    run.sight(first, b"one")
    run.sight(second, b"two")
    run.draw(run.pool.jobs[0])
    run.draw(run.pool.jobs[0])
    run.draw_all()
    assert run.names()[1] == name
    assert len(run.world.pictures) == 2
    assert [how for _, how in run.outcomes()] == ["done", "done"]


def test_spellings_are_names_of_their_own_elsewhere(bench: Callable[..., Bench]) -> None:
    """Where a disk tells them apart, so does the service."""
    run = bench()
    run.sight(b"A.jpg", b"one")
    run.sight(b"a.jpg", b"two")
    run.draw_all()
    assert sorted(run.names()) == ["A.cel.jpg", "a.cel.jpg"]


def test_a_claim_holds_in_every_spelling_after_the_picture_is_gone(bench: Callable[..., Bench]) -> None:
    """A name belongs to its photo as long as the ledger knows that, in whatever spelling."""
    run = bench(world=World(names=FOLDS), on_conflict="overwrite")
    run.sight(b"A.jpg", b"one")
    run.draw_all()
    run.world.pictures.clear()
    run.restart()
    run.sight(b"a.jpg", b"two")
    run.draw_all()
    assert run.names() == ["A.cel.jpg", "a.cel-2.jpg"]


def test_a_claim_that_was_lost_to_another_spelling_tries_the_next(bench: Callable[..., Bench]) -> None:
    """Claims that waited for a full ledger are made one by one, and compared in every spelling."""
    run = bench(world=World(names=FOLDS))
    run.sight(b"A.jpg", b"one")
    run.sight(b"a.jpg", b"two")
    run.store.full = True
    run.draw(run.pool.jobs[0])
    run.draw(run.pool.jobs[0])
    run.store.full = False
    run.run(5)
    assert run.names() == ["A.cel.jpg", "a.cel-2.jpg"]


@pytest.mark.parametrize(("policy", "outcome"), [("skip", "skipped"), ("fail", "conflict")])
def test_a_taken_spelling_is_a_taken_name(bench: Callable[..., Bench], policy: str, outcome: str) -> None:
    """Where a taken name ends the matter, another spelling of it does."""
    run = bench(world=World(names=FOLDS), on_conflict=policy)
    run.sight(b"A.jpg", b"one")
    run.sight(b"a.jpg", b"two")
    run.draw_all()
    assert sorted(how for _, how in run.outcomes()) == sorted(["done", outcome])
    assert run.is_clean()


def test_names_are_such_as_the_disk_takes(bench: Callable[..., Bench]) -> None:
    """On a disk of Windows names are made safe, and stay apart."""
    run = bench(world=World(names=NameRules(charset="portable", folds=True)))
    for number, name in enumerate((b"a?.jpg", b"a*.jpg", b"CON.jpg", b"trip. /a.jpg")):
        run.sight(name, b"%d" % number)
        run.draw_all()
    assert run.names() == ["a_.cel.jpg", "a_.cel-2.jpg", "_CON.cel.jpg", "trip__/a.cel.jpg"]


def test_a_refused_name_leads_to_an_easier_one(bench: Callable[..., Bench]) -> None:
    """A name that the disk refuses although nothing told of it is made safe, step by step."""
    run = bench()
    run.world.refused = {"\u00e9:.cel.jpg".encode(): errno.EINVAL, "\u00e9_.cel.jpg".encode(): errno.EILSEQ}
    run.sight("\u00e9:.jpg".encode())
    run.draw_all()
    assert run.names() == ["e_.cel.jpg"]
    assert run.outcomes() == [("\u00e9:.jpg", "done")]
    assert run.is_clean()
    row = run.row("\u00e9:.jpg".encode())
    assert row is not None
    assert row.output == b"/out/phone/e_.cel.jpg"


def test_a_name_that_is_too_long_is_cut_further(bench: Callable[..., Bench]) -> None:
    """Where the disk takes less than it says names are cut to what encrypted folders take."""
    run = bench()
    stem = b"n" * 200
    run.world.refused = {stem + b".cel.jpg": errno.ENAMETOOLONG}
    run.sight(stem + b".jpg")
    run.draw_all()
    (name,) = run.names()
    assert len(name) <= 143
    assert name.startswith("nnn")


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENAMETOOLONG])
def test_a_disk_that_refuses_every_name_fails_the_photo(bench: Callable[..., Bench], code: int) -> None:
    """Tries come to an end: then the photo fails, and nothing is left of it."""
    run = bench(attempts=1)
    run.world.refused = dict.fromkeys((b"a.cel.jpg", b"a.cel-2.jpg"), code)
    run.sight()
    run.draw_all()
    assert run.outcomes() == [("a.jpg", "output_denied")]
    row = run.row()
    assert row is not None
    assert row.output is None
    assert run.is_clean()


# Photos of one stem.


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    ("first", "second"), [(b"a.jpg", b"a.png"), (b"a.JPG", b"a.HEIC"), (b"a.bmp", b"a.png"), (b"x/a.jpeg", b"x/a.gif")]
)
def test_who_gets_the_name_does_not_depend_on_the_workers(
    bench: Callable[..., Bench], order: tuple[int, int], first: bytes, second: bytes
) -> None:
    """Of photos on their way with one stem, that of the picture's kind goes first, then the alphabet."""
    run = bench(output_format="jpeg", workers=2)
    for name in sorted((first, second)):
        run.sight(name, name)
    jobs = sorted(run.pool.jobs, key=lambda job: [first, second].index(job.key.path))
    for index in order:
        run.draw(jobs[index])
        run.turn()
    stem = first.decode().rpartition(".")[0]
    assert sorted(run.names()) == [f"{stem}.cel-2.jpg", f"{stem}.cel.jpg"]
    assert run.world.givers[run.names().index(f"{stem}.cel.jpg")] == first


def test_photos_of_one_stem_keep_their_extensions_where_they_may(bench: Callable[..., Bench]) -> None:
    """With `output_format: same` a.jpg and a.png do not want the same name."""
    run = bench()
    run.sight(b"a.jpg", b"one")
    run.sight(b"a.png", b"two")
    jobs = {job.key.path: job for job in run.pool.jobs}
    run.draw(jobs[b"a.png"], ext=".png")
    run.draw(jobs[b"a.jpg"])
    run.turn()
    assert sorted(run.names()) == ["a.cel.jpg", "a.cel.png"]


def test_a_photo_that_has_its_picture_is_not_waited_for(bench: Callable[..., Bench]) -> None:
    """A sibling that is looked at again, and has its name, keeps no other from the next one."""
    run = bench(output_format="jpeg")
    run.sight(b"a.png", b"two")
    run.draw_all()
    run.sight(b"a.jpg", b"one")
    run.sight(b"a.png", b"three", mtime_ns=2)
    run.draw_all()
    assert run.names() == ["a.cel.jpg", "a.cel-2.jpg", "a.cel-3.jpg"]


# Photos on their way, in any order.

STEMS = st.sampled_from(["a", "A", "\u00e9", "e\u0301", "a?", "a*", "CON", "trip. /a", "Trip. /A"])
PATHS = st.tuples(STEMS, st.sampled_from([".jpg", ".png"])).map("".join).map(str.encode)
OUTPUTS = st.sampled_from(
    [PLAIN, FOLDS, NameRules(charset="portable", folds=True), NameRules(128, "ascii", folds=True)]
)
STEPS = st.lists(st.one_of(PATHS, PATHS, st.integers(0, 3), st.just("restart")), min_size=8, max_size=24)


@settings(deadline=None, max_examples=40)
@given(
    STEPS,
    OUTPUTS,
    st.sampled_from(["suffix", "overwrite"]),
    st.sampled_from(["mirror", "flat", "date"]),
    st.sampled_from(["{stem}.{style}{ext}", "{stem}{counter}{ext}", "{year}{counter}", "{folder}{stem}"]),
)
def test_every_photo_keeps_a_picture_of_its_own(
    steps: list[bytes | int | str], names: NameRules, policy: str, layout: str, template: str
) -> None:
    """Whatever comes in whatever order, across restarts, no photo's picture takes the place of another's."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(names=names)
        run = Bench(
            Path(folder), world=world, on_conflict=policy, layout=layout, output_name=template, output_format="jpeg"
        )
        for step in steps:
            if step == "restart":
                run.restart()
            elif isinstance(step, bytes) and step not in world.photos:
                run.sight(step, step + b" is drawn")
            elif isinstance(step, int) and len(run.pool.jobs) > step:
                run.draw(run.pool.jobs[step], taken=TAKEN)
        run.run(5)  # After a restart photos settle again.
        run.draw_all()
        held = {(folded(name) if names.folds else name): staged for name, staged in world.pictures.items()}
        rows = [run.row(path) for path in world.photos]
        run.crash()
    assert len(held) == len(world.pictures) == len(world.photos)
    for row in rows:
        assert row is not None
        assert row.status == "done"
        assert row.output is not None
        assert held[folded(row.output) if names.folds else row.output] == row.staged
