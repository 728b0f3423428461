"""The laws of placing pictures: whole or not at all, once, durable, never over another."""

from __future__ import annotations

import errno
import hashlib
import os
import stat as bits
import subprocess
from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from delivery_fakes import KINDS, PREFIX, Crash, FakeSystem, Kind, stage_of, stage_picture, tree

from animed.delivery.faults import NameRefused, Place, SourceGone, translate
from animed.delivery.publish import Placed, Taken, discard, place, prepare_output, resolve
from animed.delivery.staging import free_bytes, probe, stage_copy, sweep
from animed.errors import AnimedError, PhotoError, PlaceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from animed.records import Staged
    from animed.system import System

PICTURE = b"picture" * 300
TARGET = b"sub/a.cel.jpg"
CASES = list(product(KINDS, [True, False], [True, False]))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


def put(output: Path, staged: Staged, fd: int | None, *, system: System, **options: Any) -> Placed | Taken:
    options = {"target": TARGET, **options}
    return place(staged, fd, stage=stage_of(output), output=str(output), system=system, **options)


def end(output: Path, staged: Staged, fd: int | None, system: System) -> None:
    discard(staged, fd, stage=stage_of(output), system=system)


def swept(output: Path) -> None:
    sweep([str(output), str(output / "sub")], PREFIX)


def settle(output: Path, staged: Staged, *, kind: Kind, named: bool, overwrite: bool) -> None:
    """Do what the service does after a fault: resolve the record, and draw the photo again if it has no picture."""
    if resolve(staged, output=str(output), target=TARGET, system=FakeSystem(kind)):
        return
    (output / f"{PREFIX}0123abcd.tmp").unlink(missing_ok=True)
    again, fd = stage_picture(output, PICTURE, named=named)
    assert isinstance(put(output, again, fd, system=FakeSystem(kind), overwrite=overwrite), Placed)
    end(output, again, fd, FakeSystem(kind))


def fresh(folder: Path, *, overwrite: bool) -> Path:
    output = folder / "out"
    (output / "sub" if overwrite else output).mkdir(parents=True)
    if overwrite:
        (output / "sub/a.cel.jpg").write_bytes(b"old")
    return output


@pytest.mark.parametrize(("kind", "named", "overwrite"), CASES)
def test_a_picture_is_placed_whole_on_every_kind_of_file_system(
    output: Path, kind: Kind, named: bool, overwrite: bool
) -> None:
    """Whatever the file system lacks, the picture ends under its name and nothing else is left."""
    staged, fd = stage_picture(output, PICTURE, named=named)
    system = FakeSystem(kind)
    assert put(output, staged, fd, system=system, overwrite=overwrite) == Placed(TARGET)
    end(output, staged, fd, system)
    assert tree(output) == {"sub/a.cel.jpg": PICTURE}
    assert bits.S_IMODE((output / "sub/a.cel.jpg").stat().st_mode) == 0o644
    assert resolve(staged, output=str(output), target=TARGET)


@pytest.mark.parametrize(("kind", "named", "overwrite"), CASES)
def test_a_crash_at_any_call_leaves_one_whole_picture(tmp_path: Path, kind: Kind, named: bool, overwrite: bool) -> None:
    """Killed at any call, the picture is there whole or not at all; after the restart there is exactly one, no temp."""
    for at in count(1):
        output = fresh(tmp_path / str(at), overwrite=overwrite)
        staged, fd = stage_picture(output, PICTURE, named=named)
        system = FakeSystem(kind, at=at)
        try:
            put(output, staged, fd, system=system, overwrite=overwrite)
            end(output, staged, fd, system)
        except Crash:
            close(fd, system)
        seen = tree(output).get("sub/a.cel.jpg")
        reserved = b"" if kind == "no_links" and not overwrite else PICTURE
        assert seen in {None, PICTURE, reserved, b"old" if overwrite else PICTURE}
        settle(output, staged, kind=kind, named=named, overwrite=overwrite)
        swept(output)
        assert tree(output) == {"sub/a.cel.jpg": PICTURE}
        if not system.fired:
            break
    assert at > 8


