"""`random`: people drawn uniformly from the valid domain. The honest baseline for every search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairbits.search.oracle import Oracle
from fairbits.search.strategies.walks import drawn_people
from fairbits.search.strategy import Strategy, population

#: Batches in a round.
BATCHES = 100


@dataclass(frozen=True)
class Random(Strategy):
    """Uniform draws; with ``within``, a real row with that many attributes drawn anew."""

    name: ClassVar[str] = "random"

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Draw a hundred batches of people."""
        count = population(oracle.evaluator.m)
        for _ in range(BATCHES):
            oracle.ask(drawn_people(oracle, rng, count).people, origin="random")
