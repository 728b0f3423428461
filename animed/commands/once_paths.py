"""`animed once PATH...`: draws these photos, beside each or into a folder, without configuration, lock or ledger."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from animed import config
from animed.catalog import Catalog
from animed.commands.output import duration, note, say, shown
from animed.commands.progress import Bar
from animed.config import Config, InboxConfig, locate
from animed.daemon.errands import Drawn, Errand, Errands
from animed.daemon.parts import plan_of, spec_of
from animed.daemon.recipes import recipe_of
from animed.delivery.publish import prepare_output
from animed.engine.pool import Pool
from animed.errors import EXIT_OK, EXIT_SOME_FAILED, AnimedError, OutputError, PlaceError
from animed.intake.rules import Rules
from animed.intake.scan import Found, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def run(config_file: Path | None, paths: Sequence[Path], output: Path | None, style: str | None) -> int:
    """Draw, say what came of each photo, and return the exit status; raises StyleError, WorkersError, OutputError."""
    settings = _settings(config_file, paths, output, style)
    chosen = Catalog.read(styles_dir=settings.styles_dir).get(settings.inboxes[0].style)
    errands = [errand for inbox, path in zip(settings.inboxes, paths, strict=True) for errand in _find(inbox, path)]
    if output is not None:
        _make(output)
    plan = plan_of(settings)
    pool = Pool(plan, spec_of(settings, (chosen.weights_file,), plan))
    work = Errands(pool, lambda inbox: recipe_of(inbox, chosen), secrets.token_hex(4))
    return _draw(work, errands)


def _settings(config_file: Path | None, paths: Sequence[Path], output: Path | None, style: str | None) -> Config:
    """Return a configuration with one inbox-like entry for each path; a file gives the rest, but only if named."""
    base = None if config_file is None else config.load(config_file, environ=os.environ, cwd=Path.cwd())
    entries = tuple(_entry(number, path, output, style) for number, path in enumerate(paths))
    if base is not None:
        return base.model_copy(update={"inboxes": entries})
    styles_dir = Path(os.path.expanduser(locate.styles_dir(os.environ)))
    return Config(state_dir=Path(os.devnull), styles_dir=styles_dir, inboxes=entries)


def _entry(number: int, path: Path, output: Path | None, style: str | None) -> InboxConfig:
    real = Path(os.path.realpath(path))
    folder = real if real.is_dir() else real.parent
    return InboxConfig(
        name=f"path-{number}",
        path=folder,
        output=folder if output is None else Path(os.path.abspath(output)),
        style=style or "cel",
    )


def _find(inbox: InboxConfig, path: Path) -> Iterator[Errand]:
    """Yield the photo that a path means, or those below it; a file that is named is taken whatever its name is."""
    real = os.path.realpath(os.fsencode(path))
    if not os.path.isdir(real):
        yield Errand(inbox, os.path.basename(real))
        return
    rules = Rules(extensions=inbox.extensions, ignore=inbox.ignore, max_depth=inbox.max_depth)
    for found in Scanner(os.fspath(inbox.path), rules).scan():
        if isinstance(found, Found):
            yield Errand(inbox, found.path)


def _make(output: Path) -> None:
    try:
        prepare_output(os.path.abspath(output))
    except AnimedError as error:
        raise OutputError("the output cannot be made", remedy=error.title, path=os.fspath(output)) from error


def _draw(work: Errands, errands: Sequence[Errand]) -> int:
    outcomes: list[Drawn] = []
    began = time.monotonic()
    # The default handler leaves no trace of the photos in work: what is staged has no name yet.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with Bar(enabled=sys.stderr.isatty()) as bar:

        def ended(drawn: Drawn) -> None:
            outcomes.append(drawn)
            _tell(drawn)

        try:
            work.run(errands, ended, lambda: bar.show(len(outcomes), len(errands)))
        except PlaceError as error:
            raise OutputError("a picture cannot be written", remedy=error.detail, path=error.path) from error
    failed = sum(drawn.picture is None for drawn in outcomes)
    note(f"{len(outcomes) - failed} done, {failed} failed in {duration(time.monotonic() - began)}")
    return EXIT_SOME_FAILED if failed else EXIT_OK


def _tell(drawn: Drawn) -> None:
    source = shown(os.path.join(os.fsencode(drawn.errand.settings.path), drawn.errand.path))
    if drawn.picture is not None:
        say(shown(drawn.output))
    else:
        note(f"{source}: {drawn.reason}" + (f": {drawn.detail}" if drawn.detail else ""))
