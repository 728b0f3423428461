"""Which photos look alike: the laws of the index, and of who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.records import Fingerprint, PhotoKey
from animed.schedule.likeness import CLOSELY, TINT, Looks, Waiting, distance, same_details, same_tint

if TYPE_CHECKING:
    from collections.abc import Callable

# Few bits and few colours, so that photos are often near each other and just beyond.
HASHES = st.integers(0, 255).map(lambda value: value << 248 | value)
TINTS = st.lists(st.sampled_from((0, 12, 13, 100, 112, 125, 255)), min_size=8, max_size=8).map(bytes)
LOOKS = st.builds(Fingerprint, HASHES, HASHES, TINTS | st.just(bytes(8)))
ENTRIES = st.dictionaries(st.binary(min_size=1, max_size=2), st.tuples(st.sampled_from("rs"), LOOKS), max_size=12)
GREY = bytes([128] * 8)


def key(name: str) -> PhotoKey:
    return PhotoKey("phone", name.encode())


@settings(deadline=None, max_examples=200)
@given(ENTRIES, LOOKS, st.integers(0, 16))
def test_the_nearest_are_what_a_look_at_all_would_find(
    entries: dict[bytes, tuple[str, Fingerprint]], looks: Fingerprint, most: int
) -> None:
    """Cells of colours only save work: the answer is that of a comparison with every photo of the recipe but itself."""
    index = Looks((path, recipe, seen) for path, (recipe, seen) in entries.items())
    plain = [
        (distance(looks, seen), path)
        for path, (recipe, seen) in entries.items()
        if recipe == "r" and path != b"me" and same_tint(looks, seen) and distance(looks, seen) <= most
    ]
    assert index.nearest(b"me", "r", looks, most) == sorted(plain)[:CLOSELY]


@settings(deadline=None, max_examples=50)
@given(LOOKS, LOOKS)
def test_likeness_has_no_direction(one: Fingerprint, other: Fingerprint) -> None:
    """It does not matter which of two photos came first, and each is like itself."""
    assert distance(one, other) == distance(other, one)
    assert same_tint(one, other) == same_tint(other, one)
    assert distance(one, one) == 0


@settings(deadline=None, max_examples=50)
@given(ENTRIES, ENTRIES)
def test_a_photo_has_its_last_looks_only(
    first: dict[bytes, tuple[str, Fingerprint]], then: dict[bytes, tuple[str, Fingerprint]]
) -> None:
    """What is added again replaces what was there, under whatever recipe; what is discarded is gone without a trace."""
    index = Looks()
    for path, (recipe, seen) in (*first.items(), *then.items()):
        index.add(path, recipe, seen)
    assert len(index) == len(first | then)
    for path, (recipe, seen) in (first | then).items():
        assert index.nearest(b"another", recipe, seen, 0)
        index.discard(path)
        index.discard(path)
    assert len(index) == 0
    assert not index._cells


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**256 - 1), st.integers(0, 2**256 - 1), st.binary(min_size=8, max_size=8), st.binary(max_size=9))
def test_a_fingerprint_survives_the_ledger(whole: int, inner: int, tint: bytes, detail: bytes) -> None:
    """It comes back as it was; its first 72 bytes are all but the detail."""
    looks = Fingerprint(whole, inner, tint, detail)
    assert Fingerprint.from_bytes(looks.to_bytes()) == looks
    assert Fingerprint.from_bytes(looks.to_bytes()[:72]) == Fingerprint(whole, inner, tint)


BUSY = bytes(60 + (x * 7 + y * 13) % 100 for y in range(48) for x in range(48))


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda at, value: value, True),
        (lambda at, value: value + at % 5, True),  # noise
        (lambda at, value: round(value * 1.5) - 30, True),  # contrast
        (lambda at, value: value + 20 * (at == 1000), False),  # something small
        (lambda at, value: value + 60 * (at // 48 == 20), False),  # a line of text
        (lambda at, value: BUSY[(at + 1) % 2304], True),  # all of it is elsewhere, as where margins were cut
    ],
    ids=["equal", "noise", "contrast", "a spot", "a line", "shifted"],
)
def test_what_differs_in_few_places_is_no_copy(change: Callable[[int, int], int], *, same: bool) -> None:
    """Copies differ everywhere or nowhere; a difference that stands out is something else in the photo."""
    other = bytes(change(at, value) for at, value in enumerate(BUSY))
    square = b"\x80"
    assert same_details(BUSY + square, other + square) is same
    assert same_details(other + square, BUSY + square) is same


@pytest.mark.parametrize(("shape", "same"), [(125, True), (131, True), (124, False), (132, False)])
def test_a_stretched_copy_is_a_picture_of_its_own(shape: int, *, same: bool) -> None:
    """Copies have the shape of their photo, but for cut margins."""
    assert same_details(BUSY + b"\x80", BUSY + bytes([shape])) is same


def test_details_that_are_not_there_are_not_the_same() -> None:
    """A photo that nothing more is known of is none that another one can share a picture with."""
    assert not same_details(b"", b"")
    assert not same_details(b"\x80", b"\x80")
    assert not same_details(BUSY, BUSY[:-1])
    assert same_details(bytes(9), bytes(9))


@pytest.mark.parametrize(
    "cut", [lambda full, cut: (full, cut), lambda full, cut: (cut, full)], ids=["the copy is cut", "the first is cut"]
)
def test_a_photo_without_its_margins_is_the_same(cut: Callable[[int, int], tuple[int, int]]) -> None:
    """The whole of one is compared with the inside of the other, whichever lost its margins."""
    first, second = cut(0, 2**100 - 1)
    one, other = Fingerprint(first, second, GREY), Fingerprint(second, 2**256 - 1, GREY)
    assert distance(one, other) == 0


def test_another_colour_is_another_photo() -> None:
    """A copy in other colours is a picture of its own; a small shift of colours makes none."""
    colourful, shifted = bytes([128 + TINT + 1, *[128] * 7]), bytes([128 + TINT, *[128] * 7])
    index = Looks([(b"a", "r", Fingerprint(7, 7, GREY))])
    assert index.nearest(b"b", "r", Fingerprint(7, 7, colourful), 0) == []
    assert index.nearest(b"b", "r", Fingerprint(7, 7, shifted), 0) == [(0, b"a")]


def test_those_who_wait_are_told_of_the_end_once_and_in_order() -> None:
    """One who leaves by itself is not told; whoever is told waits no more."""
    waiting = Waiting()
    for name in "abc":
        waiting.wait(key(name), key("first"))
    assert len(waiting) == 3
    assert waiting.leave(key("b")) == ()
    assert waiting.leave(key("first")) == (key("a"), key("c"))
    assert waiting.leave(key("first")) == ()
    assert len(waiting) == 0
    assert not waiting._followers


def test_nobody_waits_for_one_who_waits() -> None:
    """Waiting makes no chains and no rings."""
    waiting = Waiting()
    waiting.wait(key("a"), key("first"))
    for one, other in (("b", "a"), ("first", "b"), ("a", "c")):
        with pytest.raises(ValueError, match="cannot wait"):
            waiting.wait(key(one), key(other))
