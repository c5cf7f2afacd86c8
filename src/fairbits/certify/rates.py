"""Guaranteed intervals for group rates: how often each group is decided for, under a population fitted to the table.

FairSquare's question (Albarghouthi, D'Antoni, Drews, Nori: "FairSquare: probabilistic verification of program
fairness", OOPSLA 2017). The population is a tree of depth one: the group first, then every attribute given the group,
independent of the others. Boxes of people are bounded as for certificates; what weighs a box is its probability in
place of its number of people. A box in which every person with the protected values z is certainly decided for adds its
whole weight to the lower end, one in which nobody is adds nothing to the upper end, and what is open lies between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.certify.boxes import bound, halves, in_batches, most_open
from fairbits.domain import Attribute, Codes, Doubles, Twins
from fairbits.engine import BoxNetwork
from fairbits.measure import Evaluator
from fairbits.store import plain

#: Sums of millions of products of a few doubles are off by less than this share.
ROUNDING = 1e-9
#: Open boxes that are kept.
MAX_BOXES = 300_000
#: People of each group who are drawn and asked, so that what is proved can be held against decisions.
DRAWN = 4_096


@dataclass(frozen=True, slots=True)
class GroupInterval:
    """How often one group is decided for; of ``drawn`` people of it who were asked, ``favoured`` were."""

    group: str
    low: float
    high: float
    drawn: int = 0
    favoured: int = 0


@dataclass(frozen=True, slots=True)
class RateStatement:
    """Rates of all groups of one protected attribute, and the ratio of the smallest to the largest."""

    attribute: str
    population: str
    groups: tuple[GroupInterval, ...]
    ratio_low: float
    ratio_high: float
    seconds: float
    boxes: int
    withdrawn: str = ""

    def document(self) -> dict[str, Any]:
        """As it stands in certify_rates.json."""
        return dict(plain(self))

    def sentence(self) -> str:
        """What it says, in one sentence."""
        if self.withdrawn:
            return f"Withdrawn, an error of ours: {self.withdrawn}."
        if all(g.low <= 0.0 and g.high >= 1.0 for g in self.groups):
            return f"Rates by {self.attribute}: nothing is certain in this time; give a larger --budget."
        rates = ", ".join(f"{g.group} {100 * g.low:.1f} to {100 * g.high:.1f} %" for g in self.groups)
        return (
            f"Rates by {self.attribute}, as if attributes were independent within the group: {rates}; the smallest is "
            f"{self.ratio_low:.3f} to {self.ratio_high:.3f} of the largest. They are bounds for {self.population}, not "
            f"the table's own rates."
        )


@dataclass(frozen=True, slots=True, eq=False)
class FittedPopulation:
    """A tree of depth one: the groups of an attribute, and every attribute given the group."""

    twins: Doubles
    marginals: tuple[Doubles, ...]

    @classmethod
    def of(cls, network: BoxNetwork, twins: Twins, rows: Codes, column: int) -> FittedPopulation:
        """Fit the population to rows, smoothed by one row spread over all values (Perks 1947)."""
        own = twins.values[:, int(np.flatnonzero(twins.columns == column)[0])]
        twin, values = twins.index_of(rows), twin_groups(twins, column)
        group, groups = np.searchsorted(values, own[twin]), len(values)
        mine = (own[None] == values[:, None]).astype(np.float64)
        counts = np.zeros((groups, twins.m))
        np.add.at(counts, (group, twin), 1.0)
        counts += mine / mine.sum(axis=1, keepdims=True)
        marginals = []
        for place, (at, codes) in enumerate(zip(network.columns, network.values, strict=True)):
            order = np.argsort(codes, kind="stable")
            real = place < network.numeric and network.layers.wide[place] > 0
            begins = codes[order][1:]  # of the parts of a real attribute; of values, the middle to the one before
            ends = begins if real else (begins + codes[order][:-1]) / 2
            nearest = np.searchsorted(ends, rows[:, int(at)], side="right" if real else "left")
            found = np.full((groups, len(codes)), 1.0 / len(codes))
            np.add.at(found, (group, order[nearest]), 1.0)
            marginals.append(found / found.sum(axis=1, keepdims=True))
        return cls(counts / counts.sum(axis=1, keepdims=True), tuple(marginals))

    def draw(self, network: BoxNetwork, evaluator: Evaluator, group: int, rng: np.random.Generator) -> Codes:
        """People of a group at random, as they are; attributes that the network ignores have their first value."""
        codes = np.tile([attribute.first for attribute in evaluator.schema.attributes], (DRAWN, 1))
        for place, (at, values) in enumerate(zip(network.columns, network.values, strict=True)):
            drawn = rng.choice(len(values), DRAWN, p=self.marginals[place][group])
            codes[:, int(at)] = values[drawn]
            if place < network.numeric and network.layers.wide[place] > 0:  # anywhere in a part of a real one
                codes[:, int(at)] += network.paces[place] * rng.random(DRAWN)
        return evaluator.twins.as_twins(codes, rng.choice(evaluator.twins.m, DRAWN, p=self.twins[group]))


def group_rates(
    network: BoxNetwork,
    cuts: tuple[float, float],
    population: FittedPopulation,
    attribute: Attribute,
    values: Doubles,
    *,
    seconds: float,
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    max_boxes: int | None = None,
) -> RateStatement:
    """Bound the rate of every group, splitting where most is open, until nothing is or the budget ends."""
    begin = time.perf_counter()
    work = _Rates(network, cuts, population, threads)
    work.run(begin + seconds, stop, max_boxes or 2**62)
    lows, highs = work.lows, np.minimum(1.0, work.highs)
    names = [attribute.read_twin(float(value)) for value in values]
    # The smallest over the largest: whoever is smallest, it is at least the least lower end, and so on.
    ratio_low = float(lows.min() / highs.max()) if highs.max() > 0 else 0.0
    ratio_high = float(min(1.0, highs.min() / lows.max())) if lows.max() > 0 else 1.0
    return RateStatement(
        attribute.name,
        f"people drawn from the table's own shares: {attribute.name} first, every other attribute given it",
        tuple(GroupInterval(name, float(a), float(b)) for name, a, b in zip(names, lows, highs, strict=True)),
        ratio_low,
        ratio_high,
        time.perf_counter() - begin,
        work.boxes,
    )


class _Rates:
    """One computation in progress: what is settled, and the open boxes."""

    def __init__(
        self, network: BoxNetwork, cuts: tuple[float, float], population: FittedPopulation, threads: int | None
    ):
        self.network, self.population, self.threads = network, population, threads
        self.below, self.cut = cuts  # margins under the one are unfavourable, from the other on favourable
        groups = len(population.twins)
        self.settled, self.unsettled = np.zeros(groups), np.zeros(groups)  # certainly for; put aside as open
        self.sums = [
            np.concatenate([np.zeros((groups, 1)), np.cumsum(m, axis=1)], axis=1)
            for m in population.marginals[: network.numeric]
        ]
        self.boxes = 0
        first, last, masks = network.whole()
        self.open: dict[str, npt.NDArray[Any]] = {}
        self._add(first, last, masks, np.zeros((1, len(network.layers.kinds) + 1), np.int8))

    @property
    def lows(self) -> Doubles:
        return np.asarray(self.settled * (1.0 - ROUNDING))

    @property
    def highs(self) -> Doubles:
        return np.asarray((self.settled + self.unsettled + self.open["weight"].sum(axis=0)) * (1.0 + ROUNDING))

    def run(self, end: float, stop: Callable[[], bool], max_boxes: int) -> None:
        in_batches(self._step, lambda: time.perf_counter() < end and self.boxes < max_boxes and not stop())

    def _step(self, size: int) -> bool:
        chosen = most_open(self.open["weight"].max(axis=1), size)
        if not len(chosen):
            return False
        first, last, masks, states, at, _ = (array[chosen] for array in self.open.values())
        self.open = {name: np.delete(array, chosen, axis=0) for name, array in self.open.items()}
        self._add(*halves(self.network, first, last, masks, at)[0], np.concatenate([states, states]))
        weight = self.open["weight"]
        if len(weight) > MAX_BOXES:
            order = np.argsort(-weight.max(axis=1), kind="stable")
            self.unsettled += weight[order[MAX_BOXES // 2 :]].sum(axis=0)
            kept = np.sort(order[: MAX_BOXES // 2])
            self.open = {name: array[kept] for name, array in self.open.items()}
        return True

    def _add(self, first: Any, last: Any, masks: Any, states: Any) -> None:
        n = len(first)
        cuts = (self.below, self.cut)
        found = bound(self.network, cuts, (first, last, masks, states), margins=True, threads=self.threads)
        lows, highs, split = found.lows, found.highs, found.split
        self.boxes += n
        weights = self._weights(first, last, masks)
        twins = self.population.twins.T
        sure = (lows >= 0.0).astype(np.float64) @ twins  # (boxes, groups): the part of a group that is decided for
        unknown = (~(lows >= 0.0) & ~(highs < self.below - self.cut)).astype(np.float64) @ twins
        self.settled += (sure * weights).sum(axis=0)
        left = unknown * weights
        # What is certainly for is counted now, so that the parts of a box may only count what was open in it.
        going = (left > 0.0).any(axis=1)
        stuck = going & (split < 0)
        self.unsettled += left[stuck].sum(axis=0)
        going &= split >= 0
        # The parts of an open box are counted anew: what it was sure of comes back with them.
        self.settled -= (sure * weights)[going].sum(axis=0)
        new = {"first": first, "last": last, "masks": masks, "states": states, "split": split}
        for name, array in {**new, "weight": (sure + unknown) * weights}.items():
            self.open[name] = np.concatenate([self.open.get(name, array[:0]), array[going]])

    def _weights(self, first: Any, last: Any, masks: Any) -> Doubles:
        """The probability of each box in each group, (boxes, groups)."""
        total = np.ones((len(first), len(self.population.twins)))
        for i, sums in enumerate(self.sums):
            total *= (sums[:, last[:, i].astype(np.int64) + 1] - sums[:, first[:, i].astype(np.int64)]).T
        for a, shares in enumerate(self.population.marginals[self.network.numeric :]):
            bits = (masks[:, a, None] >> np.arange(shares.shape[1], dtype=np.uint64)) & np.uint64(1)
            total *= bits.astype(np.float64) @ shares.T
        return total


def twin_groups(twins: Twins, column: int) -> Doubles:
    """The codes of a protected attribute that twins have: its groups."""
    place = int(np.flatnonzero(twins.columns == column)[0])
    return np.unique(twins.values[:, place])
