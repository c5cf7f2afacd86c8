"""What a search may do: the valid domain as arrays, the real people to start from, and the moves between people.

For models that only compare, a change that crosses no threshold of the ensemble changes nothing: it would be an
evaluation wasted, so a proposal goes on to the next threshold on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Table, evaluated
from fairbits.engine import NearestRow
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, Measure, Plausibility

Indices = npt.NDArray[np.int64]

#: The paper's number of partitions that seeds are drawn from in turn.
PARTITIONS = 4
#: How often a draw that breaks a rule is drawn again before it is left to be refused.
REDRAWS = 20


class Problem:
    """One subject under search. People are full rows of codes; moves touch only the ``free`` columns.

    ``person`` are the columns that say who somebody is: the free ones, and those that are immutable. The schema's rules
    hold for every proposal.

    Parameters
    ----------
    evaluator
        The model with its twins, as the search asks it.
    table
        The real people that searches start from.
    within
        Keeps every proposal within so many changed attributes of the real row that it started from; None sets no limit.
    min_plausibility
        Keeps everybody at least as ordinary as so many percent of the rows; None sets no limit.

    Raises
    ------
    OptionError
        If a limit makes no sense, or if no attribute may move.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        table: Table,
        *,
        within: int | None = None,
        min_plausibility: float | None = None,
    ):
        if within is not None and within < 0:
            raise OptionError(f"within is {within}; give the number of attributes that may change, 0 or more.")
        if min_plausibility is not None and not 0 <= min_plausibility <= 100:
            raise OptionError(f"min_plausibility is {min_plausibility:g}; it is a percentile, between 0 and 100.")
        self.evaluator = evaluator
        self.schema = evaluator.schema
        self.rows = table.codes
        self.within = within
        self.min_plausibility = min_plausibility
        self.moves_removed = 0
        #: What strategies that climb the bits raise: k, or 2 to the power of Q1.
        self.measure: Measure = "q_inf"
        self.person = np.array(self.schema.person_columns, dtype=np.int64)
        self.free = np.array(self.schema.movable_columns, dtype=np.int64)
        if len(self.free) == 0:
            raise OptionError("every attribute is protected or immutable, so there is nothing to search over.")
        attributes = [self.schema.attributes[i] for i in self.free]
        self.low, self.high, self.stride, self.discrete = (
            np.array([getattr(attribute, name) for attribute in attributes])
            for name in ("low", "upper", "stride", "discrete")
        )
        self._sets = {place: np.array(a.allowed) for place, a in enumerate(attributes) if a.allowed}
        self._drawn_rules = [rule for rule in self.schema.rules if set(self.free).issuperset(rule.columns)]

    @cached_property
    def plausibility(self) -> Plausibility:
        """How ordinary people are, learned from the rows."""
        return Plausibility(self.schema, self.rows)

    @cached_property
    def nearest(self) -> NearestRow:
        """The rows, ready for people to be compared with them."""
        return NearestRow(self.schema, self.rows)

    def distance_figures(self, people: Codes) -> dict[str, npt.NDArray[Any]]:
        """How ordinary people are (``plausibility``) and how far from real rows (``changed``, ``l1``), (n,) each."""
        threads = self.evaluator.threads
        near = self.nearest.find(people, threads=threads)
        ordinary = self.plausibility.percentiles(people, threads=threads)
        return {"plausibility": ordinary, "changed": near.changed, "l1": near.l1}

    @cached_property
    def plausible_rows(self) -> Indices:
        """The rows that a search may start from."""
        return np.arange(len(self.rows)) if self.min_plausibility is None else np.flatnonzero(self.plausible(self.rows))

    def allowed(self, people: Codes) -> npt.NDArray[np.bool_]:
        """Which people can exist under the rules, and are plausible enough, (n,)."""
        ruled = self.evaluator.validity
        fine = ruled.people(people) if ruled.any else np.ones(len(people), dtype=np.bool_)
        if self.min_plausibility is not None:
            fine[fine] = self.plausible(people[fine])
        return fine

    def plausible(self, people: Codes) -> npt.NDArray[np.bool_]:
        """Which people are as ordinary as ``min_plausibility`` demands, (n,)."""
        found = self.plausibility.percentiles(people, threads=self.evaluator.threads)
        return np.asarray(found >= (self.min_plausibility or 0.0))

    @cached_property
    def partitions(self) -> tuple[Indices, ...]:
        """Table rows by cluster (KMeans on the scaled free attributes): seeds come from each in turn."""
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        spread = np.where(self.high > self.low, self.high - self.low, 1.0)
        starts = self.plausible_rows
        if len(starts) == 0:
            raise OptionError(f"no row of the table has a plausibility of {self.min_plausibility:g}; lower it.")
        scaled = (self.rows[np.ix_(starts, self.free)] - self.low) / spread
        count = min(PARTITIONS, len(np.unique(scaled, axis=0)))
        with threadpool_limits(1):  # the result must not depend on the cores
            found = KMeans(count, n_init=1, random_state=0).fit_predict(scaled)
        return tuple(starts[found == i] for i in range(count))

    def pick_rows(self, rng: np.random.Generator, count: int) -> Indices:
        """Draw table rows to start from, by their positions, one partition of the table after the other."""
        picked = np.empty(count, dtype=np.int64)
        for turn, rows in enumerate(self.partitions):
            here = picked[turn :: len(self.partitions)]
            here[:] = rng.choice(rows, len(here))
        return picked

    def uniform(self, rng: np.random.Generator, count: int) -> Codes:
        """Draw values of the free attributes, (count, free), uniform over domains and within the rules on them."""
        values = self._drawn(rng, count)
        for _ in range(REDRAWS if self._drawn_rules else 0):
            drawn = {int(column): values[:, place] for place, column in enumerate(self.free)}
            kept = [evaluated(rule.program, drawn.__getitem__) for rule in self._drawn_rules]
            broken = np.flatnonzero(~np.logical_and.reduce(kept))
            if len(broken) == 0:
                break
            values[broken] = self._drawn(rng, len(broken))
        return values

    def _drawn(self, rng: np.random.Generator, count: int) -> Codes:
        draws = rng.random((count, len(self.free)))
        whole = np.floor(self.low + draws * (self.high - self.low + 1))
        real = self.low + draws * (self.high - self.low)
        values = np.where(self.discrete, np.minimum(whole, self.high), real)
        for place, known in self._sets.items():
            values[:, place] = known[(draws[:, place] * len(known)).astype(np.int64)]
        return values

    def step(self, people: Codes, attribute: Indices, amount: Codes) -> Codes:
        """Copies of people, each moved by so many strides in one free attribute, given by its position among them.

        A step beyond a bound goes the other way instead: clipping it would waste an evaluation.
        """
        moved = people.copy()
        persons, columns = np.arange(len(people)), self.free[attribute]
        low, high = self.low[attribute], self.high[attribute]
        here, length = people[persons, columns], amount * self.stride[attribute]
        outside = (here + length < low) | (here + length > high)
        moved[persons, columns] = np.clip(np.where(outside, here - length, here + length), low, high)
        return self._onto_values(moved, people)

    def neighbours(self, people: Codes) -> tuple[Codes, Indices]:
        """Everybody who differs from one of these people in one free attribute, and the position of that person.

        Real attributes take the values on their stride; whoever is not allowed is replaced by the person.
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
        everybody, origin = np.concatenate(found), np.concatenate(origins)
        return self._kept(everybody, people[origin]), origin

    def limit(self, people: Codes, anchors: Codes, rng: np.random.Generator, *, current: Codes | None = None) -> Codes:
        """Proposals made valid: every strategy passes its proposals through here before it asks about them.

        A value that does not exist becomes the next one in the direction of the move. Changes beyond ``within`` of the
        anchor (the real row that somebody started from) are undone at random. Whoever then breaks a rule, or is not
        plausible enough, stays at ``current``; None means at their anchors.
        """
        before = anchors if current is None else current
        whole = self._onto_values(people, before)
        return self._kept(whole if self.within is None else self._near(whole, anchors, self.within, rng), before)

    def _kept(self, people: Codes, before: Codes) -> Codes:
        """People, with whoever is not allowed left where they were."""
        if self.min_plausibility is None and not self.evaluator.validity.any:
            return people
        fine = self.allowed(people)
        self.moves_removed += int(np.count_nonzero(~fine))
        return np.where(fine[:, None], people, before)

    def moved(self, people: Codes, by: Codes) -> Codes:
        """Copies of people, their free attributes so much further along, inside the domain."""
        result = people.copy()
        result[:, self.free] = np.clip(people[:, self.free] + by, self.low, self.high)
        return result

    def _onto_values(self, people: Codes, before: Codes) -> Codes:
        """Move values that are not in an attribute's set on to the next one that is."""
        if not self._sets:
            return people
        result = people.copy()
        for place, known in self._sets.items():
            column = self.free[place]
            wanted = people[:, column]
            up = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            down = np.maximum(np.searchsorted(known, wanted, side="right") - 1, 0)
            result[:, column] = known[np.where(wanted > before[:, column], up, down)]
        return result

    def _near(self, people: Codes, anchors: Codes, within: int, rng: np.random.Generator) -> Codes:
        mine = people[:, self.free]
        real = anchors[:, self.free]
        result = people.copy()
        changed = mine != real
        rank = np.argsort(np.argsort(np.where(changed, rng.random(changed.shape), 2.0), axis=1), axis=1)
        result[:, self.free] = np.where(changed & (rank < within), mine, real)
        return result


Thresholds = Mapping[int, npt.NDArray[np.float64]]


def across(people: Codes, proposed: Codes, thresholds: Thresholds, discrete: npt.NDArray[np.bool_]) -> Codes:
    """The proposals, with every changed value that stays on its side of all thresholds moved over the next one."""
    moved = proposed.copy()
    for column, at in thresholds.items():
        here, there = people[:, column], proposed[:, column]
        idle = np.flatnonzero((here != there) & (np.searchsorted(at, here) == np.searchsorted(at, there)))
        if len(idle) == 0 or len(at) == 0:
            continue
        below = np.searchsorted(at, here[idle])  # thresholds that the person is beyond
        up = there[idle] > here[idle]
        exists = np.where(up, below < len(at), below > 0)
        last = at[np.clip(np.where(up, below, below - 1), 0, len(at) - 1)]
        beyond = last + 1 if discrete[column] else np.nextafter(last, np.inf)
        moved[idle, column] = np.where(exists, np.where(up, beyond, last), there[idle])
    return moved
