"""The hours of the day: windows as the wall's clock shows them, in zones that set their clocks."""

from __future__ import annotations

import functools
from bisect import bisect_right
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.config.windows import format_window, parse_window
from animed.schedule.hours import Hours, system_offset

YEAR = 2026
FIRST = int(datetime(YEAR, 1, 1, tzinfo=UTC).timestamp())
MINUTES = 365 * 1440
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError:
        pytest.skip(f"this system does not know the time zone {name}")


def hours(zone: str, *windows: str) -> Hours:
    place = zone_of(zone)

    def offset(wall: int) -> int:
        ahead = datetime.fromtimestamp(wall, place).utcoffset()
        assert ahead is not None
        return int(ahead.total_seconds())

    return Hours(tuple(parse_window(window) for window in windows), offset)


def at(zone: str, text: str, *, fold: int = 0) -> int:
    """Return the instant at which a zone's clock shows a time; `fold` chooses between two."""
    return int(datetime.fromisoformat(text).replace(tzinfo=zone_of(zone), fold=fold).timestamp())


def changes(some: Hours, start: int, end: int) -> list[int]:
    """Return every change in (start, end)."""
    found, wall = [], float(start)
    while (change := some.next_change(wall)) is not None and change < end:
        found.append(change)
        wall = change
    return found


# The model: what the clock shows in every single minute of a year.


@functools.cache
def shown(zone: str) -> tuple[int, ...]:
    place = zone_of(zone)
    times = (datetime.fromtimestamp(FIRST + 60 * minute, place) for minute in range(MINUTES))
    return tuple(time.hour * 60 + time.minute for time in times)


def covered(windows: list[str]) -> set[int]:
    """Return the minutes of the day in the windows, counted one by one."""
    minutes = set()
    for window in windows:
        start, end = (int(text[:2]) * 60 + int(text[3:]) for text in window.split("-"))
        minute = start
        while minute != end % 1440:
            minutes.add(minute)
            minute = (minute + 1) % 1440
        if (start, end) == (0, 1440):
            minutes = set(range(1440))
    return minutes


def clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


# Edges near the hours at which clocks are set are worth more than others.
MINUTE = st.one_of(st.integers(0, 1439), st.sampled_from([0, 60, 90, 119, 120, 121, 135, 150, 179, 180, 1439]))
WINDOW = st.tuples(MINUTE, MINUTE | st.just(1440)).filter(lambda ends: ends[0] != ends[1])
WINDOWS = st.lists(WINDOW.map(lambda ends: f"{clock(ends[0])}-{clock(ends[1])}"), min_size=1, max_size=4)


