"""Loading the configuration: precedence, every kind of problem with its place, and the texts that ship."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from animed.config import Config, ConfigProblemsError, InboxConfig, default_text, dump, find, load, schema
from animed.config.environment import assignments
from animed.errors import ConfigError

MINIMAL = "inboxes:\n  - {name: phone, path: in, output: out}\n"
HOME = {"HOME": "/home/ada"}
SURROGATES: tuple[Literal["Cs"], ...] = ("Cs",)


class Folder:
    """A folder with a configuration file, and what one loads from it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, text: str, env: dict[str, str] | None = None, **overrides: object) -> Config:
        """Write the file and load it; the environment is empty but for HOME."""
        (self.path / "config.yaml").write_text(text)
        keys = {key.replace("__", "."): value for key, value in overrides.items()}
        return load(None, environ={**HOME, **(env or {})}, cwd=self.path, overrides=keys)

    def fails(self, text: str, env: dict[str, str] | None = None, **overrides: object) -> list[str]:
        """Return the problems of a file that cannot be used, one line each."""
        with pytest.raises(ConfigError) as caught:
            self.load(text, env, **overrides)
        return [line.strip() for line in str(caught.value).splitlines()[1:]]

    def inbox(self, keys: str, **more: str) -> InboxConfig:
        """Load one inbox with some keys."""
        return self.load(f"inboxes:\n  - name: phone\n    path: in\n    output: out\n    {keys}\n", more).inboxes[0]

    def inbox_fails(self, keys: str) -> list[str]:
        """Return the problems of one inbox with some keys, which begin on line 5."""
        return self.fails(f"inboxes:\n  - name: phone\n    path: in\n    output: out\n    {keys}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return an empty folder to load from."""
    return Folder(tmp_path)


def test_defaults_are_those_of_the_contract(folder: Folder) -> None:
    """A file with one bare inbox has every default, as absolute paths, seconds, bytes and None for auto."""
    config = folder.load(MINIMAL)
    inbox = config.inboxes[0]
    assert inbox.path == folder.path / "in"
    assert inbox.output == folder.path / "out"
    assert inbox.processed_dir == folder.path / "phone-processed"
    assert inbox.failed_dir == folder.path / "phone-failed"
    assert (inbox.style, inbox.strength, inbox.max_edge, inbox.quality) == ("cel", 1.0, 1024, 92)
    assert (inbox.rescan_interval, inbox.poll_interval, inbox.stable_for, inbox.stable_max) == (300.0, 30.0, 2.0, 600.0)
    assert (inbox.mode.file, inbox.preserve.icc, inbox.output_name) == (None, "srgb", "{stem}.{style}{ext}")
    assert (config.batch.max_size, config.batch.max_wait) == (8, 0.2)
    assert (config.workers.count, config.workers.threads, config.workers.max_memory) == (None, None, None)
    assert (config.limits.min_free, config.workers.cpu_share) == (2**30, 100.0)
    assert config.source == folder.path / "config.yaml"
    assert config.state_dir == Path("/home/ada/.local/state/animed")
    assert config.styles_dir == Path("/home/ada/.local/share/animed/styles")


def test_the_configuration_is_frozen(folder: Folder) -> None:
    """No field can be set after loading."""
    config = folder.load(MINIMAL)
    for part, key in ((config, "batch"), (config.inboxes[0], "style"), (config.workers, "count")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, key, None)


@pytest.mark.parametrize(
    ("env", "state", "styles"),
    [
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a", "/home/ada/.local/share/animed/styles"),
        ({"XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "/d"}, "/s/animed", "/d/animed/styles"),
        ({"XDG_STATE_HOME": "not/absolute"}, "/home/ada/.local/state/animed", "/home/ada/.local/share/animed/styles"),
        ({"STATE_DIRECTORY": "/a", "ANIMED_STATE_DIR": "/b"}, "/b", "/home/ada/.local/share/animed/styles"),
    ],
)
def test_where_state_and_styles_are(folder: Folder, env: dict[str, str], state: str, styles: str) -> None:
    """Folders that are not named come from systemd, then from the base folders of the user."""
    config = folder.load(MINIMAL, env)
    assert (str(config.state_dir), str(config.styles_dir)) == (state, styles)


def test_a_tilde_is_the_home_and_relative_paths_start_at_the_file(folder: Folder) -> None:
    """`~` is $HOME, and a relative path starts at the folder of the file wherever the program was started."""
    (folder.path / "config.yaml").write_text("inboxes: [{name: a, path: ~/in, output: ../out}]")
    config = load(Path("config.yaml"), environ=HOME, cwd=folder.path)
    assert config.inboxes[0].path == Path("/home/ada/in")
    assert config.inboxes[0].output == folder.path / ".." / "out"
    assert "no_such_user" in folder.fails("inboxes: [{name: a, path: ~no_such_user/in, output: out}]")[0]


def test_precedence(folder: Folder) -> None:
    """The command line wins over the environment, that over the file, and that over the defaults."""
    text = "batch: {max_size: 2}\n" + MINIMAL
    env = {"ANIMED_BATCH__MAX_SIZE": "3"}
    assert folder.load(text).batch.max_size == 2
    assert folder.load(text, env).batch.max_size == 3
    assert folder.load(text, env, batch__max_size=4).batch.max_size == 4


def test_overrides_of_inbox_keys_reach_every_inbox(folder: Folder) -> None:
    """`inboxes.KEY` on the command line wins over the file, the defaults and the environment."""
    text = (
        "defaults: {style: b}\ninboxes:\n- {name: x, path: i, output: o, style: a}\n- {name: y, path: j, output: o}\n"
    )
    config = folder.load(text, inboxes__style="mine", inboxes__preserve__gps=False)
    assert [(inbox.style, inbox.preserve.gps) for inbox in config.inboxes] == [("mine", False)] * 2


def test_a_wrong_override_names_the_command_line(folder: Folder) -> None:
    """A problem of an override says that it came from the command line."""
    assert folder.fails(MINIMAL, logging__level="loud") == [
        "logging.level (command line): got loud; accepted: debug, info, warning or error"
    ]
    assert "inboxes[0].style (command line)" in folder.fails(MINIMAL, inboxes__style="a/b")[0]


# The search


def test_the_order_of_the_search(tmp_path: Path) -> None:
    """The command line, $ANIMED_CONFIG, the working folder, then the user's own folder are looked at in this order."""
    names = ("given.yaml", "env.yaml", "config.yaml", "xdg/animed/config.yaml")
    env = {"ANIMED_CONFIG": str(tmp_path / "env.yaml"), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(MINIMAL)
    assert find(Path("given.yaml"), environ=env, cwd=tmp_path) == tmp_path / "given.yaml"
    assert find(None, environ=env, cwd=tmp_path) == tmp_path / "env.yaml"
    del env["ANIMED_CONFIG"]
    assert find(None, environ=env, cwd=tmp_path) == tmp_path / "config.yaml"
    (tmp_path / "config.yaml").unlink()
    assert find(None, environ=env, cwd=tmp_path) == tmp_path / "xdg/animed/config.yaml"


def test_no_file_names_every_place(tmp_path: Path) -> None:
    """When there is no file, the error names each place that was looked at and what to do."""
    with pytest.raises(ConfigError) as caught:
        find(None, environ={"HOME": str(tmp_path)}, cwd=tmp_path)
    places = (f"{tmp_path}/config.yaml", f"{tmp_path}/.config/animed/config.yaml", "/etc/animed/config.yaml")
    assert all(place in str(caught.value) for place in (*places, "animed config init"))


@pytest.mark.parametrize("by", ["-c", "ANIMED_CONFIG"])
def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path, by: str) -> None:
    """No other file takes the place of one that was named and is not there."""
    (tmp_path / "config.yaml").write_text(MINIMAL)
    path, env = (Path("none.yaml"), {}) if by == "-c" else (None, {"ANIMED_CONFIG": "none.yaml"})
    with pytest.raises(ConfigError, match="no such file"):
        load(path, environ={**HOME, **env}, cwd=tmp_path)


def test_what_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    """A folder, bytes that are no text, and a huge file are told with the path, bytes with their line."""
    (tmp_path / "bytes.yaml").write_bytes(b"a: 1\nb: \xff\n")
    (tmp_path / "huge.yaml").write_bytes(b"#" * 2**21)
    for name, word in ((".", "Is a directory"), ("bytes.yaml", "line 2: is not UTF-8"), ("huge.yaml", "1 MiB")):
        with pytest.raises(ConfigError, match=word) as caught:
            load(Path(name), environ=HOME, cwd=tmp_path)
        assert str(tmp_path) in str(caught.value)


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    """A file that begins with a byte order mark is read as any other."""
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load(None, environ=HOME, cwd=tmp_path).inboxes[0].name == "phone"


# The environment


@pytest.mark.parametrize(
    ("word", "value"), [("0", False), ("false", False), ("No", False), ("off", False), ("", False)]
)
def test_words_for_no_in_the_environment(folder: Folder, word: str, value: bool) -> None:
    """The usual words for no, and nothing at all, are false."""
    assert folder.load(MINIMAL, {"ANIMED_DEFAULTS__RECURSIVE": word}).inboxes[0].recursive is value


@pytest.mark.parametrize("word", ["1", "true", "YES", "on"])
def test_words_for_yes_in_the_environment(folder: Folder, word: str) -> None:
    """The usual words for yes are true."""
    assert folder.load(MINIMAL, {"ANIMED_DEFAULTS__REQUIRE_MARKER": word}).inboxes[0].require_marker is True


def test_values_in_the_environment_are_read_as_in_the_file(folder: Folder) -> None:
    """Numbers, durations, octal bits, null, text and JSON lists in variables mean what they mean in the file."""
    env = {
        "ANIMED_WORKERS__COUNT": "3 ",
        "ANIMED_WORKERS__MAX_MEMORY": "2GiB",
        "ANIMED_BATCH__MAX_WAIT": "1.5",
        "ANIMED_DEFAULTS__MODE__FILE": "0640",
        "ANIMED_DEFAULTS__MODE__GROUP": "1000",
        "ANIMED_DEFAULTS__STYLE": "no",
        "ANIMED_DEFAULTS__IGNORE": '["*.tmp"]',
        "ANIMED_HOOKS__ON_BATCH": "null",
        "ANIMED_VERSION": "1",
        "ANIMED_DEFAULTS__PRESERVE__GPS": "off",
        "ANIMED_DEFAULTS__WATCH": "off",
        "ANIMED_DEFAULTS__PROCESSED_DIR": "null",
        "ANIMED_SCHEDULE__ACTIVE": "[]",
    }
    config = folder.load(MINIMAL, env)
    inbox = config.inboxes[0]
    assert (inbox.preserve.gps, inbox.preserve.exif, inbox.watch) == (False, True, "off")
    assert inbox.processed_dir == folder.path / "phone-processed"
    assert (config.workers.count, config.workers.max_memory, config.batch.max_wait) == (3, 2**31, 1.5)
    assert (inbox.mode.file, inbox.mode.group, inbox.style, inbox.ignore) == (0o640, "1000", "no", ("*.tmp",))


def test_the_defaults_of_the_environment_stand_below_what_an_inbox_says(folder: Folder) -> None:
    """A variable of the defaults wins over those of the file, key by key, and an inbox's own key over both."""
    text = (
        "defaults: {quality: 10, preserve: {gps: false, exif: false}}\ninboxes:\n"
        "- {name: x, path: i, output: o}\n- {name: y, path: j, output: o, quality: 30}\n"
    )
    env = {"ANIMED_DEFAULTS__QUALITY": "20", "ANIMED_DEFAULTS__PRESERVE__EXIF": "yes"}
    config = folder.load(text, env)
    assert [inbox.quality for inbox in config.inboxes] == [20, 30]
    assert [(inbox.preserve.gps, inbox.preserve.exif) for inbox in config.inboxes] == [(False, True)] * 2
    config = folder.load(text, env, inboxes__quality=40)
    assert [inbox.quality for inbox in config.inboxes] == [40, 40]


def test_inboxes_in_the_environment_are_json(folder: Folder) -> None:
    """$ANIMED_INBOXES takes the place of the inboxes of the file, and its faults name it."""
    inbox: dict[str, object] = {"name": "env", "path": "/a", "output": "/b", "mode": {"file": "0600"}}
    config = folder.load(MINIMAL, {"ANIMED_INBOXES": json.dumps([inbox])})
    assert [(one.name, one.mode.file) for one in config.inboxes] == [("env", 0o600)]
    inbox["qualty"] = 1
    assert folder.fails(MINIMAL, {"ANIMED_INBOXES": json.dumps([inbox])}) == [
        "inboxes[0].qualty (ANIMED_INBOXES): got an unknown key; accepted: a known key (did you mean quality?)"
    ]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ANIMED_BATCH__MAX_SISE", "1", "did you mean ANIMED_BATCH__MAX_SIZE?"),
        ("ANIMED_LOGGING", "x", "such as ANIMED_LOGGING__FORMAT"),
        ("ANIMED_", "x", "an unknown variable"),
        ("ANIMED_CONFG", "x", "did you mean ANIMED_CONFIG?"),
        ("ANIMED_SOURCE", "x", "an unknown variable"),
        ("ANIMED_LOGGING_LEVEL", "debug", "did you mean ANIMED_LOGGING__LEVEL?"),
        ("ANIMED_logging__level", "debug", "did you mean ANIMED_LOGGING__LEVEL?"),
        ("ANIMED_STYLE", "cel", "did you mean ANIMED_DEFAULTS__STYLE?"),
        ("ANIMED_NICE", "5", "did you mean ANIMED_WORKERS__NICE?"),
        ("ANIMED_INBOXES__0__STYLE", "cel", "did you mean ANIMED_DEFAULTS__STYLE?"),
        ("ANIMED_DEFAULTS__PRESERVE", '{"gps": false}', "such as ANIMED_DEFAULTS__PRESERVE__EXIF"),
        ("ANIMED_DEFAULTS__EXTENSIONS", "jpg,png", 'JSON such as ["one", "two"]'),
        ("ANIMED_DEFAULTS__RECURSIVE", "maybe", "got maybe; accepted: true or false"),
        ("ANIMED_INBOXES", "- name: a", "accepted: JSON"),
        ("ANIMED_INBOXES", '[{"name": 1, "name": 2}]', "name stands twice"),
        ("ANIMED_INBOXES", "[NaN]", "NaN is no number"),
        ("ANIMED_INBOXES", "[" * 100_000, "JSON"),
        ("ANIMED_INBOXES", "9" * 5000, "ANIMED_INBOXES: got"),
        ("ANIMED_DEFAULTS__IGNORE", "*.tmp", "accepted: JSON"),
        (
            "ANIMED_BATCH__MAX_SIZE",
            "eight",
            "batch.max_size (ANIMED_BATCH__MAX_SIZE): got eight; accepted: a whole number",
        ),
        ("ANIMED_BATCH__MAX_SIZE", "", "a whole number"),
        ("ANIMED_STATE_DIR", "", "the path of a folder"),
        ("ANIMED_DEFAULTS__STYLE", "\udcff", "style"),
    ],
)
def test_wrong_variables_are_problems(folder: Folder, name: str, value: str, words: str) -> None:
    """An unknown variable or a value that cannot be used is told with the name of the variable."""
    (line,) = folder.fails(MINIMAL, {name: value})
    assert words in line
    assert name in line
    line.encode()


def test_other_variables_are_left_alone() -> None:
    """Only names that begin with ANIMED_ are looked at."""
    assert assignments({"PATH": "x", "ANIMEDX": "1", "animed_batch": "2", "ANIMED_CONFIG": "/x"}) == ([], [])


# Problems


def test_an_unknown_key_names_the_nearest_one_and_its_line(folder: Folder) -> None:
    """An unknown key is told with its dotted path, its line and the nearest known key."""
    assert folder.inbox_fails("stable_fro: 3s") == [
        "line 5: inboxes[0].stable_fro: got an unknown key; accepted: a known key (did you mean stable_for?)"
    ]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("quality: 5", "quality is a key of each inbox"),
        ("max_wait: 5s", "max_wait is a key of batch"),
        ("timeout: 5s", "timeout is a key of workers and of hooks"),
        ("inbox: []", "did you mean inboxes?"),
        ("source: x", "accepted: a known key"),
        ("zzzzzz: x", "accepted: one of version, state_dir"),
        ("batch: {quality: 3}", "quality is a key of each inbox"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_where_it_belongs(folder: Folder, text: str, hint: str) -> None:
    """An unknown key that is known elsewhere is told where."""
    (line,) = folder.fails(f"{text}\n{MINIMAL}")
    assert hint in line
    assert line.startswith("line 1: ")


def test_a_key_that_stands_twice(folder: Folder) -> None:
    """A duplicate key is a problem with both of its lines."""
    assert folder.fails(f"batch: {{}}\n{MINIMAL}batch: {{}}\n") == [
        "line 4: batch: got the key a second time (first on line 1); accepted: each key once"
    ]


def test_all_problems_come_together(folder: Folder) -> None:
    """Faults of form, keys, types, limits, combinations, overlaps and variables are told in one error, in order."""
    text = """\
version: 2
defaults: {quality: 101}
inboxes:
  - name: phone
    path: in
    output: in/out
    watch: never
    faces: perhaps
    faces: off
  - name: phone
    path: in2
    ouput: out
batch: {max_size: eight}
retry: {delay: 1h}
"""
    lines = folder.fails(text, {"ANIMED_FOO": "1"})
    starts = [
        "line 1: version: got 2",
        "line 2: defaults.quality: got 101; accepted: at most 100",
        "line 6: inboxes[0].output: got",
        "line 7: inboxes[0].watch: got never; accepted: auto, native, poll, both or off",
        "line 8: inboxes[0].faces: got perhaps; accepted: off or auto",
        "line 9: inboxes[0].faces: got the key a second time",
        "line 10: inboxes[1].name: got phone; accepted: another name than inboxes[0] has",
        "line 10: inboxes[1].output: got nothing",
        "line 12: inboxes[1].ouput",
        "line 13: batch.max_size: got eight; accepted: a whole number",
        "line 14: retry.max_delay: got 900.0; accepted: at least delay, which is 1h",
        "ANIMED_FOO: got an unknown variable",
    ]
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts


def test_the_error_carries_its_problems_through_a_pipe(folder: Folder) -> None:
    """The error has the problems as values, its exit status is that of configurations, and it can be pickled."""
    with pytest.raises(ConfigProblemsError) as caught:
        folder.load("batch: {max_size: 0}\n" + MINIMAL)
    (problem,) = caught.value.problems
    assert (problem.path, problem.got, problem.accepted, problem.line) == ("batch.max_size", "0", "at least 1", 1)
    assert caught.value.exit_status == 78
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - made one line above.
    assert str(copy) == str(caught.value)


def test_a_fault_of_the_defaults_is_told_once(folder: Folder) -> None:
    """A wrong default is told where it stands and not again for each inbox; what an inbox says itself is told there."""
    text = """\
defaults:
  quality: high
inboxes:
  - {name: a, path: a, output: o}
  - {name: b, path: b, output: o}
  - {name: c, path: c, output: o, quality: low}
"""
    assert [line.split(":")[1].strip() for line in folder.fails(text)] == ["defaults.quality", "inboxes[2].quality"]


def test_a_default_that_only_an_inbox_makes_impossible_is_told_there(folder: Folder) -> None:
    """A combination of a default and an inbox's own key is a problem of the inbox."""
    text = "defaults: {stable_max: 1m}\ninboxes:\n  - {name: a, path: a, output: o, stable_for: 2m}\n"
    assert folder.fails(text)[0].split(": got")[0] == "line 1: inboxes[0].stable_max"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("quality: '92'", 'got "92"; accepted: a whole number (write it without quotes)'),
        ("quality: 92.0", "a whole number"),
        ("quality: true", "a whole number"),
        ("quality: 0", "at least 1"),
        ("quality: 101", "at most 100"),
        ("strength: 1.1", "at most 1"),
        ("strength: -0.1", "at least 0"),
        ("strength: .nan", "a finite number"),
        ("strength: true", "a number"),
        ("max_edge: 63", "at least 64"),
        ("max_edge: null", "a whole number"),
        ("recursive: no", "true or false (write false)"),
        ("recursive: 1", "true or false"),
        ("recursive: 'true'", "true or false (write true)"),
        ("watch: false", "auto, native, poll, both or off (write off)"),
        ("watch: Auto", "did you mean auto?"),
        ("stable_for: 5 apples", "a duration such as"),
        ("stable_for: 0", "more than 0"),
        ("stable_for: true", "a duration such as"),
        ("poll_interval: 0s", "more than 0"),
        ("stable_max: 1s", "at least stable_for, which is 2s"),
        ("stable_for: 1h", "stable_max"),
        ("extensions: jpg", "a list"),
        ("extensions: []", "at least one extension"),
        ("extensions: [a/b]", "letters and digits"),
        ("extensions: [1]", "text (quote it)"),
        ("ignore: null", "a list"),
        ("output_name: '{stem}.{artist}{ext}'", "{artist} is unknown"),
        ("output_name: '{stm}{ext}'", "did you mean stem?"),
        ("output_name: '{style}{ext}'", "the same name"),
        ("output_name: '{stem}{counter}{counter}'", "{counter} may stand in it once"),
        ("output_name: '{yaer}{counter}{ext}'", "did you mean year?"),
        ("output_name: '{stem}%s'" % ("x" * 100), "too long"),
        ("output_name: '{stem}/{style}'", "without a slash"),
        ("output_name: '{stem'", "contains {stem}"),
        ("output_name: '{stem:>9}'", "a field takes no format"),
        ("output_name: '{stem!r}'", "a field takes no format"),
        ("output_name: '{}{stem}'", "is unknown"),
        ("preserve: true", "a mapping"),
        ("preserve: {gsp: true}", "did you mean gps?"),
        ("mode: {file: 0888}", "octal"),
        ("mode: {file: rw-r--r--}", "octal"),
        ("mode: {group: [a]}", "text"),
        ("style: a/b", "letters, digits"),
        ("style: 5", "text (quote it)"),
        ("processed_dir: 5", "the path of a folder"),
        ("originals: trash", "keep, move or delete"),
        ("subsampling: 4:1:1", "4:2:2 or 4:2:0"),
        ("output_format: webp\n    subsampling: 4:4:4", "auto or 4:2:0 with output_format: webp"),
        ("progressive: 'yes'", "true or false"),
        ("on_conflict: null", "suffix, skip, overwrite or fail"),
    ],
)
def test_wrong_values_of_an_inbox(folder: Folder, keys: str, words: str) -> None:
    """Each value that cannot be used is one problem with its place and what is accepted."""
    (line,) = folder.inbox_fails(keys)
    assert words in line
    assert re.match(r"line \d: inboxes\[0\]\.\w", line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inboxes: []", "no inboxes"),
        ("batch: {}", "no inboxes"),
        ("inboxes: null", "a list; each inbox begins with a hyphen"),
        ("inboxes: {phone: {path: in}}", "a list; each inbox begins with a hyphen"),
        ("inboxes: [phone]", "a mapping with name, path and output"),
        ("inboxes: [{name: ., path: a, output: b}]", "letters, digits"),
        ("inboxes: [{name: a b, path: a, output: b}]", "letters, digits"),
        ("inboxes: [{name: 5, path: a, output: b}]", "text (quote it)"),
        ("inboxes: [{name: a, path: '', output: b}]", "the path of a folder"),
        ('inboxes: [{name: a, path: "x\\0y", output: b}]', "the path of a folder"),
        (f"defaults: null\n{MINIMAL}", "a mapping of inbox keys"),
        (f"workers:\n{MINIMAL}", "a mapping (remove the key, or give it a value)"),
        (f"version: '1'\n{MINIMAL}", "accepted: 1"),
        (f"state_dir: 5\n{MINIMAL}", "the path of a folder"),
        (f"workers: {{count: null}}\n{MINIMAL}", "auto, or a whole number of at least 1"),
        (f"workers: {{count: 0}}\n{MINIMAL}", "auto, or a whole number of at least 1"),
        (f"workers: {{threads: true}}\n{MINIMAL}", "auto, or a whole number of at least 1"),
        (f"workers: {{max_memory: 0}}\n{MINIMAL}", "auto, or a size"),
        (f"workers: {{nice: 20}}\n{MINIMAL}", "at most 19"),
        (f"workers: {{timeout: 0}}\n{MINIMAL}", "more than 0"),
        (f"workers: {{precision: half}}\n{MINIMAL}", "auto, float32 or bfloat16"),
        (f"batch: {{max_wait: 0}}\n{MINIMAL}", "more than 0"),
        (f"retry: {{factor: 0.5}}\n{MINIMAL}", "at least 1"),
        (f"retry: {{max_delay: 1s}}\n{MINIMAL}", "at least delay, which is 5s"),
        (f"limits: {{min_free: lots}}\n{MINIMAL}", "a size such as"),
        (f"logging: {{level: INFO}}\n{MINIMAL}", "did you mean info?"),
        (f"limits: {{images_per_minute: -1}}\n{MINIMAL}", "limits.images_per_minute: got -1; accepted: at least 0"),
        (f"limits: {{images_per_minute: 0.5}}\n{MINIMAL}", "a whole number"),
        (f"schedule: {{active: 22:00-07:00}}\n{MINIMAL}", 'a list such as ["22:00-07:00"]'),
        (f"schedule: {{active: [22:00]}}\n{MINIMAL}", 'schedule.active[0]: got "22:00"; accepted: a time of day'),
        (f"schedule: {{active: [1:00-2:00, 9:00-9:00]}}\n{MINIMAL}", "00:00-24:00 is the whole day"),
        (f"hooks: {{timeout: never}}\n{MINIMAL}", "a duration such as"),
        (f"hooks: {{on_success: 5}}\n{MINIMAL}", "null, the path of a program, or a list"),
        (f"hooks: {{on_failure: []}}\n{MINIMAL}", "null, the path of a program, or a list"),
        (f"hooks: {{on_batch: ['', -x]}}\n{MINIMAL}", "null, the path of a program, or a list"),
        (f"hooks: {{on_batch: [tell, 5]}}\n{MINIMAL}", "(quote it)"),
        (f'hooks: {{on_batch: [tell, "a\\0b"]}}\n{MINIMAL}', "null, the path of a program, or a list"),
    ],
)
def test_wrong_values_elsewhere(folder: Folder, text: str, words: str) -> None:
    """Each value that cannot be used is one problem with what is accepted."""
    (line,) = folder.fails(text)
    assert words in line


