"""Hooks: what they are told, what bounds them, and that nothing of them reaches a photo or the loop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from daemon_fakes import ListLog
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.commands.programs import look_at_hooks
from animed.config import Config, HooksConfig, InboxConfig, load
from animed.daemon import hooks
from animed.daemon.hookcall import PREFIX, call_for_batch, call_for_photo, environment
from animed.daemon.hooks import Hooks
from animed.daemon.outcomes import BatchEnded, PhotoEnded
from animed.records import PhotoKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from daemon_bench import Bench

# Writes what it was told to where its first argument says: one line of JSON, with names in hex.
TELL = """#!{python} -I
import json, os, signal, sys
told = {{
    "arguments": [os.fsencode(each).hex() for each in sys.argv[2:]],
    "variables": {{os.fsencode(k).hex(): os.fsencode(v).hex() for k, v in os.environ.items()}},
    "cwd": os.getcwd(),
    "stdin": os.readlink("/proc/self/fd/0"),
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:4],
    "leader": os.getsid(0) == os.getpid(),
    "nice": os.getpriority(os.PRIO_PROCESS, 0),
}}
with open(sys.argv[1], "a") as out:
    out.write(json.dumps(told) + chr(10))
"""
HOSTILE = (b"$(touch pwned).jpg", b"-rf.jpg", b"a\nb.jpg", b"\xff\xfe.jpg", b"`x`;'\"&|>.jpg", b" .jpg", b"%s\\n\t.jpg")


def script(path: Path, text: str) -> Path:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tell(tmp_path: Path) -> tuple[str, str]:
    """Return the command that writes what it was told, and where it writes."""
    program = script(tmp_path / "tell", TELL.format(python=sys.executable))
    return str(program), str(tmp_path / "told.jsonl")


def told(tell: tuple[str, str]) -> list[dict[str, Any]]:
    """Return what the hook was told, one entry a start; incomplete lines are left out."""
    try:
        lines = Path(tell[1]).read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
    found = [json.loads(line) for line in lines]
    for each in found:
        each["arguments"] = [bytes.fromhex(word) for word in each["arguments"]]
        each["variables"] = {bytes.fromhex(k): bytes.fromhex(v) for k, v in each["variables"].items()}
    return found


def configuration(folder: Path, **keys: Any) -> Config:
    inbox = InboxConfig(name="phone", path=folder / "in", output=folder / "out")
    return Config(state_dir=folder, styles_dir=folder, inboxes=(inbox,), hooks=HooksConfig(**keys))


def ended(name: bytes = b"a.jpg", status: Any = "done", **more: Any) -> PhotoEnded:
    output = b"" if status == "failed" else b"/out/" + name
    return PhotoEnded(PhotoKey("phone", name), status, b"/in/" + name, output, "cel", **more)


class Runner:
    """Hooks with a clock and a loop of their own, as the daemon has."""

    def __init__(self, config: Config, **more: Any) -> None:
        self.log = ListLog()
        self.ahead = 0.0  # seconds that the clock goes ahead
        self.hooks = Hooks(self.log, config, **more)  # type: ignore[arg-type]  # a log that keeps its lines

    def turn(self) -> None:
        """Let the loop turn once."""
        now = time.monotonic() + self.ahead
        self.hooks.poll(frozenset(self.hooks.waitables()), now)
        self.hooks.tick(now)

    def until(self, test: Callable[[], object], what: str) -> None:
        """Turn until a test is true."""
        end = time.monotonic() + 60
        while not test():
            assert time.monotonic() < end, (what, self.log.lines)
            self.turn()
            time.sleep(0.01)

    def run(self, *outcomes: PhotoEnded) -> None:
        """Tell of outcomes and wait until no hook runs or waits."""
        for each in outcomes:
            self.hooks.photo_ended(each)
        self.until(lambda: not self.hooks.busy, "the end of the hooks")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    """Make hooks; at the end none runs."""
    made: list[Runner] = []

    def make(**keys: Any) -> Runner:
        made.append(Runner(configuration(tmp_path, **keys)))
        return made[-1]

    yield make
    for each in made:
        each.hooks.close(time.monotonic())
        assert not each.hooks.busy


# What a hook is told.


@pytest.mark.parametrize("name", HOSTILE)
def test_case_79_no_name_meets_a_shell(tmp_path: Path, tell: tuple[str, str], runner: Any, name: bytes) -> None:
    """A name that a shell would obey arrives whole, as bytes, in argument and variable, and nothing is executed."""
    run = runner(on_success=tell)
    run.run(ended(name))
    (got,) = told(tell)
    assert got["arguments"] == [b"/out/" + name, b"/in/" + name]
    assert got["variables"][b"HOOK_PHOTO"] == b"/in/" + name
    assert got["variables"][b"HOOK_OUTPUT"] == b"/out/" + name
    assert not list(tmp_path.glob("pwned*"))
    assert not Path("/pwned").exists()
    assert run.log.events("hook.failed") == []


def test_case_80_a_name_that_begins_with_a_hyphen_is_no_option(tmp_path: Path, runner: Any) -> None:
    """`rm` as a hook, for a photo named -rf.jpg, gets a full path: it takes the file, and no option."""
    victim = tmp_path / "-rf.jpg"
    victim.write_bytes(b"picture")
    remove = shutil.which("rm")
    run = runner(on_failure=(remove,))
    run.run(PhotoEnded(PhotoKey("phone", b"-rf.jpg"), "failed", os.fsencode(victim), reason="truncated"))
    assert not victim.exists()
    assert run.log.events("hook.failed") == []


def test_a_program_in_a_script_sees_the_names_too(tmp_path: Path, runner: Any) -> None:
    """A hook that is a shell script gets the picture as $1 and the photo as $2."""
    program = script(tmp_path / "hook.sh", f'#!/bin/sh\nprintf "%s|%s" "$1" "$2" >"{tmp_path}/got"\n')
    runner(on_success=(str(program),)).run(ended(b"$(touch pwned) *.jpg"))
    assert (tmp_path / "got").read_bytes() == b"/out/$(touch pwned) *.jpg|/in/$(touch pwned) *.jpg"


@settings(deadline=None, max_examples=60)
@given(name=st.binary(min_size=1, max_size=40), detail=st.text(max_size=30))
def test_every_name_and_text_can_be_told(name: bytes, detail: str) -> None:
    """For any bytes of a name and any text of a failure, what is told is what a process can be started with."""
    name = name.replace(b"\0", b"_")
    hooks_config = HooksConfig(on_success=("/s", "-x"), on_failure=("/f",))
    good = call_for_photo(ended(name), hooks_config)
    bad = call_for_photo(ended(name, "failed", reason="encode", detail=detail * 1000), hooks_config)
    assert good is not None
    assert bad is not None
    assert good.command == (b"/s", b"-x", b"/out/" + name, b"/in/" + name)
    assert bad.command == (b"/f", b"/in/" + name)
    for call in (good, bad):
        assert all(b"\0" not in value and len(value) <= 5000 for value in call.variables.values())
        assert all(each.startswith(PREFIX) for each in call.variables)


def test_a_hook_starts_clean(
    tmp_path: Path, tell: tuple[str, str], runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook inherits no descriptor and no word of the service manager; it has its own session and nice value."""
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "HOOK_STALE"):
        monkeypatch.setenv(name, "7")
    # What would lead an interpreter astray reaches the hook, and not the one that starts it.
    for name, value in (
        ("PYTHONHOME", "/nowhere"),
        ("PYTHONPATH", str(tmp_path)),
        ("LC_ALL", "C"),
        ("PYTHONUTF8", "0"),
    ):
        monkeypatch.setenv(name, value)
    (tmp_path / "ctypes.py").write_text("raise SystemExit(99)")
    leak = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leak, True)  # noqa: FBT003 - the standard library's own signature
    try:
        runner(on_success=tell).run(ended(b"\xff.jpg"))
    finally:
        os.close(leak)
    (got,) = told(tell)
    assert got["arguments"] == [b"/out/\xff.jpg", b"/in/\xff.jpg"]
    assert not {b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"LISTEN_FDS", b"HOOK_STALE"} & got["variables"].keys()
    assert got["variables"][b"PATH"] == os.environb[b"PATH"]
    assert (got["cwd"], got["stdin"], got["leader"]) == ("/", "/dev/null", True)
    assert got["descriptors"] == [0, 1, 2, 3]  # the last one lists the folder
    assert got["nice"] == max(10, os.getpriority(os.PRIO_PROCESS, 0))


