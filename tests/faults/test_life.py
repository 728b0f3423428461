"""Process life, logs and configuration: what a typo, a slow reader, a hidden /proc or a timeout must not lead to."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest
import structlog

from animed import logs
from animed.config import load
from animed.engine import machine, plan
from animed.errors import ConfigError
from animed.records import Sighting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from daemon_bench import Bench


def problems(folder: Path, text: str) -> list[str]:
    """Return what a configuration is refused for."""
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(folder / "config.yaml", environ={"HOME": "/home/ada"}, cwd=folder)
    assert caught.value.exit_status == 78
    return str(caught.value).splitlines()


def test_a_typo_is_an_error_and_not_a_default(tmp_path: Path) -> None:
    """An unknown key is told with its place, its line and the key that was meant."""
    found = problems(tmp_path, "version: 1\ninboxes:\n  - {name: a, path: i, output: o, stabel_for: 3s}\n")
    (line,) = [line for line in found if "stabel_for" in line]
    assert "line 3" in line
    assert "inboxes[0].stabel_for" in line
    assert "did you mean stable_for" in line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("recursive: maybe", "true or false"),
        ("stable_for: soon", "stable_for"),
        ("recursive: no", "write false"),
        ("max_edge: 22:00", "max_edge"),
        ("layout: no", "mirror"),
        ("mode: {file: 0888}", "mode.file"),
        ("\tquality: 3", "tab"),
    ],
)
def test_each_mangled_value_has_its_line(tmp_path: Path, line: str, words: str) -> None:
    """A value that cannot be used is an error with its line and what is accepted, never a default."""
    found = problems(tmp_path, f"version: 1\ninboxes:\n  - name: a\n    path: i\n    output: o\n    {line}\n")
    assert any("line 6" in problem and words in problem for problem in found), found


def test_words_and_octals_come_out_as_written(tmp_path: Path) -> None:
    """`off`, 0640 and hexadecimal digits mean what they say."""
    text = "version: 1\ninboxes:\n  - {name: a, path: i, output: o, max_edge: 0x400, watch: off, mode: {file: 0640}}\n"
    (tmp_path / "config.yaml").write_text(text)
    inbox = load(tmp_path / "config.yaml", environ={"HOME": "/home/ada"}, cwd=tmp_path).inboxes[0]
    assert (inbox.max_edge, inbox.watch, inbox.mode.file) == (1024, "off", 0o640)


def test_lines_of_many_threads_stay_whole() -> None:
    """Four threads log records of eight kilobytes, larger than what a pipe takes at once: every line is one object."""
    reader, end = os.pipe()
    got: list[bytes] = []

    def read() -> None:
        with open(reader, "rb") as file:
            got.extend(file.read().splitlines())

    reading = threading.Thread(target=read)
    reading.start()
    with os.fdopen(end, "w") as stream:
        writer = logs.configure("info", "json", stream=stream)
        try:
            log = structlog.get_logger()
            threads = [
                threading.Thread(
                    target=lambda name=name: [log.info("test", who=name, text="x" * 8192) for _ in range(50)]
                )
                for name in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            assert writer.close(30)
            structlog.reset_defaults()
    reading.join()
    rows = [json.loads(line) for line in got]
    assert {who: sum(row.get("who") == who for row in rows) for who in range(4)} == dict.fromkeys(range(4), 50)
    assert all(len(row["text"]) == 8192 for row in rows)


def test_a_hidden_proc_is_no_obstacle(tmp_path: Path) -> None:
    """Without /proc and /sys there is a plan all the same, from what the process may use."""
    of = plan.make(plan.Wishes(None, None, "auto", 1024, None), machine.read(str(tmp_path), frozenset({0, 1})))
    assert of.count == 2
    assert of.threads >= 1


@pytest.mark.parametrize("originals", ["keep", "move", "delete"])
def test_a_timeout_never_costs_an_original(bench: Callable[..., Bench], originals: str) -> None:
    """A photo that hangs its worker is failed with its real path, and stays where it is."""
    run = bench(originals=originals)
    run.sight(b"album/slow.jpg", b"slow")
    while run.pool.jobs:
        run.die(cause="timeout")
        run.run(60)
    (line,) = run.log.events("file.failed")
    assert (line["path"], line["reason"]) == ("/in/phone/album/slow.jpg", "timeout")
    assert run.world.put_away == []
    assert b"album/slow.jpg" in run.world.photos


def test_photos_of_a_stop_are_done_by_the_next_run(bench: Callable[..., Bench]) -> None:
    """A stop in the middle of a batch loses no photo and draws none twice."""
    run = bench(workers=1, batch=4)
    for number in range(6):
        name = b"%d.jpg" % number
        run.world.write(name, name)
        run.parts.arrivals.settled(Sighting(run.key(name), run.world.photos[name][1], run.now), run.now)
    run.turn()
    run.draw()
    run.daemon._signalled(signal.SIGTERM, run.now)
    run.draw_all()
    run.restart()
    run.run(60)
    run.draw_all()
    assert sorted(run.outcomes()) == [(f"{number}.jpg", "done") for number in range(6)]
    assert sorted(run.names()) == [f"{number}.cel.jpg" for number in range(6)]
