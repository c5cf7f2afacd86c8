"""`random`: people drawn uniformly from the valid domain. The honest baseline for every search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairbits.search.oracle import Oracle
from fairbits.search.strategy import Strategy, population

#: Batches in a round.
BATCHES = 100


@dataclass(frozen=True)
class Random(Strategy):
    """Uniform draws; with ``within``, a real row with that many attributes drawn anew."""

    name: ClassVar[str] = "random"

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Draw a hundred batches of people.

        Parameters
        ----------
        oracle
            Answers questions about people and ends the search when the budget is spent.
        rng
            Source of random numbers.
        number
            Number of the round, counted from 0.
        """
        problem = oracle.problem
        count = population(problem.evaluator.m)
        for _ in range(BATCHES):
            anchors = problem.rows[rng.integers(0, len(problem.rows), count)]
            people = anchors.copy()
            people[:, problem.free] = problem.uniform(rng, count)
            oracle.ask(problem.limit(people, anchors, rng), origin="random")
