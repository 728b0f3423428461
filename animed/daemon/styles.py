"""The styles that a configuration names, and the recipes that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animed.catalog import Catalog, verify
from animed.config import ConfigProblemsError, Problem
from animed.daemon.recipes import recipes_of
from animed.errors import StyleError

if TYPE_CHECKING:
    from pathlib import Path

    from animed.catalog import Style
    from animed.config import Config


def named_styles(config: Config) -> dict[str, Style]:
    """Return the styles that the inboxes, or the folders in them, can name; their weights are not looked at.

    Raises ConfigError as `demand_names` does, and StyleError for a style that is there and broken.
    """
    catalog = Catalog.read(styles_dir=config.styles_dir)
    demand_names(config, catalog)
    styles = {inbox.style: catalog.get(inbox.style) for inbox in config.inboxes if not inbox.style_from_folder}
    if any(inbox.style_from_folder for inbox in config.inboxes):
        styles |= {style.name: style for style in catalog.styles}
    return styles


def styles_of(config: Config) -> dict[str, Style]:
    """Return the verified styles that are in use.

    A damaged one that only folders name is left out: it may be half copied, and must not stop the inboxes.

    Raises ConfigError for a name that no style has, and StyleError.
    """
    asked = {inbox.style for inbox in config.inboxes}
    found = {}
    for style in named_styles(config).values():
        try:
            verify(style)
        except StyleError:
            if style.name in asked:
                raise
        else:
            found[style.name] = style
    if not found:
        raise StyleError("no style can be used", remedy="`animed styles verify` says why")
    return found


def demand_names(config: Config, catalog: Catalog) -> None:
    """Raise ConfigError for names that no style has, all of them together; a broken style has its name."""
    there = f"the name of a style: {', '.join(style.name for style in catalog.styles) or 'there is none'}"
    wrong = [
        Problem(f"inboxes[{at}].style", inbox.style, there, hint=_nearest(catalog, inbox.style))
        for at, inbox in enumerate(config.inboxes)
        if not (inbox.style_from_folder or catalog.knows(inbox.style))
    ]
    if wrong:
        raise ConfigProblemsError(wrong, path=str(config.source or ""))


def complaint_about(name: str, styles_dir: Path) -> str:
    """Say why a name on the command line is no style's, or nothing when it is one's."""
    catalog = Catalog.read(styles_dir=styles_dir)
    return "" if catalog.knows(name) else f"--style: no style {name!r} ({_nearest(catalog, name)})"


def recipes_in_use(config: Config) -> dict[str, frozenset[str]]:
    """Return the digests of the recipes that each inbox draws by; raises as `named_styles` does."""
    styles = named_styles(config)
    return {inbox.name: recipes_of(inbox, styles).digests for inbox in config.inboxes}


def _nearest(catalog: Catalog, name: str) -> str:
    try:
        catalog.get(name)
    except StyleError as error:
        return error.remedy
    return ""