@pytest.mark.parametrize(("kind", "named", "overwrite"), CASES)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EBUSY])
def test_a_fault_at_any_call_is_translated_and_leaves_one_whole_picture(
    tmp_path: Path, kind: Kind, named: bool, overwrite: bool, code: int
) -> None:
    """A fault at any call is a fault of the place or the photo, and never costs or doubles the picture."""
    denied: set[str] = set()
    for at in count(1):
        output = fresh(tmp_path / str(at), overwrite=overwrite)
        staged, fd = stage_picture(output, PICTURE, named=named)
        system = FakeSystem(kind, at=at, fault=code)
        try:
            put(output, staged, fd, system=system, overwrite=overwrite)
        except PlaceError:
            pass
        except PhotoError as error:
            denied.add(error.reason)
        end(output, staged, fd, FakeSystem(kind))
        settle(output, staged, kind=kind, named=named, overwrite=overwrite)
        swept(output)
        assert tree(output) == {"sub/a.cel.jpg": PICTURE}
        if not system.fired:
            break
    assert denied <= (set() if code in {errno.ENOSPC, errno.EIO} else {"output_denied"})
    assert at > 8


def close(fd: int | None, system: FakeSystem) -> None:
    """Close what the killed process held, unless its last act did."""
    if fd is not None and not (system.calls[-1] == "close" and not is_open(fd)):
        os.close(fd)


def is_open(fd: int) -> bool:
    return os.path.exists(f"/proc/self/fd/{fd}")


def test_the_order_of_a_durable_picture(output: Path) -> None:
    """The name is taken after the bytes are synced, and the folder is synced after the name is taken."""
    staged, fd = stage_picture(output, PICTURE, named=False)
    system = FakeSystem("cross")
    put(output, staged, fd, system=system)
    end(output, staged, fd, system)
    writes = [name for name in system.calls if name in {"write", "fsync", "link_descriptor"}]
    # The new sub-folder, the link that cannot cross, then the copy: written, synced, linked, folder synced.
    assert writes == ["fsync", "link_descriptor", "write", "fsync", "link_descriptor", "fsync"]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [b"somebody's", b"", PICTURE])
def test_a_taken_name_is_never_replaced(output: Path, kind: Kind, named: bool, other: bytes) -> None:
    """Whatever holds the name, even an equal picture, stays; nothing else is left behind."""
    (output / "sub").mkdir()
    (output / "sub/a.cel.jpg").write_bytes(other)
    staged, fd = stage_picture(output, PICTURE, named=named)
    system = FakeSystem(kind)
    assert put(output, staged, fd, system=system) == Taken(TARGET)
    end(output, staged, fd, system)
    assert tree(output) == {"sub/a.cel.jpg": other}


@pytest.mark.parametrize("named", [True, False])
def test_placing_again_after_a_late_fault_finds_its_own_picture(output: Path, named: bool) -> None:
    """When the folder's sync failed after the name was taken, resolve says so, and the picture is not placed twice."""

    def broken(name: str, args: tuple[Any, ...]) -> None:
        if name == "fsync" and bits.S_ISDIR(os.fstat(args[0]).st_mode):
            raise OSError(errno.EIO, "io")

    staged, fd = stage_picture(output, PICTURE, named=named)
    with pytest.raises(PlaceError):
        put(output, staged, fd, system=FakeSystem(hook=broken), target=b"a.jpg")
    assert resolve(staged, output=str(output), target=b"a.jpg")
    if not named:
        assert put(output, staged, fd, system=FakeSystem(), target=b"a.jpg") == Placed(b"a.jpg")
    end(output, staged, fd, FakeSystem())
    assert tree(output) == {"a.jpg": PICTURE}


def test_a_lost_answer_of_a_share_is_not_a_taken_name(output: Path) -> None:
    """A share that links, loses the answer and then says "exists" has placed the picture."""

    def forgetful(name: str, args: tuple[Any, ...]) -> None:
        if name == "link":
            os.link(args[0].name, args[1].name, dst_dir_fd=args[1].folder, follow_symlinks=False)

    staged, fd = stage_picture(output, PICTURE, named=True)
    assert put(output, staged, fd, system=FakeSystem("no_noreplace", hook=forgetful)) == Placed(TARGET)
    assert tree(output) == {"sub/a.cel.jpg": PICTURE}


