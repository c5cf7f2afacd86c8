"""`dice`: the paper's two-phase search, batched.

Monjezi, Trivedi, Tan, Tizpaz-Niari, "Information-Theoretic Testing and Debugging of Fairness Defects in Deep Neural
Networks", ICSE 2023, Algorithm 1. Where we differ from its public code, and why:

* thousands of seeds and chains advance together instead of one individual at a time: the algorithm allows it;
* the gradient is that of the logit margin, turned to the signs of the loss: it does not fade to zero where the network
  is certain; where it is zero all the same (dead ReLUs), one random attribute moves, as in the paper;
* a hop is one evaluation: the inner L-BFGS-B of the public code re-evaluates the same integer point 13 times of 14.
  Real attributes, where an inner step can do something, take one gradient step towards a wider span with each hop;
* the pair of twins of the global phase is drawn without replacement and afresh each time; that of the local phase are
  the twins with the lowest and the highest score, who are in the lowest and the highest class;
* at a bound a local step is turned round instead of clipped away, and categories are moved as wholes: no impossible
  people.

Where Algorithm 1 leaves something open, and what is done here (docs/method.md has the effects, measured):

* a seed begins with one class and no distance as its best so far, so that a local phase needs classes to widen: with
  binary feedback only people whose decisions differ get one;
* an attribute with no slope at all has no inverse: it counts as steep as the flattest attribute that has one;
* δ is the span of the twins' scores where there are two classes or more: only its order at equal k matters;
* with three classes or more the label that a loss is taken against is favourable or not; a number has no label, so the
  signs of its slopes are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairbits.domain import Codes, Doubles, Truth
from fairbits.engine import Evaluation
from fairbits.errors import OptionError, choose_from
from fairbits.measure import Measure, assign, class_masses, effective_classes, grid_bins
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices
from fairbits.search.strategies.walks import Start, nudged, opened
from fairbits.search.strategy import ABOVE_0, AT_LEAST_0, AT_LEAST_1, Limit, Strategy, metropolis, population

#: Seeds that advance together, at most: with more, a short search would end before their hops lead anywhere.
LARGEST = 1024
FEEDBACK = ("quantitative", "binary")


@dataclass(frozen=True)
class Dice(Strategy):
    """The paper's parameters under the paper's defaults."""

    seeds: int | None = None  # how many advance together; None: by the number of twins
    global_moves: int = 10
    local_moves: int = 1000
    global_step: float = 1.0
    local_step: float = 1.0
    feedback: str = "quantitative"  # or "binary": only whether twins get different decisions, as earlier testers have

    name: ClassVar[str] = "dice"
    needs_gradients: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = {
        "seeds": AT_LEAST_1,
        "local_moves": AT_LEAST_0,
        **dict.fromkeys(("global_moves", "global_step", "local_step"), ABOVE_0),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feedback not in FEEDBACK:
            raise OptionError(f"feedback {self.feedback!r} is not known; {choose_from(str(self.feedback), FEEDBACK)}")

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """The global phase from some seeds, each with its local phases."""
        problem = oracle.problem
        start, figures = opened(oracle, rng, self.seeds or min(LARGEST, population(oracle.evaluator.m)))
        people = start.people
        # Before anybody was judged: one class, no distance; or decisions that are all the same.
        best = np.tile([0.0 if self.feedback == "binary" else 1.0, 0.0], (len(start), 1))
        for move in range(self.global_moves):
            if move:
                figures = oracle.ask(people, seeds=start.seeds, origin="global")
            worth = self._worth(figures, problem.measure)
            better = grew(worth, best)
            best = np.where(better[:, None], worth, best)
            direction = self._direction(oracle, people, rng)
            if better.any():
                self._local(oracle, replace(start, people=people).rows(better), figures.rows(better), rng)
            moved = problem.moved(people, self.global_step * direction * problem.stride)
            people = problem.limit(moved, start.anchors, rng, current=people)

    def _direction(self, oracle: Oracle, people: Codes, rng: np.random.Generator) -> Codes:
        """Signs on which the gradients of two twins in the largest class agree; never zero everywhere."""
        scores = oracle.scores(people)
        favourable = oracle.problem.schema.rule.favours(scores)
        if self.feedback == "binary":
            members = favourable.astype(np.int64)
        else:
            members = assign(scores, oracle.evaluator.epsilon, oracle.evaluator.partition)
        one, other = two_of_largest(members, rng, oracle.evaluator.valid_twins(people))
        first, second = oracle.gradients(people, one), oracle.gradients(people, other)
        if not oracle.problem.schema.regression:  # a number has no label, and so no side to move away from
            person = np.arange(len(people))
            first = loss_slopes(first, favourable[person, one])
            second = loss_slopes(second, favourable[person, other])
        return nudged(agreed(first, second), rng)

    def _local(self, oracle: Oracle, start: Start, figures: Evaluation, rng: np.random.Generator) -> None:
        """Basin hopping from these people: one attribute a hop, Metropolis acceptance at temperature 1."""
        problem = oracle.problem
        current = start.people.copy()
        score = self._spread(oracle, figures)
        weights, wider = hop_plan(oracle, current, figures)
        for _ in range(self.local_moves):
            signs = rng.choice([-1.0, 1.0], len(current))
            hopped = problem.step(problem.moved(current, wider), draw(weights, rng), self.local_step * signs)
            hopped = problem.limit(hopped, start.anchors, rng, current=current)
            found = oracle.ask(hopped, seeds=start.seeds, origin="local")
            reached = self._spread(oracle, found)
            accepted = metropolis(reached - score, rng)
            current[accepted], score[accepted] = hopped[accepted], reached[accepted]
            weights[accepted], wider[accepted] = hop_plan(oracle, hopped[accepted], found.rows(accepted))

    def _worth(self, figures: Evaluation, measure: Measure = "q_inf") -> Codes:
        """What a person is judged by in the global phase, (n, 2): k (or 2 to the power of Q1, where that is the
        measure) and the distance between the outer classes (none where there is but one); or only whether decisions
        differ.
        """
        if self.feedback == "binary":
            return np.column_stack([figures.flips.astype(np.float64), np.zeros(len(figures.k))])
        return np.column_stack([effective_classes(figures, measure), np.where(figures.k > 1, figures.span, 0.0)])

    def _spread(self, oracle: Oracle, figures: Evaluation) -> Doubles:
        """Δ, what a local phase widens: the index of the highest-scoring class less that of the lowest.

        Under the measure ``q_1`` it is 2 to the power of Q1, less 1: the same where all classes are of one size.
        """
        if self.feedback == "binary":
            return figures.flips.astype(np.float64)
        if oracle.problem.measure == "q_1":
            return effective_classes(figures, "q_1") - 1.0
        if oracle.evaluator.partition == "constrained":  # classes are counted from the lowest score on
            return figures.k.astype(np.float64) - 1.0
        ends = grid_bins(np.column_stack([figures.low, figures.high]), oracle.evaluator.epsilon)
        return (ends[:, 1] - ends[:, 0]).astype(np.float64)


def grew(worth: Codes, best: Codes) -> Truth:
    """Where k grew, or k is equal and the distance grew: the order of k + (1 − exp(−0.1·δ)), which is below k + 1.

    Examples
    --------
    >>> grew(np.array([[3, 0.1], [2, 0.4], [2, 0.3], [1, 0.9]]), np.array([[2, 0.3]] * 4)).tolist()
    [True, True, False, False]
    """
    return (worth[:, 0] > best[:, 0]) | ((worth[:, 0] == best[:, 0]) & (worth[:, 1] > best[:, 1]))


def loss_slopes(slopes: Codes, favourable: Truth) -> Codes:
    """Slopes of the loss against each twin's own label, up to a positive factor.

    The loss of a favourable label falls as the margin rises; that of an unfavourable one rises with it.
    """
    return np.where(favourable[:, None], -slopes, slopes)


def agreed(first: Codes, second: Codes) -> Codes:
    """Signs that two slopes share, 0 where they differ."""
    one = np.sign(first)
    return np.where(one == np.sign(second), one, 0.0)


def hop_plan(oracle: Oracle, people: Codes, figures: Evaluation) -> tuple[Codes, Codes]:
    """Weights for choosing the attribute that moves, and steps of the real attributes towards a wider span.

    Both come from the gradients at the lowest and the highest twin; weights are inverse to the summed slopes.
    """
    low, high = oracle.gradients(people, figures.low_twin), oracle.gradients(people, figures.high_twin)
    problem = oracle.problem
    return inverse(low, high), np.where(problem.discrete, 0.0, np.sign(high - low) * problem.stride)


def inverse(low: Codes, high: Codes) -> Codes:
    """Weights inverse to the summed slopes of two twins; equal for all attributes where there are no slopes.

    An attribute without a slope counts as the flattest one that has one, since 1/0 is no weight.

    Examples
    --------
    >>> inverse(np.array([[1.0, -2.0, 0.0]]), np.array([[1.0, 2.0, 0.0]])).tolist()
    [[0.5, 0.25, 0.5]]
    """
    slope = np.abs(low) + np.abs(high)
    flattest = np.where(slope > 0, slope, np.inf).min(axis=1, keepdims=True)
    return 1.0 / np.where(slope > 0, slope, np.where(np.isfinite(flattest), flattest, 1.0))


def draw(weights: Codes, rng: np.random.Generator) -> Indices:
    """Draw one column of each row, with probability proportional to its weight."""
    heights = np.cumsum(weights, axis=1)
    return (heights < rng.random((len(weights), 1)) * heights[:, -1:]).sum(axis=1)


def two_of_largest(members: Indices, rng: np.random.Generator, valid: Truth | None = None) -> tuple[Indices, Indices]:
    """Two different twins of each person's largest class (the same one twice where it has only one)."""
    n, m = members.shape
    there = np.ones((n, m), dtype=np.bool_) if valid is None else valid
    sizes = class_masses(members, there.astype(np.float64))
    inside = there & (members == sizes.argmax(axis=1)[:, None])
    order = np.argsort(np.where(inside, rng.random((n, m)), 2.0), axis=1)
    return order[:, 0], np.where(inside.sum(axis=1) > 1, order[:, min(1, m - 1)], order[:, 0])
