"""Every system call between reading a photo and its outcome fails, with each errno it may have, and nothing is lost."""

from __future__ import annotations

import ast
import errno
import io
import os
import pickle
import shutil
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from delivery_fakes import tree
from fault_system import ERRNOS, LATE, SQLITE, FaultySystem
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from PIL import Image
from seam_world import SeamWorld, pair_of, scene
from test_layers import TREES

from animed.schedule.store import LedgerError, Store
from animed.system import STARVED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animed.schedule.rows import Row

# ---- The law -------------------------------------------------------------------------------------------------------

ROOMS: Final = ("opening", "intake", "schedule", "engine", "delivery", "daemon")
OS_CALLS: Final = frozenset(
    {"open", "close", "read", "write", "pread", "pwrite", "fsync", "fdatasync", "stat", "lstat", "fstat", "listdir"}
    | {"scandir", "mkdir", "makedirs", "link", "symlink", "rename", "replace", "unlink", "remove", "rmdir", "chmod"}
    | {"fchmod", "chown", "fchown", "utime", "statvfs", "lseek", "truncate", "ftruncate", "walk", "sendfile"}
)
DIRECT: Final = {f"os.{name}" for name in OS_CALLS} | {"socket.send_fds", "socket.recv_fds"}
# What is no part of a photo's way between its reading and its outcome, and why.
OUTSIDE: Final = {
    "daemon.hookprocess": "the pipes of a program of the user's, which runs after the outcome",
    "daemon.hookstart": "the same program: whether it can be run",
    "daemon.mailbox": "the eventfd that wakes the loop; no file, and it has no fault that could pass",
    "daemon.presence": "a look at whether the ledger's file is still there; what it cannot see counts as gone",
    "daemon.signals": "the socket pair that wakes the loop",
    "engine.limits": "the worker sets its own process up, before the first photo",
    "engine.machine": "what the machine has, from /proc",
    "engine.output": "what workers write to stdout and stderr, for the log",
    "engine.spawn": "the start of a process, which the pool backs off from",
    "intake.filesystem": "the table of mounts, from /proc",
    "intake.inotify": "watchdog's own calls: they only give hints",
    "schedule.store": "the making of the ledger's file when it is opened; what follows goes through the seam",
}


