"""What a search may do: the valid domain as arrays, the real people to start from, and the moves between people."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from fairbits.domain import Table
from fairbits.domain.attribute import Codes
from fairbits.errors import OptionError
from fairbits.measure import Evaluator

Indices = npt.NDArray[np.int64]

#: The paper's number of partitions that seeds are drawn from in turn.
PARTITIONS = 4


class Problem:
    """One subject under search. People are full rows of codes; moves touch only the non-protected ones.

    ``within`` keeps every proposal within so many changed attributes of the real row that it started from.
    """

    def __init__(self, evaluator: Evaluator, table: Table, *, within: int | None = None):
        if within is not None and within < 0:
            raise OptionError(f"within is {within}; give the number of attributes that may change, 0 or more.")
        self.evaluator = evaluator
        self.schema = evaluator.schema
        self.rows = table.codes
        self.within = within
        self.free = np.array(self.schema.free_columns, dtype=np.int64)
        if len(self.free) == 0:
            raise OptionError("every attribute is protected, so there is nothing to search over.")
        attributes = [self.schema.attributes[i] for i in self.free]
        self.low = np.array([a.low for a in attributes])
        self.high = np.array([a.upper for a in attributes])
        self.stride = np.array([a.stride for a in attributes])
        self.discrete = np.array([a.discrete for a in attributes])

    @cached_property
    def partitions(self) -> tuple[Indices, ...]:
        """Table rows by cluster (KMeans on the scaled free attributes): seeds come from each in turn."""
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        spread = np.where(self.high > self.low, self.high - self.low, 1.0)
        scaled = (self.rows[:, self.free] - self.low) / spread
        count = min(PARTITIONS, len(np.unique(scaled, axis=0)))
        with threadpool_limits(1):  # the result must not depend on the cores
            found = KMeans(count, n_init=1, random_state=0).fit_predict(scaled)
        return tuple(np.flatnonzero(found == i) for i in range(count))

    def pick_rows(self, rng: np.random.Generator, count: int) -> Indices:
        """Table rows to start from, one partition after the other."""
        turns = np.arange(count) % len(self.partitions)
        picked = np.empty(count, dtype=np.int64)
        for turn, rows in enumerate(self.partitions):
            here = turns == turn
            picked[here] = rng.choice(rows, int(here.sum()))
        return picked

    def uniform(self, rng: np.random.Generator, count: int) -> Codes:
        """Values for the free attributes, each uniform over its domain, (count, free)."""
        draws = rng.random((count, len(self.free)))
        whole = np.floor(self.low + draws * (self.high - self.low + 1))
        real = self.low + draws * (self.high - self.low)
        return np.where(self.discrete, np.minimum(whole, self.high), real)

    def step(self, people: Codes, attribute: Indices, amount: Codes) -> Codes:
        """Copies of the people, each moved by ``amount`` strides in one free attribute.

        At a bound the step is turned round: a move that clipping would undo is an evaluation wasted.
        """
        moved = people.copy()
        persons, columns = np.arange(len(people)), self.free[attribute]
        low, high = self.low[attribute], self.high[attribute]
        here, length = people[persons, columns], amount * self.stride[attribute]
        outside = (here + length < low) | (here + length > high)
        moved[persons, columns] = np.clip(np.where(outside, here - length, here + length), low, high)
        return moved

    def neighbours(self, people: Codes) -> tuple[Codes, Indices]:
        """Everybody who differs from one of these people in one free attribute, and from whom (by position).

        Real attributes take the values on their stride.
        """
        found, origins = [], []
        for position, column in enumerate(self.free):
            values = self.schema.attributes[column].values()
            changed = np.repeat(people, len(values), axis=0)
            changed[:, column] = np.tile(values, len(people))
            origin = np.repeat(np.arange(len(people)), len(values))
            other = changed[:, column] != people[origin, self.free[position]]
            found.append(changed[other])
            origins.append(origin[other])
        return np.concatenate(found), np.concatenate(origins)

    def limit(self, people: Codes, anchors: Codes, rng: np.random.Generator) -> Codes:
        """Bring people back within ``within`` changes of their anchors by undoing changes at random."""
        if self.within is None:
            return people
        mine, real = people[:, self.free], anchors[:, self.free]
        changed = mine != real
        rank = np.argsort(np.argsort(np.where(changed, rng.random(changed.shape), 2.0), axis=1), axis=1)
        kept = np.where(changed & (rank < self.within), mine, real)
        result = people.copy()
        result[:, self.free] = kept
        return result
