"""Back-off, verdicts and the queue of what waits for its next try."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.records import FileStat, Job, PhotoKey, Reason, Recipe
from animed.schedule.retry import Backoff, GiveUp, PlaceBackoff, Retry, RetryPolicy, RetryQueue, decide

RECIPE = Recipe("cel", "00" * 32, "half_pixel", 1.0, 1024, "same", 92, exif=True, gps=True)
POLICY = RetryPolicy(5, 2, Backoff(5, 3, 900))


def job(name: str, attempt: int = 1) -> Job:
    return Job(PhotoKey("phone", name.encode()), FileStat(1, 1, 1, 1, 1, 0o100644), RECIPE, 0.0, attempt=attempt)


def test_the_series_grows_to_its_limit() -> None:
    """The delays are those that the configuration documents."""
    backoff = Backoff(5, 3, 900)
    assert [backoff.delay_for(attempt) for attempt in range(1, 8)] == [5, 15, 45, 135, 405, 900, 900]


@settings(deadline=None)
@given(delay=st.floats(0, 1e6), factor=st.floats(1, 1e9), limit=st.floats(0, 1e6), attempt=st.integers(1, 10**9))
def test_delays_never_shrink_and_never_pass_the_limit(delay: float, factor: float, limit: float, attempt: int) -> None:
    """Whatever the numbers, a later try waits at least as long, and none longer than the limit."""
    backoff = Backoff(delay, factor, limit)
    assert 0 <= backoff.delay_for(attempt) <= backoff.delay_for(attempt + 1) <= limit


@pytest.mark.parametrize("numbers", [(-1, 3, 9), (1, 0.5, 9), (1, 3, -9), (float("nan"), 3, 9)])
def test_an_impossible_series_is_refused(numbers: tuple[float, float, float]) -> None:
    """Delays that shrink or run backwards are an error, not a busy loop."""
    with pytest.raises(ValueError, match="at least"):
        Backoff(*numbers)


def test_tries_are_counted_from_one() -> None:
    """A try number below 1 is a mistake of the caller."""
    with pytest.raises(ValueError, match="from 1"):
        Backoff(5, 3, 900).delay_for(0)


@pytest.mark.parametrize("reason", ["not_an_image", "unsupported:raw", "too_large", "conflict", "empty"])
def test_what_cannot_change_is_not_tried_again(reason: str) -> None:
    """A permanent reason fails at the first try."""
    assert decide(reason, POLICY, attempt=1, crashes=0, alone=False) == GiveUp(1, 0)


@pytest.mark.parametrize(
    "reason", ["truncated", "unreadable", "changed", "not_finite", "encode", "output_denied", "a_new_word"]
)
def test_what_may_pass_is_tried_as_often_as_allowed(reason: str) -> None:
    """`attempts` counts all tries: four retries with growing delays, and then the failure is final."""
    verdicts = [decide(reason, POLICY, attempt=n, crashes=0, alone=False) for n in range(1, 6)]
    assert verdicts == [
        Retry(5, 2, 0, alone=False),
        Retry(15, 3, 0, alone=False),
        Retry(45, 4, 0, alone=False),
        Retry(135, 5, 0, alone=False),
        GiveUp(5, 0),
    ]


def test_memory_that_ran_out_is_tried_alone() -> None:
    """Another photo in the worker may have taken the memory."""
    assert decide(Reason.OUT_OF_MEMORY, POLICY, attempt=1, crashes=0, alone=False) == Retry(5, 2, 0, alone=True)


@pytest.mark.parametrize("reason", ["worker_crashed:SIGSEGV", "worker_crashed:SIGKILL", "timeout"])
def test_a_crash_in_company_costs_nothing(reason: str) -> None:
    """The photo may be innocent, even at its last try: it is run alone at once, with its counters as they were."""
    assert decide(reason, POLICY, attempt=5, crashes=1, alone=False) == Retry(0, 5, 1, alone=True)


@pytest.mark.parametrize("reason", ["worker_crashed:SIGSEGV", "timeout"])
def test_a_photo_that_kills_alone_is_given_up(reason: str) -> None:
    """Only crashes alone are counted, and `crash_attempts` of them are final."""
    assert decide(reason, POLICY, attempt=1, crashes=0, alone=True) == Retry(5, 1, 1, alone=True)
    assert decide(reason, POLICY, attempt=1, crashes=1, alone=True) == GiveUp(1, 2)


def test_a_killer_stays_alone_after_another_fault() -> None:
    """A passing failure does not clear a photo that killed a worker."""
    assert decide("truncated", POLICY, attempt=1, crashes=1, alone=True) == Retry(5, 2, 1, alone=True)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["truncated", "timeout", "worker_crashed:SIGKILL", "out_of_memory"]), min_size=20))
def test_every_photo_comes_to_an_end(reasons: list[str]) -> None:
    """Whatever goes wrong in whatever order, the tries are bounded."""
    current, tries = job("a"), 0
    for reason in reasons:
        tries += 1
        verdict = decide(reason, POLICY, attempt=current.attempt, crashes=current.crashes, alone=current.alone)
        if isinstance(verdict, GiveUp):
            break
        current = verdict.job(current)
    # Each counted try may be preceded by one uncounted crash in company.
    assert tries <= 2 * (POLICY.attempts + POLICY.crash_attempts)


def test_a_single_pass_tries_once_more_after_the_quiet_time() -> None:
    """A run that ends does not wait on back-off."""
    policy = RetryPolicy.impatient(2.0, attempts=5, crash_attempts=2)
    assert decide("truncated", policy, attempt=1, crashes=0, alone=False) == Retry(2.0, 2, 0, alone=False)
    assert decide("truncated", policy, attempt=2, crashes=0, alone=False) == GiveUp(2, 0)
    assert decide("timeout", policy, attempt=1, crashes=0, alone=True) == Retry(2.0, 1, 1, alone=True)
    once = RetryPolicy.impatient(2.0, attempts=1, crash_attempts=1)
    assert decide("truncated", once, attempt=1, crashes=0, alone=False) == GiveUp(1, 0)


def test_a_verdict_makes_the_next_job() -> None:
    """The next try is the same photo with the new counters."""
    again = Retry(0, 2, 1, alone=True).job(job("a"))
    assert (again.key, again.attempt, again.crashes, again.alone) == (job("a").key, 2, 1, True)


def test_a_place_is_probed_less_and_less_often() -> None:
    """1, 2, 4 … 60 s, and from the start again after a success."""
    place, now, waits = PlaceBackoff(), 100.0, []
    assert not place.suspended
    assert not place.due(now)
    for _ in range(8):
        due = place.fault(now)
        assert not place.due(due - 0.5)
        assert place.due(due)
        assert place.next_due == due
        waits.append(due - now)
        now = due
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    place.reset()
    assert not place.suspended
    assert place.next_due is None
    assert place.fault(now) == now + 1


def test_photos_that_fail_together_are_one_fault() -> None:
    """Ten photos that meet the same full disk do not push the probe ten steps away."""
    place = PlaceBackoff()
    assert {place.fault(100.0 + n / 100) for n in range(10)} == {101.0}


def test_the_queue_gives_back_what_is_due() -> None:
    """Jobs come out once, at their time, the longest due first."""
    queue = RetryQueue()
    for name, due in (("b", 20.0), ("a", 10.0), ("c", 30.0)):
        queue.add(job(name), due)
    assert (len(queue), queue.next_due()) == (3, 10.0)
    assert queue.due(9.9) == []
    assert [each.key.path for each in queue.due(20.0)] == [b"a", b"b"]
    assert (len(queue), queue.next_due(), queue.due(20.0)) == (1, 30.0, [])


def test_a_later_job_of_a_photo_replaces_the_earlier() -> None:
    """A photo waits once, with its latest job and time."""
    queue = RetryQueue()
    queue.add(job("a", attempt=2), 10.0)
    queue.add(job("a", attempt=3), 50.0)
    assert (len(queue), queue.next_due(), queue.due(49.0)) == (1, 50.0, [])
    assert [each.attempt for each in queue.due(50.0)] == [3]


def test_a_discarded_job_never_comes_out() -> None:
    """What vanished or was asked for at once leaves the queue."""
    queue = RetryQueue()
    queue.add(job("a"), 10.0)
    assert job("a").key in queue
    assert queue.discard(job("a").key) == job("a")
    assert queue.discard(job("a").key) is None
    assert (len(queue), queue.next_due(), queue.due(99.0)) == (0, None, [])
    queue.add(job("b"), 10.0)
    assert queue.clear() == [job("b")]
    assert queue.next_due() is None


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "drop", "due"]), st.integers(0, 9))))
def test_the_queue_agrees_with_a_plain_dict(steps: list[tuple[str, str, int]]) -> None:
    """Any sequence of steps ends as in a dict from photo to time, and the heap does not grow beyond it."""
    queue, model = RetryQueue(), dict[bytes, int]()
    for name, step, number in steps:
        if step == "add":
            queue.add(job(name), number)
            model[name.encode()] = number
        elif step == "drop":
            assert (queue.discard(job(name).key) is None) == (model.pop(name.encode(), None) is None)
        else:
            out = {each.key.path for each in queue.due(number)}
            assert out == {key for key, due in model.items() if due <= number}
            model = {key: due for key, due in model.items() if due > number}
        assert (len(queue), queue.next_due()) == (len(model), min(model.values(), default=None))
        assert len(queue._heap) <= 2 * len(model) + 20