@pytest.mark.parametrize(
    "keys",
    [
        "follow_symlinks: true",
    ],
)
def test_inbox_keys_that_are_not_available(folder: Folder, keys: str) -> None:
    """A key whose feature is not built yet accepts its default only, and says so."""
    (line,) = folder.inbox_fails(keys)
    assert "not available in this version" in line


@pytest.mark.parametrize(
    "text",
    [
        "workers: {cpu_share: 50%}",
        "workers: {idle_unload: 5m}",
        "workers: {preload: false}",
        "workers: {styles_in_memory: 2}",
        "workers: {device: cuda}",
    ],
)
def test_other_keys_that_are_not_available(folder: Folder, text: str) -> None:
    """A key whose feature is not built yet accepts its default only, and says so."""
    (line,) = folder.fails(f"{text}\n{MINIMAL}")
    assert "not available in this version" in line


def test_defaults_of_keys_that_are_not_available_can_be_written(folder: Folder) -> None:
    """The default of such a key is accepted in every form that means it."""
    text = (
        "workers: {cpu_share: 100%, idle_unload: 0, preload: true, styles_in_memory: 3, device: cpu}\n"
        "hooks: {on_success: null}\n"
    )
    assert folder.load(text + MINIMAL).workers.device == "cpu"
    assert folder.load("workers: {cpu_share: 100, idle_unload: 0s}\n" + MINIMAL).workers.cpu_share == 100.0