def test_a_hook_has_every_signal_as_it_is_by_default(tmp_path: Path, runner: Any) -> None:
    """No signal is blocked or ignored, though the service, and the interpreter that starts the hook, ignore some."""
    program = script(tmp_path / "hook.sh", f"#!/bin/sh\ngrep ^Sig /proc/self/status >{tmp_path}/signals\n")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        runner(on_success=(str(program),)).run(ended())
    finally:
        signal.signal(signal.SIGHUP, before[0])
        signal.pthread_sigmask(signal.SIG_SETMASK, before[1])
    masks = dict(line.split(":\t") for line in (tmp_path / "signals").read_text().splitlines())
    # The C library keeps two signals for itself, which nobody can set.
    ours = sum(1 << number - 1 for number in signal.valid_signals())
    assert (int(masks["SigBlk"], 16) & ours, int(masks["SigIgn"], 16) & ours) == (0, 0)


def test_the_hook_can_call_animed(tmp_path: Path, tell: tuple[str, str]) -> None:
    """What a hook is told is no unknown setting to `animed`, which finds the service's own configuration."""
    source = tmp_path / "config.yaml"
    source.write_text(
        f"state_dir: state\ninboxes: [{{name: phone, path: in, output: out}}]\nhooks: {{on_success: {tell[0]}}}\n"
    )
    config = load(source, environ={}, cwd=Path("/"))
    call = call_for_photo(ended(attempt=1, batch=3), config.hooks)
    assert call is not None
    environ = environment({b"HOME": b"/root", b"ANIMED_LOGGING__LEVEL": b"debug"}, config.source, call)
    again = load(None, environ={os.fsdecode(k): os.fsdecode(v) for k, v in environ.items()}, cwd=Path("/"))
    assert (again.source, again.logging.level) == (source, "debug")


