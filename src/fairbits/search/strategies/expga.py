"""`expga`: seeds for whom a protected attribute explains the score, then a genetic search.

Fan, Wei, Jin, Yang, Liu, "Explanation-Guided Fairness Testing through Genetic Algorithm", ICSE 2022. A linear model is
fitted to the scores around each drawn point; points where a protected attribute ranks high become the first
generation. Fitness 2·|Δlabel| + 1, roulette, slice crossover, gene mutation. Where we differ from the public code:

* the explanation is a weighted least squares on neighbours in which each attribute is kept or drawn anew, solved for
  all points at once; the public code calls LIME point by point. Slopes are compared over the attributes' ranges;
* the public code mixes protected values into the genes and so compares different people: genes here are the free
  attributes only;
* each round has a population of its own; the best half of the explained points start it, whatever their rank, so that
  a round never has to give up.

`grft`: a small genetic search around every seed, then a random walk of all ID cases at once.

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
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Truth
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem
from fairbits.search.strategies.walks import Aimless, Start, apart, drawn_people, opened, walk
from fairbits.search.strategy import AT_LEAST_0, AT_LEAST_1, AT_LEAST_2, SHARE, Limit, Strategy, population

#: A little ridge keeps the least squares solvable when an attribute happens not to vary.
RIDGE = 1e-3
#: People in a generation, at most: twice as many are explained before the first one.
LARGEST = 1024


@dataclass(frozen=True)
class ExpGA(Strategy):
    """The paper's parameters under the paper's defaults."""

    crowd: int | None = None  # people in a generation; None: by the number of twins and the budget
    generations: int = 200
    samples: int = 50  # neighbours that an explanation is fitted to
    crossover: float = 0.9
    mutation: float = 0.05

    name: ClassVar[str] = "expga"
    fits: ClassVar[tuple[str, ...]] = ("crowd",)
    limits: ClassVar[Mapping[str, Limit]] = {
        **dict.fromkeys(("crossover", "mutation"), SHARE),
        **dict.fromkeys(("samples", "crowd"), AT_LEAST_2),
        "generations": AT_LEAST_1,
    }

    @classmethod
    def fitted(cls, options: Mapping[str, Any], *, people: int, m: int) -> dict[str, Any]:
        """Options with a generation so small that explaining takes at most half of the scores that a budget buys."""
        samples = int(options.get("samples") or cls.samples)
        most = max(2, min(LARGEST, population(m), people * m // (4 * samples)))
        return {**options, "crowd": options.get("crowd") or most}

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Choose seeds by what explains their scores, and breed them for some generations."""
        problem, count = oracle.problem, self.crowd or min(LARGEST, population(oracle.evaluator.m))
        drawn = drawn_people(oracle, rng, 2 * count)
        rank = protected_rank(oracle, drawn.people, self.samples, rng)
        chosen = drawn.rows(np.argsort(rank, kind="stable")[:count])
        people, anchors = chosen.people, chosen.anchors
        hit = apart(oracle, oracle.ask(people, origin="global"))
        for _ in range(self.generations):
            parents = roulette(hit, rng)
            anchors = anchors[parents]
            genes = crossed(people[parents][:, problem.free], self.crossover, rng)
            anew = rng.random(genes.shape) < self.mutation
            children = people[parents]
            children[:, problem.free] = np.where(anew, problem.uniform(rng, count), genes)
            people = problem.limit(children, anchors, rng, current=people[parents])
            hit = apart(oracle, oracle.ask(people, origin="local"))


def roulette(hit: Truth, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw as many parents as there are people, ID cases (fitness 3) three times as often as others (fitness 1)."""
    heights = np.cumsum(2.0 * hit + 1.0)
    return np.searchsorted(heights, rng.random(len(hit)) * heights[-1], side="right")


def crossed(genes: Codes, chance: float, rng: np.random.Generator) -> Codes:
    """Let neighbouring pairs exchange a slice of their genes."""
    pairs, free = len(genes) // 2, genes.shape[1]
    cuts = np.sort(rng.integers(0, free + 1, (pairs, 2)), axis=1)
    place = np.arange(free)
    inside = (place >= cuts[:, :1]) & (place < cuts[:, 1:]) & (rng.random((pairs, 1)) < chance)
    one, other = genes[0 : 2 * pairs : 2], genes[1 : 2 * pairs : 2]
    result = genes.copy()
    result[0 : 2 * pairs : 2] = np.where(inside, other, one)
    result[1 : 2 * pairs : 2] = np.where(inside, one, other)
    return result


def protected_rank(oracle: Oracle, people: Codes, samples: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """How many free attributes explain a person's score better than the best protected one does."""
    problem = oracle.problem
    moved, slopes = explain(oracle, people, samples, rng)
    influence = np.abs(slopes) * moved
    best = influence[:, list(problem.schema.protected_columns)].max(axis=1, keepdims=True)
    return (influence[:, problem.free] > best).sum(axis=1)


def explain(oracle: Oracle, people: Codes, samples: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """A linear model of the score around each person."""
    problem, twins = oracle.problem, oracle.evaluator.twins
    n, d = people.shape
    own = rng.integers(0, twins.m, size=(n,))
    gram, target = np.zeros((n, d, d)), np.zeros((n, d))
    spread = np.zeros((n, d))
    range_ = np.array([attribute.upper - attribute.low or 1.0 for attribute in problem.schema.attributes])
    block = max(1, 50_000 // samples)
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        here, count = people[rows], len(people[rows])
        home = here.copy()
        home[:, twins.columns] = twins.values[own[rows]]
        near = np.repeat(home[:, None, :], samples, axis=1)
        fresh = rng.random((count, samples, d)) < 0.5
        others = np.repeat(here[:, None, :], samples, axis=1)
        others[:, :, problem.free] = problem.uniform(rng, count * samples).reshape(count, samples, -1)
        others[:, :, twins.columns] = twins.values[rng.integers(0, twins.m, (count, samples))]
        near = np.where(fresh, others, near)
        flat = near.reshape(count * samples, d)
        score = oracle.scores_at(flat, twins.place_of(flat)).reshape(count, samples).astype(np.float64)
        apart_by = (near - home[:, None, :]) / range_
        weight: Codes = np.exp(-np.mean(apart_by**2, axis=2, keepdims=True))
        centred = apart_by - (weight * apart_by).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        lifted = score - (weight[:, :, 0] * score).sum(axis=1, keepdims=True) / weight.sum(axis=1)
        gram[rows] = np.swapaxes(weight * centred, 1, 2) @ centred
        target[rows] = np.einsum("nsd,ns->nd", weight * centred, lifted)
        spread[rows] = centred.std(axis=1)
    gram += RIDGE * samples * np.eye(d)
    return spread, np.asarray(np.linalg.solve(gram, target[:, :, None])[:, :, 0], dtype=np.float64)


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
    result = people.copy()
    attribute = rng.integers(0, len(problem.free), n)
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
    counts = there.sum(axis=1, keepdims=True)
    place = np.arange(scores.shape[1])
    ranks = np.where(place < counts, 2.0 * place - (counts - 1), 0.0)
    return (np.where(place < counts, ranked, 0.0) * ranks).sum(axis=1)
