"""The whole service on real processes, real signals, real files and the real network."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

import psutil
import pytest
from harness import WITHOUT_OVERRIDE, Service, photo, whole
from picture_writers import claimed_png

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def huge_header(path: Path) -> Path:
    """Write a tiny PNG whose header claims 30,000 by 30,000 pixels."""
    path.write_bytes(claimed_png(30_000, 30_000))
    return path


def more_pictures(run: Service, before: int) -> bool:
    """Say whether there are more pictures than before."""
    return len(run.pictures()) > before


def test_photos_before_and_after_the_start_come_out_once(service: Callable[..., Service]) -> None:
    """Photos that were there and photos that come later each give one picture, and a restart draws nothing again."""
    run = service()
    photo(run.inbox / "before.jpg", 1)
    run.start()
    photo(run.inbox / "sub" / "after.png", 2)
    assert run.wait_outcomes(2) == {"before.jpg": "done", "after.png": "done"}
    assert run.pictures() == ["before.cel.jpg", "sub/after.cel.png"]
    assert (run.inbox / "before.jpg").exists()
    assert run.stop() == -signal.SIGTERM
    run.start()
    photo(run.inbox / "third.jpg", 3)
    assert run.wait_outcomes(1) == {"third.jpg": "done"}
    assert run.status()["totals"]["done"] == 3


def test_a_killed_busy_worker_costs_a_retry(service: Callable[..., Service]) -> None:
    """Kill -9 of a worker while it draws: its photos are drawn by another, and no other photo is disturbed."""
    run = service(inbox_keys="max_edge: 512", top_keys="workers: {count: 1}")
    run.start()
    for number in range(4):
        photo(run.inbox / f"{number}.jpg", number, (900, 700))
    run.until(lambda: any(w["state"] == "busy" for w in run.status()["workers"]), "a busy worker")
    run.workers()[0].kill()
    assert set(run.wait_outcomes(4).values()) == {"done"}
    assert run.events("worker.died")
    assert len(run.pictures()) == 4


def test_a_killed_idle_worker_is_replaced(service: Callable[..., Service]) -> None:
    """Kill -9 of an idle worker: another takes its place and the next photo comes out."""
    run = service(top_keys="workers: {count: 1}")
    run.start()
    run.workers()[0].kill()
    run.until(lambda: run.events("worker.died"), "worker.died")
    photo(run.inbox / "a.jpg")
    assert run.wait_outcomes(1) == {"a.jpg": "done"}


def test_a_killed_daemon_leaves_no_process_and_loses_nothing(service: Callable[..., Service]) -> None:
    """Kill -9 of the daemon mid-batch: its workers go too, and after a restart each photo has exactly one picture."""
    run = service(inbox_keys="max_edge: 128")
    for number in range(24):
        photo(run.inbox / f"{number}.jpg", number, (200, 150))
    for _ in range(3):
        run.start()
        before = len(run.pictures())
        run.until(partial(more_pictures, run, before), "a picture")
        workers = run.workers()
        run.kill()
        _gone, alive = psutil.wait_procs(workers, timeout=10)
        assert not alive
    run.start()
    run.until(lambda: run.status()["totals"]["done"] == 24, "24 photos done")
    assert run.pictures() == sorted(f"{number}.cel.jpg" for number in range(24))
    assert all(whole(run.outbox / name) for name in run.pictures())


def test_term_mid_batch_finishes_what_is_running(service: Callable[..., Service]) -> None:
    """TERM mid-batch: the service ends by that signal with no partial picture, and a restart draws the rest."""
    run = service(inbox_keys="max_edge: 256")
    for number in range(12):
        photo(run.inbox / f"{number}.jpg", number, (400, 300))
    run.start()
    run.until(run.pictures, "a picture")
    assert run.stop() == -signal.SIGTERM
    assert [row["event"] for row in run.events()][-1] == "daemon.stopped"
    assert all(whole(run.outbox / name) for name in run.pictures())
    run.start()
    run.until(lambda: run.status()["totals"]["done"] == 12, "12 photos done")
    assert len(run.pictures()) == 12


def test_bursts_of_every_kind_of_writer(service: Callable[..., Service]) -> None:
    """200 photos by slow writers, renames, hard links and moved folders: 200 pictures, none twice, none partial."""
    run = service(inbox_keys="max_edge: 64\nrescan_interval: 5s")
    run.start()
    outside = run.root / "outside"
    data = [photo(outside / f"{number}.jpg", number, (48, 40)).read_bytes() for number in range(200)]
    for burst in range(5):
        numbers = range(burst * 40, burst * 40 + 40)
        folder = outside / f"folder{burst}"
        folder.mkdir()
        slow = [((run.inbox / f"{n}.jpg").open("wb", buffering=0), data[n]) for n in numbers[:10]]
        for part in range(4):
            for handle, content in slow:
                size = len(content) // 4 + 1
                handle.write(content[part * size : (part + 1) * size])
            time.sleep(0.05)
        for handle, _content in slow:
            handle.close()
        for n in numbers[10:20]:
            temp = run.inbox / f".{n}.jpg.Xa3dE9"
            temp.write_bytes(data[n])
            temp.rename(run.inbox / f"{n}.jpg")
        for n in numbers[20:30]:
            os.link(outside / f"{n}.jpg", run.inbox / f"{n}.jpg")
        for n in numbers[30:40]:
            shutil.move(outside / f"{n}.jpg", folder / f"{n}.jpg")
        folder.rename(run.inbox / f"folder{burst}")
    outcomes = run.wait_outcomes(200, 150)
    assert set(outcomes.values()) == {"done"}
    assert len(outcomes) == len(run.events("file.done")) == len(run.pictures()) == 200
    assert all(whole(run.outbox / name) for name in run.pictures())


def test_bad_input_ends_with_its_reason_and_disturbs_nothing(service: Callable[..., Service]) -> None:
    """Each kind of bad input ends with the reason or event of the log contract, and good photos come out."""
    run = service(
        inbox_keys="stable_max: 2s\nrescan_interval: 2s",
        top_keys="retry: {attempts: 2, delay: 1s}",
        prefix=WITHOUT_OVERRIDE,
    )
    good = photo(run.inbox / "good.jpg", 1).read_bytes()
    (run.inbox / "cut.jpg").write_bytes(good[: len(good) // 2])
    (run.inbox / "text.jpg").write_text("this is no picture\n")
    (run.inbox / "nothing.jpg").touch()
    huge_header(run.inbox / "huge.png")
    os.mkfifo(run.inbox / "pipe.jpg")
    (run.inbox / "dangling.jpg").symlink_to("nowhere.jpg")
    (run.inbox / "link.jpg").symlink_to("good.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(run.inbox / "socket.jpg"))
    (run.inbox / "secret.jpg").write_bytes(good + b"1")
    (run.inbox / "secret.jpg").chmod(0)
    photo(run.inbox / "new\nline.jpg", 2)
    (run.inbox / os.fsdecode(b"latin-\xe9.jpg")).write_bytes(photo(run.root / "x.jpg", 3).read_bytes())
    run.start()
    outcomes = run.wait_outcomes(8)
    assert outcomes == {
        "good.jpg": "done",
        "cut.jpg": "truncated",
        "text.jpg": "not_an_image",
        "nothing.jpg": "empty",
        "huge.png": "too_large",
        "secret.jpg": "unreadable",
        "new\nline.jpg": "done",
        "latin-\\xe9.jpg": "done",
    }
    rules = {os.path.basename(row["path"]): row["rule"] for row in run.events("file.ignored")}
    assert rules == {"pipe.jpg": "fifo", "dangling.jpg": "symlink", "link.jpg": "symlink", "socket.jpg": "socket"}
    odd = next(row for row in run.events("file.done") if "path_b64" in row)
    assert odd["path"].endswith("latin-\\xe9.jpg")
    assert len(run.pictures()) == 3
    assert "Traceback" not in run.log.read_text() + run.errors.read_text()


def test_an_unreadable_photo_is_tried_again_when_its_rights_change(service: Callable[..., Service]) -> None:
    """A photo that failed for want of rights comes out after a chmod, without a restart."""
    run = service(top_keys="retry: {attempts: 1}", inbox_keys="rescan_interval: 1s", prefix=WITHOUT_OVERRIDE)
    photo(run.inbox / "a.jpg").chmod(0)
    run.start()
    assert run.wait_outcomes(1) == {"a.jpg": "unreadable"}
    (run.inbox / "a.jpg").chmod(0o644)
    run.until(lambda: run.pictures() == ["a.cel.jpg"], "the picture")


def test_equal_bytes_share_a_picture(service: Callable[..., Service]) -> None:
    """The same bytes under other names are drawn once and get pictures of their own names; `path` draws each."""
    run = service()
    first = photo(run.inbox / "a.jpg")
    shutil.copy(first, run.inbox / "b.jpg")
    run.start()
    assert sorted(run.wait_outcomes(2).values()) == ["done", "duplicate"]
    shutil.copy(first, run.inbox / "c.jpg")
    run.wait_outcomes(3)
    assert run.pictures() == ["a.cel.jpg", "b.cel.jpg", "c.cel.jpg"]
    row = run.events("file.duplicate")[-1]
    assert (row["output"], os.path.basename(row["path"])) == (str(run.outbox / "c.cel.jpg"), "c.jpg")
    assert row["of"] in {str(run.outbox / name) for name in ("a.cel.jpg", "b.cel.jpg")}


def test_new_bytes_under_a_known_name_are_a_new_photo(service: Callable[..., Service]) -> None:
    """New bytes under an old name give a second picture; new times alone give nothing."""
    run = service()
    name = photo(run.inbox / "a.jpg", 1)
    run.start()
    run.wait_outcomes(1)
    os.utime(name, (1, 1))
    photo(run.inbox / "marker.jpg", 2)
    run.wait_outcomes(2)
    photo(name, 3)
    run.until(lambda: len(run.events("file.done")) == 3, "the third picture")
    assert run.pictures() == ["a.cel-2.jpg", "a.cel.jpg", "marker.cel.jpg"]


@pytest.mark.parametrize("policy", ["move", "delete"])
def test_originals_go_only_after_their_picture_is_there(service: Callable[..., Service], policy: str) -> None:
    """With `move` and `delete` an original leaves after its picture is durable; a failed photo stays."""
    run = service(inbox_keys=f"originals: {policy}")
    photo(run.inbox / "sub" / "a.jpg")
    (run.inbox / "bad.jpg").write_text("no picture")
    run.start()
    run.wait_outcomes(2)
    run.until(lambda: not (run.inbox / "sub" / "a.jpg").exists(), "the original's leaving")
    run.stop()
    assert (run.outbox / "sub" / "a.cel.jpg").exists()
    assert (run.root / "phone-processed" / "sub" / "a.jpg").exists() == (policy == "move")
    assert [p.name for p in run.inbox.rglob("*") if p.is_file()] == ["bad.jpg"]


@pytest.mark.parametrize("policy", ["move", "copy"])
def test_failed_photos_go_to_their_folder_with_a_reason(service: Callable[..., Service], policy: str) -> None:
    """With `move` and `copy` a failed photo stands in the failed folder beside a file that says why."""
    run = service(inbox_keys=f"failed: {policy}")
    (run.inbox / "bad.jpg").write_text("no picture")
    run.start()
    run.wait_outcomes(1)
    failed = run.root / "phone-failed"
    run.until(lambda: (failed / "bad.jpg.error.json").exists() and (failed / "bad.jpg").exists(), "the failed photo")
    run.stop()
    assert json.loads((failed / "bad.jpg.error.json").read_text())["reason"] == "not_an_image"
    assert (run.inbox / "bad.jpg").exists() == (policy == "copy")


def test_a_missing_inbox_is_a_state(service: Callable[..., Service]) -> None:
    """A missing inbox is `unavailable`, not an error; when it comes, it is worked through; when it goes, it is told."""
    run = service()
    run.inbox.rmdir()
    run.start()
    assert run.status()["inboxes"][0]["state"] == "unavailable"
    assert run.call("status", "-c", str(run.config), "--check").returncode == 1
    run.inbox.mkdir()
    photo(run.inbox / "a.jpg")
    assert run.wait_outcomes(1) == {"a.jpg": "done"}
    assert run.events("inbox.recovered")
    assert run.call("status", "-c", str(run.config), "--check").returncode == 0


def test_an_output_that_refuses_is_a_state_and_costs_no_attempt(service: Callable[..., Service]) -> None:
    """While the output refuses writing photos wait without an attempt counted, and come out when it takes them."""
    run = service(prefix=WITHOUT_OVERRIDE)
    run.outbox.chmod(0o555)
    photo(run.inbox / "a.jpg")
    run.start()
    run.until(lambda: run.status()["inboxes"][0]["state"] == "degraded", "a degraded inbox")
    assert not run.events("file.failed", "file.retry")
    run.outbox.chmod(0o755)
    assert run.wait_outcomes(1) == {"a.jpg": "done"}
    assert run.events("file.done")[0]["attempt"] == 1


def test_a_polled_inbox_finds_what_no_event_told(service: Callable[..., Service]) -> None:
    """Without any event a photo is found by the next poll."""
    run = service(inbox_keys="watch: poll\npoll_interval: 1s")
    run.start()
    assert run.status()["inboxes"][0]["watch"] == "poll"
    photo(run.inbox / "deep" / "er" / "a.jpg")
    assert run.wait_outcomes(1) == {"a.jpg": "done"}


def test_a_second_instance_is_refused(service: Callable[..., Service]) -> None:
    """One state folder has one service: a second one exits 69 and says who holds it."""
    run = service()
    run.start()
    assert run.process
    second = run.call("run", "-c", str(run.config))
    assert second.returncode == 69
    assert str(run.process.pid) in second.stderr


def test_retry_draws_a_failed_photo_again(service: Callable[..., Service]) -> None:
    """`retry` queues a failed photo of a running service again, and its record goes when it comes out."""
    run = service(top_keys="retry: {attempts: 1}")
    bad = run.inbox / "a.jpg"
    bad.write_text("no picture")
    run.start()
    run.wait_outcomes(1)
    result = run.call("retry", "-c", str(run.config), str(bad))
    assert result.returncode == 0, result.stderr
    run.until(lambda: len(run.events("file.failed")) == 2, "the second failure")
    shutil.copy(photo(run.root / "good.jpg"), bad)
    run.until(run.pictures, "the picture")
    run.until(lambda: json.loads(run.call("failed", "-c", str(run.config), "--json").stdout) == [], "an empty list")


def test_photos_are_drawn_anew_on_request(service: Callable[..., Service]) -> None:
    """`forget` and `retry --outdated` draw finished photos again, through the running service and without one."""
    run = service()
    for number in range(2):
        photo(run.inbox / f"{number}.jpg", number)
    run.start()
    run.wait_outcomes(2)
    said = run.call("forget", str(run.inbox / "0.jpg"), "-c", str(run.config))
    assert (said.returncode, said.stdout) == (0, "1 photo forgotten\n")
    run.until(lambda: "0.cel-2.jpg" in run.pictures(), "a second picture")
    said = run.call("retry", "--outdated", "-c", str(run.config))
    assert (said.returncode, said.stdout.partition(",")[0]) == (0, "0 photos will be drawn again")
    told = json.loads(run.call("check", "--explain", str(run.inbox / "0.jpg"), "--json", "-c", str(run.config)).stdout)
    assert (told["where"], told["outdated"], told["service"]) == ("done", False, True)
    assert told["output"] == str(run.outbox / "0.cel-2.jpg")
    run.stop()
    run.write("quality: 50")
    said = run.call("retry", "--outdated", "-c", str(run.config))
    assert (said.returncode, said.stdout.partition(",")[0]) == (0, "2 photos will be drawn again")
    run.start()
    run.wait_outcomes(2)
    assert run.pictures() == ["0.cel-2.jpg", "0.cel-3.jpg", "0.cel.jpg", "1.cel-2.jpg", "1.cel.jpg"]
    run.stop()
    said = run.call("forget", str(run.inbox), "-c", str(run.config))
    assert (said.returncode, said.stdout) == (0, "2 photos forgotten\n")