def test_times_of_day(folder: Folder) -> None:
    """Times come out as they were written, quoted or not, from the file and the environment, and are dumped so."""
    config = folder.load("schedule: {active: ['22:00-07:00', 9:30-24:00]}\n" + MINIMAL)
    assert config.schedule.active == ((1320, 420), (570, 1440))
    assert "  - 22:00-07:00\n  - 09:30-24:00\n" in dump(config)
    env = {"ANIMED_SCHEDULE__ACTIVE": '["01:00-02:00"]', "ANIMED_LIMITS__IMAGES_PER_MINUTE": "30"}
    other = folder.load(MINIMAL, env)
    assert (other.schedule.active, other.limits.images_per_minute) == (((60, 120),), 30)
    (item,) = [schema()["$defs"]["ScheduleConfig"]["properties"]["active"]["items"]]
    assert re.search(item["pattern"], "22:00-07:00")
    assert not re.search(item["pattern"], "24:00-07:00")


# Values


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("mode: {file: 0644, dir: '0755'}", ("mode", (0o644, 0o755))),
        ("mode: {file: 644, dir: 0o2775}", ("mode", (0o644, 0o2775))),
    ],
)
def test_permission_bits_in_any_form(folder: Folder, keys: str, value: tuple[str, tuple[int, int]]) -> None:
    """Octal digits mean the same with and without a leading zero and with and without quotes."""
    mode = folder.inbox(keys).mode
    assert (mode.file, mode.dir) == value[1]


