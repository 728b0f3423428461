"""Watching real folders with the real inotify: every way in which a photo can arrive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from intake_watching import RULES, watching

from animed.intake.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make an inbox, and a place outside it on the same file system."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def test_every_way_to_arrive_is_hinted_at(root: Path) -> None:
    """Write, append, hard link, rename in, rename inside, a changed mtime and a removal all give a hint."""
    outside = root.parent / "outside"
    for name in ("h.jpg", "r.jpg"):
        (outside / name).write_bytes(b"photo")
    (root / "old.jpg").write_bytes(b"photo")
    with watching(root) as inbox:
        steps: list[tuple[Callable[[], object], set[bytes]]] = [
            (lambda: (root / "w.jpg").write_bytes(b"photo"), {b"w.jpg"}),
            (lambda: (root / "h.jpg").hardlink_to(outside / "h.jpg"), {b"h.jpg"}),
            (lambda: (outside / "r.jpg").rename(root / "r.jpg"), {b"r.jpg"}),
            (lambda: (root / "w.jpg").rename(root / "v.jpg"), {b"w.jpg", b"v.jpg"}),
            (lambda: os.utime(root / "old.jpg", (1, 1)), {b"old.jpg"}),
            (lambda: (root / "old.jpg").chmod(0o600), {b"old.jpg"}),
            ((root / "v.jpg").unlink, {b"v.jpg"}),
            (lambda: os.mkfifo(root / "f.jpg"), {b"f.jpg"}),
        ]
        for step, expected in steps:
            step()
            assert inbox.collect() == {("file", path) for path in expected}
        assert inbox.watch.health() is None


def test_reading_gives_no_hint(root: Path) -> None:
    """Opening, reading, listing and closing give no hint at all: our own work never wakes us."""
    (root / "x").mkdir()
    (root / "x" / "a.jpg").write_bytes(b"photo")
    with watching(root) as inbox:
        (root / "x" / "a.jpg").read_bytes()
        list(Scanner(str(root), RULES).scan())
        assert inbox.collect() == set()


def test_names_are_bytes(root: Path) -> None:
    """A name that is not UTF-8, with a newline, comes as it is, in a folder of that kind too."""
    full = os.fsencode(root) + b"/d\xfe"
    os.mkdir(full)
    with watching(root) as inbox:
        os.close(os.open(full + b"/\xff\n.jpg", os.O_CREAT | os.O_WRONLY))
        assert inbox.collect() == {("file", b"d\xfe/\xff\n.jpg")}


def test_a_tree_made_in_a_hurry_is_covered(root: Path) -> None:
    """Folders made deep at once, and files written into them at once, are all led to."""
    with watching(root) as inbox:
        for number in range(20):
            deep = root / f"n{number}" / "b" / "c"
            deep.mkdir(parents=True)
            for photo in range(5):
                (deep / f"{photo}.jpg").write_bytes(b"photo")
        wanted = {b"n%d/b/c/%d.jpg" % (number, photo) for number in range(20) for photo in range(5)}
        assert inbox.covered() == wanted
        assert inbox.watch.watched == 61
        assert inbox.watch.health() is None


def test_a_folder_that_is_moved_in_is_covered_for_good(root: Path) -> None:
    """What a moved-in folder holds is led to, and what is written into it later as well."""
    (root.parent / "outside" / "trip" / "day").mkdir(parents=True)
    (root.parent / "outside" / "trip" / "day" / "1.jpg").write_bytes(b"photo")
    with watching(root) as inbox:
        (root.parent / "outside" / "trip").rename(root / "trip")
        assert inbox.covered() == {b"trip/day/1.jpg"}
        (root / "trip" / "day" / "2.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"trip/day/2.jpg")}
        (root / "trip").rename(root / "voyage")
        assert inbox.covered() == {b"voyage/day/1.jpg", b"voyage/day/2.jpg"}
        (root / "voyage" / "day" / "3.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"voyage/day/3.jpg")}


def test_a_big_folder_that_is_moved_in_is_one_hint(root: Path) -> None:
    """A moved-in folder of many photos is one hint and not thousands: it is listed in slices by whoever hears of it."""
    (root.parent / "outside" / "big").mkdir()
    for number in range(300):
        (root.parent / "outside" / "big" / f"{number}.jpg").touch()
    with watching(root) as inbox:
        (root.parent / "outside" / "big").rename(root / "big")
        assert inbox.collect() == {("folder", b"big")}


def test_moving_out_and_back_confuses_nothing(root: Path) -> None:
    """A folder that leaves, is replaced, comes back under another name and is removed keeps the reader alive."""
    outside = root.parent / "outside"
    (root / "d" / "e").mkdir(parents=True)
    with watching(root) as inbox:
        (root / "d").rename(outside / "d")
        (root / "d").mkdir()
        (root / "d" / "1.jpg").write_bytes(b"photo")
        assert inbox.covered() == {b"d/1.jpg"}
        (outside / "d" / "9.jpg").write_bytes(b"not ours any more")
        assert inbox.collect() == set()
        (outside / "d" / "9.jpg").unlink()
        (outside / "d").rename(root / "back")
        (root / "back" / "e" / "2.jpg").write_bytes(b"photo")
        assert inbox.covered() == {b"back/e/2.jpg"}
        (root / "d" / "e").mkdir()
        inbox.collect()
        (root / "back" / "e" / "3.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"back/e/3.jpg")}
        for name in ("d/1.jpg", "back/e/2.jpg", "back/e/3.jpg"):
            (root / name).unlink()
        for name in ("d/e", "d", "back/e", "back"):
            (root / name).rmdir()
        inbox.collect()
        assert inbox.watch.health() is None
        assert inbox.watch.watched == 1


def test_churn_kills_no_thread(root: Path) -> None:
    """Folders made, moved over each other and removed as fast as possible leave all threads alive and hearing."""
    with watching(root) as inbox:
        for number in range(200):
            (root / "a" / "b").mkdir(parents=True)
            (root / "a").rename(root / f"m{number % 3}")
            (root / f"m{number % 3}" / "b").rename(root / "c")
            (root / "c").rmdir()
            (root / f"m{number % 3}").rmdir()
        inbox.collect()
        assert inbox.watch.health() is None
        (root / "a").mkdir()
        inbox.collect()
        (root / "a" / "x.jpg").write_bytes(b"photo")
        assert inbox.collect() == {("file", b"a/x.jpg")}


def test_ignored_folders_are_not_watched(root: Path) -> None:
    """Folders that the rules ignore take no watch, whether they are there before or come later, and give no hint."""
    deep = Path(*["d"] * 20)
    for name in ("@eaDir/a/b", ".stversions/x", "photos/@eaDir/c", deep):
        (root / name).mkdir(parents=True)
    with watching(root) as inbox:
        assert inbox.watch.watched == 1 + 1 + 16
        (root / "new" / "@eaDir").mkdir(parents=True)
        inbox.collect()
        assert inbox.watch.watched == 1 + 1 + 16 + 1
        (root / "@eaDir" / "a" / "x.jpg").write_bytes(b"thumb")
        (root / "new" / "@eaDir" / "x.jpg").write_bytes(b"thumb")
        assert inbox.collect() == set()


def test_links_are_not_watched(root: Path) -> None:
    """A link to a folder outside brings in nothing; a root that is a link is followed."""
    (root / "link").symlink_to(root.parent / "outside")
    (root.parent / "way").symlink_to(root)
    with watching(root.parent / "way") as inbox:
        assert inbox.watch.watched == 1
        (root.parent / "outside" / "x.jpg").write_bytes(b"photo")
        assert inbox.collect() == set()
