"""`aequitas`: uniform draws until twins get different decisions, then a walk that learns where to step.

Udeshi, Arora, Chattopadhyay, "Automated Directed Fairness Testing", ASE 2018. Three walks: ``random`` (any attribute,
either way), ``semi`` (each attribute learns which way finds ID cases), ``fully`` (and which attributes do). Where we
differ from the public code, and why:

* all walkers of a round step together and share what they learn, as one walker after the other does there; what they
  learn starts afresh with each round, so that a round can be repeated;
* a hop is one evaluation, accepted by Metropolis at temperature 1, as its basin hopping does around an inner
  L-BFGS-B that cannot move on integers;
* categories are moved as wholes, and a step at a bound is turned round: no impossible people, no wasted steps;
* ID means any two of all twins, for several protected attributes and more than two values as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import OptionError, choose_from
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices
from fairbits.search.strategies.walks import Aimless, Guide, Start, WalkStep, apart, drawn_people, walk
from fairbits.search.strategy import AT_LEAST_0, AT_LEAST_1, INSIDE, Limit, Strategy, population

MODES = ("random", "semi", "fully")
#: Batches of draws in a round, at most; a round has enough with a quarter of a batch of ID cases.
BATCHES = 20


@dataclass(frozen=True)
class Aequitas(Strategy):
    """The paper's parameters under the paper's defaults."""

    mode: str = "fully"
    draws: int | None = None  # how many are drawn at once; None: by the number of twins
    local_moves: int = 1000
    unit: float = 0.001  # how far a probability moves at a time

    name: ClassVar[str] = "aequitas"
    limits: ClassVar[Mapping[str, Limit]] = {"draws": AT_LEAST_1, "local_moves": AT_LEAST_0, "unit": INSIDE}

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise OptionError(f"mode {self.mode!r} is not known; {choose_from(str(self.mode), MODES)}")
        super().__post_init__()

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Draw people until some twins get different decisions, then walk from these people."""
        count = self.draws or population(oracle.evaluator.m)
        starts: list[Start] = []
        for _ in range(BATCHES):
            drawn = drawn_people(oracle, rng, count)
            hits = np.flatnonzero(apart(oracle, oracle.ask(drawn.people, origin="global")))
            starts.append(drawn.rows(hits))
            if 4 * sum(map(len, starts)) >= count:
                break
        start = Start.joined(starts)
        free = len(oracle.problem.free)
        guide = Aimless(len(start), free) if self.mode == "random" else DirectionGuide(len(start), free, self)
        walk(oracle, start, guide, rng, steps=self.local_moves)


class DirectionGuide(Guide):
    """Probabilities that all walkers share: of each attribute to move, and of moving down when it does."""

    def __init__(self, walkers: int, free: int, options: Aequitas):
        self._walkers, self._options = walkers, options
        self._down = np.full(free, 0.5)
        self._share = np.full(free, 1.0 / free)

    def choose(self, rng: np.random.Generator) -> tuple[Indices, Codes]:
        """Draw an attribute and a direction for each walker, by the probabilities learned so far."""
        attribute = rng.choice(len(self._share), self._walkers, p=self._share)
        return attribute, np.where(rng.random(self._walkers) < self._down[attribute], -1.0, 1.0)

    def learn(self, outcome: WalkStep) -> None:
        """Move the probabilities towards steps that found an ID case, one unit for every walker."""
        attribute, sign = outcome.attribute, outcome.sign
        praise = np.where(outcome.hit, 1.0, -1.0)
        unit, free = self._options.unit, len(self._share)
        self._down = np.clip(self._down + unit * np.bincount(attribute, -sign * praise, free), 0.0, 1.0)
        if self._options.mode == "fully":
            share = np.maximum(self._share + unit * np.bincount(attribute, praise, free), 0.0)
            self._share = share / share.sum() if share.any() else np.full(free, 1.0 / free)
