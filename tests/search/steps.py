"""Models whose scores and slopes are whatever a test says, and an oracle that remembers what it was asked.

With these, one step of a strategy can be set up so that it alone decides who is asked about next.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairbits import Attribute, Schema, Table
from fairbits.engine import Evaluation
from fairbits.measure import Evaluator
from fairbits.search import Budget, Oracle, Problem

#: From columns by name to one number for each row.
Rule = Callable[[dict[str, np.ndarray]], np.ndarray]


class Nowhere:
    """A sink that keeps nothing."""

    def append(self, codes, figures, origin, **_) -> None:
        pass


class Planted:
    """Scores by a rule over the attributes' names."""

    def __init__(self, names: list[str], score: Rule):
        self.inputs, self._names, self._score = len(names), names, score

    def columns(self, inputs: np.ndarray) -> dict[str, np.ndarray]:
        return {name: np.asarray(inputs, dtype=np.float64)[:, i] for i, name in enumerate(self._names)}

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        table = self.columns(inputs)
        return np.broadcast_to(self._score(table), (len(inputs),)).astype(np.float32)


class Sloped(Planted):
    """The same, with slopes by rules of their own: they need not be those of the score."""

    def __init__(self, names: list[str], score: Rule, slopes: dict[str, Rule | float]):
        super().__init__(names, score)
        self._slopes = slopes

    def gradients(self, inputs: np.ndarray, *, of: str = "margin") -> np.ndarray:
        table, found = self.columns(inputs), np.zeros((len(inputs), self.inputs))
        for i, name in enumerate(self._names):
            rule = self._slopes.get(name, 0.0)
            found[:, i] = rule(table) if callable(rule) else rule
        return found


class Remembering(Oracle):
    """An oracle that remembers every question."""

    def __init__(self, problem: Problem, budget: Budget):
        super().__init__(problem, budget, Nowhere())
        self.log: list[tuple[str, np.ndarray]] = []

    def ask(self, people, *, seeds=None, origin) -> Evaluation:
        self.log.append((origin, people.copy()))
        return super().ask(people, seeds=seeds, origin=origin)

    def asked(self, origin: str) -> list[np.ndarray]:
        return [people for kind, people in self.log if kind == origin]

    @property
    def origins(self) -> list[str]:
        return [kind for kind, _ in self.log]


def schema_of(twins: int, free: dict[str, Attribute | int]) -> Schema:
    """Protected `z` with values 0 to twins − 1, then free attributes; a number is the upper end of an integer."""
    attributes = [Attribute(name="z", kind="integer", high=twins - 1, protected=True)]
    attributes += [
        Attribute(name=name, kind="integer", high=what) if isinstance(what, int) else what
        for name, what in free.items()
    ]
    return Schema(tuple(attributes), target="y", classes=("no", "yes"))


def plant(
    score: Rule,
    slopes: dict[str, Rule | float] | None = None,
    *,
    twins: int = 2,
    rows: list[list[float]],
    budget: Budget | None = None,
    partition: str = "constrained",
    **free: Attribute | int,
) -> Remembering:
    """An oracle about a planted model; `rows` are values of the free attributes."""
    schema = schema_of(twins, free)
    names = list(schema.names)
    model = Planted(names, score) if slopes is None else Sloped(names, score, slopes)
    codes = np.column_stack([np.zeros(len(rows)), np.array(rows, dtype=np.float64)])
    evaluator = Evaluator(model, schema, partition=partition, threads=1)
    return Remembering(Problem(evaluator, Table(codes)), budget or Budget(evaluations=10**9))


def by_twin(table: dict[str, np.ndarray], *values: float) -> np.ndarray:
    """One of the values by the row's protected one."""
    return np.array(values)[table["z"].astype(int)]
