"""What a strategy is, and which there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from fairbits.domain import Doubles, Truth
from fairbits.errors import OptionError
from fairbits.search.budget import Budget
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Problem

#: People a second that compiled kernels are taken to manage, and scores a second of any other model. Round figures,
#: not measured ones: what they decide must not depend on the machine.
NATIVE_PEOPLE, FOREIGN_SCORES = 150_000, 300_000


#: What an option may be, in words and as a question.
Limit = tuple[str, Callable[[Any], bool]]
AT_LEAST_1: Limit = ("it must be 1 or more", lambda value: value >= 1)
AT_LEAST_0: Limit = ("it must be 0 or more", lambda value: value >= 0)
AT_LEAST_2: Limit = ("it must be 2 or more", lambda value: value >= 2)
ABOVE_0: Limit = ("it must be larger than 0", lambda value: value > 0)
SHARE: Limit = ("it lies between 0 and 1", lambda value: 0 <= value <= 1)
INSIDE: Limit = ("it lies between 0 and 1, neither of them", lambda value: 0 < value < 1)


class Strategy(ABC):
    """Proposes people to an oracle, round after round.

    A round starts afresh from its own generator and shares nothing with other rounds: that is what lets a run be
    resumed, repeated and spread over machines. A round ends by itself, or when the oracle raises BudgetSpent.
    """

    name: ClassVar[str]
    needs_gradients: ClassVar[bool] = False
    needs_layers: ClassVar[bool] = False
    #: What its options may be, where they are given.
    limits: ClassVar[Mapping[str, Limit]] = {}
    #: Options whose defaults follow from the budget.
    fits: ClassVar[tuple[str, ...]] = ()
    #: How many rounds there are in all, for strategies that come to an end; None for those that never do.
    rounds: int | None = None
    #: How many people it will ask about in all, where it knows.
    people: int | None = None
    #: Once all rounds are done: everybody within so many changes of a real row has been asked.
    exact_within: int | None = None

    def __post_init__(self) -> None:
        for name, (words, fine) in self.limits.items():
            value = getattr(self, name)
            if value is not None and not fine(value):
                raise OptionError(f"{name} is {value}; {words}.")

    @classmethod
    def fitted(cls, options: Mapping[str, Any], *, people: int, m: int) -> dict[str, Any]:  # noqa: ARG003
        """Options in full, where a default depends on how long the search is.

        Parameters
        ----------
        options
            As given; nothing that is given is changed.
        people
            About how many people the search will ask about: see `people_in`.
        m
            How many twins each of them has.

        Returns
        -------
        dict
            What run.json keeps, so that the same options mean the same search whatever ends it.
        """
        return dict(options)

    def prepare(self, problem: Problem) -> None:  # noqa: B027 - most have nothing to do
        """Do what is done once, before the clock starts, such as compiling kernels.

        Parameters
        ----------
        problem
            What is searched: the valid domain, real people, and moves.
        """

    @abstractmethod
    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:
        """Make one round of proposals.

        Parameters
        ----------
        oracle
            Answers questions about people and ends the search when the budget is spent.
        rng
            Source of random numbers.
        number
            Number of the round, counted from 0.

        Raises
        ------
        BudgetSpent
            Raised by the oracle when the budget is spent; let it pass.
        """


def population(m: int) -> int:
    """Number of people who advance together: enough twins to keep the engine busy, within memory."""
    return int(np.clip(196_608 // m, 1024, 4096))


def people_in(budget: Budget, *, m: int, native: bool) -> int:
    """About how many people a budget pays for; seconds count at a fixed rate, the same on every machine."""
    counts = [budget.evaluations, budget.cases, None if budget.queries is None else budget.queries // m]
    if budget.seconds is not None:
        counts.append(int(budget.seconds * (NATIVE_PEOPLE if native else FOREIGN_SCORES / m)))
    return max(1, min(count for count in counts if count is not None))


def metropolis(gain: Doubles, rng: np.random.Generator, *, temperature: float = 1.0) -> Truth:
    """Which moves are kept: all that lose nothing, and others with probability exp(gain / temperature)."""
    return rng.random(len(gain)) < np.exp(np.minimum(gain, 0.0) / temperature)
