"""Who comes first in a list of people."""

from __future__ import annotations

import numpy as np

from fairbits import Attribute, Schema, Table
from fairbits.measure import Evaluator, measure_table

SCHEMA = Schema(
    (
        Attribute(name="z", kind="integer", high=2, protected=True),
        Attribute(name="a", kind="integer", high=2),
    ),
    target="y",
    classes=("no", "yes"),
)


class ByRow:
    """Scores of the three twins by a: three close classes, two far apart, two nearer."""

    inputs = 2

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        table = np.array([[0.1, 0.1, 0.4], [0.1, 0.14, 0.18], [0.1, 0.1, 0.9]])
        return table[inputs[:, 1].astype(int), inputs[:, 0].astype(int)].astype(np.float32)


def test_the_most_classes_come_first_and_then_the_widest_span() -> None:
    rows = np.array([[0, 0], [0, 1], [0, 2], [1, 1]], dtype=np.float64)
    found = measure_table(Evaluator(ByRow(), SCHEMA, threads=1), Table(rows), np.random.default_rng(0))
    worst = found.worst(9)
    assert [person.row for person in worst] == [1, 2, 0]
    assert [person.rows for person in worst] == [2, 1, 1]  # rows 1 and 3 differ in nothing but z