def direct_calls(module: str) -> Iterator[str]:
    """Yield the system calls that a module makes by itself."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in DIRECT or node.value.id in {"shutil", "fcntl"}:
                yield f"{name}:{node.lineno}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield f"open:{node.lineno}"
        elif isinstance(node, ast.Constant) and node.value == "COMMIT":
            yield f"commit:{node.lineno}"


def test_every_call_on_a_photos_way_goes_through_the_seam() -> None:
    """No room between reading and done calls the system by itself, but for what stands here with its reason."""
    rooms = [module for module in TREES if module.partition(".")[0] in ROOMS]
    found = {module: list(direct_calls(module)) for module in rooms}
    assert {module: calls for module, calls in found.items() if calls and module not in OUTSIDE} == {}
    assert [module for module in OUTSIDE if module not in found] == []


# ---- One photo, one fault ------------------------------------------------------------------------------------------

HEALED_S: Final = 20.0  # the tries of a photo outlast it: 5 + 15 s
# The other side is gone: that is the end of a process, and does not come and go.
FINAL: Final = {errno.EPIPE, errno.ECONNRESET, errno.ETOOMANYREFS}
# Where a folder refuses to let an original go, it stays, and the log says so.
FEW: Final = 16  # calls of one kind that are each tried as the first of a fault that lasts
MANY: Final = 5  # calls of one kind, of which not every code is tried at every one
REFUSING: Final = {"open", "lstat", "fstat", "fsync", "rename", "rename_free", "unlink", "mkdir"}
WAYS: Final[dict[str, dict[str, Any]]] = {
    "keep": {},
    "move": {"originals": "move"},
    "delete": {"originals": "delete", "on_conflict": "overwrite"},
    "similar": {"dedupe": "similar"},
}


# A photo makes these calls; those of the start, and of other file systems, are broken below in any order.
DRAWING: Final = (
    *("open", "close", "read", "write", "fsync", "fstat", "lstat", "stat", "scandir", "readdir", "mkdir"),
    *("link_descriptor", "chmod", "chgrp", "utime", "statvfs", "query", "commit", "send", "receive"),
)
SHARING: Final = ("open", "fsync", "link_descriptor", "query", "commit", "send", "receive")
SHELVING: Final = ("open", "close", "fsync", "fstat", "lstat", "link_descriptor", "rename", "rename_free", "unlink")
# Each place meets these, one of each kind: a refusal, a broken disk, a machine that has run out, a full disk.
EVERYWHERE: Final = {errno.EIO, errno.ENOBUFS, sqlite3.SQLITE_FULL}
COMMON: Final = {errno.EACCES, errno.EIO, errno.EMFILE, errno.ENOSPC}


def name_of(call: str, code: int) -> str:
    """Return a code as people know it."""
    return SQLITE[code] if call in {"query", "commit"} else errno.errorcode[code]


class Trial:
    """One world, and one photo after the other that goes through it."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.world = SeamWorld(folder, **keys)
        self.world.run(5)
        self.originals = self.world.config.inboxes[0].originals
        self.alike = self.world.config.inboxes[0].dedupe == "similar"
        self.count = 0

    def costs(self) -> Counter[str]:
        """Return how often a photo without faults makes each call."""
        self.world.system.calls.clear()
        self.try_one("", 0)
        return self.world.system.calls.copy()

    def try_one(self, call: str, code: int, **how: Any) -> None:
        """Send a photo through while a call fails; judge it when the fault is over and everything has come to rest."""
        world, self.count = self.world, self.count + 1
        folder = f"d{self.count}"
        (world.root / folder).mkdir()
        contents = {f"{folder}/a.jpg": world.write(f"{folder}/a.jpg", scene(2 * self.count) if self.alike else None)}
        if self.alike:
            contents[f"{folder}/b.jpg"] = world.write(f"{folder}/b.jpg", scene(2 * self.count + 1))
        if call:
            world.system.arm(call, code, **how)
        world.heal_at = world.now + HEALED_S
        world.run(HEALED_S + 5)
        if call:
            world.run(300)
        label = f"{self.originals}: {call} {name_of(call, code) if call else ''} {how}"
        self._judge(folder, contents, label)
        for path, content in contents.items():
            self._judge_original(path, content, call, label)
            row = world.row(path)
            assert row is not None
            if code in STARVED and call not in {"query", "commit"}:
                assert row.attempts == 1, label  # no photo pays for what the machine has run out of
        for place in (world.root, world.output):
            shutil.rmtree(place / folder, ignore_errors=True)

    def _judge(self, folder: str, contents: dict[str, bytes], label: str) -> None:
        world = self.world
        assert world.is_open, label
        outcomes = [world.outcomes(path) for path in contents]
        assert outcomes[0] == ["done"] or self.alike, label
        assert all(found in (["done"], ["duplicate"]) for found in outcomes), label
        assert ["done"] in outcomes, label
        pictures = [data for name, data in world.pictures().items() if name.startswith(f"{folder}/")]
        assert len(pictures) == len(contents), label
        assert all(picture.startswith(b"\xff\xd8") and picture.endswith(b"\xff\xd9") for picture in pictures), label
        assert world.leftovers() == [], label
        assert world.is_settled(), label

    def _judge_original(self, path: str, content: bytes, call: str, label: str) -> None:
        world = self.world
        here = tree(world.root).get(path)
        shelf = tree(world.folder / "phone-processed")
        moved = [data for name, data in shelf.items() if name.startswith(path.removesuffix(".jpg"))]
        assert here in {None, content}, label
        if self.originals == "keep":
            assert here == content, label
        elif here is not None:
            assert call in REFUSING, label
            assert world.log.events("original.kept"), label
        if self.originals == "move":
            assert [*moved, *([here] if here else [])] == [content], label


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    """Return for each way of originals how often one photo makes each call."""
    costs = {}
    for way, keys in WAYS.items():
        trial = Trial(tmp_path_factory.mktemp(way), **keys)
        costs[way] = trial.costs()
        trial.world.close()
    return costs


