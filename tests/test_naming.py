"""The laws of output names."""

from __future__ import annotations

import os
import re
import unicodedata
from datetime import datetime
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.delivery.moment import EPOCH
from animed.delivery.naming import Layout, Subject, candidates, numbered, split
from animed.delivery.portable import PLAIN, NameRules, portable
from animed.folding import folded
from animed.template import FIELDS, Template, TemplateError

TEMPLATE = "{stem}.{style}{ext}"
EVERYTHING = "{folder} {inbox} {year}{month}{day}{hour}{minute}{second}{stem}.{style}{counter}{ext}"
TEMPLATES = st.one_of(
    st.sampled_from([TEMPLATE, "{stem}{ext}", ".{stem}-{style}{ext}", "{style}_{stem}", "{stem}-2-2{ext}"]),
    st.sampled_from([EVERYTHING, "{folder}{stem}", "{stem}{stem}{folder}{ext}", "{year}{counter}"]),
    st.sampled_from(["x{counter}{ext}", "猫{stem}{counter}{ext}"]),
)
LAYOUTS: st.SearchStrategy[Layout] = st.sampled_from(["mirror", "flat", "date"])
RULES = st.builds(NameRules, st.sampled_from([128, 143, 255]), st.sampled_from(["any", "portable", "ascii"]))
AWKWARD = [
    "CON",
    "con.jpg",
    "NUL .x",
    "a:b?.png",
    "trip. ",
    "...x",
    "tab\there",
    "e\u0301.jpg",
    "\u0301.jpg",
    "猫 *",
    "COM\u00b9",
]
COMPONENTS = (
    st.one_of(
        st.binary(min_size=1, max_size=255),
        st.text(min_size=1, max_size=80).map(lambda text: text.encode("utf-8", "replace")[:255]),
        st.integers(225, 255).map(lambda size: b"n" * size),
        st.sampled_from(["é" * 127, "猫" * 85, "a" * 251 + ".jpg", *AWKWARD]).map(str.encode),
    )
    .map(lambda raw: raw.replace(b"/", b"_").replace(b"\0", b"_").lstrip(b"."))
    .filter(bool)
)
PATHS = st.lists(COMPONENTS, min_size=1, max_size=3).map(b"/".join)
WHENS = st.datetimes()
SUBJECTS = st.builds(
    Subject, PATHS, st.sampled_from(["cel", "s" * 200]), st.sampled_from([".jpg", ".webp"]),
    st.sampled_from(["phone", "i" * 255]), WHENS,
)  # fmt: skip
RUN = settings(deadline=None, max_examples=80)


def names(
    path: bytes,
    count: int,
    *,
    template: str = TEMPLATE,
    layout: Layout = "mirror",
    when: datetime = EPOCH,
    rules: NameRules = PLAIN,
) -> list[bytes]:
    subject = Subject(path, "cel", ".jpg", "phone", when)
    return list(islice(candidates(subject, template=template, layout=layout, rules=rules), count))


def test_the_counter_goes_before_the_extension() -> None:
    """A photo's names are a.cel.jpg, a.cel-2.jpg, a.cel-3.jpg."""
    assert names(b"a.png", 3) == [b"a.cel.jpg", b"a.cel-2.jpg", b"a.cel-3.jpg"]


def test_without_an_extension_field_the_counter_ends_the_name() -> None:
    """A template without {ext} still counts."""
    assert names(b"a.png", 2, template="{stem}") == [b"a", b"a-2"]


def test_the_counter_goes_where_the_template_has_it() -> None:
    """A counter in the template is empty for the first name, then -2, -3."""
    assert names(b"a.png", 3, template="{stem}{counter}.{style}{ext}") == [b"a.cel.jpg", b"a-2.cel.jpg", b"a-3.cel.jpg"]


def test_every_field_has_its_value() -> None:
    """Each field stands for what it is called after; numbers of a date are padded, slashes of a folder become bars."""
    when = datetime(987, 5, 7, 8, 3, 9)  # noqa: DTZ001 - what a clock on the wall showed.
    fields = {field: f"{{{field}}}" for field in FIELDS}
    found = names(b"x/y/a.png", 1, template="|".join(f"{{{field}}}" for field in fields), when=when, layout="flat")
    assert found == [b"a|cel|.jpg|0987|05|07|08|03|09||phone|x_y"]


def test_a_photo_at_the_top_has_no_folder() -> None:
    """{folder} is empty where there is none, and does not hide the picture."""
    assert names(b"a.png", 1, template="{folder}.{stem}{ext}") == [b"_.a.jpg"]


