"""`climb`: our own search for the largest k, then the widest span.

A population of real people climbs together. Every generation each member proposes one change: a free attribute drawn
anew or moved a little, or now and then a mix with a better member. Half of the changes are drifts: the attribute is
chosen with probability inverse to its gradients, so that scores hardly move and a person as badly off, but a new one,
is likely. Changes are kept by Metropolis at temperature 1 on k, with span and Shannon bits between two values of k: a
population that only ever went up would settle on a few people and find nobody else. Members whose twins all score
alike step along the gradient towards the decision boundary, where scores begin to differ.

Now and then the best members look at everybody within one change of them, so that no better neighbour is overlooked.

Models without gradients are searched in the same way, with attributes chosen uniformly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.engine import Evaluation
from fairbits.errors import OptionError
from fairbits.search.dice import draw, hop_plan
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem
from fairbits.search.strategy import Strategy, population

#: Chances of a proposal: to mix with a better member, else to drift; and of the value to be drawn anew rather than
#: moved a little, when drifting and otherwise.
MIX, DRIFT = 0.05, 0.5
ANEW_DRIFTING, ANEW = 0.7, 0.3
#: Every so many generations, so many of the best members look around.
LOOK_EVERY, LOOKERS = 40, 4
#: A small move is n strides long with probability 0.4 · 0.6^(n−1).
SHORTNESS = 0.4


@dataclass(frozen=True)
class Climb(Strategy):
    """Population search; gradients help where the model has them."""

    seeds: int | None = None  # how many climb together; None: by the number of twins
    generations: int = 1000
    temperature: float = 1.0

    name: ClassVar[str] = "climb"

    def __post_init__(self) -> None:
        if self.generations < 1 or (self.seeds is not None and self.seeds < 1):
            raise OptionError(f"generations ({self.generations}) and seeds ({self.seeds}) must be 1 or more.")
        if not self.temperature > 0:
            raise OptionError(f"the temperature is {self.temperature}; it must be larger than 0.")

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """One population from its seeds to the end of its generations."""
        problem = oracle.problem
        rows = problem.pick_rows(rng, self.seeds or population(oracle.evaluator.m))
        anchors, people = problem.rows[rows], problem.rows[rows].copy()
        numbers, figures = oracle.open_seeds(rows)
        heights, weights = height(figures), drift_weights(oracle, people, figures)
        looked: set[bytes] = set()
        for generation in range(1, self.generations + 1):
            proposed = propose(problem, people, heights, weights, rng)
            toward_boundary(oracle, proposed, people, figures, rng)
            proposed = problem.limit(proposed, anchors, rng, current=people)
            found = oracle.ask(proposed, seeds=numbers, origin="climb")
            reached = height(found)
            kept = rng.random(len(people)) < np.exp(np.minimum(reached - heights, 0.0) / self.temperature)
            people[kept], heights[kept] = proposed[kept], reached[kept]
            figures = figures.updated(kept, found)
            weights[kept] = drift_weights(oracle, people[kept], figures.rows(kept))
            if generation % LOOK_EVERY == 0 and problem.within is None:
                look_around(oracle, people, heights, numbers, looked)


def height(figures: Evaluation) -> npt.NDArray[np.float64]:
    """k, and between two values of k the mean of span and of the bits' share of what m twins can show."""
    share = figures.q_1 / max(np.log2(figures.m), 1.0)
    span = figures.span / (1.0 + np.abs(figures.span))  # below 1 for regressions too
    return figures.k + 0.999 * (0.5 * span + 0.5 * share)


def drift_weights(oracle: Oracle, people: Codes, figures: Evaluation) -> Codes:
    """Chance of each free attribute to drift; the same for all where nothing is known about slopes."""
    if not oracle.evaluator.has_gradients:
        return np.ones((len(people), len(oracle.problem.free)))
    return hop_plan(oracle, people, figures)[0]


