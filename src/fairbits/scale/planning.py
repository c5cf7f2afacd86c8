"""How a search is cut into shards: by its budget and its options, never by who will do it.

A shard takes every so-many-th round of the search, and its share of the budget. So one shard alone is the search as
it would be without any, and shards can be done in any order, anywhere, and again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fairbits.errors import OptionError
from fairbits.search import Budget
from fairbits.search.strategy import Strategy

#: People asked about in a shard: at least, so that its search leads somewhere; and at most, where that still leaves
#: as many shards as this.
LEAST, MOST, ENOUGH = 250_000, 1_000_000, 64
#: Of a search that only the clock ends, shard n takes round n, then n plus this, and so on.
ENDLESS = 1_000_000
#: Evaluations of a shard are numbered from its number times this, where its share is not counted in evaluations.
NUMBERED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of a search as plain data: whom it is about, which rounds, and its share of the budget."""

    number: int
    identity: str
    strategy: str
    seed: int
    first: int
    stride: int
    end: int | None
    budget: Budget
    offset: int

    def rounds(self) -> Iterator[int]:
        """The numbers of its rounds; each names a branch of the tree of randomness."""
        return iter(range(self.first, self.end, self.stride)) if self.end else itertools.count(self.first, self.stride)


@dataclass(frozen=True, slots=True)
class Plan:
    """All shards of a search. ``count`` is None where only the clock ends it."""

    identity: str
    strategy: str
    seed: int
    budget: Budget
    count: int | None
    rounds: int | None = None

    @classmethod
    def of(cls, budget: Budget, strategy: Strategy, *, identity: str, seed: int, m: int, shards: int | None) -> Plan:
        """Cut a search; ``shards`` overrides how finely."""
        if shards is not None and shards < 1:
            raise OptionError(f"shards is {shards}; cut the search into one at least.")
        counted = _evaluations(budget, m)
        limit = strategy.rounds
        if limit is not None and counted is None:
            count: int | None = min(limit, shards or limit)
        elif limit is not None:
            count = 1  # what a budget leaves of an enumeration depends on its order
        elif counted is None:
            count = None
        else:
            count = min(shards or _default_count(counted), counted)
        return cls(identity, strategy.name, seed, budget, count, limit)

    def shards(self) -> Iterator[Shard]:
        """In the order in which they are handed out."""
        numbers = itertools.count() if self.count is None else range(self.count)
        return (self.shard(number) for number in numbers)

    def shard(self, number: int) -> Shard:
        """One of them."""
        stride = ENDLESS if self.count is None else self.count
        first, end = number, self.rounds
        if self.rounds is not None:  # an enumeration is cut into stretches, which are written in order
            first = number * self.rounds // stride
            end, stride = (number + 1) * self.rounds // stride, 1
        budget, offset = self._share(number)
        return Shard(number, self.identity, self.strategy, self.seed, first, stride, end, budget, offset)

    def _share(self, number: int) -> tuple[Budget, int]:
        if self.count is None:
            return replace(self.budget, evaluations=MOST), number * MOST
        if self.count == 1 or self.rounds is not None:
            return self.budget, number * NUMBERED
        shares = {
            name: _split(total, self.count, number)
            for name in ("evaluations", "cases", "queries")
            if (total := getattr(self.budget, name)) is not None
        }
        offset = number * NUMBERED
        if self.budget.evaluations is not None:
            offset = sum(_split(self.budget.evaluations, self.count, before) for before in range(number))
        return replace(self.budget, **shares), offset


def _evaluations(budget: Budget, m: int) -> int | None:
    """About how many people a budget asks about, where anything but the clock says so."""
    counts = [budget.evaluations, budget.cases, None if budget.queries is None else max(1, budget.queries // m)]
    return min((count for count in counts if count is not None), default=None)


def _default_count(evaluations: int) -> int:
    return max(1, min(evaluations // LEAST, max(ENOUGH, -(-evaluations // MOST))))


def _split(total: int, count: int, number: int) -> int:
    """Share ``number`` of a total, as equal as whole numbers can be."""
    return total // count + (number < total % count)
