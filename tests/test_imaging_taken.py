"""Dates of photos, however they are written; what is none is nothing."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.imaging import taken
from animed.imaging.taken import Moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024:05:17 18:03:59", Moment("2024-05-17T18:03:59")),
        ("2024:05:17 18:03:59\0", Moment("2024-05-17T18:03:59")),
        ("2024-05-17T18:03:59", Moment("2024-05-17T18:03:59")),
        ("2024-05-17T18:03:59.25+02:00", Moment("2024-05-17T18:03:59", "+02:00")),
        ("2024-05-17T18:03-0930", Moment("2024-05-17T18:03:00", "-09:30")),
        ("2024-05-17T18:03:59Z", Moment("2024-05-17T18:03:59", "+00:00")),
        ("2024/05/17 18:03:59", Moment("2024-05-17T18:03:59")),
        ("2024:05:17", Moment("2024-05-17T00:00:00")),
        ("Fri, 17 May 2024 18:03:59 +0200", Moment("2024-05-17T18:03:59", "+02:00")),
        ("17 May 2024 18:03:59", Moment("2024-05-17T18:03:59")),
        ("1839:01:01 00:00:00", Moment("1839-01-01T00:00:00")),
    ],
)
def test_dates_are_read_as_programs_write_them(text: str, moment: Moment) -> None:
    """EXIF, XMP and mail dates give the camera's own clock, and its zone where it stands there."""
    assert taken.parse(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000:00:00 00:00:00",
        "    :  :     :  :  ",
        "2024:13:01 00:00:00",
        "2024:02:30 10:00:00",
        "2024:05:17 24:00:00",
        "2024:05:17 18:60:00",
        "2024:05-17 18:03:59",
        "1234:05:17 18:03:59",
        "2024",
        "2024-05",
        "yesterday",
        "٢٠٢٤:05:17 18:03:59",
        "2024:05:17 18:03:59" + " x" * 100,
    ],
)
def test_what_is_no_date_is_nothing(text: str) -> None:
    """Blanks, zeros and months that do not exist are left out; they would sort photos wrongly."""
    assert taken.parse(text) is None


def test_iptc_writes_dates_without_signs() -> None:
    """The time may be missing or wrong; the date counts then alone."""
    assert taken.parse_iptc("20240517", "180359+0200") == Moment("2024-05-17T18:03:59", "+02:00")
    assert taken.parse_iptc("20240517", "") == Moment("2024-05-17T00:00:00")
    assert taken.parse_iptc("20240517", "evening") == Moment("2024-05-17T00:00:00")
    assert taken.parse_iptc("00000000", "180359") is None
    assert taken.parse_iptc("", "") is None


@given(st.datetimes(min_value=datetime(1826, 1, 1)))  # noqa: DTZ001 - a camera's clock has no zone
@settings(deadline=None, max_examples=100)
def test_every_moment_is_read_back(moment: datetime) -> None:
    """What EXIF, XMP and the notes of a photo write is the same moment."""
    whole = moment.replace(microsecond=0)
    read = taken.parse(whole.strftime("%Y:%m:%d %H:%M:%S"))
    assert read is not None
    assert read.when == whole.isoformat()
    assert taken.parse(read.exif) == taken.parse(read.when) == read


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_no_text_is_too_odd(text: str) -> None:
    """Any text at all is a date or none."""
    for moment in (taken.parse(text), taken.parse_iptc(text, text)):
        assert moment is None or (len(moment.when) == 19 and moment.zone in {"", taken.zone(moment.zone)})
