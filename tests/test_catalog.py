"""The catalog of styles: cards, digests, names that clash, and styles that are broken."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from animed.catalog import Card, Catalog, Style, builtin_dir, read_card, sha256, verify
from animed.errors import StyleError

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = b"weights of a style, or so"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def write_style(folder: Path, stem: str, content: bytes = CONTENT, **changes: str) -> Path:
    """Write a style with a card; `changes` replace lines of the card."""
    fields = {
        "name": stem,
        "title": "A title",
        "architecture": "animeganv2",
        "upsampling": "half_pixel",
        "preferred_edge": "512",
        "licence": "MIT",
        "source": "made here",
        "sha256": hashlib.sha256(content).hexdigest(),
        **changes,
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{stem}.safetensors").write_bytes(content)
    card = folder / f"{stem}.yaml"
    card.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    return card


@pytest.fixture
def builtin(tmp_path: Path) -> Path:
    """Return a folder of built-in styles with the style cel."""
    write_style(tmp_path / "builtin", "cel")
    return tmp_path / "builtin"


def test_the_style_that_ships_is_what_its_card_says() -> None:
    """The built-in style cel is found, and its weights have the digest of the card."""
    catalog = Catalog.read()
    style = catalog.get("cel")
    catalog.verify(style)
    assert catalog.problems == ()
    assert style.builtin
    assert style.weights == builtin_dir() / "cel.safetensors"


def test_what_a_worker_gets() -> None:
    """The weights file of a style carries its name, path, digest and upsampling."""
    style = Catalog.read().get("cel")
    found = style.weights_file
    assert (found.style, found.path, found.sha256) == ("cel", str(style.weights), style.card.sha256)
    assert found.upsampling == "half_pixel"


def test_built_in_styles_come_first_and_own_ones_after(builtin: Path, tmp_path: Path) -> None:
    """Styles are in the order of names within each folder, the built-in ones first."""
    write_style(tmp_path / "own", "zebra")
    write_style(tmp_path / "own", "apple")
    catalog = Catalog.read(builtin, tmp_path / "own")
    assert [(style.name, style.builtin) for style in catalog.styles] == [
        ("cel", True),
        ("apple", False),
        ("zebra", False),
    ]


def test_a_folder_of_own_styles_need_not_exist(builtin: Path, tmp_path: Path) -> None:
    """A missing folder of own styles is no problem."""
    assert Catalog.read(builtin, tmp_path / "none").problems == ()


def test_a_folder_that_is_none_is_a_problem(builtin: Path, tmp_path: Path) -> None:
    """A file in place of the folder of own styles is told, and hides no built-in style."""
    (tmp_path / "own").write_text("")
    catalog = Catalog.read(builtin, tmp_path / "own")
    assert [style.name for style in catalog.styles] == ["cel"]
    assert "Not a directory" in str(catalog.problems[0])


def test_missing_built_in_styles_are_a_problem(tmp_path: Path) -> None:
    """A folder of built-in styles that is not there is told."""
    assert "No such file" in str(Catalog.read(tmp_path / "none").problems[0])


def test_another_style_under_a_built_in_name_is_refused(builtin: Path, tmp_path: Path) -> None:
    """Neither of two different styles of one name is used: asking for it says what to do."""
    write_style(tmp_path / "own", "cel", b"quite other weights")
    catalog = Catalog.read(builtin, tmp_path / "own")
    assert catalog.styles == ()
    with pytest.raises(StyleError, match="name of a built-in style"):
        catalog.get("cel")


def test_a_copy_of_a_built_in_style_is_harmless(builtin: Path, tmp_path: Path) -> None:
    """The same weights under the same name are the built-in style."""
    write_style(tmp_path / "own", "cel")
    catalog = Catalog.read(builtin, tmp_path / "own")
    assert catalog.problems == ()
    assert [style.builtin for style in catalog.styles] == [True]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"architecture": "animegan3"}, "architecture"),
        ({"upsampling": "nearest"}, "upsampling"),
        ({"preferred_edge": "63"}, "preferred_edge"),
        ({"preferred_edge": "wide"}, "preferred_edge"),
        ({"sha256": "abc"}, "sha256"),
        ({"sha256": f'"{DIGEST}\\n"'}, "sha256"),
        ({"licence": '""'}, "licence"),
        ({"colour": "red"}, "colour"),
        ({"name": "other"}, "but the file is mine.yaml"),
        ({"name": "../mine"}, "name"),
        ({"title": "[a, b]"}, "plain values only"),
        ({"title": "a\ntitle: b"}, "line 3: title stands twice"),
        ({"title": "a: b: c"}, "not YAML"),
        ({"title": "a\n\tb: c"}, "not YAML"),
    ],
)
def test_a_broken_card_hides_no_other_style(builtin: Path, tmp_path: Path, changes: dict[str, str], word: str) -> None:
    """A card with a fault is kept as a problem that names the fault; other styles stay, and asking for it tells why."""
    write_style(tmp_path / "own", "mine", CONTENT, **changes)
    write_style(tmp_path / "own", "good")
    catalog = Catalog.read(builtin, tmp_path / "own")
    assert [style.name for style in catalog.styles] == ["cel", "good"]
    assert word in str(catalog.problems[0])
    with pytest.raises(StyleError) as caught:
        catalog.get("mine")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "a card is a mapping"),
        (b"- a", "a card is a mapping"),
        (b"\xff\xfe\xfd", "UTF-8"),
        (b"[" * 60_000, "YAML in UTF-8"),
        (b"#" * 70_000, "64 KiB"),
        (b"name: a", "title: Field required"),
    ],
)
def test_what_is_no_card(tmp_path: Path, raw: bytes, word: str) -> None:
    """Anything that is not a card raises StyleError with the path and the reason."""
    path = tmp_path / "bad.yaml"
    path.write_bytes(raw)
    with pytest.raises(StyleError) as caught:
        read_card(path)
    assert word in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_card_that_cannot_be_read_is_a_style_error(tmp_path: Path) -> None:
    """A card that is a folder, or not there, raises StyleError."""
    for path in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(StyleError, match="cannot be read"):
            read_card(path)


def test_values_of_a_card_come_out_as_written(tmp_path: Path) -> None:
    """Words that YAML would take for something else stay text, and a digest of digits stays a digest."""
    card = read_card(write_style(tmp_path / "own", "no", title="yes", licence="1.0", sha256="1" * 64))
    assert (card.name, card.title, card.licence, card.sha256) == ("no", "yes", "1.0", "1" * 64)


def test_a_card_without_weights_is_a_problem(tmp_path: Path, builtin: Path) -> None:
    """A card alone is told, with the file that is missing."""
    write_style(tmp_path / "own", "mine")
    (tmp_path / "own" / "mine.safetensors").unlink()
    assert "mine.safetensors is missing" in str(Catalog.read(builtin, tmp_path / "own").problems[0])


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".bin", ".pkl"])
def test_a_file_that_could_run_programs_is_named(tmp_path: Path, builtin: Path, suffix: str) -> None:
    """A card beside a pickle tells that such files are not loaded."""
    write_style(tmp_path / "own", "mine")
    (tmp_path / "own" / "mine.safetensors").rename(tmp_path / "own" / f"mine{suffix}")
    assert f"mine{suffix} is not loaded" in str(Catalog.read(builtin, tmp_path / "own").problems[0])


def test_weights_without_a_card_are_a_problem(tmp_path: Path, builtin: Path) -> None:
    """Weights alone are told, with the way to make a style of them; hidden files are left alone."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.safetensors").write_bytes(CONTENT)
    (tmp_path / "own" / ".hidden.safetensors").write_bytes(CONTENT)
    (tmp_path / "own" / ".hidden.yaml").write_text("-")
    problems = Catalog.read(builtin, tmp_path / "own").problems
    assert [(problem.name, "animed styles import" in problem.text) for problem in problems] == [("mine", True)]