@pytest.mark.parametrize("zone", ZONES)
@settings(deadline=None, max_examples=15)
@given(windows=WINDOWS, wall=st.integers(0, MINUTES * 60 - 1), part=st.floats(0, 0.999))
def test_a_year_minute_by_minute(zone: str, windows: list[str], wall: int, part: float) -> None:
    """Every change of a year is the one that the clock on the wall shows, to the second."""
    minutes, clocks, some = covered(windows), shown(zone), hours(zone, *windows)
    states = [minute in minutes for minute in clocks]
    wanted = [FIRST + 60 * i for i, (one, two) in enumerate(pairwise(states), 1) if one != two]
    assert changes(some, FIRST, FIRST + MINUTES * 60) == wanted
    assert some.always == (minutes == set(range(1440)))
    moment = FIRST + wall + part
    assert some.is_active(moment) == states[wall // 60]
    following = bisect_right(wanted, moment)
    if following < len(wanted):
        assert some.next_change(moment) == wanted[following]
        assert some.span(moment).end == wanted[following]


def test_a_window_over_midnight() -> None:
    """From the evening to the morning is one stretch, whatever the date does in between."""
    some = hours("UTC", "22:00-07:00")
    for text, active, change in [
        ("2026-05-01T21:59:59", False, "2026-05-01T22:00"),
        ("2026-05-01T22:00", True, "2026-05-02T07:00"),
        ("2026-05-02T00:00", True, "2026-05-02T07:00"),
        ("2026-05-02T07:00", False, "2026-05-02T22:00"),
    ]:
        assert some.is_active(at("UTC", text)) is active, text
        assert some.next_change(at("UTC", text)) == at("UTC", change), text


def test_no_window_and_the_whole_day_are_always() -> None:
    """Without windows, and with windows that leave nothing out, there is never a change."""
    for windows in ([], ["00:00-24:00"], ["22:00-07:00", "07:00-22:00"], ["12:00-00:00", "00:00-13:00"]):
        some = hours("Europe/Berlin", *windows)
        assert some.always
        assert some.is_active(0.5)
        assert some.next_change(1e9) is None
        assert some.span(5.0).holds(1e12)


def test_windows_that_overlap_or_touch_are_one() -> None:
    """Where two windows meet nothing changes."""
    some = hours("UTC", "09:00-12:00", "11:00-13:00", "13:00-15:00")
    day = at("UTC", "2026-05-01T00:00")
    assert changes(some, day, day + 86_400) == [day + 9 * 3600, day + 15 * 3600]


def test_the_spring_gap() -> None:
    """An edge in the hour that is left out comes when the clock is set; a window inside it does not happen that day."""
    night = "2026-03-29T"
    some = hours("Europe/Berlin", "22:00-02:30")
    start = at("Europe/Berlin", "2026-03-28T23:00")
    assert some.next_change(start) == at("Europe/Berlin", f"{night}03:00")
    missed = hours("Europe/Berlin", "02:15-02:45")
    assert missed.next_change(start) == at("Europe/Berlin", "2026-03-30T02:15")


def test_the_autumn_double_hour() -> None:
    """A window in the hour that comes twice happens twice; one over it is an hour longer."""
    night = "2026-10-25T"
    start = at("Europe/Berlin", "2026-10-24T22:00")
    end = at("Europe/Berlin", f"{night}12:00")
    twice = [at("Europe/Berlin", f"{night}02:{minute}", fold=fold) for fold in (0, 1) for minute in ("15", "45")]
    assert changes(hours("Europe/Berlin", "02:15-02:45"), start, end) == twice
    (close,) = changes(hours("Europe/Berlin", "22:00-07:00"), start, end)
    assert close - start == 10 * 3600


def test_a_clock_that_is_set_by_half_an_hour() -> None:
    """Lord Howe's clock goes from 02:00 back to 01:30, and from 02:00 on to 02:30."""
    back = at("Australia/Lord_Howe", "2026-04-04T20:00")
    assert changes(hours("Australia/Lord_Howe", "01:45-03:00"), back, back + 8 * 3600) == [
        at("Australia/Lord_Howe", "2026-04-05T01:45", fold=0),
        at("Australia/Lord_Howe", "2026-04-05T01:30", fold=1),
        at("Australia/Lord_Howe", "2026-04-05T01:45", fold=1),
        at("Australia/Lord_Howe", "2026-04-05T03:00"),
    ]
    on = at("Australia/Lord_Howe", "2026-10-03T20:00")
    assert changes(hours("Australia/Lord_Howe", "02:15-03:00"), on, on + 8 * 3600) == [
        at("Australia/Lord_Howe", "2026-10-04T02:30"),
        at("Australia/Lord_Howe", "2026-10-04T03:00"),
    ]


def test_the_system_zone_is_the_default() -> None:
    """Without another clock the one of this system counts, at the instant that is asked for."""
    wall = at("UTC", "2026-07-01T12:00")
    local = datetime.fromtimestamp(wall).astimezone()
    ahead = local.utcoffset()
    assert ahead is not None
    assert system_offset(wall) == ahead.total_seconds()
    start = local.hour * 60 + local.minute
    assert Hours(((start, (start + 1) % 1440),)).next_change(wall) == wall + 60


# As people write them.


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("22:00-07:00", (1320, 420)),
        ("00:00-24:00", (0, 1440)),
        ("7:05 - 9:00", (425, 540)),
        ("22:00-00:00", (1320, 0)),
    ],
)
def test_a_window_is_read(text: str, window: tuple[int, int]) -> None:
    """Hours and minutes of both ends, over midnight or not."""
    assert parse_window(text) == window


@pytest.mark.parametrize(
    "written",
    [
        *("22:00", "22-07", "25:00-07:00", "22:60-07:00", "24:01-07:00", "24:00-07:00", "22:00-22:00", "", "-"),
        *("00:00-00:00", "22:00-07:00 UTC", "22:00\u201307:00", "2200-0700", "\u0661\u0660:00-11:00", "-1:00-02:00"),
        *(1320, None, ["22:00", "07:00"], True),
    ],
)
def test_what_is_no_window_is_refused(written: object) -> None:
    """Anything else, equal ends included, is refused with what is accepted."""
    with pytest.raises(ValueError, match=r"a time of day such as 22:00-07:00"):
        parse_window(written)


@settings(deadline=None)
@given(WINDOW)
def test_a_window_is_written_as_it_is_read(ends: tuple[int, int]) -> None:
    """What is written is read back as the same window."""
    assert parse_window(format_window(ends)) == ends