def test_which_outcome_starts_which_hook() -> None:
    """Pictures start on_success, failures on_failure, batches with an outcome on_batch; a skipped photo starts none."""
    config = HooksConfig(on_success=("/s",), on_failure=("/f",), on_batch=("/b",))

    def event(status: Any) -> str | None:
        call = call_for_photo(ended(status=status), config)
        return None if call is None else call.event

    assert [event(s) for s in ("done", "duplicate", "failed", "skipped")] == ["success", "success", "failure", None]
    batch = call_for_batch(BatchEnded(7, 5, ("phone", "nas"), 1.5, {"done": 2, "failed": 1, "retry": 2}), config)
    assert batch is not None
    assert batch.command == (b"/b",)
    assert {k[5:]: v for k, v in batch.variables.items()} == {
        b"EVENT": b"batch", b"INBOXES": b"phone nas", b"BATCH": b"7", b"BATCH_SIZE": b"5", b"SECONDS": b"1.500",
        b"DONE": b"2", b"DUPLICATE": b"0", b"SKIPPED": b"0", b"FAILED": b"1", b"OTHER": b"2",
    }  # fmt: skip
    assert call_for_batch(BatchEnded(8, 2, ("phone",), 0.1, {"known": 2}), config) is None
    assert call_for_photo(ended(), HooksConfig()) is None
    assert call_for_batch(BatchEnded(7, 1, ("phone",), 1.5, {"done": 1}), HooksConfig()) is None


def test_a_failure_is_told_with_its_reason(tell: tuple[str, str], runner: Any) -> None:
    """on_failure gets the photo alone, and in variables why it failed, how often it was tried, and its batch."""
    runner(on_failure=tell).run(
        ended(status="failed", reason="truncated", detail="cut\0 off \udcff", attempt=5, batch=3)
    )
    (got,) = told(tell)
    assert got["arguments"] == [b"/in/a.jpg"]
    assert {k[5:]: v for k, v in got["variables"].items() if k.startswith(PREFIX)} == {
        b"EVENT": b"failure", b"STATUS": b"failed", b"INBOX": b"phone", b"PHOTO": b"/in/a.jpg", b"OUTPUT": b"",
        b"STYLE": b"cel", b"REASON": b"truncated", b"DETAIL": b"cut off \\udcff", b"ATTEMPT": b"5", b"BATCH": b"3",
    }  # fmt: skip


