"""A small subject whose worst people are known, for tests of strategies and repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairbits.subject import Subject


def small_subject(*, rows: int = 40, seed: int = 0) -> Subject:
    """A subject for tests: a small network whose worst people, those with a + b = 18, have six classes.

    Parameters
    ----------
    rows
        How many people its table has, all of them far from the worst.
    seed
        Where they are drawn from.

    Returns
    -------
    Subject
        With protected age (three values) and sex (two).
    """
    from fairbits.domain import Category, Integer, Schema, Table
    from fairbits.models import Network
    from fairbits.subject import make_subject

    schema = Schema(
        (
            Integer(name="age", low=1, high=3, protected=True),
            Integer(name="a", high=9),
            Category(name="sex", labels=("F", "M"), protected=True),
            Integer(name="b", high=9),
            Category(name="c", labels=("x", "y", "z")),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    # relu(2·age + sex + 1.5·(a + b − 18)) is 2·age + sex − 1 steps up for the worst people and 0 for most others.
    first, later = np.array([[2.0], [1.5], [1.0], [1.5], [0.0]]), np.array([[-0.15, 0.15]])
    network = Network.build([first, later], [np.array([-27.0]), np.array([0.7, -0.7])])
    rng = np.random.default_rng(seed)
    limits = ((1, 4), (0, 9), (0, 2), (0, 8), (0, 3))
    people = np.column_stack([rng.integers(*ends, rows) for ends in limits]).astype(np.float64)
    return make_subject("small", network, schema, Table(people, (people[:, 1] > 4).astype(np.float64)))