def test_an_unknown_name_gets_the_nearest_ones(builtin: Path, tmp_path: Path) -> None:
    """Asking for an unknown style tells the nearest names, or all of them if none is near."""
    catalog = Catalog.read(builtin)
    with pytest.raises(StyleError, match="did you mean cel"):
        catalog.get("cell")
    with pytest.raises(StyleError, match="there are: cel"):
        catalog.get("watercolour")
    with pytest.raises(StyleError, match="there are: none"):
        Catalog.read(tmp_path).get("cel")


def style_of(path: Path, digest: str = DIGEST) -> Style:
    """Return a style whose weights are at a path."""
    fields: dict[str, Any] = {"upsampling": "half_pixel", "preferred_edge": 512, "licence": "MIT", "source": "here"}
    card = Card(name="mine", title="t", architecture="animeganv2", sha256=digest, **fields)
    return Style(card, path, builtin=False)


def test_verify_finds_every_fault_of_weights(tmp_path: Path) -> None:
    """Weights that are missing, no file, too small, unsafe, or not of the digest raise StyleError with their path."""
    good = tmp_path / "good.safetensors"
    good.write_bytes(CONTENT)
    verify(style_of(good))
    (tmp_path / "folder.safetensors").mkdir()
    (tmp_path / "small.safetensors").write_bytes(b"12345678")
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "mine.pt").write_bytes(CONTENT)
    faults = {
        "none.safetensors": "cannot be read",
        "folder.safetensors": "not a regular file",
        "pipe.safetensors": "not a regular file",
        "small.safetensors": "8 bytes",
        "mine.pt": "only .safetensors",
    }
    for name, word in faults.items():
        with pytest.raises(StyleError, match=word) as caught:
            verify(style_of(tmp_path / name))
        assert name in str(caught.value)
    with pytest.raises(StyleError, match="but the card says"):
        verify(style_of(good, "0" * 64))


def test_huge_weights_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """A file far larger than any style is refused by its size alone."""
    path = tmp_path / "mine.safetensors"
    with open(path, "wb") as stream:
        stream.truncate(2**30 + 1)
    with pytest.raises(StyleError, match="which no style has"):
        verify(style_of(path))


def test_a_digest_is_that_of_the_whole_file(tmp_path: Path) -> None:
    """Reading in chunks gives the digest of the whole, also across the border of a chunk."""
    content = b"x" * (2**20) + b"y"
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_the_catalog_loads_no_network_library() -> None:
    """Reading the catalog imports neither torch nor safetensors nor an image library."""
    code = (
        "import sys; from animed.catalog import Catalog; Catalog.read(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'torchvision', 'safetensors', 'PIL')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
