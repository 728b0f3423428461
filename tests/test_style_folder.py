"""`style: from-folder`: the first folder below the inbox names the style."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from daemon_bench import RECIPE
from harness import Service, photo, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.catalog import Catalog, builtin_dir
from animed.commands.capacity import look_at_weights
from animed.commands.verdict import judge
from animed.config import Config, InboxConfig
from animed.daemon.recipes import Recipes, style_named_by
from animed.daemon.setup import setup_of
from animed.daemon.styles import styles_of
from animed.daemon.workforce import wishes_of
from animed.errors import PhotoError, StyleError
from animed.intake.scan import Found
from animed.records import PhotoKey, Reason, WeightsFile
from animed.style.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from daemon_bench import Bench

STYLES = ("cel", "Ink", "wash", "WASH")


def recipes(*names: str) -> Recipes:
    """Return recipes that differ by their style alone."""
    return Recipes({name: replace(RECIPE, style=name) for name in names}, from_folder=True)


def add_style(styles_dir: Path, name: str) -> None:
    """Make a style of the built-in one's weights under another name."""
    styles_dir.mkdir(exist_ok=True)
    builtin = builtin_dir()
    card = (builtin / "cel.yaml").read_text(encoding="utf-8")
    (styles_dir / f"{name}.yaml").write_text(card.replace("name: cel", f"name: {name}"), encoding="utf-8")
    shutil.copy(builtin / "cel.safetensors", styles_dir / f"{name}.safetensors")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Return a configuration of one inbox whose folders name the styles cel and ink."""
    add_style(tmp_path / "styles", "ink")
    (tmp_path / "in").mkdir()
    inbox = InboxConfig(name="phone", path=tmp_path / "in", output=tmp_path / "out", style="from-folder")
    return Config(state_dir=tmp_path / "state", styles_dir=tmp_path / "styles", inboxes=(inbox,))


# Which style a folder names.


@pytest.mark.parametrize(
    ("path", "style"),
    [
        (b"cel/a.jpg", "cel"),
        (b"cel/2024/deep/a.jpg", "cel"),
        (b"CEL/a.jpg", "cel"),
        (b"ink/a.jpg", "Ink"),
        (b"wash/a.jpg", "wash"),
        (b"WASH/a.jpg", "WASH"),
        (b"Wash/a.jpg", None),
        (b"cel", None),
        (b"a.jpg", None),
        (b"2024/cel/a.jpg", None),
        (b"c\xffl/a.jpg", None),
    ],
)
def test_the_first_folder_names_the_style(path: bytes, style: str | None) -> None:
    """As written, or else in any case of letters where that means one style only; deeper folders mean nothing."""
    assert style_named_by(path, STYLES) == style
    recipe = recipes(*STYLES).of(path)
    assert (recipe and recipe.style) == style


@settings(deadline=None, max_examples=100)
@given(folder=st.binary(min_size=1, max_size=6), below=st.binary(min_size=1, max_size=6), names=st.sets(st.text()))
def test_only_a_known_style_is_ever_named(folder: bytes, below: bytes, names: set[str]) -> None:
    """Whatever a folder is called, the answer is one of the styles or none, and an exact name always wins."""
    first = folder.replace(b"/", b"_")
    style = style_named_by(first + b"/" + below, names)
    assert style is None or style in names
    if os.fsdecode(first) in names:
        assert style == os.fsdecode(first)


def test_an_inbox_with_a_style_has_one_recipe_for_all() -> None:
    """Without from-folder the folders mean nothing."""
    one = Recipes({"cel": RECIPE})
    assert one.of(b"a.jpg") is one.of(b"ink/a.jpg") is RECIPE
    assert one.digests == {RECIPE.digest}
    assert len(recipes("cel", "ink").digests) == 2


# What an inbox takes.


def by_folder(bench: Callable[..., Bench], *names: str, **keys: Any) -> Bench:
    run = bench(start=False, **keys)
    set_styles(run, *names)
    run.start()
    return run


def set_styles(run: Bench, *names: str) -> None:
    run.recipes = run.inbox.recipes = recipes(*names)


def test_each_photo_is_drawn_in_the_style_of_its_folder(bench: Callable[..., Bench]) -> None:
    """The output mirrors the folders, the name says the style, and equal bytes in two styles are two pictures."""
    run = by_folder(bench, "cel", "ink")
    run.sight(b"cel/a.jpg")
    run.sight(b"ink/trip/a.jpg")
    run.draw_all()
    assert sorted(run.names()) == ["cel/a.cel.jpg", "ink/trip/a.ink.jpg"]
    assert [line["style"] for line in run.log.events("file.done")] == ["cel", "ink"]
    run.sight(b"ink/b.jpg")
    run.turn()
    assert [name for name, how in run.outcomes() if how == "duplicate"] == ["b.jpg"]
    assert run.is_clean()


@pytest.mark.parametrize("path", [b"a.jpg", b"other/a.jpg"])
def test_a_photo_without_a_style_is_told_once_and_left_alone(bench: Callable[..., Bench], path: bytes) -> None:
    """It is ignored under its own rule, with the styles there are, and taken when one appears."""
    run = by_folder(bench, "cel")
    run.sight(path)
    stat = run.world.stat(path)
    assert stat is not None
    for _ in range(2):
        run.parts.arrivals.found(run.inbox, [Found(path, stat)], run.now)
        run.turn()
    (line,) = run.log.events("file.ignored")
    assert line["rule"] == "style-folder"
    assert line["detail"].endswith("there are: cel")
    assert run.row(path) is None
    assert run.is_clean()
    if b"/" in path:
        set_styles(run, "cel", "other")
        run.inbox.scans.wanted = True
        run.run(3)
        run.draw_all()
        assert run.names() == ["other/a.other.jpg"]


def test_a_finished_photo_stays_finished_when_its_style_goes(bench: Callable[..., Bench]) -> None:
    """What is done is known, and not told of as without a style."""
    run = by_folder(bench, "cel", "ink")
    run.sight(b"ink/a.jpg")
    run.draw_all()
    set_styles(run, "cel")
    run.inbox.scans.wanted = True
    run.run(3)
    assert run.status(b"ink/a.jpg") == "done"
    assert not run.log.events("file.ignored")


# What the configuration comes to.


def test_every_sound_style_can_be_named(config: Config) -> None:
    """A damaged style is left out and holds up nothing; the workers are told of all others, and of how many to keep."""
    add_style(config.styles_dir, "torn")
    (config.styles_dir / "torn.safetensors").write_bytes(b"half of it")
    styles = styles_of(config)
    assert list(styles) == ["cel", "ink"]
    setup = setup_of(config, config.inboxes[0], styles, instance="i", run="r")
    assert list(setup.recipes.by_style) == ["cel", "ink"]
    assert wishes_of(config).styles == config.workers.styles_in_memory
    findings = {finding.subject: finding.level for finding in look_at_weights(config)}
    assert findings == {"cel": "ok", "ink": "ok", "torn": "warn"}


def test_explain_tells_of_a_folder_that_names_no_style(config: Config) -> None:
    """The rule is named, and the styles there are."""
    folder = config.inboxes[0].path / "INK"
    folder.mkdir()
    for name in ("INK/a.jpg", "a.jpg"):
        (config.inboxes[0].path / name).write_bytes(b"photo")
    assert judge(config, b"", PhotoKey("phone", b"INK/a.jpg")).taken
    verdict = judge(config, b"", PhotoKey("phone", b"a.jpg"))
    assert (verdict.taken, verdict.rule) == (False, "style-folder")
    assert "cel, ink" in verdict.why


def test_no_style_can_be_called_from_folder(tmp_path: Path) -> None:
    """The name would have two meanings."""
    add_style(tmp_path / "styles", "from-folder")
    catalog = Catalog.read(styles_dir=tmp_path / "styles")
    assert [style.name for style in catalog.styles] == ["cel"]
    assert [problem.name for problem in catalog.problems] == ["from-folder"]


# What a worker holds.


def shelf(keep: int, gone: set[str] | None = None) -> tuple[Shelf, list[str]]:
    """Return a shelf of four styles, and the list of what it loads."""
    loaded: list[str] = []

    def load(file: WeightsFile) -> Any:
        if file.style in (gone or set()):
            raise StyleError("the weights cannot be read", path=file.path)
        loaded.append(file.style)
        return torch.nn.Identity()

    files = [WeightsFile(name, f"/{name}", "", "half_pixel") for name in "abcd"]
    return Shelf(files, keep=keep, load=load), loaded


def test_a_worker_holds_so_many_networks() -> None:
    """The first ones are there from the start; the one that was not wanted for longest makes room."""
    styles, loaded = shelf(2)
    first: Any = torch.nn.Identity()
    assert styles.fill(first) is first
    assert styles.held == ("b", "a")
    for name in "acbab":
        assert styles.get(name) is not None
        assert len(styles.held) <= 2
    assert loaded == ["b", "c", "b", "a"]
    assert sorted(styles) == list("abcd")
    assert styles.get("unknown") is None


def test_weights_that_went_away_cost_the_photo_a_try() -> None:
    """A style that can no longer be loaded is the photo's failure, and says so; others are drawn."""
    styles, _ = shelf(1, {"c"})
    with pytest.raises(PhotoError, match="cannot be read") as caught:
        styles.get("c")
    assert caught.value.reason == Reason.UNREADABLE
    assert styles.get("b") is not None


# The whole of it.


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    made.close()


@pytest.mark.slow
def test_the_service_draws_every_style_that_folders_name(service: Service) -> None:
    """Two styles and a new one after a restart: real weights, one picture each, in mirrored folders."""
    styles = service.root / "styles"
    add_style(styles, "ink")
    service.write(inbox_keys="style: from-folder", top_keys=f"styles_dir: {styles}\nworkers: {{count: 1}}")
    for name in ("cel/a.jpg", "Ink/b.jpg", "wash/c.jpg", "d.jpg"):
        photo(service.inbox / name, 1)
    service.start()
    assert service.wait_outcomes(2) == {"a.jpg": "done", "b.jpg": "done"}
    service.until(lambda: len(service.events("file.ignored")) == 2, "two photos without a style")
    assert {row["rule"] for row in service.events("file.ignored")} == {"style-folder"}
    service.stop()
    add_style(styles, "wash")
    service.start()
    assert service.wait_outcomes(1) == {"c.jpg": "done"}
    assert service.pictures() == ["Ink/b.ink.jpg", "cel/a.cel.jpg", "wash/c.wash.jpg"]
    assert all(whole(service.outbox / name) for name in service.pictures())