def test_layouts() -> None:
    """Mirror keeps the sub-folders, flat drops them, date has one for the year and in it one for the month."""
    assert names(b"x/y/a.jpg", 1) == [b"x/y/a.cel.jpg"]
    assert names(b"x/y/a.jpg", 1, layout="flat") == [b"a.cel.jpg"]
    when = datetime(2024, 5, 17)  # noqa: DTZ001 - what a clock on the wall showed.
    assert names(b"x/y/a.jpg", 2, layout="date", when=when) == [b"2024/05/a.cel.jpg", b"2024/05/a.cel-2.jpg"]


def test_names_are_kept_as_they_are() -> None:
    """Where a file system takes any name, no byte of a photo's is changed, whatever form or alphabet it has."""
    for stem in ("é", "e\u0301", "a:b?", "CON", "line\nbreak", "a.cel", "trip. "):
        assert names(f"{stem}/{stem}.jpg".encode(), 1) == [f"{stem}/{stem}.cel.jpg".encode()]
    assert names(b"\xff\xfe.jpg", 1) == [b"\xff\xfe.cel.jpg"]


def test_a_template_cannot_hide_a_picture() -> None:
    """A name that would begin with a dot gets a mark before it."""
    assert names(b"a.jpg", 1, template=".{stem}{ext}") == [b"_.a.jpg"]


@given(SUBJECTS, TEMPLATES, LAYOUTS, RULES)
@RUN
def test_every_name_is_usable(subject: Subject, template: str, layout: Layout, rules: NameRules) -> None:
    """Every component fits, has no slash or NUL, is visible and, where that is wanted, one that Windows takes."""
    for name in islice(candidates(subject, template=template, layout=layout, rules=rules), 12):
        for component in split(name):
            assert 0 < len(component) <= rules.limit
            assert not component.startswith(b".")
            assert rules.charset == "any" or is_windows_name(component.decode())
            assert rules.charset != "ascii" or component.isascii()
        assert name.count(b"/") == {"mirror": subject.path.count(b"/"), "flat": 0, "date": 2}[layout]


@given(SUBJECTS, TEMPLATES, LAYOUTS, RULES)
@RUN
def test_names_are_deterministic_and_differ_by_counter(
    subject: Subject, template: str, layout: Layout, rules: NameRules
) -> None:
    """The same photo has the same names every time, and no two of them are equal, in any spelling."""
    found = list(islice(candidates(subject, template=template, layout=layout, rules=rules), 120))
    assert found == list(islice(candidates(subject, template=template, layout=layout, rules=rules), 120))
    assert len(set(map(folded, found))) == len(found)


@given(st.lists(PATHS, min_size=1, max_size=12, unique=True), TEMPLATES, LAYOUTS, RULES)
@RUN
def test_no_two_photos_share_a_picture(paths: list[bytes], template: str, layout: Layout, rules: NameRules) -> None:
    """Taking the first name that is free in every spelling, every source gets a name of its own."""
    taken: set[bytes] = set()
    for path in paths:
        subject = Subject(path, "cel", ".jpg")
        free = candidates(subject, template=template, layout=layout, rules=rules)
        taken.add(next(name for name in map(folded, free) if name not in taken))
    assert len(taken) == len(paths)


def test_long_names_that_differ_at_their_end_stay_apart() -> None:
    """Cutting a long name keeps a digest of all of it, so the first candidates differ already."""
    first, second = (names(b"n" * 250 + tail + b".jpg", 1)[0] for tail in (b"a", b"b"))
    assert first != second
    assert first.endswith(b".cel.jpg")


def test_what_is_cut_is_what_is_longest() -> None:
    """A long folder in a name is cut before a short stem is."""
    (name,) = names(b"f" * 250 + b"/short.jpg", 1, template="{folder} {stem}{ext}", layout="flat")
    assert name.endswith(b" short.jpg")
    assert len(name) <= 255


def test_a_mirrored_folder_fits_the_limit_too() -> None:
    """Folders that are too long for the output are cut like names, and stay apart."""
    rules = NameRules(143)
    first, second = (names(b"n" * 200 + tail + b"/a.jpg", 1, rules=rules)[0] for tail in (b"a", b"b"))
    assert first != second
    assert len(first.split(b"/")[0]) == 143


@given(st.text(alphabet="aé猫😀", min_size=60, max_size=200).map(str.encode).filter(lambda raw: 200 < len(raw) <= 255))
@RUN
def test_a_cut_name_stays_utf8(stem: bytes) -> None:
    """A long UTF-8 name is cut between characters."""
    for name in names(stem, 3, template="{stem}{stem}{counter}"):
        name.decode()


