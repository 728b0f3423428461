"""Folders that overlap are refused, however the overlap comes about; folders that do not are let be."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.config import InboxConfig, load
from animed.config.overlap import Place, overlaps
from animed.errors import ConfigError

if TYPE_CHECKING:
    from animed.config.problems import Loc

INBOX = ("inboxes", 0)


def problems(folder: Path, *inboxes: str, state: str = "state") -> list[str]:
    """Load a file with these inboxes and return the lines of its error."""
    text = f"state_dir: {state}\ninboxes:\n" + "".join(f"  - {{{keys}}}\n" for keys in inboxes)
    (folder / "config.yaml").write_text(text)
    try:
        load(None, environ={"HOME": "/home/ada"}, cwd=folder)
    except ConfigError as error:
        return str(error).splitlines()[1:]
    return []


@pytest.mark.parametrize(
    "keys",
    [
        "path: in, output: in",
        "path: in, output: in/out",
        "path: out/in, output: out",
        "path: in, output: x/../in/out",
        "path: in, output: ./in/.",
        "path: in, output: state",
        "path: in, output: state/out",
        "path: state/in, output: out",
        "path: ., output: /elsewhere",
        "path: in, output: out, originals: move, processed_dir: in/done",
        "path: in, output: out, originals: move, processed_dir: out",
        "path: in, output: out, failed: copy, failed_dir: in/bad",
        "path: in, output: out, failed: move, failed_dir: state",
        "path: in, output: out, originals: move, failed: move, processed_dir: x, failed_dir: x",
        "path: /, output: out",
    ],
)
def test_overlaps_within_an_inbox(tmp_path: Path, keys: str) -> None:
    """Any two folders that are used and are equal, or lie in one another, are a problem with its line."""
    found = problems(tmp_path, f"name: a, {keys}")
    assert found
    assert all("folders that do not overlap" in line for line in found)
    assert "line 3: inboxes[0]." in found[0] or "line 1: state_dir" in found[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("path: in, output: o", "path: in, output: o"),
        ("path: in, output: o", "path: in/sub, output: o"),
        ("path: in, output: o", "path: o, output: p"),
        ("path: in, output: o", "path: in2, output: o/sub"),
        ("path: in, output: o", "path: in2, output: in/o"),
        ("path: in, output: o, originals: move, processed_dir: p", "path: p/in, output: o"),
        ("path: in, output: o, originals: move, processed_dir: p", "path: in2, output: o, failed: move, failed_dir: p"),
    ],
)
def test_overlaps_between_inboxes(tmp_path: Path, one: str, other: str) -> None:
    """Folders of different inboxes overlap as those of one do."""
    assert problems(tmp_path, f"name: a, {one}", f"name: b, {other}")


def test_what_may_be(tmp_path: Path) -> None:
    """Equal roles may share one folder, folders that are not used do not count, and a common prefix is no overlap."""
    assert not problems(tmp_path, "name: a, path: in, output: o", "name: b, path: in2, output: o")
    assert not problems(tmp_path, "name: a, path: in, output: inout", "name: b, path: in-2, output: inout")
    assert not problems(tmp_path, "name: a, path: in, output: o, processed_dir: in/x, failed_dir: o")
    shared = "originals: move, processed_dir: p, failed: move, failed_dir: f"
    assert not problems(tmp_path, f"name: a, path: i, output: o, {shared}", f"name: b, path: j, output: o, {shared}")


def test_symbolic_links_hide_nothing(tmp_path: Path) -> None:
    """A link to the inbox, a link above it, and a chain of links are followed; the real path is told."""
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "chain").symlink_to("link")
    (tmp_path / "up").symlink_to(".")
    for output in ("link", "chain/out", "up/in/out", "up/up/in"):
        (line,) = problems(tmp_path, f"name: a, path: in, output: {output}")
        assert f"really {tmp_path}/in" in line
    assert problems(tmp_path, "name: a, path: link, output: in/out")


def test_two_dots_after_a_link_are_those_of_the_target(tmp_path: Path) -> None:
    """`link/..` is the folder above the target of the link, as the system sees it."""
    (tmp_path / "far" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/in")
    assert problems(tmp_path, "name: a, path: far, output: link/../out")
    assert not problems(tmp_path, "name: a, path: far/in, output: link/../out")


def test_a_loop_of_links_is_no_crash(tmp_path: Path) -> None:
    """Links that lead to each other are folders that are not there; nothing is raised."""
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    assert not problems(tmp_path, "name: a, path: one, output: out")


def test_a_second_mount_of_the_inbox_is_the_inbox() -> None:
    """Folders with different real paths but one identity are one folder: output below it is refused."""
    places = {"/in": ((1, 7), ()), "/mnt/out": (None, ((1, 7), (1, 2))), "/mnt/in": ((1, 7), ((1, 2),))}

    def seen(loc: tuple[str | int, ...], path: Path) -> Place:
        identity, above = places[str(path)]
        return Place(loc, path, path, identity, frozenset(above))

    for output in ("/mnt/out", "/mnt/in"):
        inbox = InboxConfig(name="a", path=Path("/in"), output=Path(output))
        assert len(overlaps([(INBOX, inbox)], None, find=seen)) == 1


def test_folders_that_do_not_exist_have_the_identity_of_those_above(tmp_path: Path) -> None:
    """A place that is not there yet knows the folders above it."""
    found = Place.find(INBOX, tmp_path / "not" / "there")
    status = os.stat(tmp_path)
    assert found.identity is None
    assert (status.st_dev, status.st_ino) in found.above


_NAMES = st.lists(st.sampled_from(["a", "b", "..", "."]), max_size=5)


@settings(deadline=None, max_examples=150)
@given(one=_NAMES, other=_NAMES)
def test_overlap_is_what_containment_says(one: list[str], other: list[str]) -> None:
    """For plain folders, an overlap is told exactly if one normalised path is the start of the other."""
    first, second = ("/".join(["/no-such-folder/x/y", *parts]) for parts in (one, other))
    inbox = InboxConfig(name="n", path=Path(first), output=Path(second))
    parts = [Path(os.path.normpath(path)).parts for path in (first, second)]
    short, long = sorted(parts, key=len)
    assert bool(overlaps([(INBOX, inbox)], None)) == (long[: len(short)] == short)


def test_a_share_that_hangs_does_not_hold_up_the_others() -> None:
    """A folder whose file system never answers is compared by its name, and the rest as always."""
    hang = threading.Event()

    def find(loc: Loc, path: Path) -> Place:
        if path.name == "hung":
            hang.wait(30)
        return Place.find(loc, path)

    inboxes = [
        (("inboxes", 0), InboxConfig(name="a", path=Path("/hung"), output=Path("/hung/out"))),
        (("inboxes", 1), InboxConfig(name="b", path=Path("/b"), output=Path("/b/out"))),
    ]
    try:
        told = overlaps(inboxes, None, find=find, patience=0.2)
    finally:
        hang.set()
    assert [loc for loc, *_ in told] == [("inboxes", 0, "output"), ("inboxes", 1, "output")]
