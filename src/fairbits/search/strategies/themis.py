"""`random`: people drawn uniformly from the valid domain, the honest baseline for every search; `themis`: the same
until the rate of discrimination is known well enough.

Galhotra, Brun, Meliou, "Fairness Testing: Testing Software for Discrimination", ESEC/FSE 2017. A person is drawn
uniformly, and counts for a set of protected attributes when changing only these can change the decision. Draws go on
until the confidence interval of every rate is narrower than the margin. Where we differ from the public code, and why:

* one draw, with all its twins, serves every set of attributes at once: the public code draws anew for each set;
* so the search over sets, by growing size and leaving out those that contain a hit, is made on the finished rates;
* a model that predicts a number has no decisions: there, scores further apart than ε count, and means are compared.

The rates of the latest finished round are in the summary under ``findings``. Draws never learn: as a search this is
`random`, and that is the point of having it in a comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.errors import OptionError
from fairbits.search.oracle import Oracle
from fairbits.search.strategies.walks import drawn_people
from fairbits.search.strategy import INSIDE, SHARE, Limit, Strategy, population

#: Batches in a round of `random`.
BATCHES = 100
#: Standard deviations of a 95 % interval.
Z_95 = 1.96


@dataclass(frozen=True)
class Random(Strategy):
    """Uniform draws; with ``within``, a real row with that many attributes drawn anew."""

    name: ClassVar[str] = "random"

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Draw a hundred batches of people."""
        count = population(oracle.evaluator.m)
        for _ in range(BATCHES):
            oracle.ask(drawn_people(oracle, rng, count).people, origin="random")


@dataclass(frozen=True)
class Themis(Strategy):
    """Uniform draws with a stop rule."""

    margin: float = 0.01
    least: int = 10_000
    most: int = 200_000
    threshold: float = 0.2  # a set of attributes with this rate is a hit, and so is all that contains it

    name: ClassVar[str] = "themis"
    limits: ClassVar[Mapping[str, Limit]] = {"margin": INSIDE, "threshold": SHARE}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.least <= self.most:
            raise OptionError(f"0 < least <= most must hold, but got least = {self.least}, most = {self.most}.")

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Draw people until every rate is known to within the margin."""
        rates = Rates(oracle)
        while rates.draws < self.most:
            people = drawn_people(oracle, rng, population(oracle.evaluator.m)).people
            oracle.ask(people, origin="random")
            # Sets of attributes are compared in the values that everybody's twins take.
            m, valid = oracle.evaluator.twins.m, oracle.evaluator.valid_twins(people)
            rates.add(oracle.scores(people)[:, :m], rng, None if valid is None else valid[:, :m])
            if rates.draws >= self.least and rates.widest() < self.margin:
                break
        oracle.findings["themis"] = rates.found(self.threshold)


class Rates:
    """For every set of protected attributes: how often changing only these changes the decision."""

    def __init__(self, oracle: Oracle):
        schema = oracle.problem.schema
        self.names = schema.protected
        self.sizes = [len(schema.attributes[i].twin_values()) for i in schema.protected_columns]
        axes = range(len(self.sizes))
        self.sets = [chosen for size in axes for chosen in itertools.combinations(axes, size + 1)]
        self.draws = 0
        self._regression, self._rule = schema.regression, schema.rule
        self._tolerance = oracle.evaluator.epsilon if schema.regression else 0.0
        self._hits = np.zeros(len(self.sets))
        self._sums, self._counts = np.zeros(self.sizes), np.zeros(self.sizes)

    def add(
        self, scores: npt.NDArray[np.float32], rng: np.random.Generator, valid: npt.NDArray[np.bool_] | None = None
    ) -> None:
        """Count some drawn people; each gets protected values of its own, drawn here."""
        values = scores if self._regression else self._rule.favours(scores).astype(np.float32)
        cube = np.where(np.True_ if valid is None else valid, values, np.nan).reshape(-1, *self.sizes)
        own = [rng.integers(0, size, len(cube)) for size in self.sizes]
        for place, chosen in enumerate(self.sets):
            fixed = [axis for axis in range(len(self.sizes)) if axis not in chosen]
            index = tuple(own[axis] if axis in fixed else slice(None) for axis in range(len(self.sizes)))
            # NumPy puts the people first when an index array and slices alternate, and leaves them first otherwise.
            flat = (cube[(np.arange(len(cube)), *index)] if fixed else cube).reshape(len(cube), -1)
            # fmax and fmin pass over NaN; a person without any twin there compares as False.
            gap = np.fmax.reduce(flat, axis=1) - np.fmin.reduce(flat, axis=1)
            self._hits[place] += np.count_nonzero(gap > self._tolerance)
        self._sums += np.nansum(cube, axis=0, dtype=np.float64)
        self._counts += np.count_nonzero(~np.isnan(cube), axis=0)
        self.draws += len(cube)

    def widest(self) -> float:
        """Half the widest confidence interval."""
        rate = self._hits / self.draws
        return float((Z_95 * np.sqrt(rate * (1 - rate) / self.draws)).max())

    def found(self, threshold: float) -> list[dict[str, Any]]:
        """Rates and group differences by growing set of attributes."""
        listed: list[dict[str, Any]] = []
        hits: list[set[int]] = []
        for place, chosen in enumerate(self.sets):
            if any(hit < set(chosen) for hit in hits):
                continue
            others = tuple(axis for axis in range(len(self.sizes)) if axis not in chosen)
            means = self._sums.sum(axis=others) / np.maximum(self._counts.sum(axis=others), 1.0)
            causal, group = float(self._hits[place] / self.draws), float(means.max() - means.min())
            names = [self.names[axis] for axis in chosen]
            listed.append({"attributes": names, "causal": causal, "group": group, "draws": self.draws})
            if max(causal, group) >= threshold:
                hits.append(set(chosen))
        return listed
