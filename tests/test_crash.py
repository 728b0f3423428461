"""The crash harness: its checker finds each broken promise, its plan replays, and a short run breaks none."""

from __future__ import annotations

import io
import itertools
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crash import contents
from crash.checker import check
from crash.daemon import jumping
from crash.evidence import Evidence, gather
from crash.ground import Ground, namespace
from crash.plan import KINDS, plan
from crash.service import Life
from crash.settings import EDGES, Settings
from crash.story import Photo, Story
from crash.writers import Writer
from PIL import ExifTags, Image

from animed.config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

TOP = Path(__file__).resolve().parent.parent
SECONDS = 30


class World:
    """A ground, a story and the log of one life, made by hand: a run in which every promise was kept."""

    def __init__(self, above: Path) -> None:
        self.ground = Ground(mounts=False, disk_mib=1, above=above)
        self.story = Story()
        self.life = Life(1, self.ground.logs / "1.jsonl", self.ground.logs / "1.stderr", asked=["TERM"], status=-15)
        self.life.log.touch()
        self.life.errors.touch()
        self.failed: list[tuple[str, str, str]] = []
        self.evidence = Evidence()
        self.dice = random.Random(1)
        self.good = self.bring("phone", "good.jpg")
        self.draw(self.good)
        self.moved = self.bring("moving", "moved.jpg")
        self.draw(self.moved)
        self.original(self.moved).rename(self.ground.processed / "moved.jpg")
        self.bad = self.bring("camera", "bad.jpg", kind="text")
        self.fail(self.bad, "not_an_image")
        self.litter = self.ground.real / "phone" / ".hidden.jpg"
        self.litter.write_bytes(b"litter")
        self.story.litters("phone", ".hidden.jpg", b"litter")

    def bring(self, inbox: str, path: str, *, kind: str = "") -> Photo:
        """Put a photo into an inbox, or what is none; a known name gets new content."""
        photo = self.story.photo(inbox, path)
        mark = f"{inbox} {path} {len(photo.versions)}"
        data, content = contents.bad(self.dice, mark, kind) if kind else contents.good(self.dice, mark, "jpg")
        self.story.complete(photo, content, "brought")
        self.original(photo).write_bytes(data)
        return photo

    def original(self, photo: Photo) -> Path:
        """Return where a photo lies."""
        return self.ground.real / photo.inbox / photo.path

    def picture(self, photo: Photo, number: int = 1) -> Path:
        """Return where a photo's picture is to lie."""
        counter = "" if number == 1 else f"-{number}"
        return self.ground.output(photo.inbox) / f"{photo.path.removesuffix('.jpg')}.cel{counter}.jpg"

    def draw(self, photo: Photo, number: int = 1, *, told: bool = True) -> None:
        """Do as the service would with a good photo: no picture is larger than the smallest edge allows."""
        content = photo.versions[-1].content
        assert content.shape
        longest = max(content.shape)
        scale = min(1.0, EDGES[0] / longest)
        width, height = (int(side * scale + 0.5) for side in content.shape)
        exif = Image.Exif()
        exif[ExifTags.Base.ImageDescription] = content.mark
        out = io.BytesIO()
        Image.new("RGB", (width, height), "red").save(out, "JPEG", exif=exif)
        self.picture(photo, number).write_bytes(out.getvalue())
        if told:
            output = str(self.picture(photo, number))
            self.say("file.done", photo, output=output, out_width=width, out_height=height)

    def fail(self, photo: Photo, reason: str) -> None:
        """Do as the service would with what is no photo."""
        self.failed.append((photo.inbox, photo.path, reason))
        self.say("file.failed", photo, reason=reason, bytes_in=photo.versions[-1].content.size)

    def say(self, event: str, photo: Photo | None = None, level: str = "info", **fields: Any) -> None:
        """Write a log line."""
        where = {} if photo is None else {"inbox": photo.inbox, "path": str(self.original(photo))}
        with self.life.log.open("a") as log:
            log.write(json.dumps({"event": event, "level": level, **where, **fields}) + "\n")

    def rewrite_log(self, change: Callable[[str], str]) -> None:
        """Change what was logged."""
        self.life.log.write_text(change(self.life.log.read_text()))

    def broken(self) -> str:
        """Return what the checker finds."""
        self.evidence = gather(self.ground, [self.life])
        self.evidence.failed = self.failed
        return "\n".join(breach.what for breach in check(self.story, self.evidence))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a world in which nothing is broken."""
    return World(tmp_path)


def test_kept_promises_are_no_breach(world: World) -> None:
    """A run in which everything came out is judged so."""
    assert world.broken() == ""


def without(text: str) -> Callable[[str], str]:
    """Return what takes the lines with some text out of a log."""
    return lambda log: "".join(line for line in log.splitlines(keepends=True) if text not in line)


def lost_picture(world: World) -> None:
    world.picture(world.good).unlink()
    world.rewrite_log(without("good.jpg"))


def told_but_not_there(world: World) -> None:
    world.picture(world.good).unlink()


def second_picture(world: World) -> None:
    world.draw(world.good, 2)


def second_outcome(world: World) -> None:
    world.rewrite_log(lambda log: log + log.splitlines(keepends=True)[0])


def lost_line(world: World) -> None:
    world.rewrite_log(without("good.jpg"))


def lost_failure(world: World) -> None:
    world.rewrite_log(without("bad.jpg"))
    world.failed.clear()


def cut_picture(world: World) -> None:
    data = world.picture(world.good).read_bytes()
    world.picture(world.good).write_bytes(data[: len(data) * 3 // 4])


def wrong_size(world: World) -> None:
    content = world.good.versions[-1].content
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = content.mark
    Image.new("RGB", (200, 10)).save(world.picture(world.good), exif=exif)


def other_ones_content(world: World) -> None:
    world.picture(world.good).write_bytes(world.picture(world.moved).read_bytes())


def changed_original(world: World) -> None:
    world.original(world.good).write_bytes(b"other")


def lost_original(world: World) -> None:
    world.original(world.good).unlink()


def lost_litter(world: World) -> None:
    world.litter.unlink()


def lost_moved_original(world: World) -> None:
    (world.ground.processed / "moved.jpg").unlink()


def changed_moved_original(world: World) -> None:
    (world.ground.processed / "moved.jpg").write_bytes(b"other")


def unmoved_original(world: World) -> None:
    (world.ground.processed / "moved.jpg").rename(world.original(world.moved))


def kept_original(world: World) -> None:
    """Leave a file that nobody touched, and say so: it is to be moved all the same."""
    unmoved_original(world)
    world.say("original.kept", world.moved, level="warning")


def shared_with_another(world: World) -> None:
    """Give a photo the picture of one that does not look like it at all."""
    world.draw(second := world.bring("phone", "second.jpg"))
    world.picture(second).write_bytes(world.picture(world.good).read_bytes())


def wrong_folder(world: World) -> None:
    (world.ground.output("phone") / "elsewhere").mkdir()
    world.picture(world.good).rename(world.ground.output("phone") / "elsewhere" / "good.cel.jpg")


def left_stage(world: World) -> None:
    (world.ground.output("phone") / ".syncthing.animed-1-2.tmp").write_bytes(b"x")


def left_private_name(world: World) -> None:
    (world.ground.real / "moving" / ".animed-1-2.original").write_bytes(b"x")


def left_part(world: World) -> None:
    (world.ground.processed / ".animed-1-2.original.part").write_bytes(b"x")


def taken_litter(world: World) -> None:
    world.say("file.failed", Photo("phone", ".hidden.jpg"), reason="not_an_image", bytes_in=6)


def failed_photo(world: World) -> None:
    world.fail(world.good, "truncated")


def failed_twice(world: World) -> None:
    world.say("file.failed", world.bad, reason="not_an_image", bytes_in=world.bad.versions[-1].content.size)


def failed_for_another_reason(world: World) -> None:
    world.failed[:] = [("camera", "bad.jpg", "unreadable")]


def skipped(world: World) -> None:
    world.say("file.skipped", world.good)


def traceback(world: World) -> None:
    world.say("worker.output", line="Traceback (most recent call last):")


def error_line(world: World) -> None:
    world.say("daemon.broken", level="error")


def torn_line(world: World) -> None:
    world.rewrite_log(lambda log: log + '{"event":\n')


def complaint(world: World) -> None:
    world.life.errors.write_text("Exception ignored in ...")


def own_end(world: World) -> None:
    world.life.asked, world.life.status = [], 1


def final_end_on_a_full_disk(world: World) -> None:
    world.life.asked, world.life.status, world.life.state_full = [], 78, True


def wrong_end(world: World) -> None:
    world.life.status = 1


def hung(world: World) -> None:
    world.life.hung, world.life.status = True, -9


def orphan(world: World) -> None:
    world.life.orphans.append("17 python")


@pytest.mark.parametrize(
    ("breach", "found"),
    [
        (lost_picture, "no outcome: phone/good.jpg"),
        (told_but_not_there, "done without a picture"),
        (second_picture, "2 pictures of 1 version"),
        (second_outcome, "a second outcome for one picture"),
        (lost_line, "1 outcomes have no line"),
        (lost_failure, "no outcome: camera/bad.jpg"),
        (cut_picture, "a picture that is not whole"),
        (wrong_size, "a picture of the wrong size"),
        (other_ones_content, "a content that its photo never had"),
        (changed_original, "a file was changed: phone/good.jpg"),
        (lost_original, "a file was lost: phone/good.jpg"),
        (lost_litter, "a file was lost: phone/.hidden.jpg"),
        (lost_moved_original, "an original was lost: moved.jpg"),
        (changed_moved_original, "a processed file that is no original: moved.jpg"),
        (unmoved_original, "an original was not moved: moved.jpg"),
        (kept_original, "an original was not moved: moved.jpg"),
        (shared_with_another, "a content that its photo never had"),
        (wrong_folder, "a folder that no layout leads to"),
        (left_stage, "no photo's picture"),
        (left_private_name, "a file in an inbox that nobody left there"),
        (left_part, "a processed file that is no original"),
        (taken_litter, "never to be taken"),
        (failed_photo, "stands among the failures"),
        (failed_twice, "failed as not_an_image"),
        (failed_for_another_reason, "no outcome: camera/bad.jpg"),
        (skipped, "skipped: phone/good.jpg"),
        (traceback, "a line that must not be"),
        (error_line, "a line that must not be"),
        (torn_line, "a line that must not be"),
        (complaint, "wrote on stderr"),
        (own_end, "ended with 1, expected None"),
        (final_end_on_a_full_disk, "ended with 78"),
        (wrong_end, "ended with 1, expected -15"),
        (hung, "did not end when it was asked to"),
        (orphan, "outlived by 17 python"),
    ],
)
def test_every_broken_promise_is_found(world: World, breach: Callable[[World], None], found: str) -> None:
    """A checker that cannot fail proves nothing: each breach is made on purpose, and named."""
    breach(world)
    assert found in world.broken()


def test_an_original_that_was_touched_meanwhile_may_be_kept(world: World) -> None:
    """With another time it is not the file that was read; where the log says so it may stay."""
    unmoved_original(world)
    world.story.restat(world.moved, "mtime set")
    assert "an original was not moved" in world.broken()
    world.say("original.kept", world.moved, level="warning")
    assert world.broken() == ""


def test_a_photo_that_was_saved_again_may_have_the_picture_of_the_first(world: World) -> None:
    """Both carry the mark of the first; a picture has the size of one of them, whichever name and folder it has."""
    source = contents.good(world.dice, "scene", "jpg")
    for name, (data, content) in (
        ("one.jpg", source),
        ("two.jpg", contents.resaved(world.dice, source[0], "scene", "jpg")),
    ):
        photo = world.story.photo("phone", name)
        world.story.complete(photo, content, "brought")
        world.original(photo).write_bytes(data)
        world.draw(photo)
    picture, other = (world.picture(Photo("phone", name)) for name in ("one.jpg", "two.jpg"))
    other.write_bytes(picture.read_bytes())
    with Image.open(other) as shared:
        width, height = shared.size
    log = [json.loads(line) for line in world.life.log.read_text().splitlines()]
    log[-1] |= {"event": "file.duplicate", "out_width": width, "out_height": height}
    world.life.log.write_text("".join(json.dumps(line) + "\n" for line in log))
    assert world.broken() == ""


def test_a_disk_that_folds_names_may_list_another_spelling(world: World) -> None:
    """Elsewhere that would be nobody's picture; of two photos it is the one's that had what is drawn."""
    for name in ("Strand.jpg", "STRAND.jpg"):
        world.draw(world.bring("camera", name), 1 if name == "Strand.jpg" else 2)
        picture = world.picture(Photo("camera", name), 1 if name == "Strand.jpg" else 2)
        picture.rename(picture.with_name(picture.name.lower()))
    assert "no photo's picture" in world.broken()
    world.ground.folding = True
    assert world.broken() == ""


@pytest.mark.parametrize("ext", contents.EXTENSIONS)
def test_a_photo_of_every_kind_carries_its_mark(ext: str) -> None:
    """Without it nobody could say whose picture is whose. What can be read here can be saved again, with the mark."""
    data, content = contents.good(random.Random(5), "camera 17", ext)
    assert len(data) == content.size
    if ext != "heic":
        with Image.open(io.BytesIO(contents.resaved(random.Random(5), data, content.mark, ext)[0])) as again:
            again.load()
            assert contents.mark_of(again) == "camera 17"
    assert contents.bad(random.Random(5), "camera 17", "cut", ext)[1].reasons == ("truncated",)


def test_a_reload_without_its_answer_is_found(world: World) -> None:
    """An error line for a configuration that cannot be used is no breach; refusing a good one is."""
    world.say("config.rejected", level="error")
    assert world.broken() == ""
    world.evidence.unanswered = 1
    assert "1 reloads were not answered" in check(world.story, world.evidence)[0].what


def test_a_kill_may_cost_a_line_but_only_one(world: World) -> None:
    """After a kill one outcome may have no line; two may not."""
    world.draw(world.bring("phone", "second.jpg"), told=False)
    world.life.asked, world.life.status = ["KILL"], -9
    assert world.broken() == ""
    world.draw(world.bring("phone", "third.jpg"), told=False)
    assert "2 outcomes have no line, after 1 kills" in world.broken()


def test_a_new_version_may_have_its_own_picture(world: World) -> None:
    """New content under a name is a new photo: it needs a picture, and the earlier one may have had one."""
    world.bring("phone", "good.jpg")
    assert "no outcome" in world.broken()
    world.draw(world.good, 2)
    assert world.broken() == ""


def test_a_replaced_version_needs_no_picture(world: World) -> None:
    """What was replaced before it was drawn is nobody's loss."""
    photo = world.bring("phone", "quick.jpg")
    world.bring("phone", "quick.jpg")
    world.draw(photo)
    assert world.broken() == ""