def test_words_that_yaml_1_1_mangles_are_as_written(folder: Folder) -> None:
    """`off`, `no` and `on` are text where text is wanted."""
    inbox = folder.inbox("watch: off\n    report: off\n    style: no\n    ignore: [on, 22:00]")
    assert (inbox.watch, inbox.style, inbox.ignore) == ("off", "no", ("on", "22:00"))


def test_the_resolution_of_colour_is_as_written(folder: Folder) -> None:
    """What YAML 1.1 takes for a number of base 60 is the word that stands there, with and without quotes."""
    for word in ("4:4:4", "4:2:2", "4:2:0", "auto"):
        assert folder.inbox(f"subsampling: {word}").subsampling == word
        assert folder.inbox(f"subsampling: '{word}'").subsampling == word
    assert folder.inbox("output_format: webp\n    subsampling: 4:2:0").subsampling == "4:2:0"
    assert folder.inbox("progressive: false").progressive is False


def test_extensions_are_lower_case_without_dot_or_repeats(folder: Folder) -> None:
    """Extensions are compared in lower case and without their dot."""
    assert folder.inbox("extensions: [JPG, .png, jpg, .Png]").extensions == ("jpg", "png")


def test_null_stands_for_the_default_of_folders(folder: Folder) -> None:
    """processed_dir: null is the folder beside the inbox, as is leaving it out."""
    inbox = folder.inbox("processed_dir: null\n    failed_dir: bad")
    assert inbox.processed_dir == folder.path / "phone-processed"
    assert inbox.failed_dir == folder.path / "bad"