# What bounds it.


def gone(pid: int) -> bool:
    """Say whether a process has ended, fetched or not."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def deaf(folder: Path) -> str:
    """Return a program that does not listen to SIGTERM, has a child, and writes the pids of both."""
    text = f"#!/bin/sh\ntrap '' TERM\nsleep 300 &\necho $$ $! >{folder}/pids\nwait\nwait\n"
    return str(script(folder / "deaf", text))


def pids(folder: Path) -> list[int]:
    """Return what `deaf` wrote."""
    path = folder / "pids"
    text = path.read_text() if path.exists() else ""
    return [int(pid) for pid in text.split()] if text.endswith("\n") else []


def test_a_late_hook_is_ended_with_all_that_it_started(tmp_path: Path, runner: Any) -> None:
    """At its timeout the whole group goes: SIGTERM first, and SIGKILL for those that do not listen."""
    run = runner(on_success=(deaf(tmp_path),), timeout=1000)
    run.hooks.photo_ended(ended())
    run.until(lambda: pids(tmp_path), "the start of the hook")
    run.ahead = 1000
    run.turn()
    run.turn()
    assert run.hooks.busy
    run.ahead += hooks.GRACE_S
    run.until(lambda: not run.hooks.busy, "its end")
    run.until(lambda: all(map(gone, pids(tmp_path))), "the end of the group")
    (line,) = run.log.events("hook.failed")
    assert (line["cause"], line["hook"], line["path"]) == ("timeout", "success", "/in/a.jpg")
    assert "hooks.timeout (1000 s)" in line["detail"]


def test_what_a_hook_leaves_running_is_ended_with_it(tmp_path: Path, runner: Any) -> None:
    """A hook is over when its program is: what it left in the background neither holds the slot nor stays."""
    program = script(tmp_path / "forks", f"#!/bin/sh\nsleep 300 &\necho $! >{tmp_path}/pid\n")
    run = runner(on_success=(str(program),))
    run.run(ended())
    pid = int((tmp_path / "pid").read_text())
    run.until(lambda: gone(pid), "the end of what it left")
    assert run.log.events("hook.failed") == []


class FakeHook:
    """A hook that ends when the test says so."""

    def __init__(self, command: Sequence[bytes], environ: Mapping[bytes, bytes], nice: int) -> None:
        self.command, self.environ, self.nice = tuple(command), dict(environ), nice
        self.pid = 4711
        self.sentinel: int | None = None
        self.outputs = (os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_RDONLY))
        self.code: int | None = None
        self.signals: list[int] = []
        self.closed = False
        self.killable = True

    def has_ended(self) -> bool:
        """Say what the test said."""
        return self.code is not None

    def signal(self, number: signal.Signals) -> None:
        """Keep the signal; only SIGKILL helps."""
        self.signals.append(number)
        if number == signal.SIGKILL and self.killable:
            self.code = -9

    def end(self, patience: float = 0.0) -> int | None:
        """Return how it ended."""
        return self.code

    def close(self) -> None:
        """Free the descriptors."""
        self.closed = True
        for output in self.outputs:
            os.close(output)


class Stage:
    """Hooks on fakes and a made-up clock."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.started: list[FakeHook] = []
        self.log = ListLog()
        config = configuration(folder, **(keys or {"on_success": ("/s",), "on_failure": ("/f",), "on_batch": ("/b",)}))
        log: Any = self.log
        self.hooks = Hooks(log, config, start=self.start)

    def start(self, command: Sequence[bytes], environ: Mapping[bytes, bytes], nice: int) -> FakeHook:
        """Start a fake."""
        self.started.append(FakeHook(command, environ, nice))
        return self.started[-1]

    def names(self) -> list[bytes]:
        """Return the photos whose hook was started, in order."""
        return [os.path.basename(each.command[-1]) for each in self.started]


def test_two_run_at_once_in_the_order_of_the_outcomes(tmp_path: Path) -> None:
    """No more than two run; each that ends makes room for the next, and every outcome starts exactly one."""
    stage = Stage(tmp_path)
    for number in range(6):
        stage.hooks.photo_ended(ended(b"%d.jpg" % number))
    for round_ in range(6):
        stage.hooks.tick(round_)
        running = [each for each in stage.started if each.code is None]
        assert len(running) == min(2, 6 - round_)
        running[0].code = 0
    stage.hooks.tick(7)
    assert stage.names() == [b"%d.jpg" % number for number in range(6)]
    assert not stage.hooks.busy
    assert all(each.closed for each in stage.started)