def test_an_unfinished_file_may_fail(world: World) -> None:
    """A writer that pauses for longer than the service waits may see its half file fail; the whole one is drawn."""
    world.story.unfinished(world.good, 100)
    world.good.present = True
    world.say("file.failed", world.good, reason="truncated", bytes_in=100)
    assert world.broken() == ""
    world.say("file.failed", world.good, reason="unreadable", bytes_in=100)
    assert "failed as unreadable" in world.broken()


def test_a_full_state_folder_may_end_the_service_for_a_while(world: World) -> None:
    """Where the ledger's disk is full, the service may end so that it is started again."""
    world.life.asked, world.life.status, world.life.state_full = [], 1, True
    world.life.errors.write_text("animed: no space left on device")
    assert world.broken() == ""


def test_a_seed_gives_the_same_plan() -> None:
    """Two plans of a seed are equal, those of two seeds are not."""

    def steps(seed: int) -> list[tuple[float, str, float, float]]:
        found = itertools.islice(plan(seed, KINDS), 50)
        return [(step.pause, step.kind, step.hold, step.dice.random()) for step in found]

    assert steps(1) == steps(1)
    assert steps(1) != steps(2)


def test_every_configuration_that_a_run_may_have_is_one(tmp_path: Path) -> None:
    """A run whose service refuses its configuration would prove nothing."""
    ground = Ground(mounts=False, disk_mib=1, above=tmp_path)
    dice = random.Random(1)
    found: set[tuple[str, ...]] = set()
    for _ in range(60):
        ground.config.write_text(Settings.drawn(dice).text(ground))
        inboxes = load(ground.config, environ={"HOME": str(tmp_path)}, cwd=tmp_path).inboxes
        found.update((inbox.dedupe, inbox.layout, inbox.output_name, inbox.output_format) for inbox in inboxes)
    assert [len(set(values)) for values in zip(*found, strict=True)] == [3, 3, 4, 5]


