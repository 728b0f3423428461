"""The styles there are: a card (NAME.yaml) beside its weights (NAME.safetensors), built in or the user's own.

Reads cards and digests only; the weights themselves are opened where they are drawn with.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from animed import regular
from animed.errors import StyleError
from animed.records import Upsampling, WeightsFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RESERVED: Final = "from-folder"
SUFFIX: Final = ".safetensors"
_UNSAFE: Final = frozenset({".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle"})
_CHUNK: Final = 2**20
_MOST_CARD: Final = 2**16  # bytes
_LEAST_WEIGHTS: Final = 8  # bytes: the length of the header alone
_MOST_WEIGHTS: Final = 2**30  # bytes: the network has 2 million numbers
_REMEDY: Final = "`animed styles import` makes a style of a file"

Text = Annotated[str, Field(min_length=1)]


class Card(BaseModel):
    """What the weights of a style are, and how they want to be used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\z")
    title: Text
    architecture: Literal["animeganv2"]
    upsampling: Upsampling
    preferred_edge: int = Field(ge=64)  # pixels
    licence: Text
    source: Text
    sha256: str = Field(pattern=r"\A[0-9a-f]{64}\z")

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, name: str) -> str:
        """Refuse the word that, in the configuration, lets folders name the style."""
        if name == RESERVED:
            raise ValueError(f"{RESERVED} cannot be the name of a style")
        return name


@dataclass(frozen=True, slots=True)
class Style:
    """A card with the file that it speaks of."""

    card: Card
    weights: Path
    builtin: bool

    @property
    def name(self) -> str:
        """Return the name that the configuration uses."""
        return self.card.name

    @property
    def weights_file(self) -> WeightsFile:
        """Return what a worker needs to load this style."""
        return WeightsFile(self.card.name, str(self.weights), self.card.sha256, self.card.upsampling)


