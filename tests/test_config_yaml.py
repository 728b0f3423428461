"""YAML text to values: nothing is mangled, every fault has its line, and nothing makes the reader fall over."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.config.yaml_text import parse, scalar, write


@pytest.mark.parametrize(
    "text",
    [
        "22:00",
        "no",
        "yes",
        "on",
        "off",
        "No",
        "Y",
        "n",
        "0644",
        "0o644",
        "08",
        "1_000",
        "2026-01-01",
        "1:30:00",
        "=",
        "<<",
        "+",
        ".",
    ],
)
def test_what_yaml_1_1_mangles_comes_out_as_written(text: str) -> None:
    """Times of day, words for yes and no, octal, dates and digits with underscores are text."""
    assert parse(f"key: {text}").value == {"key": text}
    assert scalar(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("FALSE", False),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.inf", -math.inf),
        (".inf", math.inf),
        ("9" * 30, 1e30),
    ],
)
def test_core_scalars_have_types(text: str, value: object) -> None:
    """Null, true, false and decimal numbers are what they look like."""
    found = parse(f"key: {text}").value
    assert found == {"key": value}
    assert type(scalar(text)) is type(value)


def test_quotes_make_text() -> None:
    """A quoted value is text whatever it looks like, and so is every key."""
    assert parse("'1': '5'\n2: \"true\"\ntrue: 'null'").value == {"1": "5", "2": "true", "true": "null"}


def test_every_key_and_item_has_its_line() -> None:
    """Lines count from 1 and are known for keys and items at every depth."""
    document = parse("a: 1\n\nb:\n  - c: 2\n    d: [3,\n      4]\n")
    lines = {loc: line for loc, line in document.lines.items() if loc}
    assert lines == {
        ("a",): 1,
        ("b",): 3,
        ("b", 0): 4,
        ("b", 0, "c"): 4,
        ("b", 0, "d"): 5,
        ("b", 0, "d", 0): 5,
        ("b", 0, "d", 1): 6,
    }


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "an empty file"),
        ("# only a remark\n", 1, "an empty file"),
        ("a: 1\nb:\n\tc: 2\n", 3, "a tab"),
        ("- a\n- b\n", 1, "got a list; accepted: a mapping at the top level"),
        ("\nhello", 2, "got the value hello"),
        ("null", 1, "got the value null"),
        ("a: 1\nb: 2\n  c: 3\n", 3, "mapping values are not allowed here"),
        ("a: 1\nb: [1, 2\n", 3, "expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("a: 1\nb: x\x01y\n", 2, "the character"),
        ("a: 1\nb: &x [*x]\n", 2, "aliases without end"),
        ("a: 1\nb: !!python/name:os.system\n", 2, "the tag !!python/name:os.system"),
        ("a: !mine 1", 1, "the tag !mine"),
        ("a: !!int x", 1, "under the tag !!int"),
        ("? [a]\n: 1\n", 1, "got a list as a key"),
        ("a: 1\nb: 2\na: 3\n", 3, "a: got the key a second time (first on line 1)"),
        ("x:\n  - {k: 1, k: 2}\n", 2, "x[0].k: got the key a second time"),
        ("a: *nothing", 1, "undefined alias"),
    ],
)
def test_faults_of_form_have_a_line(text: str, line: int, word: str) -> None:
    """Each fault of form is one problem with its line and a clear word."""
    (problem,) = parse(text).problems
    assert problem.line == line
    assert word in str(problem)


def test_a_second_value_of_a_key_is_not_taken() -> None:
    """Of a key that stands twice, the first value counts while other problems are looked for."""
    assert parse("a: 1\na: 2").value == {"a": 1}


def test_aliases_are_values() -> None:
    """An alias stands for its value."""
    assert parse("a: &x {k: 1}\nb: *x").value == {"a": {"k": 1}, "b": {"k": 1}}


def test_bombs_are_refused() -> None:
    """Aliases that would unfold to millions of values, and very deep nesting, are problems."""
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    assert "aliases without end" in str(parse(bomb).problems[0])
    assert "nested too deeply" in str(parse("[" * 20_000).problems[0])


@settings(deadline=None, max_examples=150)
@given(text=st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text is, the reader returns a mapping or tells a problem, and never raises."""
    document = parse(text)
    assert document.problems or isinstance(document.value, dict)


_SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False) | st.text()


@settings(deadline=None, max_examples=150)
@given(
    value=st.dictionaries(
        st.text(),
        st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5),
        min_size=1,
    )
)
def test_what_is_written_is_read_back(value: dict[str, object]) -> None:
    """Dumping and reading gives equal values of equal types."""
    document = parse(write(value))
    assert document.problems == ()
    assert repr(document.value) == repr(value)


@settings(deadline=None, max_examples=100)
@given(text=st.from_regex(r"[-+.0-9eExoOabfFinNAulsTrRtUyYs_:~]{1,8}", fullmatch=True))
def test_a_scalar_means_the_same_in_a_file_and_alone(text: str) -> None:
    """The rule for environment variables is the rule for the file, wherever the text is one plain scalar."""
    document = parse(f"key: {text}")
    if document.problems or not isinstance(document.value, dict) or isinstance(document.value["key"], (dict, list)):
        return
    assert repr(document.value["key"]) == repr(scalar(text))
