"""`grft`: a small genetic search around every seed, then a random walk of all ID cases at once.

Quan, Li, Xie, Chen, Chen, Jiang, Li, "Dissecting Global Search: A Simple Yet Effective Method to Boost Individual
Discrimination Testing and Repair", ICSE 2025: Genetic-Random Fairness Testing. Per seed a population of 100 breeds for
at most ten generations with the summed differences of twins' scores as fitness; then all ID cases walk together, one
attribute a step, and whoever loses the difference in decision steps back. Where we differ from the public code:

* the fitness sums over all pairs of twins, because a person has no protected value of its own here; the public code
  also pairs scores of different people with each other when it lines them up for that sum;
* selection, crossover and mutation are plain ones (the better of two, uniform, one attribute drawn anew): the public
  code's (the best of three among the ten fittest, uniform, three attributes by up to three each) need integers;
* each walker draws its own attribute and direction, where the public code moves all of them the same way at a step;
* all seeds breed and all walkers walk together; a seed stops breeding as soon as it has an ID case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem
from fairbits.search.strategies.walks import Aimless, Start, apart, opened, walk
from fairbits.search.strategy import AT_LEAST_0, AT_LEAST_1, AT_LEAST_2, Limit, Strategy, population


@dataclass(frozen=True)
class Grft(Strategy):
    """The method's parameters under its defaults."""

    seeds: int | None = None
    crowd: int = 100
    generations: int = 10
    local_moves: int = 1000

    name: ClassVar[str] = "grft"
    limits: ClassVar[Mapping[str, Limit]] = {
        "seeds": AT_LEAST_1,
        "crowd": AT_LEAST_2,
        **dict.fromkeys(("generations", "local_moves"), AT_LEAST_0),
    }

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Breed around some seeds, then walk from the ID cases."""
        count = self.seeds or max(1, population(oracle.evaluator.m) // self.crowd)
        start = self._bred(oracle, rng, count)
        walk(oracle, start, Aimless(len(start), len(oracle.problem.free)), rng, steps=self.local_moves, forgiveness=0.0)

    def _bred(self, oracle: Oracle, rng: np.random.Generator, seeds: int) -> Start:
        """ID cases of all seeds' crowds."""
        problem, found = oracle.problem, []
        start, _ = opened(oracle, rng, seeds)
        crowd = start.rows(np.repeat(np.arange(seeds), self.crowd))
        people = problem.limit(changed(problem, crowd.people, rng), crowd.anchors, rng)
        for generation in range(self.generations + 1):
            crowd = Start(people, crowd.anchors, crowd.seeds)
            hit = apart(oracle, oracle.ask(crowd.people, seeds=crowd.seeds, origin="global"))
            found.append(crowd.rows(hit))
            barren = np.repeat(~hit.reshape(-1, self.crowd).any(axis=1), self.crowd)
            if generation == self.generations or not barren.any():
                break
            crowd = crowd.rows(barren)
            heights = fitness(oracle.scores(crowd.people), oracle.evaluator.valid_twins(crowd.people))
            people, parents = self._children(problem, crowd.people, heights, rng)
            people = problem.limit(people, crowd.anchors, rng, current=parents)
        return Start.joined(found)

    def _children(
        self, problem: Problem, people: Codes, heights: npt.NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[Codes, Codes]:
        """A new crowd for every seed, of two parents from the same crowd each; and the first parents."""
        n = len(people)
        rivals = (np.arange(n) // self.crowd)[:, None] * self.crowd + rng.integers(0, self.crowd, (n, 4))
        one, two = (pair[np.arange(n), heights[pair].argmax(axis=1)] for pair in (rivals[:, :2], rivals[:, 2:]))
        mixed = np.where(rng.random(people.shape) < 0.5, people[one], people[two])
        return changed(problem, mixed, rng), people[one]


def changed(problem: Problem, people: Codes, rng: np.random.Generator) -> Codes:
    """Copies of people with one free attribute drawn anew."""
    n = len(people)
    result, attribute = people.copy(), rng.integers(0, len(problem.free), n)
    result[np.arange(n), problem.free[attribute]] = problem.uniform(rng, n)[np.arange(n), attribute]
    return result


def fitness(scores: npt.NDArray[np.float32], valid: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.float64]:
    """Sum of differences over all pairs of twins that can exist.

    Examples
    --------
    >>> fitness(np.array([[0.1, 0.4, 0.2]], dtype=np.float32)).round(2).tolist()
    [0.6]
    """
    there = np.ones_like(scores, dtype=np.bool_) if valid is None else valid
    ranked = np.sort(np.where(there, scores.astype(np.float64), np.inf), axis=1)
    counts, place = there.sum(axis=1, keepdims=True), np.arange(scores.shape[1])
    ranks = np.where(place < counts, 2.0 * place - (counts - 1), 0.0)
    return (np.where(place < counts, ranked, 0.0) * ranks).sum(axis=1)
