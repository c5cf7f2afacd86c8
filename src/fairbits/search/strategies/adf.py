"""`adf`: gradients lead real people to the decision boundary, then along it.

Zhang, Wang, Sun, Dong, Wang, Wang, Dong, Dai, "White-box Fairness Testing through Adversarial Sampling", ICSE 2020.
Global: up to ten steps along the signs on which the loss gradients of two twins agree, until twins get different
decisions. Local: one attribute at a time, those with small gradients more often. Where we differ from the public
code, and why:

* a person has no protected value of its own here, so the pair is the two twins furthest apart in score (with two twins
  that is the pair of the paper);
* the gradient is that of the logit margin, turned to point away from the present decision: the signs of the loss
  gradient, without its fading to zero where the network is certain;
* a local step is one evaluation, accepted by Metropolis at temperature 1 as its basin hopping does; the inner
  L-BFGS-B of the public code cannot move on integers and re-evaluates the same point;
* seeds and walkers advance together; categories are moved as wholes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairbits.domain import Codes
from fairbits.engine import Evaluation
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices
from fairbits.search.strategies.dice import agreed, draw, hop_plan
from fairbits.search.strategies.walks import Guide, Start, WalkStep, approach, to_boundary, walk
from fairbits.search.strategy import AT_LEAST_0, AT_LEAST_1, Limit, Strategy, population

#: What numbers of seeds and moves make sense.
PHASES: Mapping[str, Limit] = {"seeds": AT_LEAST_1, "global_moves": AT_LEAST_1, "local_moves": AT_LEAST_0}


@dataclass(frozen=True)
class Adf(Strategy):
    """The paper's parameters under the paper's defaults."""

    seeds: int | None = None  # how many advance together; None: by the number of twins
    global_moves: int = 10
    local_moves: int = 1000

    name: ClassVar[str] = "adf"
    needs_gradients: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = PHASES

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Lead some seeds to the decision boundary, and walk along it from each that gets there."""

        def direction(people: Codes, figures: Evaluation, who: Indices) -> Codes:  # noqa: ARG001
            return to_boundary(oracle, figures) * agreed(*pair_of_slopes(oracle, people, figures))

        seeds = self.seeds or population(oracle.evaluator.m)
        start = approach(oracle, rng, seeds=seeds, moves=self.global_moves, direction=direction)
        walk_slopes(oracle, start, rng, steps=self.local_moves)


class SlopeGuide(Guide):
    """Attributes move with a probability inverse to the summed slopes at the two extreme twins."""

    def __init__(self, oracle: Oracle, people: Codes, figures: Evaluation):
        self._oracle = oracle
        self._weights, _ = hop_plan(oracle, people, figures)

    def choose(self, rng: np.random.Generator) -> tuple[Indices, Codes]:
        """Draw an attribute for each walker, small slopes more often, and a direction."""
        return draw(self._weights, rng), rng.choice([-1.0, 1.0], len(self._weights))

    def learn(self, outcome: WalkStep) -> None:
        """Take the slopes at the new place of walkers who stay there."""
        kept = outcome.kept
        self._weights[kept], _ = hop_plan(self._oracle, outcome.people[kept], outcome.figures.rows(kept))


def walk_slopes(oracle: Oracle, start: Start, rng: np.random.Generator, *, steps: int) -> None:
    """The local phase, from people whose figures are known already."""
    if len(start):
        walk(oracle, start, SlopeGuide(oracle, start.people, oracle.again(start.people)), rng, steps=steps)


def pair_of_slopes(oracle: Oracle, people: Codes, figures: Evaluation) -> tuple[Codes, Codes]:
    """Slopes at the twins with the lowest and the highest score."""
    return oracle.gradients(people, figures.low_twin), oracle.gradients(people, figures.high_twin)
