"""`exhaustive`: every real row, or every change of one attribute of every real row. What it says is exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import OptionError
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem
from fairbits.search.strategy import Strategy

#: People in a round, about: small enough to be redone when a run is resumed, large enough to keep the engine busy.
ROUND = 250_000
BATCH = 16_384


@dataclass(frozen=True)
class Exhaustive(Strategy):
    """All people within ``distance`` (0 or 1) changed attributes of a real row."""

    problem: Problem
    distance: int = 1

    name: ClassVar[str] = "exhaustive"

    def __post_init__(self) -> None:
        if self.distance not in (0, 1):
            raise OptionError(
                f"exhaustive is {self.distance}; only 0 (real rows) and 1 (one change) can be enumerated."
            )
        schema = self.problem.schema
        real = [schema.attributes[i].name for i in self.problem.free if not schema.attributes[i].discrete]
        if real and self.distance:
            raise OptionError(
                f"attribute {real[0]!r} is real, so its changes cannot be enumerated; make it an integer."
            )

    @cached_property
    def _rows(self) -> Codes:
        """The distinct real people, in table order."""
        _, first = np.unique(self.problem.rows[:, self.problem.person], axis=0, return_index=True)
        return self.problem.rows[np.sort(first)]

    @property
    def _per_row(self) -> int:
        others = sum(len(self.problem.schema.attributes[column].values()) - 1 for column in self.problem.free)
        return 1 + (others if self.distance else 0)

    @property
    def people(self) -> int:  # type: ignore[override]
        """How many will be asked about in all (some of them several times, where real people are neighbours)."""
        return len(self._rows) * self._per_row

    @property
    def exact_within(self) -> int:  # type: ignore[override]
        """How far from real rows everybody has been asked, in the end."""
        return self.distance

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """Rounds until everybody has been asked."""
        return -(-len(self._rows) // self._rows_per_round)

    @property
    def _rows_per_round(self) -> int:
        return max(1, ROUND // self._per_row)

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Ask about some of the rows and all their neighbours."""
        start = number * self._rows_per_round
        rows = self._rows[start : start + self._rows_per_round]
        self._ask(oracle, rows[self.problem.allowed(rows)], "data")
        if self.distance == 0:
            return
        people, origin = self.problem.neighbours(rows)
        self._ask(oracle, people[(people != rows[origin]).any(axis=1)], "exhaustive")

    def _ask(self, oracle: Oracle, people: Codes, origin: str) -> None:
        for start in range(0, len(people), BATCH):
            oracle.ask(people[start : start + BATCH], origin=origin)
