"""Says of a path below an inbox whether it is taken, and which rule decides. Pure: looks at names only.

Names are bytes: they need not be UTF-8 and may hold newlines. Built-in patterns and hidden names are matched on the
NFC-normalised, case-folded name of the path's last component and of every folder above it.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from typing import TYPE_CHECKING, Final

from pathspec import GitIgnoreSpec

from animed.errors import ConfigError
from animed.intake.patterns import BUILT_IN, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CACHED_FOLDERS: Final = 65_536


class Rules:
    """What counts as a photo in one inbox.

    `extensions` are given with or without a dot, in any case; `ignore` are gitignore patterns matched below the root
    (NFC, case-sensitive); a path below more than `max_depth` folders is too deep, and without `recursive` every path in
    a folder is. Raises ConfigError for a pattern that cannot be read. May be used from several threads.
    """

    def __init__(
        self,
        *,
        extensions: Iterable[str],
        ignore: Sequence[str] = (),
        ignore_conflict_copies: bool = True,
        recursive: bool = True,
        max_depth: int = 16,
    ) -> None:
        self._extensions = frozenset(extension.lower().removeprefix(".") for extension in extensions)
        self._max_depth = max_depth if recursive else 0
        self._user = _read_ignore(ignore)
        wanted = [pattern for pattern in BUILT_IN if ignore_conflict_copies or not pattern.conflict]
        self._file_globs = _Globs([pattern for pattern in wanted if pattern.applies != "folder"])
        self._folder_globs = _Globs([pattern for pattern in wanted if pattern.applies != "file"])
        self._folders: dict[bytes, str | None] = {b"": None}

    def __getstate__(self) -> dict[str, object]:
        """Travel without what was judged so far: that can be long, and is found again."""
        return self.__dict__ | {"_folders": {b"": None}}

    def judge(self, path: bytes, *, is_dir: bool) -> str | None:
        """Return None when the path is taken (a folder: descended into), else the name of the rule that decides."""
        folder, _, name = path.rpartition(b"/")
        verdict = self._judge_folder(folder)
        if verdict is not None:
            return verdict
        if is_dir:
            return self._judge_folder(path)
        return self._judge_name(path, fold(name), self._file_globs, is_dir=False) or self._judge_extension(name)

    def _judge_folder(self, path: bytes) -> str | None:
        try:
            return self._folders[path]
        except KeyError:
            return self._judge_new_folder(path)

    def _judge_new_folder(self, path: bytes) -> str | None:
        """Judge from the top down, without recursion: a path can have two thousand components."""
        parts = path.split(b"/")
        for end in range(1, len(parts) + 1):
            folder = b"/".join(parts[:end])
            verdict = self._folders.get(folder, "")
            if verdict == "":  # Not judged yet: no rule has an empty name.
                verdict = self._judge_folder_name(folder, parts[end - 1], depth=end)
                self._remember(folder, verdict)
            if verdict is not None:
                return verdict
        return None

    def _judge_folder_name(self, path: bytes, name: bytes, *, depth: int) -> str | None:
        return self._judge_name(path, fold(name), self._folder_globs, is_dir=True) or (
            "too-deep" if depth > self._max_depth else None
        )

    def _judge_name(self, path: bytes, name: str, globs: _Globs, *, is_dir: bool) -> str | None:
        rule = globs.match(name)
        if rule is not None:
            return rule
        if name.startswith("."):
            return "hidden"
        return None if self._user is None else self._judge_by_user(self._user, path, is_dir=is_dir)

    def _judge_by_user(self, user: GitIgnoreSpec, path: bytes, *, is_dir: bool) -> str | None:
        found = user.check_file(_text(path) + "/" * is_dir)
        if not found.include or found.index is None:
            return None
        return f"user:{user.patterns[found.index].pattern!s}"

    def _judge_extension(self, name: bytes) -> str | None:
        _, dot, extension = name.rpartition(b".")
        taken = bool(dot) and extension.decode("utf-8", "surrogateescape").lower() in self._extensions
        return None if taken else "extension"

    def _remember(self, folder: bytes, verdict: str | None) -> None:
        if len(self._folders) >= _CACHED_FOLDERS:
            self._folders = {b"": None}
        self._folders[folder] = verdict


class _Globs:
    """Finds the first of many globs that a name matches, at about the price of one for a name that none matches."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._each = [(_compile(pattern.glob), pattern.rule) for pattern in patterns]
        self._any = re.compile("|".join(compiled.pattern for compiled, _ in self._each))

    def match(self, name: str) -> str | None:
        """Return the name of the first rule that the whole of `name` matches."""
        if self._any.match(name) is None:
            return None
        return next(rule for compiled, rule in self._each if compiled.match(name))


def fold(name: bytes) -> str:
    """Return a name as built-in patterns see it: what is not UTF-8 as surrogates, NFC, case-folded."""
    if name.isascii():
        return name.decode("ascii").lower()
    return unicodedata.normalize("NFC", _text(name).casefold())


def _text(path: bytes) -> str:
    return unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape"))


def _compile(glob: str) -> re.Pattern[str]:
    folded = unicodedata.normalize("NFC", glob.casefold())
    return re.compile(fnmatch.translate(folded))


def _read_ignore(lines: Sequence[str]) -> GitIgnoreSpec | None:
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError as error:
            raise ConfigError(f"ignore: {line!r} is not a gitignore pattern", remedy=str(error)) from error
    spec = GitIgnoreSpec.from_lines([unicodedata.normalize("NFC", line) for line in lines])
    return spec if any(pattern.include is not None for pattern in spec.patterns) else None
