"""How different the ID cases of a run are from each other: distances, and how much of a map of the data they cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.measure import Evaluator
from fairbits.search import Problem
from fairbits.store import Run

#: ID cases looked at, and of these the ones compared pair by pair.
SAMPLE, PAIRED = 20_000, 1_000
#: Leaves of the map.
LEAVES = 200


class Diversity:
    """A map of one subject: the leaves of a decision tree fitted to the decisions about its real rows."""

    def __init__(self, evaluator: Evaluator, problem: Problem):
        from sklearn.tree import DecisionTreeClassifier

        self._problem = problem
        attributes = [problem.schema.attributes[i] for i in problem.person]
        self._categories = np.array([attribute.kind == "category" for attribute in attributes])
        self._width = np.array([attribute.upper - attribute.low or 1.0 for attribute in attributes])
        own = evaluator.row_scores(problem.rows)
        cut = float(np.median(own)) if problem.schema.regression else evaluator.threshold
        tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0)
        self._tree = tree.fit(problem.rows[:, problem.person], own >= cut)

    @property
    def leaves(self) -> int:
        """How many leaves there are to be covered."""
        return int(self._tree.get_n_leaves())

    def of(self, run: Run, id_cases: int) -> dict[str, Any]:
        """Figures of diversity over a sample of a run's ID cases, spread evenly over the time of the search."""
        if id_cases == 0:
            return {"diversity": None, "leaves_covered": 0, "leaves": self.leaves, "changed": None, "l1": None}
        stride = max(1, id_cases // SAMPLE)
        table = run.cases(where=f"flips AND evaluation % {stride} = 0", labels=False)
        if table.num_rows == 0:  # a handful of cases may miss the beat
            table = run.cases(where="flips", top=SAMPLE, labels=False)
        people = np.column_stack([table[i].to_numpy() for i in range(len(self._problem.person))]).astype(np.float64)
        order = np.argsort(table["evaluation"].to_numpy(), kind="stable")
        return {
            "diversity": self.spread(people[order]),
            "leaves_covered": len(np.unique(self._tree.apply(people))),
            "leaves": self.leaves,
            "changed": float(table["changed"].to_numpy().mean()),
            "l1": float(table["l1"].to_numpy().mean()),
        }

    def spread(self, people: Codes) -> float | None:
        """Mean distance of two people: per attribute the share of its range, for categories same or not."""
        some = people[np.linspace(0, len(people) - 1, min(PAIRED, len(people))).astype(np.int64)]
        n = len(some)
        if n < 2:
            return None
        total = 0.0
        for attribute in range(some.shape[1]):
            column = some[:, attribute]
            total += _same_or_not(column) if self._categories[attribute] else _gaps(column) / self._width[attribute]
        return total / some.shape[1]


def _gaps(values: npt.NDArray[np.float64]) -> float:
    """Mean |a − b| over all pairs of different people."""
    n = len(values)
    ranks = 2.0 * np.arange(n) - (n - 1)
    return float(2.0 * (np.sort(values) @ ranks) / (n * (n - 1)))


def _same_or_not(values: npt.NDArray[np.float64]) -> float:
    """Share of pairs that differ."""
    n = len(values)
    _, counts = np.unique(values, return_counts=True)
    return float(1.0 - (counts * (counts - 1)).sum() / (n * (n - 1)))