def cases(call: str, count: int, *, few: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield every fault of a call: once at each place, for a while from three places on, and with the answer lost.

    `few`: one code at each place is enough, and the others at three, for another way has had them all.
    """
    some = sorted({0, count // 2, count - 1})
    for code in ERRNOS[call]:
        everywhere = code in EVERYWHERE if few else code in COMMON or count < MANY
        yield from ((code, {"skip": at}) for at in (range(count) if everywhere else some))
        if code not in FINAL and (everywhere or not few):
            places = range(count) if count < FEW else some
            yield from ((code, {"skip": at, "times": None}) for at in places)
    for code in LATE.get(call, ()):
        if not few or code in {errno.EEXIST, errno.EIO}:
            yield from ((code, {"skip": at, "late": True}) for at in range(count))


@pytest.mark.parametrize(
    ("way", "call"),
    [
        *(("keep", call) for call in DRAWING),
        *((way, call) for way in ("move", "delete") for call in SHELVING),
        *(("similar", call) for call in SHARING),
    ],
)
def test_a_fault_that_passes_costs_nothing(tmp_path: Path, usual: dict[str, Counter[str]], call: str, way: str) -> None:
    """Whatever fails, once or for a while: one outcome, one whole picture, the original safe, nothing left behind."""
    count = usual[way][call]
    # What is done for the picture is broken where the original is kept; the other ways break what follows.
    first = 0 if way in {"keep", "similar"} or call == "link_descriptor" else max(0, usual["keep"][call] - 1)
    trial = Trial(tmp_path, **WAYS[way])
    before = len(os.listdir("/proc/self/fd"))
    for code, how in cases(call, count, few=way == "similar"):
        if how["skip"] >= first:
            trial.try_one(call, code, **how)
    assert trial.count or not count
    assert len(os.listdir("/proc/self/fd")) <= before
    trial.world.close()


def test_a_disk_that_fails_in_passing_is_no_matter_of_configuration(tmp_path: Path) -> None:
    """A service that cannot open its ledger for such a reason ends in a way that lets it be started again."""
    for code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
        system = FaultySystem()
        system.arm("query", code, times=None)
        with pytest.raises(LedgerError) as caught:
            Store.open(str(tmp_path / "ledger.db"), create=True, system=system, pause=lambda _: None)
        assert (caught.value.full, caught.value.exit_status) == (True, 1)


def test_a_read_of_the_ledger_is_patient(tmp_path: Path) -> None:
    """A read that fails in passing is asked again after short pauses, and raised when it goes on failing."""
    pauses: list[float] = []
    system = FaultySystem()
    store = Store.open(str(tmp_path / "ledger.db"), create=True, system=system, pause=pauses.append)
    system.arm("query", sqlite3.SQLITE_IOERR, times=2)
    assert store.read("SELECT 1") == [(1,)]
    assert len(pauses) == 2
    system.arm("query", sqlite3.SQLITE_IOERR, times=None)
    with pytest.raises(LedgerError) as caught:
        store.read("SELECT 1")
    assert caught.value.full
    assert sum(pauses) < 5
    system.heal()
    store.close()


@pytest.mark.parametrize("call", ["lstat", "scandir"])
def test_what_could_not_be_looked_at_is_looked_at_again(tmp_path: Path, call: str) -> None:
    """One error of the disk at the look at a photo, or at its folder, loses it for a minute and not for ever."""
    world = SeamWorld(tmp_path, watch="off", rescan_interval=0)
    world.run(5)
    world.system.arm(call, errno.EIO, under=bytes(world.root / "sub"))
    world.write("sub/a.jpg")
    world.inbox.scans.wanted = call == "scandir"
    if call == "scandir":
        world.inbox.settling._settler.discard(b"sub/a.jpg")
    world.run(5)
    assert world.outcomes("sub/a.jpg") == []
    world.run(120)
    assert world.outcomes("sub/a.jpg") == ["done"]
    world.close()


# ---- Any order -----------------------------------------------------------------------------------------------------

PATHS: Final = ("a.jpg", "sub/a.jpg", "sub/b.jpg")
FAULTS: Final = [(call, code) for call, codes in ERRNOS.items() for code in codes if code not in FINAL]


class Seam(RuleBasedStateMachine):
    """Photos come, change and go, the service and its worker die, and any call fails, once or for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.contents: dict[str, set[bytes]] = {path: set() for path in PATHS}
        self.writes: Counter[str] = Counter()
        self.fds = len(os.listdir("/proc/self/fd"))

    @initialize(
        originals=st.sampled_from(["keep", "move", "delete"]),
        failed=st.sampled_from(["leave", "move"]),
        dedupe=st.sampled_from(["content", "similar"]),
    )
    def open(self, originals: str, failed: str, dedupe: str) -> None:
        """Start with one photo."""
        self.world = SeamWorld(self.folder, originals=originals, failed=failed, dedupe=dedupe)
        self.originals = originals
        self.arrive("a.jpg", 1)

    @rule(path=st.sampled_from(PATHS), number=st.integers(1, 4))
    def arrive(self, path: str, number: int) -> None:
        """Put a photo into the inbox, as new, over another, or with the bytes of another."""
        self.contents[path].add(self.world.write(path, scene(number + 1)))
        self.writes[path] += 1

    @rule(path=st.sampled_from(PATHS))
    def delete(self, path: str) -> None:
        """Take a photo away."""
        (self.world.root / path).unlink(missing_ok=True)

    @rule(fault=st.sampled_from(FAULTS), skip=st.integers(0, 12), once=st.booleans())
    def arm(self, fault: tuple[str, int], skip: int, once: bool) -> None:
        """Let a call fail from now on."""
        self.world.system.arm(*fault, skip=skip, times=1 if once else None)

    @rule()
    def heal(self) -> None:
        """End all faults."""
        self.world.system.heal()

    @rule(seconds=st.sampled_from([0.6, 3.0, 40.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass; faults that keep a call from ever returning end by themselves."""
        self.world.heal_at = self.world.now + max(seconds, 30.0)
        self.world.run(seconds)

    @rule()
    def restart(self) -> None:
        """Kill the service, and start it again."""
        self.world.restart()

    @rule()
    def kill_the_worker(self) -> None:
        """Kill the worker with all that it holds."""
        self.world.die()

    @invariant()
    def at_most_one_picture(self) -> None:
        """No version of a photo has two pictures."""
        if hasattr(self, "world"):
            pictures = Counter(name.rpartition("/")[0] for name in self.world.pictures() if "/." not in f"/{name}")
            assert sum(pictures.values()) <= sum(self.writes.values())

    def teardown(self) -> None:
        """End all faults, and see that all promises were kept."""
        try:
            if hasattr(self, "world"):
                self._judge()
        finally:
            if hasattr(self, "world"):
                self.world.close()
            shutil.rmtree(self.folder)
        assert len(os.listdir("/proc/self/fd")) <= self.fds + 1

    def _judge(self) -> None:
        world = self.world
        world.heal_at = world.now
        world.run(3000)
        assert world.is_open
        assert world.is_settled()
        assert world.leftovers() == []
        here = tree(world.root)
        for path, content in here.items():
            row = world.row(path)
            assert row is not None, path
            assert row.status in {"done", "duplicate", "failed"}, path
            assert row.original_pending is None, path
            known = self.contents.get(path) or set().union(*self.contents.values())
            assert content in known, path
            self._judge_picture(row, content)
        for path in PATHS:
            assert len(world.outcomes(path)) <= self.writes[path], path
        for data in world.pictures().values():
            assert data.startswith(b"\xff\xd8")

    def _judge_picture(self, row: Row, content: bytes) -> None:
        """See that a photo has its own picture, or one of a photo that looks like it."""
        if row.status != "failed":
            assert row.output is not None
            places = Path(os.fsdecode(row.output)), io.BytesIO(content)
            picture, photo = (pair_of(np.asarray(Image.open(place))) for place in places)
            assert picture == photo, row


TestSeam = Seam.TestCase
TestSeam.settings = settings(
    deadline=None,
    max_examples=int(os.environ.get("CRASHES_EXAMPLES", "60")),
    stateful_step_count=20,
    suppress_health_check=list(HealthCheck),
)


def test_a_faulty_system_travels_to_a_worker() -> None:
    """What a worker is started with keeps its faults through pickle, so that a real process can be broken as well."""
    system = FaultySystem()
    system.arm("fsync", errno.EIO, times=None)
    again = pickle.loads(pickle.dumps(system))  # noqa: S301 - made here
    with pytest.raises(OSError, match="Input/output"):
        again.fsync(0)