@dataclass(frozen=True, slots=True)
class CardProblem:
    """A style that cannot be used, and why."""

    name: str
    path: Path
    text: str

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.path}: {self.text}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The styles that can be named, in order of name with the built-in ones first, and those that are broken."""

    styles: tuple[Style, ...]
    problems: tuple[CardProblem, ...]

    @classmethod
    def read(cls, builtin: Path | None = None, styles_dir: Path | None = None) -> Catalog:
        """Read every card of both folders; `builtin` None finds the styles that ship. A broken card hides no other.

        A user's style may not take the name of a built-in one, unless it is the same file.
        """
        shipped, problems = _folder(builtin or builtin_dir(), builtin=True)
        own, more = _folder(styles_dir, builtin=False) if styles_dir else ([], [])
        digests = {style.name: style.card.sha256 for style in shipped}
        taken = [one for one in own if digests.get(one.name, one.card.sha256) != one.card.sha256]
        text = "has the name of a built-in style, but other weights (rename the card, its `name` and the weights)"
        problems += more + [CardProblem(one.name, one.weights.with_suffix(".yaml"), text) for one in taken]
        contested = {one.name for one in taken}
        styles = [one for one in shipped if one.name not in contested]
        styles += [one for one in own if one.name not in digests]
        return cls(tuple(styles), tuple(problems))

    def knows(self, name: str) -> bool:
        """Say whether a style, sound or broken, has this name."""
        return any(style.name == name for style in self.styles) or any(one.name == name for one in self.problems)

    def get(self, name: str) -> Style:
        """Return a style by name; StyleError says why it cannot be used, or which names are near."""
        for style in self.styles:
            if style.name == name:
                return style
        for problem in self.problems:
            if problem.name == name:
                raise StyleError(f"style {name}: {problem.text}", path=str(problem.path))
        names = [style.name for style in self.styles]
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(names) or 'none'}"
        raise StyleError(f"no style {name!r}", remedy=hint)

    def verify(self, style: Style) -> None:
        """Read the weights in full; StyleError if they are not there, not safe to load, or not what the card says."""
        verify(style)


def verify(style: Style) -> None:
    """Check the file of one style against its card; StyleError says what is wrong."""
    path = style.weights
    if path.suffix != SUFFIX:
        raise StyleError(f"only {SUFFIX} files are loaded: others can run programs", remedy=_REMEDY, path=str(path))
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise StyleError("is not a regular file", path=str(path))
        if not _LEAST_WEIGHTS < found.st_size <= _MOST_WEIGHTS:
            raise StyleError(f"has a size of {found.st_size} bytes, which no style has", path=str(path))
        digest = sha256(path)
    except OSError as error:
        raise StyleError(f"the weights cannot be read: {error.strerror}", path=str(path)) from error
    if digest != style.card.sha256:
        raise StyleError(f"sha256 is {digest}, but the card says {style.card.sha256}", remedy=_REMEDY, path=str(path))


def sha256(path: Path) -> str:
    """Return the hex digest of a file, read in chunks; OSError as the file system says."""
    digest = hashlib.sha256()
    with regular.opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def builtin_dir() -> Path:
    """Return the folder of the styles that ship: in an installed package, or at the top of a checkout."""
    package = Path(__file__).parent
    for place in (package / "weights", package.parent / "weights"):
        if place.is_dir():
            return place
    raise StyleError("the built-in styles are missing from this installation", remedy="install animed again")


def read_card(path: Path) -> Card:
    """Return the card in a file; StyleError says what is wrong with it."""
    try:
        raw = regular.read(path, _MOST_CARD + 1)
    except OSError as error:
        raise StyleError(f"the card cannot be read: {error.strerror}", path=str(path)) from error
    if len(raw) > _MOST_CARD:
        raise StyleError("the card is larger than 64 KiB", path=str(path))
    try:
        return Card.model_validate(_mapping(raw))
    except yaml.YAMLError as error:
        raise StyleError(f"the card is not YAML: {' '.join(str(error).split())}", path=str(path)) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise StyleError("the card is not YAML in UTF-8", path=str(path)) from error
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors(include_url=False))
        raise StyleError(f"the card is wrong: {faults}", path=str(path)) from error


def _mapping(raw: bytes) -> dict[str, str]:
    """Return the flat mapping of a card, where every value is text as written and each key stands once."""
    root = yaml.compose(raw.decode("utf-8-sig"), yaml.BaseLoader)
    if not isinstance(root, yaml.MappingNode):
        raise yaml.YAMLError("a card is a mapping")
    found: dict[str, str] = {}
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
            raise yaml.YAMLError(f"line {key.start_mark.line + 1}: a card holds plain values only")
        if key.value in found:
            raise yaml.YAMLError(f"line {key.start_mark.line + 1}: {key.value} stands twice")
        found[key.value] = value.value
    return found


def _folder(folder: Path, *, builtin: bool) -> tuple[list[Style], list[CardProblem]]:
    """Read the styles of one folder; a user's folder need not exist."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError as error:
        wanted = builtin or os.path.islink(folder)  # a link says that there should be something
        return [], [CardProblem("", folder, f"cannot be read: {error.strerror}")] if wanted else []
    except OSError as error:
        return [], [CardProblem("", folder, f"cannot be read: {error.strerror}")]
    styles: list[Style] = []
    problems = list(_lonely(folder, names))
    for name in (name for name in names if name.endswith(".yaml") and not name.startswith(".")):
        try:
            styles.append(_style(folder / name, builtin=builtin))
        except StyleError as error:
            text = f"{error.title} ({error.remedy})" if error.remedy else error.title
            problems.append(CardProblem(Path(name).stem, folder / name, text))
    return styles, problems


def _style(path: Path, *, builtin: bool) -> Style:
    """Return the style of one card; StyleError if the card is wrong or stands alone."""
    card = read_card(path)
    if card.name != path.stem:
        raise StyleError(f"the card says name: {card.name}, but the file is {path.name}", remedy="make them equal")
    weights = path.with_name(f"{card.name}{SUFFIX}")
    if not weights.exists():
        unsafe = [suffix for suffix in sorted(_UNSAFE) if path.with_name(f"{card.name}{suffix}").exists()]
        found = f"; {card.name}{unsafe[0]} is not loaded, because it could run programs" if unsafe else ""
        raise StyleError(f"{weights.name} is missing{found}", remedy=_REMEDY)
    return Style(card, weights, builtin)


def _lonely(folder: Path, names: Iterable[str]) -> Iterator[CardProblem]:
    """Yield weights without a card."""
    there = frozenset(names)
    for name in sorted(there):
        stem, suffix = os.path.splitext(name)
        if suffix in {SUFFIX, *_UNSAFE} and not name.startswith(".") and f"{stem}.yaml" not in there:
            yield CardProblem(stem, folder / name, f"has no card {stem}.yaml ({_REMEDY})")
