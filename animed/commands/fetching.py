"""Brings a file from elsewhere into the folder of styles: whole and checked, or not at all."""

from __future__ import annotations

import contextlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final

from animed import detector, regular
from animed.errors import AnimedError, OutputError, StyleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

    from animed.detector import Download

    # Called with the bytes that have come and those that are expected.
    Progress = Callable[[int, int], None]

SILENCE_S: Final = 30.0  # of a server, after which it is given up
_CHUNK: Final = 2**16
_AGENT: Final = "animed"
_OTHERWISE: Final = "`animed styles import FILE` takes a file that was fetched in another way"
_FOLDER_MODE: Final = 0o755
_FILE_MODE: Final = 0o644  # the service may run as another user


def download(wanted: Download, progress: Progress) -> bytes:
    """Return the checked bytes of a file from its public home.

    Raise AnimedError, which says what to do, where they cannot be had, and StyleError where they are others.
    """
    address = wanted.url
    request = urllib.request.Request(address, headers={"User-Agent": _AGENT})  # noqa: S310 -- the table holds https only
    try:
        with urllib.request.urlopen(request, timeout=SILENCE_S) as answer:  # noqa: S310 -- the same
            data = _received(answer, wanted, progress)
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer as well, with a connection of its own
        title = f"cannot be fetched: the server answers {error.code} {error.reason}"
        raise AnimedError(title, remedy=_OTHERWISE, path=address) from error
    except (OSError, http.client.HTTPException) as error:
        raise AnimedError(f"cannot be fetched: {_cause(error)}", remedy=_OTHERWISE, path=address) from error
    if difference := detector.mismatch(data, wanted):
        title = f"is not the {wanted.title}: {difference} came; nothing was kept"
        raise StyleError(title, remedy="a proxy or the server has changed it", path=address)
    return data


def read(path: Path) -> bytes:
    """Return the bytes of a file that may be one of the downloads; raise AnimedError for one that cannot be read."""
    try:
        return regular.read(path, detector.LARGEST)
    except OSError as error:
        raise AnimedError(f"cannot be read: {error.strerror}", path=os.fspath(path)) from error


def store(data: bytes, target: Path) -> None:
    """Write a file and give it its name when it is durable; raise OutputError, for a full disk too."""
    try:
        _make_folder(target.parent)
        with _unnamed_until_whole(target) as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), _FILE_MODE)
            os.fsync(stream.fileno())
            os.replace(stream.name, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path=os.fspath(target)) from error


def _make_folder(folder: Path) -> None:
    try:
        os.makedirs(folder, mode=_FOLDER_MODE, exist_ok=True)
    except FileExistsError as error:
        # A link whose target is not there exists as well.
        why = "is a link to something that is not there" if not os.path.exists(folder) else "is not a folder"
        raise OutputError(why, remedy="`styles_dir` is the folder of styles", path=os.fspath(folder)) from error


@contextlib.contextmanager
def _unnamed_until_whole(target: Path) -> Iterator[IO[bytes]]:
    """Give a file under a hidden name in the target's folder, which is gone if it was not renamed."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-", delete=False) as stream:
        try:
            yield stream
        finally:
            with contextlib.suppress(FileNotFoundError):  # it has its name
                os.unlink(stream.name)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _received(answer: IO[bytes], wanted: Download, progress: Progress) -> bytes:
    """Read what a server sends, and not more than one byte too much of it."""
    received = bytearray()
    while len(received) <= wanted.size:
        chunk = answer.read(min(_CHUNK, wanted.size + 1 - len(received)))
        if not chunk:
            break
        received += chunk
        progress(min(len(received), wanted.size), wanted.size)
    return bytes(received)


def _cause(error: OSError | http.client.HTTPException) -> str:
    """Say in one line why a server could not be asked."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return f"the server is silent for {SILENCE_S:g} s"
    text = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
    return " ".join(text.split()) or type(reason).__name__
