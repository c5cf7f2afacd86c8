"""How a search is cut into tasks: by its budget and its options, never by who will do them.

A task takes every so-many-th round of the search and its share of the budget. So one task alone is the whole search,
and tasks can be done in any order, anywhere, and again. Where only the clock ends a search, every worker has one task
that goes on until then; where each of them ended is written down, and ``Budget(ends=...)`` makes the same run again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairbits.errors import OptionError
from fairbits.search.budget import COUNTED, Budget
from fairbits.search.strategy import Strategy

#: People asked about in a task: at least, so that its search leads somewhere; and at most, where that still leaves
#: as many tasks as this.
MIN_PEOPLE, MAX_PEOPLE, ENOUGH = 250_000, 1_000_000, 64
#: Of a search that only the clock ends, task n takes the rounds from n times this on.
ROUNDS_APART = 1_000_000
#: Evaluations of a task are numbered from its number times this, where its share is not counted in evaluations.
NUMBERS_APART = 1_000_000_000
#: Limits of which every task has a share; the clock is the same for all.
_SHARED = ("evaluations", "cases", "queries")
#: People in a bucket of the cases, about; and how many buckets there are where there are several tasks.
BUCKET_PEOPLE, MIN_BUCKETS, MAX_BUCKETS = 4_000_000, 16, 256


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of a search as plain data: which rounds, and its share of the budget."""

    number: int
    strategy: str
    seed: int
    first: int
    stride: int
    end: int | None
    budget: Budget
    offset: int

    def rounds(self, done: int = 0) -> Iterator[int]:
        """Numbers of the task's rounds."""
        first = self.first + done * self.stride
        if self.end is not None:
            return iter(range(first, self.end, self.stride))
        return itertools.count(first, self.stride)


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """All tasks of a search; make one with ``of``."""

    strategy: str
    seed: int
    budget: Budget
    count: int | None
    rounds: int | None = None

    @classmethod
    def of(
        cls, budget: Budget, strategy: Strategy, *, seed: int, m: int, tasks: int | None = None, shared: bool = False
    ) -> TaskPlan:
        """Cut a search into tasks."""
        if tasks is not None and tasks < 1:
            raise OptionError(f"shards is {tasks}; cut the search into one at least.")
        counted, limit = _evaluations(budget, m), strategy.rounds
        count: int | None = 1
        if limit is not None:  # what a budget leaves of an enumeration depends on its order: one task
            count = min(limit, tasks or (limit if shared else 1)) if counted is None and budget.ends is None else 1
        elif counted is not None:
            count = min(tasks or _default_count(counted), counted)
        elif budget.ends is not None:
            count = len(budget.ends)
        elif shared:
            count = None
        if budget.ends is not None and count is not None and len(budget.ends) > count:
            raise OptionError(f"--ends names {len(budget.ends)} tasks, but the search has {count}; give --shards too.")
        return cls(strategy.name, seed, budget, count, limit)

    @property
    def alone(self) -> bool:
        """Whether there is one task, which knows everybody who was found."""
        return self.count == 1

    @property
    def buckets(self) -> int:
        """Into how many buckets, by the hash of the person, the cases of every task are cut."""
        if self.alone:
            return 1
        people = max(self.budget.evaluations or 0, self.budget.cases or 0)
        wanted = 1 << max(0, (people // BUCKET_PEOPLE) - 1).bit_length()
        return min(MAX_BUCKETS, max(MIN_BUCKETS, wanted))

    def tasks(self) -> Iterator[Task]:
        """In the order in which they are handed out."""
        numbers: Iterator[int] = itertools.count() if self.count is None else iter(range(self.count))
        ends = self.budget.ends
        if ends is not None:
            numbers = iter([number for number, end in enumerate(ends) if end])
        return (self.task(number) for number in numbers)

    def task(self, number: int) -> Task:
        """One task of the plan."""
        limits, offset = self._share(number)
        if self.budget.ends is not None:
            end = self.budget.ends[number]
            limits["evaluations"] = min(limits.get("evaluations", end), end)
        first, stride, last = number, self.count or 1, self.rounds
        if self.rounds is not None:  # an enumeration is cut into stretches, which are written in order
            first = number * self.rounds // stride
            last, stride = (number + 1) * self.rounds // stride, 1
        elif self._by_the_clock:
            first, stride = number * ROUNDS_APART, 1
        return Task(number, self.strategy, self.seed, first, stride, last, Budget(**limits), offset)

    @property
    def _by_the_clock(self) -> bool:
        """Whether nothing but a clock, or where one ended an earlier run, ends the tasks."""
        return all(getattr(self.budget, name) is None for name in _SHARED)

    def _share(self, number: int) -> tuple[dict[str, Any], int]:
        """The limits of a task, and where its evaluations are numbered from."""
        limits = {name: limit for name in COUNTED if (limit := getattr(self.budget, name)) is not None}
        if self.alone or self.count is None or self.rounds is not None or self._by_the_clock:
            return limits, number * NUMBERS_APART
        shares = {name: _split(total, self.count, number) for name, total in limits.items() if name in _SHARED}
        offset = number * NUMBERS_APART
        if self.budget.evaluations is not None:
            offset = sum(_split(self.budget.evaluations, self.count, before) for before in range(number))
        return {**limits, **shares}, offset


def _evaluations(budget: Budget, m: int) -> int | None:
    """About how many people a budget asks about, where anything but the clock says so."""
    counts = [budget.evaluations, budget.cases, None if budget.queries is None else max(1, budget.queries // m)]
    return min((count for count in counts if count is not None), default=None)


def _default_count(evaluations: int) -> int:
    return max(1, min(evaluations // MIN_PEOPLE, max(ENOUGH, -(-evaluations // MAX_PEOPLE))))


def _split(total: int, count: int, number: int) -> int:
    """Share ``number`` of a total, as equal as whole numbers can be."""
    return total // count + (number < total % count)
