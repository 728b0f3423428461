"""`animed once PATH...`: draws these photos, beside each or into a folder, without configuration, lock or ledger."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from animed import config
from animed.catalog import Catalog
from animed.commands.output import duration, note, say, shown
from animed.commands.progress import Bar
from animed.daemon.bypath import errands_of, make_output, pictures_of, settings_of, styles_dir_of
from animed.daemon.errands import Drawn, Errand, Errands
from animed.daemon.styles import complaint_about, styles_of
from animed.errors import EXIT_CANNOT_CREATE, EXIT_OK, EXIT_SOME_FAILED, EXIT_USAGE

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(config_file: Path | None, paths: Sequence[Path], output: Path | None, style: str | None) -> int:
    """Draw, say what came of each photo, and return the exit status; raises StyleError, WorkersError, OutputError."""
    base = None if config_file is None else config.load(config_file, environ=os.environ, cwd=Path.cwd())
    if style is not None and (complaint := complaint_about(style, styles_dir_of(base, os.environ))):
        note(complaint)
        return EXIT_USAGE
    settings = settings_of(base, paths, output, style, os.environ)
    chosen = styles_of(settings)[settings.inboxes[0].style]
    pictures = pictures_of(style.name for style in Catalog.read(styles_dir=settings.styles_dir).styles)
    pairs = zip(settings.inboxes, paths, strict=True)
    errands = [errand for inbox, path in pairs for errand in errands_of(inbox, path, pictures)]
    if output is not None:
        make_output(output)
    return _draw(Errands.of(settings, chosen), errands)


def _draw(work: Errands, errands: Sequence[Errand]) -> int:
    outcomes: list[Drawn] = []
    began = time.monotonic()
    # The default handler leaves no trace of the photos in work: what is staged has no name yet.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with Bar(enabled=sys.stderr.isatty()) as bar:

        def ended(drawn: Drawn) -> None:
            outcomes.append(drawn)
            _tell(drawn)

        work.run(errands, ended, lambda: bar.show(len(outcomes), len(errands)))
    failed = sum(drawn.picture is None for drawn in outcomes)
    note(f"{len(outcomes) - failed} done, {failed} failed in {duration(time.monotonic() - began)}")
    if any(drawn.place == "output" for drawn in outcomes):
        return EXIT_CANNOT_CREATE
    return EXIT_SOME_FAILED if failed else EXIT_OK


def _tell(drawn: Drawn) -> None:
    source = shown(os.path.join(os.fsencode(drawn.errand.settings.path), drawn.errand.path))
    if drawn.picture is not None:
        say(shown(drawn.output))
    else:
        note(f"{source}: {drawn.reason}" + (f": {drawn.detail}" if drawn.detail else ""))