def test_the_folder_beside_an_inbox_whose_path_ends_in_two_dots() -> None:
    """The parent of such a path is left to the system to find."""
    inbox = InboxConfig(name="a", path=Path("/x/y/.."), output=Path("/z"))
    assert inbox.processed_dir == Path("/x/y/../../a-processed")


def test_defaults_are_merged_key_by_key(folder: Folder) -> None:
    """An inbox overrides single keys of preserve and mode, and keeps the other ones of the defaults."""
    text = """\
defaults: {style: mine, preserve: {gps: false, exif: false}, mode: {file: 0600}, output: shared, ignore: [a]}
inboxes:
  - {name: a, path: a}
  - {name: b, path: b, style: cel, preserve: {exif: true}, mode: {dir: 0700}, ignore: [b]}
"""
    one, other = folder.load(text).inboxes
    assert (one.style, one.preserve.gps, one.preserve.exif, one.mode.file) == ("mine", False, False, 0o600)
    assert (other.style, other.preserve.gps, other.preserve.exif) == ("cel", False, True)
    assert (other.mode.file, other.mode.dir, other.ignore) == (0o600, 0o700, ("b",))
    assert one.output == other.output == folder.path / "shared"


def test_models_made_by_a_program_take_plain_values() -> None:
    """Without a file, numbers are seconds, bytes and bits; None is auto; and a relative path is refused."""
    inbox = InboxConfig.model_validate({"name": "a", "path": "/a", "output": Path("/b"), "mode": {"file": 0o644}})
    assert inbox.mode.file == 0o644
    assert Config(state_dir=Path("/s"), styles_dir=Path("/t"), inboxes=(inbox,)).workers.count is None
    with pytest.raises(ValueError, match="an absolute path"):
        InboxConfig(name="a", path=Path("a"), output=Path("/b"))