def test_a_case_insensitive_output_gives_two_names(output: Path) -> None:
    """Where IMG.jpg and img.jpg are one name, the second photo is told that it is taken."""

    def folding(name: str, args: tuple[Any, ...]) -> None:
        taken = {held.lower() for held in os.listdir(args[-1].folder)} if name == "link_descriptor" else set()
        if name == "link_descriptor" and os.fsdecode(args[1].name).lower() in taken:
            raise FileExistsError(errno.EEXIST, "exists")

    (output / "img.jpg").write_bytes(b"first")

    class Folding(FakeSystem):
        def _refuses(self, name: str, args: tuple[Any, ...]) -> int:
            return 0

    system = Folding(hook=folding)
    real = system.lstat
    system.lstat = lambda entry: real(entry._replace(name=entry.name.lower()))  # type: ignore[method-assign]  # folds
    staged, fd = stage_picture(output, PICTURE, named=False)
    assert put(output, staged, fd, system=system, target=b"IMG.jpg") == Taken(b"IMG.jpg")
    assert put(output, staged, fd, system=system, target=b"IMG-2.jpg") == Placed(b"IMG-2.jpg")
    end(output, staged, fd, system)


@pytest.mark.parametrize("what", ["link", "file"])
def test_a_component_that_is_no_folder_is_refused(output: Path, tmp_path: Path, what: str) -> None:
    """A link or a file inside the output where a folder should be denies the picture; nothing is written behind it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if what == "link":
        (output / "sub").symlink_to(elsewhere)
    else:
        (output / "sub").write_bytes(b"")
    staged, fd = stage_picture(output, PICTURE, named=False)
    with pytest.raises(PhotoError) as caught:
        put(output, staged, fd, system=FakeSystem())
    end(output, staged, fd, FakeSystem())
    assert caught.value.reason == "output_denied"
    assert tree(elsewhere) == {}


def test_a_folder_in_the_place_of_a_picture_is_refused(output: Path) -> None:
    """Overwriting never removes a folder."""
    (output / "sub/a.cel.jpg").mkdir(parents=True)
    staged, fd = stage_picture(output, PICTURE, named=False)
    with pytest.raises(PhotoError):
        put(output, staged, fd, system=FakeSystem(), overwrite=True)
    end(output, staged, fd, FakeSystem())
    assert tree(output) == {}


def test_modes_and_groups(output: Path) -> None:
    """New folders get their mode with its search bits, folders and picture get the group."""
    staged, fd = stage_picture(output, PICTURE, named=False)
    assert put(output, staged, fd, system=FakeSystem(), dir_mode=0o640, group=12345) == Placed(TARGET)
    end(output, staged, fd, FakeSystem())
    folder, picture = (output / "sub").stat(), (output / "sub/a.cel.jpg").stat()
    assert bits.S_IMODE(folder.st_mode) == 0o750
    assert (folder.st_gid, picture.st_gid) == (12345, 12345)


def test_a_share_without_owners_keeps_the_picture(output: Path) -> None:
    """A chmod and a chown that are refused are noted, and the picture is placed."""

    def squashed(name: str, args: tuple[Any, ...]) -> None:
        if name in {"chmod", "chgrp", "utime"}:
            raise PermissionError(errno.EPERM, "no")

    staged, fd = stage_picture(output, PICTURE, named=False)
    found = put(output, staged, fd, system=FakeSystem("cross", hook=squashed), dir_mode=0o700, group=12345)
    end(output, staged, fd, FakeSystem())
    assert isinstance(found, Placed)
    assert "the group of a file could not be set: Operation not permitted" in found.notes
    assert tree(output) == {"sub/a.cel.jpg": PICTURE}


def test_folders_that_cannot_be_synced_are_tolerated(output: Path) -> None:
    """A file system that answers EINVAL to the sync of a folder still gets pictures."""

    def folderless(name: str, args: tuple[Any, ...]) -> None:
        if name == "fsync" and bits.S_ISDIR(os.fstat(args[0]).st_mode):
            raise OSError(errno.EINVAL, "no")

    staged, fd = stage_picture(output, PICTURE, named=False)
    assert isinstance(put(output, staged, fd, system=FakeSystem(hook=folderless)), Placed)
    end(output, staged, fd, FakeSystem())


def test_a_stage_that_is_gone_or_another_is_drawn_anew(output: Path) -> None:
    """A vanished or exchanged stage is never placed."""
    staged, _ = stage_picture(output, PICTURE, named=True)
    temp = output / str(staged.name)
    # Made before the stage goes: a new file may otherwise get the number of the one that went.
    another = output / "another"
    another.write_bytes(b"x" * len(PICTURE))
    temp.unlink()
    with pytest.raises(SourceGone):
        put(output, staged, None, system=FakeSystem())
    another.rename(temp)
    with pytest.raises(SourceGone):
        put(output, staged, None, system=FakeSystem())
    end(output, staged, None, FakeSystem())
    assert temp.exists()  # Not the staged file, so not ours to remove here.


def test_an_unnamed_stage_needs_its_descriptor(output: Path) -> None:
    """Placing without the descriptor is a mistake of the caller."""
    staged, fd = stage_picture(output, PICTURE, named=False)
    end(output, staged, fd, FakeSystem())
    with pytest.raises(ValueError, match="descriptor"):
        put(output, staged, None, system=FakeSystem())


def test_resolve_knows_its_picture_where_inodes_are_not_stable(output: Path) -> None:
    """Another inode with the same bytes is the picture; other bytes of the same size are not."""
    staged, _ = stage_picture(output, PICTURE, named=True)
    (output / "a.jpg").write_bytes(PICTURE)
    assert resolve(staged, output=str(output), target=b"a.jpg")
    (output / "a.jpg").write_bytes(b"x" * len(PICTURE))
    assert not resolve(staged, output=str(output), target=b"a.jpg")
    assert not resolve(staged, output=str(output), target=b"none.jpg")
    assert not resolve(staged, output=str(output), target=b"none/a.jpg")


def test_resolve_clears_a_reservation_and_follows_no_link(output: Path) -> None:
    """An empty file at the name goes, a link to an equal picture is not the picture."""
    staged, _ = stage_picture(output, PICTURE, named=True)
    (output / "a.jpg").touch()
    assert not resolve(staged, output=str(output), target=b"a.jpg")
    assert not (output / "a.jpg").exists()
    (output / "a.jpg").symlink_to(output / str(staged.name))
    assert not resolve(staged, output=str(output), target=b"a.jpg")


def test_resolve_does_not_answer_without_the_output(tmp_path: Path, output: Path) -> None:
    """An output that is away is a fault of the place: the record stays, the photo is not drawn again."""
    staged, _ = stage_picture(output, PICTURE, named=True)
    with pytest.raises(PlaceError) as caught:
        resolve(staged, output=str(tmp_path / "away"), target=b"a.jpg")
    assert (caught.value.role, caught.value.code) == ("output", errno.ENOENT)


def test_prepare_output_makes_only_the_last_component(tmp_path: Path) -> None:
    """The output is made where its parent is; a missing parent or a file in its place is a fault of the place."""
    assert prepare_output(str(tmp_path / "out"))
    assert not prepare_output(str(tmp_path / "out") + "/")
    (tmp_path / "file").touch()
    for name, code in (("no/out", errno.ENOENT), ("file", errno.ENOTDIR)):
        with pytest.raises(PlaceError) as caught:
            prepare_output(str(tmp_path / name))
        assert caught.value.code == code
    assert not (tmp_path / "no").exists()


def test_sweep_removes_only_its_own_leftovers(output: Path) -> None:
    """Other instances' temps, links, folders and everything else stay."""
    mine, kept = f"{PREFIX}ab12.tmp", [f"{PREFIX}two-ab12.tmp", f"{PREFIX}.tmp", f"{PREFIX}ab12.jpg", "a.tmp"]
    for name in [mine, *kept]:
        (output / name).touch()
    (output / f"{PREFIX}dir.tmp").mkdir()
    (output / f"{PREFIX}link.tmp").symlink_to(output / "a.tmp")
    assert sweep([str(output), str(output / "missing")], PREFIX) == 1
    assert sorted(tree(output)) == sorted([*kept, f"{PREFIX}link.tmp"])