def test_a_seed_gives_the_same_photos(tmp_path: Path) -> None:
    """Two writers of a seed do the same, to the last byte, whatever else goes on; files are as the story tells."""
    stories = []
    for number in range(2):
        folders = [tmp_path / str(number) / name for name in ("inbox", "outside")]
        for folder in folders:
            folder.mkdir(parents=True)
        story = Story()
        writer = Writer("phone", folders[0], folders[1], seed=7, story=story, in_place=True)
        writer.stop()  # so that it waits for nothing
        for _ in range(60):
            writer.act()
        for key, photo in story.photos.items():
            assert (photo.last is None) == (not (folders[0] / key[1]).exists())
        stories.append({key: [v.content for v in photo.versions] for key, photo in story.photos.items()})
    assert stories[0] == stories[1]
    assert len(stories[0]) > 30


def test_the_clock_jumps(tmp_path: Path) -> None:
    """The wall clock of the service under test is off by what a file says at that moment."""
    file = tmp_path / "clock"
    file.write_text("-3600")
    clock = jumping(file, lambda: 10_000.0)
    assert clock() == 6_400.0
    file.write_text("60")
    assert clock() == 10_060.0
    file.write_text("")
    assert clock() == 10_000.0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_short_run_breaks_no_promise(tmp_path: Path) -> None:
    """Half a minute of writers and faults against the real service: every promise is kept, and nothing stays behind."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.crash", "--seconds", str(SECONDS), "--seed", "3"],
        cwd=TOP, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr
    assert run.stdout.endswith("no promise broken\n")
    drawn = re.search(r"^pictures: ([0-9]+)", run.stdout, re.MULTILINE)
    assert drawn
    assert int(drawn[1]) > 0
    assert list(tmp_path.iterdir()) == []
    if namespace() is None:
        # Everything that could be done was done, but for what needs these rights.
        assert "left out: fill_output" in run.stdout
        pytest.skip("no right to mount: disks did not fill, and no inbox was unmounted; the rest was well")