@given(COMPONENTS, st.integers(1, 9999), st.sampled_from([255, 244]))
@RUN
def test_numbered_names_fit(name: bytes, counter: int, room: int) -> None:
    """A file's own name with a counter keeps its extension and fits the room."""
    found = numbered(name, counter, room=room)
    assert 0 < len(found) <= room
    if counter == 1 and len(name) <= room:
        assert found == name
    ext = os.path.splitext(name)[1]
    assert len(ext) > 32 or found.endswith(ext)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "same name"),
        ("{style}{ext}", "same name"),
        ("{stem}/{style}", "slash"),
        ("a\0{stem}", "slash"),
        ("{name}", "{name} is unknown"),
        ("{stem.x}", "unknown"),
        ("{}", "{} is unknown"),
        ("{stem!r}", "no format"),
        ("{stem:>9}", "no format"),
        ("{stem", "expected"),
        ("{stem}{counter}-{counter}", "once"),
        ("x" * 99 + "{stem}", "too long"),
        ("{stem}" * 9, "too long"),
    ],
)
def test_an_unusable_template_is_refused(template: str, why: str) -> None:
    """A template that cannot make names says why."""
    with pytest.raises(TemplateError, match=re.escape(why)):
        Template.parse(template)


def test_braces_can_stand_in_a_name() -> None:
    """Doubled braces are braces."""
    assert names(b"a.jpg", 1, template="{{{stem}}}{ext}") == [b"{a}.jpg"]


@pytest.mark.parametrize(("template", "dated"), [(TEMPLATE, False), ("{stem}{second}", True), ("year{stem}", False)])
def test_a_template_knows_whether_it_needs_a_date(template: str, dated: bool) -> None:
    """Only names with a part of the date depend on when a photo was taken."""
    assert Template.parse(template).dated is dated


@pytest.mark.parametrize("path", [b"", b"/a", b"a//b", b"../a", b"a/./b", b"a/", b"a\0b"])
def test_only_plain_relative_paths_have_names(path: bytes) -> None:
    """A path that could leave its root is refused."""
    with pytest.raises(ValueError, match="plain relative path"):
        split(path)


# What Windows takes, by its own words: written down once more, so that the rules are not tested against themselves.


def is_windows_name(name: str) -> bool:
    device = re.fullmatch(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*", name.partition(".")[0].lower())
    return not (set(name) & set('<>:"/\\|?*') or min(name) < " " or name[-1] in ". " or device)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.jpg", "a.jpg"),
        ("猫 é e\u0301.jpg", "猫 é e\u0301.jpg"),
        ("17:03?.jpg", "17_03_.jpg"),
        ("trip. .", "trip___"),
        ("...", "___"),
        ("con.cel.jpg", "_con.cel.jpg"),
        ("CON", "_CON"),
        ("LPT¹.jpg", "_LPT¹.jpg"),
        ("console.jpg", "console.jpg"),
        ("line\nbreak\x7f", "line_break_"),
    ],
)
def test_a_portable_name(name: str, safe: str) -> None:
    """What Windows refuses becomes an underscore, and nothing else is changed."""
    assert portable(name.encode()) == safe.encode()


def test_a_portable_name_is_utf8() -> None:
    """Each byte that is not UTF-8 becomes an underscore."""
    assert portable(b"a\xff\xe9.jpg") == b"a__.jpg"


@pytest.mark.parametrize(
    ("name", "plain"),
    [("été.jpg", "ete.jpg"), ("e\u0301.jpg", "e.jpg"), ("猫.jpg", "_.jpg"), ("½", "_"), ("\u0301", "_")],
)
def test_an_ascii_name(name: str, plain: str) -> None:
    """Where only ASCII is taken letters lose their accents, and others become underscores."""
    assert portable(name.encode(), ascii_only=True) == plain.encode()


@given(COMPONENTS, st.booleans())
@RUN
def test_portable_names_are_at_rest(name: bytes, ascii_only: bool) -> None:
    """A portable name is one that Windows takes, at most a byte longer, and portable already."""
    safe = portable(name, ascii_only=ascii_only)
    assert is_windows_name(safe.decode())
    assert len(safe) <= len(name) + 1
    assert portable(safe, ascii_only=ascii_only) == safe


@given(st.text(max_size=30))
@RUN
def test_folded_names_hold_all_spellings(text: str) -> None:
    """Capitals, small letters and both forms of accents are one."""
    text = text.encode("utf-8", "replace").decode()
    want = folded(text.encode())
    assert folded(want) == want
    for form in ("NFC", "NFD"):
        assert folded(unicodedata.normalize(form, text).encode()) == want
    capitals = "".join(letter.upper() if letter.isascii() else letter for letter in text)
    assert folded(capitals.encode()) == want


def test_folded_bytes_stand_for_themselves() -> None:
    """Bytes that are not UTF-8 stay apart."""
    assert folded(b"A\xff") == b"a\xff"
    assert folded(b"A\xff") != folded(b"A\xfe")
    assert folded("É/Straße".encode()) == folded("e\u0301/STRASSE".encode())
