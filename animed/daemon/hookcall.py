"""What a hook is told: its arguments and its environment, made of an outcome. Pure.

    on_success   PROGRAM [fixed arguments] PICTURE PHOTO     after done and duplicate
    on_failure   PROGRAM [fixed arguments] PHOTO             after failed
    on_batch     PROGRAM [fixed arguments]                   after a batch in which a photo got its outcome

Names are bytes, as the file system has them, and absolute: none begins with a hyphen, and none ever meets a shell.
Everything else stands in variables that begin with HOOK_. They do not begin with ANIMED_: an unknown variable of that
kind is an error to `animed`, which a hook may want to call.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from animed.logs import path_fields

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from animed.config import HooksConfig
    from animed.daemon.outcomes import BatchEnded, PhotoEnded

Event = Literal["success", "failure", "batch"]

PREFIX: Final = b"HOOK_"
_COUNTED: Final = ("done", "duplicate", "skipped", "failed")
_LONGEST: Final = 2000  # bytes of a text: the kernel refuses a variable of 128 KiB, and with it the whole start
# Words of the service manager to the service alone, and what an outer hook was told.
_PRIVATE: Final = (PREFIX, b"NOTIFY_", b"WATCHDOG_", b"LISTEN_")


@dataclass(frozen=True, slots=True)
class Call:
    """One start of a hook, with all that it needs even if the configuration changes while it waits."""

    event: Event
    command: tuple[bytes, ...]  # the program's full path, then its arguments
    variables: Mapping[bytes, bytes]  # what is added to the service's environment
    about: Mapping[str, object]  # the fields that name its cause in the log


def call_for_photo(ended: PhotoEnded, hooks: HooksConfig) -> Call | None:
    """Return what is to be started after an outcome; None for nothing."""
    failed = ended.status == "failed"
    command = hooks.on_failure if failed else hooks.on_success
    if command is None or ended.status == "skipped":
        return None
    told: dict[str, str | bytes] = {
        "status": ended.status, "inbox": ended.key.inbox, "photo": ended.photo, "output": ended.output,
        "style": ended.style, "reason": ended.reason, "detail": ended.detail,
        "attempt": "" if ended.attempt is None else str(ended.attempt), "batch": str(ended.batch or ""),
    }  # fmt: skip
    names = (ended.photo,) if failed else (ended.output, ended.photo)
    about = {"inbox": ended.key.inbox, **path_fields(ended.photo)}
    return _call("failure" if failed else "success", command, names, told=told, about=about)


def call_for_batch(ended: BatchEnded, hooks: HooksConfig) -> Call | None:
    """Return what is to be started after a batch; None for nothing, as where none of its photos got an outcome."""
    counts = {status: ended.ended.get(status, 0) for status in _COUNTED}
    if hooks.on_batch is None or not any(counts.values()):
        return None
    told: dict[str, str | bytes] = {
        "inboxes": " ".join(ended.inboxes), "batch": str(ended.number), "batch_size": str(ended.size),
        "seconds": f"{ended.seconds:.3f}", **{status: str(count) for status, count in counts.items()},
        "other": str(sum(ended.ended.values()) - sum(counts.values())),
    }  # fmt: skip
    return _call("batch", hooks.on_batch, (), told=told, about={"batch": ended.number})


def _call(
    event: Event,
    command: tuple[str, ...],
    names: tuple[bytes, ...],
    *,
    told: Mapping[str, str | bytes],
    about: Mapping[str, object],
) -> Call:
    variables = {PREFIX + name.upper().encode(): _value(value) for name, value in {"event": event, **told}.items()}
    return Call(event, (*map(os.fsencode, command), *names), variables, about)


def environment(service: Mapping[bytes, bytes], source: Path | None, call: Call) -> dict[bytes, bytes]:
    """Return a hook's whole environment: the service's, less what is private to it, and what the hook is told.

    `source` is the service's configuration file: an `animed` that the hook calls finds this very service by it.
    """
    kept = {name: value for name, value in service.items() if not name.startswith(_PRIVATE)}
    config = {} if source is None else {b"ANIMED_CONFIG": os.fsencode(source)}
    return kept | config | dict(call.variables)


def _value(value: str | bytes) -> bytes:
    """Return a variable's value; names are whole, other text is bounded and without the byte that ends a variable."""
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "backslashreplace").replace(b"\0", b"")[:_LONGEST]