def test_sweep_spares_this_run(output: Path) -> None:
    """What this run has staged is in use, and stays while leftovers of earlier runs go."""
    for name in (f"{PREFIX}run2aa.tmp", f"{PREFIX}run1aa.tmp"):
        (output / name).touch()
    assert sweep([str(output)], PREFIX, keep=f"{PREFIX}run2") == 1
    assert list(tree(output)) == [f"{PREFIX}run2aa.tmp"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("link", [True, False])
def test_a_duplicate_is_staged_from_the_finished_picture(output: Path, kind: Kind, link: bool) -> None:
    """By whatever means the file system has, the copy is the same picture and gets a name of its own."""
    (output / "first.jpg").write_bytes(PICTURE)
    first = staged_of(PICTURE)
    system = FakeSystem(kind)
    stage = stage_of(output, mode=0o640, keep_mtime=True)
    source = os.fsencode(output / "first.jpg")
    staged, fd = stage_copy(source, first, stage=stage, link=link, mtime_ns=10**18, system=system)
    assert isinstance(put(output, staged, fd, system=system), Placed)
    end(output, staged, fd, system)
    assert tree(output) == {"first.jpg": PICTURE, "sub/a.cel.jpg": PICTURE}
    found = (output / "sub/a.cel.jpg").stat()
    if not link:
        assert (bits.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o640, 10**18)


def test_a_linked_duplicate_does_not_take_its_twins_name(output: Path) -> None:
    """A hard link of the finished picture, aimed at that picture's own name, finds it taken."""
    for kind in KINDS:
        (output / "first.jpg").write_bytes(PICTURE)
        system = FakeSystem(kind)
        source = os.fsencode(output / "first.jpg")
        staged, fd = stage_copy(source, staged_of(PICTURE), stage=stage_of(output), link=True, system=system)
        assert put(output, staged, fd, system=system, target=b"first.jpg") == Taken(b"first.jpg")
        end(output, staged, fd, system)
        assert tree(output) == {"first.jpg": PICTURE}


def test_a_changed_or_missing_picture_is_not_copied(output: Path) -> None:
    """A finished picture that somebody edited, replaced or removed is no source: the photo is drawn anew."""
    source, first = output / "first.jpg", staged_of(PICTURE)
    for kind, link in product(KINDS, [True, False]):
        for content in (None, b"short", b"x" * len(PICTURE)):
            source.unlink(missing_ok=True)
            if content is not None:
                source.write_bytes(content)
            with pytest.raises(SourceGone):
                stage_copy(os.fsencode(source), first, stage=stage_of(output), link=link, system=FakeSystem(kind))
    assert list(tree(output)) == ["first.jpg"]


def staged_of(content: bytes) -> Staged:
    from animed.records import Staged as Record  # noqa: PLC0415 - the name above is for annotations only.

    return Record(0, 0, len(content), hashlib.sha256(content).hexdigest(), None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, kind: Kind) -> None:
    """A fault at any call of staging a copy is told, and no temp stays (but what unlink itself left).

    What happens to the finished picture's own file is not the output's fault: then the photo is drawn.
    """
    for at in count(1):
        output = fresh(tmp_path / str(at), overwrite=False)
        (output / "first.jpg").write_bytes(PICTURE)
        system = FakeSystem(kind, at=at, fault=errno.ENOSPC)
        source = os.fsencode(output / "first.jpg")
        try:
            staged, fd = stage_copy(source, staged_of(PICTURE), stage=stage_of(output), link=at % 2 == 0, system=system)
        except (PlaceError, SourceGone):
            swept(output)
        else:
            end(output, staged, fd, FakeSystem())
        assert list(tree(output)) == ["first.jpg"]
        if not system.fired:
            break


def test_probe_writes_syncs_and_removes(output: Path) -> None:
    """A probe proves the whole way to the disk and leaves nothing."""
    system = FakeSystem()
    probe(stage_of(output), system=system)
    assert [name for name in system.calls if name in {"write", "fsync", "unlink"}] == ["write", "fsync", "unlink"]
    assert tree(output) == {}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.EACCES])
