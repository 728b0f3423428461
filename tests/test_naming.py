"""The laws of output names."""

from __future__ import annotations

import os
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.delivery.naming import Layout, candidates, first_free, numbered, split
from animed.errors import ConfigError

TEMPLATE = "{stem}.{style}{ext}"
TEMPLATES = st.sampled_from(
    [TEMPLATE, "{stem}{ext}", ".{stem}-{style}{ext}", "{style}_{stem}", "{stem}-2-2{ext}", "x{ext}"]
)
LAYOUTS: st.SearchStrategy[Layout] = st.sampled_from(["mirror", "flat"])
COMPONENTS = (
    st.one_of(
        st.binary(min_size=1, max_size=255),
        st.text(min_size=1, max_size=80).map(lambda text: text.encode("utf-8", "replace")[:255]),
        st.integers(225, 255).map(lambda size: b"n" * size),
        st.sampled_from(["é" * 127, "猫" * 85, "a" * 251 + ".jpg"]).map(str.encode),
    )
    .map(lambda raw: raw.replace(b"/", b"_").replace(b"\0", b"_").lstrip(b"."))
    .filter(bool)
)
PATHS = st.lists(COMPONENTS, min_size=1, max_size=3).map(b"/".join)
RUN = settings(deadline=None, max_examples=60)


def names(path: bytes, count: int, *, template: str = TEMPLATE, layout: Layout = "mirror") -> list[bytes]:
    return list(islice(candidates(path, template=template, style="cel", ext=".jpg", layout=layout), count))


def test_the_counter_goes_before_the_extension() -> None:
    """A photo's names are a.cel.jpg, a.cel-2.jpg, a.cel-3.jpg."""
    assert names(b"a.png", 3) == [b"a.cel.jpg", b"a.cel-2.jpg", b"a.cel-3.jpg"]


def test_without_an_extension_field_the_counter_ends_the_name() -> None:
    """A template without {ext} still counts."""
    assert names(b"a.png", 2, template="{stem}") == [b"a", b"a-2"]


def test_layouts() -> None:
    """Mirror keeps the sub-folders, flat drops them."""
    assert names(b"x/y/a.jpg", 1) == [b"x/y/a.cel.jpg"]
    assert names(b"x/y/a.jpg", 1, layout="flat") == [b"a.cel.jpg"]


def test_a_template_cannot_hide_a_picture() -> None:
    """A name that would begin with a dot gets a mark before it."""
    assert names(b"a.jpg", 1, template=".{stem}{ext}") == [b"_.a.jpg"]


@given(PATHS, TEMPLATES, LAYOUTS)
@RUN
def test_every_name_is_usable(path: bytes, template: str, layout: Layout) -> None:
    """Every component is 1 to 255 bytes, has no slash or NUL, is visible, and keeps the photo's folders."""
    for name in names(path, 12, template=template, layout=layout):
        component = name.rsplit(b"/", 1)[-1]
        assert 0 < len(component) <= 255
        assert not component.startswith(b".")
        assert b"\0" not in component
        assert os.path.dirname(name) == (os.path.dirname(path) if layout == "mirror" else b"")


@given(PATHS, TEMPLATES, LAYOUTS)
@RUN
def test_names_are_deterministic_and_differ_by_counter(path: bytes, template: str, layout: Layout) -> None:
    """The same photo has the same names every time, and no two of them are equal."""
    found = names(path, 120, template=template, layout=layout)
    assert found == names(path, 120, template=template, layout=layout)
    assert len(set(found)) == len(found)


@given(st.lists(PATHS, min_size=1, max_size=12, unique=True), TEMPLATES, LAYOUTS)
@RUN
def test_no_two_photos_share_a_picture(paths: list[bytes], template: str, layout: Layout) -> None:
    """Taking the first free name, every source gets a name of its own."""
    taken: set[bytes] = set()
    for path in paths:
        taken.add(first_free(candidates(path, template=template, style="cel", ext=".jpg", layout=layout), taken))
    assert len(taken) == len(paths)


def test_long_names_that_differ_at_their_end_stay_apart() -> None:
    """Cutting a long name keeps a digest of all of it, so the first candidates differ already."""
    first, second = (names(b"n" * 250 + tail + b".jpg", 1)[0] for tail in (b"a", b"b"))
    assert first != second
    assert first.endswith(b".cel.jpg")


@given(st.text(alphabet="aé猫😀", min_size=60, max_size=200).map(str.encode).filter(lambda raw: 200 < len(raw) <= 255))
@RUN
def test_a_cut_name_stays_utf8(stem: bytes) -> None:
    """A long UTF-8 name is cut between characters."""
    for name in names(stem, 3):
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
    "template", ["", "{stem}/{style}", "{name}", "{stem!r}", "{stem:>9}", "{stem", "{}", "a\0{stem}"]
)
def test_an_unusable_template_is_refused(template: str) -> None:
    """A template that cannot make a name is a configuration error that says what may stand in it."""
    with pytest.raises(ConfigError, match="output_name"):
        names(b"a.jpg", 1, template=template)


def test_a_template_that_leaves_no_room_is_refused() -> None:
    """A template as long as a whole name leaves nothing for the photo."""
    with pytest.raises(ConfigError, match="no room"):
        names(b"a.jpg", 1, template="x" * 250 + "{stem}")


@pytest.mark.parametrize("path", [b"", b"/a", b"a//b", b"../a", b"a/./b", b"a/", b"a\0b"])
def test_only_plain_relative_paths_have_names(path: bytes) -> None:
    """A path that could leave its root is refused."""
    with pytest.raises(ValueError, match="plain relative path"):
        split(path)
