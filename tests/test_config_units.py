"""Durations, sizes, percentages and permission bits: what is read, and that writing them loses nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.config import units


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("200ms", 0.2),
        ("5s", 5.0),
        ("10m", 600.0),
        ("1h", 3600.0),
        ("2d", 172800.0),
        ("1h30m", 5400.0),
        ("1.5 s", 1.5),
        ("0", 0.0),
        ("7", 7.0),
        (7, 7.0),
        (0.25, 0.25),
    ],
)
def test_durations_are_read(written: object, seconds: float) -> None:
    """Durations carry units, and a bare number is seconds."""
    assert units.parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    ["", "fast", "5 apples", "-5s", "s", "5S", "1e99d", True, None, -1, float("nan"), float("inf"), [], 10**400],
)
def test_what_is_no_duration(written: object) -> None:
    """Anything else is refused with the forms that are accepted."""
    with pytest.raises(ValueError, match="a duration such as"):
        units.parse_duration(written)


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("1GiB", 2**30),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("1.5KiB", 1536),
        ("0", 0),
        ("12", 12),
        (12, 12),
        ("7B", 7),
        (8.0, 8),
    ],
)
def test_sizes_are_read(written: object, count: int) -> None:
    """Sizes carry units of 1000 or of 1024, and a bare number is bytes."""
    assert units.parse_size(written) == count


@pytest.mark.parametrize("written", ["", "big", "5G", "0.5B", "-1", 0.5, True, None, "9e9TiB", "1e999B", 10**400, {}])
def test_what_is_no_size(written: object) -> None:
    """Anything else, also a fraction of a byte, is refused with the forms that are accepted."""
    with pytest.raises(ValueError, match="a size such as"):
        units.parse_size(written)


@pytest.mark.parametrize(("written", "percent"), [("100%", 100.0), ("50 %", 50.0), (25, 25.0), ("12.5", 12.5)])
def test_percentages_are_read(written: object, percent: float) -> None:
    """A percentage is a number with or without its sign."""
    assert units.parse_percent(written) == percent


@pytest.mark.parametrize("written", ["0%", "101%", "half", True, None, -5, ""])
def test_what_is_no_percentage(written: object) -> None:
    """Anything outside 1 to 100 is refused."""
    with pytest.raises(ValueError, match="a percentage"):
        units.parse_percent(written)


@pytest.mark.parametrize(
    ("written", "bits"), [("0644", 0o644), ("0o755", 0o755), (755, 0o755), ("2775", 0o2775), (0, 0)]
)
def test_permission_bits_are_octal_digits(written: object, bits: int) -> None:
    """Digits are octal however they are written."""
    assert units.parse_mode(written) == bits


@pytest.mark.parametrize("written", ["888", 999, "17777", "rw-r--r--", True, None, -644, 6.44])
def test_what_are_no_permission_bits(written: object) -> None:
    """Anything that is not octal is refused."""
    with pytest.raises(ValueError, match="octal"):
        units.parse_mode(written)


@settings(deadline=None, max_examples=200)
@given(
    seconds=st.floats(min_value=0, max_value=1e9)
    | st.integers(0, 10**9).map(float)
    | st.integers(0, 10**7).map(lambda n: n / 1000)
)
def test_a_duration_survives_being_written(seconds: float) -> None:
    """Reading what was written gives the same duration."""
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@settings(deadline=None, max_examples=200)
@given(count=st.integers(0, 2**63 - 1) | st.integers(0, 2**20).map(lambda n: n * 2**30))
def test_a_size_survives_being_written(count: int) -> None:
    """Reading what was written gives the same size."""
    assert units.parse_size(units.format_size(count)) == count


@settings(deadline=None, max_examples=100)
@given(percent=st.floats(min_value=1, max_value=100), bits=st.integers(0, 0o7777))
def test_percentages_and_bits_survive_being_written(percent: float, bits: int) -> None:
    """Reading what was written gives the same value."""
    assert units.parse_percent(units.format_percent(percent)) == percent
    assert units.parse_mode(units.format_mode(bits)) == bits


def test_units_are_the_largest_that_fit() -> None:
    """What is written is short."""
    assert [units.format_duration(value) for value in (0.2, 5, 300, 900.0, 86400, 0, 0.0001)] == [
        "200ms",
        "5s",
        "5m",
        "15m",
        "1d",
        "0s",
        "0.0001s",
    ]
    assert [units.format_size(value) for value in (0, 1, 2**30, 500_000_000)] == ["0B", "1B", "1GiB", "500MB"]
