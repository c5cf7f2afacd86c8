"""A subject whose worst people are known by construction."""

from __future__ import annotations

import numpy as np

from fairbits import Attribute, Network, Schema, Table
from fairbits.subject import Subject, make_subject

#: Everybody with a + b = 18 has six classes; the fewer, the fewer classes; c never matters.
WORST_K = 6


def planted_subject(*, rows: int = 40, seed: int = 0) -> Subject:
    """Score rises with 2·age + sex, but only for people with a + b close to 18; real rows are far from it."""
    schema = Schema(
        (
            Attribute(name="age", kind="integer", low=1, high=3, protected=True),
            Attribute(name="a", kind="integer", high=9),
            Attribute(name="sex", kind="category", labels=("F", "M"), protected=True),
            Attribute(name="b", kind="integer", high=9),
            Attribute(name="c", kind="category", labels=("x", "y", "z")),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    # relu(2·age + sex + 1.5·(a + b − 18)) is 2·age + sex − 1 steps up for the worst people and 0 for most others.
    first = np.array([[2.0], [1.5], [1.0], [1.5], [0.0]])
    later = np.array([[-0.15, 0.15]])
    network = Network.build([first, later], [np.array([-27.0]), np.array([0.7, -0.7])])
    rng = np.random.default_rng(seed)
    people = np.column_stack(
        [
            rng.integers(1, 4, rows),
            rng.integers(0, 9, rows),
            rng.integers(0, 2, rows),
            rng.integers(0, 8, rows),
            rng.integers(0, 3, rows),
        ]
    ).astype(np.float64)
    return make_subject("planted", network, schema, Table(people, (people[:, 1] > 4).astype(np.float64)))


def every_person(schema: Schema) -> np.ndarray:
    """The whole domain of the planted subject, one row per combination of free attributes."""
    grid = np.meshgrid([1.0], np.arange(10.0), [0.0], np.arange(10.0), np.arange(3.0), indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)
