"""What is learned about a table depends on its rows alone."""

from __future__ import annotations

import numpy as np

from fairbits import Schema
from fairbits.measure import plausibility
from tests.conftest import random_people


def test_the_same_rows_give_the_same_forest(rng: np.random.Generator, people_schema: Schema) -> None:
    """Grown anew each time, whatever the other tests keep."""
    grow = plausibility._grown.__wrapped__  # type: ignore[attr-defined]
    rows = random_people(rng, people_schema, 400)
    np.random.seed(1)  # noqa: NPY002 - nobody may draw from it
    one = grow(rows)
    np.random.seed(2)  # noqa: NPY002
    two = grow(rows.copy())
    other = grow(rows[::-1].copy())
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)
    assert any(not np.array_equal(first, second) for first, second in zip(one, other, strict=True))
