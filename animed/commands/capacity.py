"""The part of `animed check` that looks at the machine: the kernel's limits, the styles, the workers, one picture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from animed import extras
from animed.catalog import Catalog
from animed.commands.findings import Finding, failure, good, warning
from animed.commands.output import counted, shown, size
from animed.commands.places import describe
from animed.commands.verdict import rules_of
from animed.config.inbox import FROM_FOLDER
from animed.daemon.demands import demand_extras, detector_of
from animed.daemon.workforce import wishes_of
from animed.engine import machine as machines
from animed.engine import plan as plans
from animed.errors import AnimedError, StyleError
from animed.intake.filesystem import fs_type, inotify_limits, wants_polling
from animed.limited import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from animed.config import Config, InboxConfig
    from animed.daemon.demands import Installed
    from animed.engine.machine import Machine
    from animed.intake.filesystem import InotifyLimits

    # What draws one test picture in a real worker and returns its figures by name.
    Draw = Callable[[Config], Mapping[str, object]]

_MOST_FOLDERS: Final = 100_000  # counting stops here: a check should not walk for minutes
_COUNTING_S: Final = 20.0  # and here, where it takes long
_SPARE: Final = 2  # other programs of this user watch folders as well: half of the limit counts as free


def look_at_inotify(config: Config, limits: InotifyLimits | None = None) -> Iterator[Finding]:
    """Compare the folders that are to be watched with what the kernel allows this user."""
    watched = [count for inbox in config.inboxes if (count := _folders_of(inbox))]
    if not watched:
        return
    limits = limits or inotify_limits()
    folders = sum(watched)
    text = f"{counted(folders, 'folder')} to watch, {_known(limits.max_user_watches)} allowed"
    if limits.max_user_watches is not None and folders * _SPARE > limits.max_user_watches:
        remedy = f"set the sysctl fs.inotify.max_user_watches to {folders * 4} or more; else they are polled"
        yield warning("inotify", "", text, remedy)
    elif limits.max_user_instances is not None and len(watched) * _SPARE > limits.max_user_instances:
        inboxes = counted(len(watched), "inbox", "inboxes")
        text = f"{inboxes} to watch, {limits.max_user_instances} inotify instances allowed"
        yield warning("inotify", "", text, "raise the sysctl fs.inotify.max_user_instances; else they are polled")
    else:
        yield good("inotify", "", text)


def look_at_weights(config: Config) -> Iterator[Finding]:
    """Compare the weights of every style in use with their card."""
    catalog = Catalog.read(styles_dir=config.styles_dir)
    named = {inbox.style for inbox in config.inboxes}
    every = {style.name for style in catalog.styles} | {problem.name for problem in catalog.problems}
    for name in sorted((named | (every if FROM_FOLDER in named else set())) - {FROM_FOLDER}):
        try:
            style = catalog.get(name)
            catalog.verify(style)
        except StyleError as error:
            if name in named:
                yield failure("weights", name, describe(error), error.remedy, status=error.exit_status)
            else:
                yield warning("weights", name, f"no folder can name it: {describe(error)}", error.remedy)
        else:
            yield good("weights", name, f"{shown(str(style.weights))} is what its card says")


def look_at_extras(config: Config, installed: Installed = extras.installed) -> Iterator[Finding]:
    """Look for the extras that inboxes ask for; where none is missing there is nothing to say."""
    try:
        demand_extras(config, installed=installed)
    except AnimedError as error:
        yield _missing("extras", error)


def look_at_faces(config: Config) -> Iterator[Finding]:
    """Look for the file of what finds faces, where an inbox asks for it."""
    try:
        detector = detector_of(config)
    except AnimedError as error:
        yield _missing("faces", error)
    else:
        if detector is not None:
            yield good("faces", "", f"{shown(detector.path)} is the face detector")


def _missing(what: str, error: AnimedError) -> Finding:
    return failure(what, "", " ".join(describe(error).split()), error.remedy, status=error.exit_status)


def look_at_workers(config: Config, machine: Machine | None = None) -> Iterator[Finding]:
    """Say how many workers there will be, and whether memory has room for them."""
    machine = machine or machines.read()
    wishes = wishes_of(config)
    plan = plans.make(wishes, machine)
    text = f"{counted(plan.count, 'worker')} of {counted(plan.threads, 'thread')}: {'; '.join(plan.reasons)}"
    need = plans.worker_memory(wishes, machine) * plan.count
    if machine.memory is not None and need > machine.memory:
        remedy = "lower max_edge or workers.count, or free memory"
        yield warning("workers", "", f"{text}; {size(need)} needed, {size(machine.memory)} available", remedy)
    elif plan.count * plan.threads > plans.usable_cores(machine):
        yield warning("workers", "", text, "lower workers.count or workers.threads")
    else:
        yield good("workers", "", text)


def look_at_picture(config: Config, draw: Draw) -> Finding:
    """Draw one test picture as the service would."""
    try:
        figures = draw(config)
    except AnimedError as error:
        return failure("picture", "", describe(error), error.remedy, status=error.exit_status)
    return good("picture", "", ", ".join(f"{name} {_plain(value)}" for name, value in figures.items()))


def _folders_of(inbox: InboxConfig) -> int:
    """Return how many folders of an inbox are to be watched; 0 where its file system does not answer."""
    try:
        return limited(_watched_folders, inbox, folder=inbox.path, limit=_COUNTING_S)
    except TimeoutError:
        return 0


def _watched_folders(inbox: InboxConfig) -> int:
    return _count_folders(inbox) if _is_watched(inbox) else 0


def _is_watched(inbox: InboxConfig) -> bool:
    """Say whether the kernel is asked to report changes of this inbox."""
    return inbox.watch in {"native", "both"} or (inbox.watch == "auto" and not wants_polling(fs_type(str(inbox.path))))


def _count_folders(inbox: InboxConfig) -> int:
    """Count the folders that would be watched: those that no rule leaves out."""
    rules = rules_of(inbox)
    root = os.fsencode(inbox.path)
    count = 0
    for folder, names, _ in os.walk(root):
        count += 1
        if count >= _MOST_FOLDERS:
            break
        below = os.path.relpath(folder, root)
        paths = {name: os.path.normpath(os.path.join(below, name)) for name in names}
        names[:] = [name for name in names if rules.judge(paths[name], is_dir=True) is None]
    return count


def _known(limit: int | None) -> str:
    return "an unknown number" if limit is None else str(limit)


def _plain(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else shown(str(value))