def test_the_queue_is_bounded_and_what_does_not_fit_is_told(tmp_path: Path) -> None:
    """Beyond the queue's end the new one is dropped with a warning that names its photo; the others keep their turn."""
    stage = Stage(tmp_path)
    for number in range(hooks.QUEUE + 2):
        stage.hooks.photo_ended(ended(b"%d.jpg" % number))
    lines = stage.log.events("hook.dropped")
    assert [line["path"] for line in lines] == [f"/in/{hooks.QUEUE}.jpg", f"/in/{hooks.QUEUE + 1}.jpg"]
    stage.hooks.tick(0)
    assert stage.names() == [b"0.jpg", b"1.jpg"]
    stage.hooks.close(1)


def test_a_late_hook_is_asked_then_killed(tmp_path: Path) -> None:
    """SIGTERM at the timeout, SIGKILL after the grace, then nothing more: no signal is sent twice, no turn is busy."""
    stage = Stage(tmp_path, on_success=("/s",), timeout=5)
    stage.hooks.photo_ended(ended())
    stage.hooks.tick(100)
    (hook,) = stage.started
    hook.killable = False
    due = stage.hooks.next_deadline(100)
    assert due is not None
    for now in (104.9, 105, 106, 107, 108, 200):
        stage.hooks.tick(now)
    assert hook.signals == [signal.SIGTERM, signal.SIGKILL]
    hook.sentinel = 0  # the kernel tells of its end
    assert stage.hooks.next_deadline(200) is None
    hook.sentinel, hook.code = None, -9
    stage.hooks.tick(201)
    assert stage.log.events("hook.failed")[0]["cause"] == "timeout"


def test_a_hook_keeps_the_timeout_that_it_began_with(tmp_path: Path) -> None:
    """A reload that gives later hooks more time does not change why an earlier one is ended."""
    stage = Stage(tmp_path, on_success=("/s",), timeout=5)
    stage.hooks.photo_ended(ended())
    stage.hooks.tick(100)
    stage.hooks.configure(configuration(tmp_path, on_success=("/s",), timeout=60))
    stage.hooks.tick(105)
    stage.started[0].code = -15
    stage.hooks.tick(106)
    (line,) = stage.log.events("hook.failed")
    assert line["cause"] == "timeout"
    assert "(5 s)" in line["detail"]


def test_output_is_logged_in_lines_and_bounded(tmp_path: Path, runner: Any) -> None:
    """Each line that a hook prints is one line of the log; a flood is cut and counted."""
    text = "print('hello')\nprint('bad', file=sys.stderr)\n[print('x' * 50) for _ in range(9999)]\n"
    program = script(tmp_path / "loud", f"#!{sys.executable} -I\nimport sys\n{text}")
    run = runner(on_success=(str(program),))
    run.run(ended())
    lines = run.log.events("hook.output")
    assert {"stdout", "stderr"} == {line["stream"] for line in lines}
    assert "hello" in [line["line"] for line in lines]
    assert len(lines) < 500
    assert any("lines were dropped" in line["line"] for line in lines)


@pytest.mark.parametrize(
    ("text", "mode", "cause"),
    [
        ("#!/bin/sh\nexit 3\n", 0o755, "exit:3"),
        ("#!/bin/sh\nkill -USR1 $$\n", 0o755, "SIGUSR1"),
        ("#!/bin/sh\n", 0o644, "not_started"),
        ("no program at all", 0o755, "not_started"),
        ("#!/nowhere/at/all\n", 0o755, "not_started"),
        ("#!/bin/sh\n", 0o777, "not_started"),
        (None, 0, "not_started"),
    ],
)
def test_a_hook_that_fails_is_one_warning(tmp_path: Path, runner: Any, text: str | None, mode: int, cause: str) -> None:
    """Whatever goes wrong with a hook costs one warning that names it and its photo, and nothing else.

    A program that others may change is refused at each start: it may have become so since the service began.
    """
    program = tmp_path / "hook"
    if text is not None:
        program.write_text(text)
        program.chmod(mode)
    run = runner(on_success=(str(program),))
    run.run(ended())
    (line,) = run.log.events("hook.failed")
    assert (line["cause"], line["path"], line["program"]) == (cause, "/in/a.jpg", str(program))
    assert not run.hooks.busy


