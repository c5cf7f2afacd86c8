"""Threads that share work: everything is done once, errors come out, nobody waits for nobody."""

from __future__ import annotations

import threading

import pytest

from fairbits.engine.threads import share
from fairbits.errors import OptionError


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_every_start_is_taken_once(threads: int | None) -> None:
    taken: list[int] = []
    share(taken.append, range(0, 1000, 10), threads)
    assert sorted(taken) == list(range(0, 1000, 10))


def test_the_earliest_failure_is_the_one_that_is_raised() -> None:
    both = threading.Barrier(2)

    def fail(start: int) -> None:
        both.wait(10)
        raise OptionError(f"start {start}")

    with pytest.raises(OptionError, match="start 0"):
        share(fail, range(2), 2)


def test_work_within_work_does_not_wait_for_itself() -> None:
    done: list[int] = []
    share(lambda outer: share(lambda inner: done.append(outer + inner), range(10), 2), range(0, 100, 10), 2)
    assert sorted(done) == list(range(100))


def test_no_threads_are_refused() -> None:
    with pytest.raises(OptionError, match="threads must be 1 or more, but got 0"):
        share(print, range(3), 0)