# The texts


def test_the_file_that_ships_names_every_key_with_its_default(tmp_path: Path) -> None:
    """config.yaml loads, equals the defaults, and has every key of the schema and a comment for most."""
    text = default_text()
    (tmp_path / "config.yaml").write_text(text)
    config = load(None, environ=HOME, cwd=tmp_path)
    plain = Folder(tmp_path).load(
        "inboxes: [{name: phone, path: ~/Pictures/animed/inbox, output: ~/Pictures/animed/outbox}]"
    )
    assert config == plain
    described = schema()
    keys = [
        (name, key) for name, part in described["$defs"].items() for key in part["properties"] if "Defaults" not in name
    ]
    keys += [("Config", key) for key in described["properties"]]
    missing = [(part, key) for part, key in keys if not re.search(rf"(?m)^[^#\n]*\b{key}:", text)]
    assert missing == []
    assert len(keys) > 75


def test_every_key_is_described_in_one_sentence() -> None:
    """The schema has a description for each key, and each is one sentence."""
    described = schema()
    parts = [described, *described["$defs"].values()]
    for part in parts:
        for key, value in part["properties"].items():
            assert re.fullmatch(r"[^\n]{8,}\.", value.get("description", "")), key


def test_the_schema_is_of_the_file_as_users_write_it() -> None:
    """Durations and sizes may be text, the two kinds of folders may be null, and defaults stand as in the file."""
    described = schema()
    inbox = described["$defs"]["InboxConfig"]
    assert inbox["properties"]["stable_for"]["type"] == ["string", "number"]
    assert inbox["properties"]["stable_for"]["default"] == "2s"
    assert inbox["properties"]["processed_dir"]["type"] == ["string", "null"]
    assert inbox["properties"]["faces"]["enum"] == ["off", "auto"]
    assert inbox["required"] == ["name", "path"]
    assert described["required"] == ["inboxes"]
    assert "source" not in described["properties"]
    assert described["$defs"]["InboxDefaults"]["properties"] == inbox["properties"]
    assert "required" not in described["$defs"]["InboxDefaults"]
    assert described["$defs"]["WorkersConfig"]["properties"]["max_memory"]["default"] == "auto"
    json.dumps(described)


