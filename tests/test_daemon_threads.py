"""The mailbox, the I/O thread and the signals: what comes to the loop from outside it."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from animed.daemon.iothread import Answer, Ended, IoThread
from animed.daemon.mailbox import Mailbox
from animed.daemon.signals import WATCHED, Signals
from animed.errors import PhotoError, PlaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from animed.system import System


def is_readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


class Call:
    """A request that does what the test says."""

    def __init__(self, act: Callable[[Callable[[], None]], object]) -> None:
        self.act = act

    def run(self, beat: Callable[[], None], system: System) -> object:
        """Do it."""
        return self.act(beat)


class Count:
    """A scan of some slices."""

    def __init__(self, *results: object) -> None:
        self.results = results

    def slices(self, system: System) -> Iterator[object]:
        """Yield the results; raise those that are errors."""
        for result in self.results:
            if isinstance(result, BaseException):
                raise result
            yield result() if callable(result) else result


class Line:
    """An I/O thread whose posts the test waits for."""

    def __init__(self, clock: Callable[[], float] = lambda: 1.0) -> None:
        self.mailbox: Mailbox[Answer | Ended] = Mailbox()
        self.thread = IoThread("phone", self.mailbox.post, clock=clock)
        self.posts: list[Answer | Ended] = []

    def wait(self, count: int) -> list[object]:
        """Return what the posts said once there are so many."""
        while len(self.posts) < count:
            assert select.select([self.mailbox], [], [], 30)[0], self.posts
            self.posts += self.mailbox.drain()
        return [post.result if isinstance(post, Answer) else post for post in self.posts]

    def end(self) -> list[object]:
        """Let the thread end, and return all that it said."""
        self.thread.stop()
        assert self.thread.join(30)
        self.posts += self.mailbox.drain()
        self.mailbox.close()
        return [post.result if isinstance(post, Answer) else post for post in self.posts]


def test_the_mailbox_keeps_the_order_and_wakes() -> None:
    """What was posted comes out in order, once, and the descriptor is readable only while something waits."""
    mailbox: Mailbox[int] = Mailbox()
    assert mailbox.drain() == []
    assert not is_readable(mailbox.fileno())
    for number in range(5):
        mailbox.post(number)
    assert is_readable(mailbox.fileno())
    assert mailbox.drain() == [0, 1, 2, 3, 4]
    assert not is_readable(mailbox.fileno())
    assert mailbox.drain() == []
    mailbox.close()


def test_many_threads_lose_nothing_in_the_mailbox() -> None:
    """Posts of several threads all arrive, each thread's in its order, however often the loop drains meanwhile."""
    mailbox: Mailbox[tuple[int, int]] = Mailbox()

    def post(who: int) -> None:
        for number in range(500):
            mailbox.post((who, number))

    threads = [threading.Thread(target=post, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    got: list[tuple[int, int]] = []
    while len(got) < 2000:
        assert select.select([mailbox], [], [], 30)[0]
        got += mailbox.drain()
    for thread in threads:
        thread.join()
    assert all([number for who, number in got if who == one] == list(range(500)) for one in range(4))
    mailbox.close()


def test_requests_are_answered_in_order() -> None:
    """Answers come in the order of the requests, with the request and the inbox, and an asked end says so."""
    line = Line()
    numbers = iter(range(3))
    requests = [Call(lambda _beat: next(numbers)) for _ in range(3)]
    for request in requests:
        line.thread.submit(request)
    line.thread.start()
    assert line.end() == [0, 1, 2, Ended("phone", asked=True)]
    assert [post.request for post in line.posts if isinstance(post, Answer)] == requests
    assert {post.inbox for post in line.posts} == {"phone"}


def test_a_scan_goes_on_only_while_nothing_else_waits() -> None:
    """Requests overtake the slices of a scan that is under way."""
    line = Line()

    def first() -> str:
        line.thread.submit(Call(lambda _beat: "urgent"))
        return "slice 1"

    line.thread.submit(Count(first, "slice 2", "slice 3"))
    line.thread.start()
    assert line.wait(4) == ["slice 1", "urgent", "slice 2", "slice 3"]
    line.end()


def test_an_asked_end_drops_the_scan_under_way() -> None:
    """A stop does not wait for the end of a scan."""
    line = Line()

    def first() -> str:
        line.thread.stop()
        return "slice 1"

    line.thread.submit(Count(first, "slice 2"))
    line.thread.start()
    assert line.end() == ["slice 1", Ended("phone", asked=True)]


@pytest.mark.parametrize("error", [PhotoError("truncated"), PlaceError("output", errno.EIO, "/out")])
def test_an_expected_error_is_an_answer(error: Exception) -> None:
    """An error that animed raises on purpose is handed over, from requests and scans, and the thread goes on."""

    def fail(_beat: object) -> None:
        raise error

    line = Line()
    line.thread.submit(Call(fail))
    line.thread.submit(Count("slice", error))
    line.thread.start()
    line.wait(3)
    line.thread.submit(Call(lambda _beat: "well"))
    assert line.wait(4) == [error, "slice", error, "well"]
    line.end()


def test_a_bare_system_error_is_a_fault_of_the_inbox() -> None:
    """What no room has translated counts against the inbox, with its error number and path."""

    def fail(_beat: object) -> None:
        raise OSError(errno.ESTALE, "Stale", "/in/x")

    line = Line()
    line.thread.submit(Call(fail))
    line.thread.start()
    (result,) = line.wait(1)
    assert isinstance(result, PlaceError)
    assert (result.role, result.code, result.path) == ("inbox", errno.ESTALE, "/in/x")
    line.end()


# The error ends a thread on purpose; what it prints on its way is no warning of the test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_unexpected_error_is_not_swallowed() -> None:
    """A fault of the program ends the thread, and the loop is told that nobody asked for it."""

    def fail(_beat: object) -> None:
        raise ZeroDivisionError

    line = Line()
    line.thread.submit(Call(fail))
    line.thread.start()
    assert line.wait(1) == [Ended("phone", asked=False)]
    line.end()


def test_silence_is_counted_from_the_last_sign_of_life() -> None:
    """An idle thread is not silent; from a request's asking on it is, since its last beat, and not after the answer."""
    times = iter([5.0, 10.0, 12.0])
    line, beaten, go = Line(lambda: next(times)), threading.Event(), threading.Event()

    def slow(beat: Callable[[], None]) -> str:
        beat()
        beaten.set()
        assert go.wait(30)
        return "done"

    assert line.thread.silent_for(99.0) == 0.0
    line.thread.submit(Call(slow))
    assert line.thread.silent_for(45.0) == 40.0
    line.thread.start()
    assert beaten.wait(30)
    assert line.thread.silent_for(45.0) == 33.0
    assert line.thread.silent_for(11.0) == 0.0
    go.set()
    assert line.wait(1) == ["done"]
    assert line.thread.silent_for(99.0) == 0.0
    line.end()


def test_signals_are_recorded_in_order_and_handlers_come_back() -> None:
    """Signals wake the loop and come out in order; afterwards the old handlers and descriptor are in force."""
    before = [signal.getsignal(number) for number in WATCHED]
    signals = Signals()
    assert signals.drain() == []
    sent = [signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM, signal.SIGINT]
    for number in sent:
        signal.raise_signal(number)
    assert is_readable(signals.fileno())
    assert signals.drain() == sent
    assert signals.drain() == []
    signals.close()
    assert [signal.getsignal(number) for number in WATCHED] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_signals_that_are_not_watched_are_dropped() -> None:
    """Another handler's signals go through the same descriptor, and are not taken for the loop's."""
    old = signal.signal(signal.SIGWINCH, lambda *_: None)
    signals = Signals([signal.SIGUSR1])
    signal.raise_signal(signal.SIGWINCH)
    signal.raise_signal(signal.SIGUSR1)
    assert signals.drain() == [signal.SIGUSR1]
    signals.close()
    signal.signal(signal.SIGWINCH, old)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_process_dies_by_the_signal(number: signal.Signals) -> None:
    """Who waits for the process sees the signal that ended it, even where that signal was caught before."""
    program = (
        "import signal; from animed.daemon.signals import Signals, die_by; s = Signals(); s.close(); "
        f"die_by(signal.{number.name})"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, env=dict(os.environ))
    assert done.returncode == -number
    assert done.stderr == b""