def test_arguments_that_the_kernel_refuses_are_one_warning(runner: Any) -> None:
    """A command that is too long is not started, and the next one is."""
    run = runner(on_success=("/bin/true", "x" * 200_000))
    run.run(ended(), ended(b"b.jpg"))
    assert [line["detail"] for line in run.log.events("hook.failed")] == ["its arguments are too long"] * 2


def test_a_start_that_the_system_refuses_is_one_warning(tmp_path: Path) -> None:
    """Where there is no room for a process the hook is not started, and not tried again."""
    log: Any = ListLog()

    def refuse(*_: object) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    full = Hooks(log, configuration(tmp_path, on_success=("/s",)), start=refuse)
    full.photo_ended(ended())
    full.tick(0)
    assert not full.busy
    assert log.events("hook.failed")[0]["cause"] == "not_started"


# The end of the service.


def test_at_a_stop_what_waits_is_dropped_and_what_runs_has_its_time(tmp_path: Path) -> None:
    """A stop drops the queue with a line for each; running ones go on, are asked to end shortly before its end."""
    stage = Stage(tmp_path)
    for name in (b"1", b"2", b"3", b"4"):
        stage.hooks.photo_ended(ended(name))
    stage.hooks.tick(100)
    stage.hooks.drain(120, 100)
    assert [line["path"] for line in stage.log.events("hook.dropped")] == ["/in/3", "/in/4"]
    stage.hooks.photo_ended(ended(b"5"))
    stage.started[0].code = 0
    stage.hooks.tick(101)
    stage.hooks.photo_ended(ended(b"6"))  # a photo that was finished meanwhile: there is room for it
    stage.hooks.tick(102)
    assert stage.names() == [b"1", b"2", b"6"]
    assert [line["path"] for line in stage.log.events("hook.dropped")] == ["/in/3", "/in/4", "/in/5"]
    stage.hooks.tick(120 - hooks.GRACE_S)
    assert [each.signals for each in stage.started[1:]] == [[signal.SIGTERM]] * 2
    stage.hooks.close(120)
    assert all(signal.SIGKILL in each.signals for each in stage.started[1:])
    assert [line["cause"] for line in stage.log.events("hook.failed")] == ["stop", "stop"]
    stage.hooks.photo_ended(ended(b"7"))
    stage.hooks.tick(121)
    assert len(stage.started) == 3
    assert stage.log.events("hook.dropped")[-1]["path"] == "/in/7"


def test_no_hook_outlives_a_service_that_closes(tmp_path: Path, runner: Any) -> None:
    """At the end even a hook that ignores SIGTERM is gone, with its children."""
    run = runner(on_success=(deaf(tmp_path),))
    run.hooks.photo_ended(ended())
    run.until(lambda: pids(tmp_path), "the start of the hook")
    run.hooks.close(time.monotonic())
    run.until(lambda: all(map(gone, pids(tmp_path))), "the end of the group")
    assert not run.hooks.busy


def test_a_new_configuration_holds_from_the_next_outcome(tmp_path: Path) -> None:
    """What waits runs as it was queued; what ends after the reload runs the new program."""
    stage = Stage(tmp_path)
    for name in (b"1", b"2", b"3"):
        stage.hooks.photo_ended(ended(name))
    stage.hooks.tick(0)
    stage.hooks.configure(configuration(tmp_path, on_success=("/new",)))
    stage.hooks.photo_ended(ended(b"4"))
    stage.hooks.photo_ended(ended(b"5", "failed"))
    for each in stage.started:
        each.code = 0
    stage.hooks.tick(1)
    assert [each.command[0] for each in stage.started] == [b"/s", b"/s", b"/s", b"/new"]
    stage.hooks.close(2)


# In the daemon.