_FOLDERS = st.text(st.characters(exclude_characters="\0/", exclude_categories=SURROGATES), min_size=1, max_size=8)
_INBOX = st.fixed_dictionaries(
    {},
    optional={
        "style": st.sampled_from(["cel", "no", "1e3", "null", "0644"]),
        "strength": st.floats(0, 1),
        "max_edge": st.integers(64, 4096),
        "stable_for": st.floats(0.001, 500),
        "rescan_interval": st.integers(0, 10**6),
        "ignore": st.lists(st.text(st.characters(exclude_categories=SURROGATES)), max_size=3),
        "mode": st.fixed_dictionaries(
            {}, optional={"dir": st.integers(0, 0o7777), "group": st.sampled_from(["1", "no"])}
        ),
        "preserve": st.fixed_dictionaries({}, optional={"gps": st.booleans()}),
        "failed": st.sampled_from(["leave", "move"]),
    },
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    inbox=_INBOX,
    name=_FOLDERS,
    workers=st.fixed_dictionaries({}, optional={"count": st.integers(1, 99), "max_memory": st.integers(1, 2**50)}),
)
def test_what_show_prints_loads_to_the_same(
    folder: Folder, inbox: dict[str, Any], name: str, workers: dict[str, Any]
) -> None:
    """The effective configuration as text is a configuration file that means the same."""
    made = {"name": "a", "path": f"/in/{name}x", "output": f"/out/{name}x", **inbox}
    config = Config.model_validate(
        {"state_dir": "/state", "styles_dir": "/styles", "inboxes": (made,), "workers": workers}
    )
    again = folder.load(dump(config))
    assert again.model_copy(update={"source": None}) == config


def test_a_path_that_is_not_utf8_survives_show(folder: Folder) -> None:
    """A path with bytes that are not UTF-8 is written with escapes and read back."""
    config = folder.load(MINIMAL, {"ANIMED_STATE_DIR": "/state\udcff"})
    assert folder.load(dump(config)).state_dir == Path("/state\udcff")