def test_probe_reports_a_place_that_refuses(output: Path, code: int) -> None:
    """At write and at sync alike the fault is the output's, with its number, and nothing is left."""
    for at in (2, 3, 4):
        with pytest.raises(PlaceError) as caught:
            probe(stage_of(output), system=FakeSystem(at=at, fault=code))
        assert (caught.value.role, caught.value.code) == ("output", code)
    swept(output)
    assert tree(output) == {}


def test_free_bytes(output: Path) -> None:
    """Free space is what this user may still write."""
    free = free_bytes(str(output))
    assert free.bytes > 0
    assert free.inodes is None or free.inodes > 0
    with pytest.raises(PlaceError):
        free_bytes(str(output / "missing"))


@pytest.mark.parametrize(
    ("code", "below", "expected"),
    [
        (errno.ENOSPC, b"sub", PlaceError),
        (errno.EDQUOT, b"sub", PlaceError),
        (errno.EROFS, b"sub", PlaceError),
        (errno.EIO, b"", PlaceError),
        (errno.ESTALE, b"sub", PlaceError),
        (errno.ENOTCONN, b"", PlaceError),
        (errno.EHOSTDOWN, b"", PlaceError),
        (errno.ETIMEDOUT, b"", PlaceError),
        (errno.EACCES, b"", PlaceError),
        (errno.EPERM, b"", PlaceError),
        (errno.ENOENT, b"", PlaceError),
        (errno.ENOTDIR, b"", PlaceError),
        (errno.EACCES, b"sub", PhotoError),
        (errno.ENAMETOOLONG, b"", NameRefused),
        (errno.EINVAL, b"", NameRefused),
        (errno.EILSEQ, b"sub", NameRefused),
        (errno.EBUSY, b"", PhotoError),
    ],
)
def test_whose_fault_an_errno_is(code: int, below: bytes, expected: type[AnimedError]) -> None:
    """Disks, shares and roots are places; names and sub-folders concern their photos only."""
    found = translate(OSError(code, "x"), Place("output", "/out"), below)
    assert type(found) is expected
    assert "/out" in str(found)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """Yield an output whose sub-folder is a file system of its own, 64 KiB large."""
    output = tmp_path / "out"
    (output / "sub").mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(output / "sub")],  # noqa: S607 - found on PATH.
        check=False,
        capture_output=True,
    )
    if done.returncode:
        pytest.skip(f"mounting needs more rights than this run has: {done.stderr.decode().strip()}")
    yield output
    subprocess.run(["umount", str(output / "sub")], check=True)  # noqa: S607 - found on PATH.


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_sub_folder_on_another_file_system_gets_a_copy(mounted: Path, named: bool, overwrite: bool) -> None:
    """A picture for a mounted sub-folder is staged again over there, then placed; resolve knows it by its bytes."""
    staged, fd = stage_picture(mounted, PICTURE, named=named)
    assert put(mounted, staged, fd, system=FakeSystem(), overwrite=overwrite) == Placed(TARGET)
    end(mounted, staged, fd, FakeSystem())
    assert tree(mounted) == {"sub/a.cel.jpg": PICTURE}
    assert resolve(staged, output=str(mounted), target=TARGET)


@pytest.mark.parametrize("named", [True, False])
def test_a_full_file_system_is_a_fault_of_the_place(mounted: Path, named: bool) -> None:
    """Really running out of space leaves neither a picture nor a temp behind."""
    staged, fd = stage_picture(mounted, b"x" * 100_000, named=named)
    with pytest.raises(PlaceError) as caught:
        put(mounted, staged, fd, system=FakeSystem())
    end(mounted, staged, fd, FakeSystem())
    assert caught.value.code == errno.ENOSPC
    assert tree(mounted) == {}
