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


def test_who_is_unlike_everybody_has_a_low_percentile(people_schema: Schema) -> None:
    """Rows of about forty hours and an income of about one; somebody far off in both is as odd as the oddest row."""
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [np.ones(300), np.zeros(300), rng.normal(1.0, 0.2, 300), np.zeros(300), rng.integers(38, 43, 300)]
    )
    learned = plausibility.Plausibility(people_schema, rows)
    usual, odd = np.array([[1, 0, 1.0, 0, 40]]), np.array([[1, 3, 4.0, 0, 99]])
    assert learned.percentiles(usual, threads=1)[0] > 50
    assert learned.percentiles(odd, threads=1)[0] < 2
