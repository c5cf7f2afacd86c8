"""What a strategy is, and which there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem


class Strategy(ABC):
    """Proposes people to an oracle, round after round.

    A round starts afresh from its own generator and shares nothing with other rounds: that is what lets a run be
    resumed, repeated and spread over machines. A round ends by itself, or when the oracle raises BudgetSpent.
    """

    name: ClassVar[str]
    needs_gradients: ClassVar[bool] = False
    needs_layers: ClassVar[bool] = False
    #: How many rounds there are in all, for strategies that come to an end; None for those that never do.
    rounds: int | None = None
    #: How many people it will ask about in all, where it knows.
    people: int | None = None
    #: Once all rounds are done: everybody within so many changes of a real row has been asked.
    exact_within: int | None = None

    def prepare(self, problem: Problem) -> None:  # noqa: B027 - most have nothing to do
        """What is done once, before the clock starts: compiling kernels, say."""

    @abstractmethod
    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:
        """One round of proposals."""


def population(m: int) -> int:
    """How many people advance together: enough twins to keep the engine busy, not more than memory likes."""
    return int(np.clip(196_608 // m, 1024, 4096))
