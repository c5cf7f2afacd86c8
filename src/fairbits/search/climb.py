"""`climb`: our own search for the largest k, then the widest span.

A population of real people climbs together. Every generation each member proposes one change and keeps it unless it is
worse: a free attribute drawn anew or moved a little, now and then a mix with a better member, and for people whose
twins all score alike a step along the gradient towards the decision boundary, where scores begin to differ. The mean
of span and Shannon bits breaks ties, so that there is a slope to climb between two values of k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.engine import Evaluation
from fairbits.errors import OptionError
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem
from fairbits.search.strategy import Strategy, population

#: Chances of a proposal: to mix with a better member; else, to draw the attribute anew rather than move it a little;
#: and to change a second attribute as well.
MIX, ANEW, SECOND = 0.1, 0.5, 0.3
#: How fast the length of small moves falls off: a move of n strides has probability 0.4 · 0.6^(n−1).
SHORTNESS = 0.4


@dataclass(frozen=True)
class Climb(Strategy):
    """Population search; gradients help where the model has them."""

    seeds: int | None = None
    generations: int = 600

    name: ClassVar[str] = "climb"

    def __post_init__(self) -> None:
        if self.generations < 1 or (self.seeds is not None and self.seeds < 1):
            raise OptionError(f"generations ({self.generations}) and seeds ({self.seeds}) must be 1 or more.")

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """One population from its seeds to the end of its generations."""
        problem = oracle.problem
        rows = problem.pick_rows(rng, self.seeds or population(oracle.evaluator.m))
        anchors, people = problem.rows[rows], problem.rows[rows].copy()
        numbers, figures = oracle.open_seeds(rows)
        heights = height(figures)
        for _ in range(self.generations):
            proposed = propose(problem, people, heights, rng)
            toward_boundary(oracle, proposed, people, figures, rng)
            proposed = problem.limit(proposed, anchors, rng, current=people)
            found = oracle.ask(proposed, seeds=numbers, origin="climb")
            reached = height(found)
            kept = reached >= heights
            people[kept], heights[kept] = proposed[kept], reached[kept]
            figures = figures.updated(kept, found)


def height(figures: Evaluation) -> npt.NDArray[np.float64]:
    """k, and between two values of k the mean of span and of the bits' share of what m twins can show."""
    share = figures.q_1 / max(np.log2(figures.m), 1.0)
    span = figures.span / (1.0 + np.abs(figures.span))  # below 1 for regressions too
    return figures.k + 0.999 * (0.5 * span + 0.5 * share)


def propose(problem: Problem, people: Codes, heights: npt.NDArray[np.float64], rng: np.random.Generator) -> Codes:
    """One changed copy of every member."""
    n, free = len(people), len(problem.free)
    values = people[:, problem.free]
    mixing = rng.random(n) < MIX
    rivals = rng.integers(0, n, (n, 2))
    donors = values[np.where(heights[rivals[:, 0]] >= heights[rivals[:, 1]], rivals[:, 0], rivals[:, 1])]
    taken = rng.random((n, free)) < rng.random((n, 1))
    changed = np.where(mixing[:, None] & taken, donors, values)
    for moving in (~mixing, rng.random(n) < SECOND):
        _mutate(problem, changed, np.flatnonzero(moving), rng)
    proposed = people.copy()
    proposed[:, problem.free] = changed
    return proposed


def _mutate(problem: Problem, values: Codes, members: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
    """Change one free attribute of these members in place: drawn anew, or moved by a few strides."""
    count = len(members)
    attribute = rng.integers(0, len(problem.free), count)
    low, high = problem.low[attribute], problem.high[attribute]
    draws = rng.random(count)
    whole = np.minimum(np.floor(low + draws * (high - low + 1)), high)
    anew = np.where(problem.discrete[attribute], whole, low + draws * (high - low))
    length = rng.geometric(SHORTNESS, count) * rng.choice([-1.0, 1.0], count) * problem.stride[attribute]
    near = np.clip(values[members, attribute] + length, low, high)
    values[members, attribute] = np.where(rng.random(count) < ANEW, anew, near)


def toward_boundary(
    oracle: Oracle, proposed: Codes, people: Codes, figures: Evaluation, rng: np.random.Generator
) -> None:
    """Members whose twins all score alike step towards the decision boundary instead, if gradients can show the way."""
    if not oracle.evaluator.has_gradients or oracle.problem.schema.regression:
        return
    stuck = np.flatnonzero((figures.k == 1) & (rng.random(len(people)) < 0.5))
    if len(stuck) == 0:
        return
    problem = oracle.problem
    slope = oracle.gradients(people[stuck], figures.high_twin[stuck])
    uphill = np.where(figures.high[stuck] < 0.5, 1.0, -1.0)[:, None] * np.sign(slope)
    length = rng.geometric(SHORTNESS, (len(stuck), 1)) * problem.stride
    moved = np.clip(people[np.ix_(stuck, problem.free)] + length * uphill, problem.low, problem.high)
    proposed[np.ix_(stuck, problem.free)] = np.where(problem.discrete, np.rint(moved), moved)
