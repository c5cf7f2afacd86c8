"""`maft`: EIDIG without gradients: slopes are guessed from the scores of neighbours.

Wang, Zhang, Yang, Shao, Zhang, "MAFT: Efficient Model-Agnostic Fairness Testing for Deep Neural Networks via Zero-Order
Gradient Search", ICSE 2024. A slope is the difference of two scores one step apart; all attributes of all people are
asked about in one batch. Where we differ from the public code, and why:

* at the upper bound the neighbour is the one below: the public code asks about people outside the domain;
* the step is the attribute's own (1 for integers and categories), so that real attributes have slopes as well;
* what was said about `eidig` holds here. Scores are what a black box gives, so slopes are those of the score.

A slope costs one query per attribute and twin, and all of them are counted.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fairbits.domain import Codes
from fairbits.engine import Evaluation
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices
from fairbits.search.strategies.eidig import Eidig


class Maft(Eidig):
    """EIDIG with guessed slopes, under the same parameters."""

    name: ClassVar[str] = "maft"
    needs_gradients: ClassVar[bool] = False

    def slopes(self, oracle: Oracle, people: Codes, figures: Evaluation) -> tuple[Codes, Codes]:
        """Slopes at the twins with the lowest and the highest score, guessed from the scores of neighbours."""
        return guessed_slopes(oracle, people, figures)


def guessed_slopes(oracle: Oracle, people: Codes, figures: Evaluation) -> tuple[Codes, Codes]:
    """Change of the score per stride of each free attribute, at the twins with the lowest and the highest score."""
    problem = oracle.problem
    n, free = len(people), len(problem.free)
    values = people[:, problem.free]
    ahead = np.where(values + problem.stride <= problem.high, 1.0, -1.0)
    near = np.clip(values + ahead * problem.stride, problem.low, problem.high)
    neighbours = np.repeat(people[:, None, :], free, axis=1)
    neighbours[:, np.arange(free), problem.free] = near
    flat = neighbours.reshape(n * free, people.shape[1])

    def slopes(twins: Indices, scores: Codes) -> Codes:
        reached = oracle.scores_at(flat, np.repeat(twins, free)).reshape(n, free)
        return ahead * (reached - scores[:, None])

    # The scores of the people themselves are known: they are the lowest and the highest of their twins'.
    return (
        slopes(figures.low_twin.astype(np.int64), figures.low.astype(np.float64)),
        slopes(figures.high_twin.astype(np.int64), figures.high.astype(np.float64)),
    )