def propose(
    problem: Problem, people: Codes, heights: npt.NDArray[np.float64], weights: Codes, rng: np.random.Generator
) -> Codes:
    """One changed copy of every member."""
    n, free = len(people), len(problem.free)
    values = people[:, problem.free]
    rivals = rng.integers(0, n, (n, 2))
    donors = values[np.where(heights[rivals[:, 0]] >= heights[rivals[:, 1]], rivals[:, 0], rivals[:, 1])]
    mixed = np.where(rng.random((n, free)) < rng.random((n, 1)), donors, values)
    drifting = rng.random(n) < DRIFT
    attribute = np.where(drifting, draw(weights, rng), rng.integers(0, free, n))
    anew = rng.random(n) < np.where(drifting, ANEW_DRIFTING, ANEW)
    members = np.arange(n)
    here = values[members, attribute]
    changed = values.copy()
    changed[members, attribute] = np.where(
        anew, _another(problem, here, attribute, rng), _near(problem, here, attribute, rng)
    )
    proposed = people.copy()
    proposed[:, problem.free] = np.where((rng.random(n) < MIX)[:, None], mixed, changed)
    return proposed


def _another(problem: Problem, here: Codes, attribute: npt.NDArray[np.int64], rng: np.random.Generator) -> Codes:
    """A value uniform over the others in the domain."""
    low, high = problem.low[attribute], problem.high[attribute]
    draws = rng.random(len(here))
    lower = low + np.floor(draws * (high - low))  # one value fewer than there are, then past the present one
    whole = np.minimum(np.where(lower >= here, lower + 1, lower), high)
    return np.where(problem.discrete[attribute], whole, low + draws * (high - low))


def _near(problem: Problem, here: Codes, attribute: npt.NDArray[np.int64], rng: np.random.Generator) -> Codes:
    """A value a few strides away, turned round at a bound."""
    low, high = problem.low[attribute], problem.high[attribute]
    length = rng.geometric(SHORTNESS, len(here)) * rng.choice([-1.0, 1.0], len(here)) * problem.stride[attribute]
    outside = (here + length < low) | (here + length > high)
    return np.clip(np.where(outside, here - length, here + length), low, high)


def look_around(
    oracle: Oracle, people: Codes, heights: npt.NDArray[np.float64], seeds: npt.NDArray[np.int64], looked: set[bytes]
) -> None:
    """Ask about every neighbour of the best members that have not looked around yet; each moves to its best one."""
    problem = oracle.problem
    lookers: list[int] = []
    for member in np.argsort(-heights, kind="stable")[: 10 * LOOKERS]:
        key = people[member, problem.person].tobytes()
        if key not in looked and len(lookers) < LOOKERS:
            looked.add(key)
            lookers.append(int(member))
    if not lookers:
        return
    chosen = np.array(lookers)
    neighbours, origin = problem.neighbours(people[chosen])
    found = oracle.ask(neighbours, seeds=seeds[chosen[origin]], origin="climb")
    reached = height(found)
    order = np.lexsort((reached, origin))
    best = order[np.searchsorted(origin[order], np.arange(len(chosen)), side="right") - 1]
    better = reached[best] > heights[chosen]
    people[chosen[better]], heights[chosen[better]] = neighbours[best[better]], reached[best[better]]


def toward_boundary(
    oracle: Oracle, proposed: Codes, people: Codes, figures: Evaluation, rng: np.random.Generator
) -> None:
    """Half of the members whose twins all score alike step towards the decision boundary instead."""
    if not oracle.evaluator.has_gradients or oracle.problem.schema.regression:
        return
    stuck = np.flatnonzero((figures.k == 1) & (rng.random(len(people)) < 0.5))
    if len(stuck) == 0:
        return
    problem = oracle.problem
    slope = oracle.gradients(people[stuck], figures.high_twin[stuck])
    uphill = np.where(figures.high[stuck] < 0.5, 1.0, -1.0)[:, None] * np.sign(slope)
    length = rng.geometric(SHORTNESS, (len(stuck), 1)) * problem.stride
    moved = people[np.ix_(stuck, problem.free)] + length * uphill
    proposed[np.ix_(stuck, problem.free)] = np.clip(moved, problem.low, problem.high)