def on_bench(bench: Bench, folder: Path, **keys: Any) -> Stage:
    """Put hooks on fakes into a bench's daemon."""
    stage = Stage(folder, **keys)
    listeners = bench.desk.reporter.listeners
    listeners[listeners.index(bench.parts.hooks)] = stage.hooks
    bench.parts.hooks, stage.log = stage.hooks, bench.log
    return stage


def test_each_outcome_starts_one_hook_after_its_commit(bench: Callable[..., Bench], tmp_path: Path) -> None:
    """A hook starts when the ledger has the outcome, not before, and once: also where the state folder was full."""
    run = bench()
    stage = on_bench(run, tmp_path)
    run.sight(b"a.jpg", b"one")
    run.store.full = True
    run.draw()
    run.turn()
    assert stage.started == []
    run.store.full = False
    run.run(60)
    assert run.status(b"a.jpg") == "done"
    assert [each.command[0] for each in stage.started] == [b"/s", b"/b"]
    assert stage.started[0].command[1:] == (b"/out/phone/a.cel.jpg", b"/in/phone/a.jpg")
    for each in stage.started:
        each.code = 0
    run.sight(b"b.jpg", b"two")
    run.fail("not_an_image")
    assert [each.command[0] for each in stage.started[2:]] == [b"/f", b"/b"]
    assert stage.started[2].environ[b"HOOK_REASON"] == b"not_an_image"
    stage.hooks.close(run.now)


def test_a_photo_that_a_crash_left_open_has_its_hook(bench: Callable[..., Bench], tmp_path: Path) -> None:
    """A picture that was placed before the crash is an outcome of the next run, and starts its hook there."""
    run = bench()
    run.sight(b"a.jpg")
    run.world.break_output(late=True)
    run.draw_all()
    assert run.status(b"a.jpg") == "publishing"
    run.world.heal()
    run.restart(start=False)
    stage = on_bench(run, tmp_path, on_success=("/s",))
    run.start()
    assert run.status(b"a.jpg") == "done"
    assert [each.command for each in stage.started] == [(b"/s", b"/out/phone/a.cel.jpg", b"/in/phone/a.jpg")]
    assert stage.started[0].environ[b"HOOK_ATTEMPT"] == b""
    stage.hooks.close(run.now)


def test_a_single_pass_ends_after_its_hooks(bench: Callable[..., Bench], tmp_path: Path) -> None:
    """`once` waits for the hooks of its photos, and ends when they have."""
    run = bench(once=True)
    stage = on_bench(run, tmp_path, on_success=("/s",))
    run.sight(b"a.jpg")
    run.draw_all()
    run.run(60)
    assert not run.parts.is_through()
    stage.started[0].code = 0
    run.turn()
    assert run.parts.is_through()


def test_a_stop_waits_for_hooks_within_its_time(bench: Callable[..., Bench], tmp_path: Path) -> None:
    """Draining is over when photos and hooks are through, or when the time is."""
    run = bench()
    stage = on_bench(run, tmp_path, on_success=("/s",))
    run.sight(b"a.jpg")
    run.draw_all()
    run.daemon._drain(signal.SIGTERM, run.now)
    run.tick()
    assert not run.daemon._is_over()
    stage.started[0].code = 0
    run.tick()
    assert run.daemon._is_over()


# What `check` says.


def test_check_looks_at_each_hook(tmp_path: Path) -> None:
    """A hook is there, an executable file, in folders that only their owners write; else `check` says what to do."""
    good = script(tmp_path / "good", "#!/bin/sh\n")
    plain = tmp_path / "plain"
    plain.write_text("")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    loose = script(tmp_path / "open" / "hook", "#!/bin/sh\n")

    def look(*command: str) -> tuple[str, str]:
        (finding,) = look_at_hooks(HooksConfig(on_batch=command))
        assert finding.status == (78 if finding.level == "fail" else 0)
        return finding.level, finding.text + " " + finding.remedy

    assert look(str(good))[0] == "ok"
    assert "may not be executed" in look(str(plain))[1]
    assert "not a file" in look(str(tmp_path))[1]
    assert look(str(loose)) == ("warn", look(str(loose))[1])
    assert str(tmp_path / "open") in look(str(loose))[1]
    assert "written as a list" in look(f"{good} --quiet")[1]
    assert "No such file" in look("/nowhere")[1]
    assert list(look_at_hooks(HooksConfig())) == []
