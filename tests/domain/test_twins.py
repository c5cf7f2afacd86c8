from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairbits import Attribute, Schema, Twins
from fairbits.errors import SchemaError

from ..conftest import random_people


def test_order_is_that_of_a_product(people_schema: Schema) -> None:
    twins = Twins(people_schema)
    assert twins.m == 6
    assert twins.values.tolist() == [list(pair) for pair in itertools.product([1, 2, 3], [0, 1])]
    assert twins.labels[:3] == ("young, Female", "young, Male", "middle, Female")


def test_twins_differ_only_in_protected_values(people_schema: Schema, rng) -> None:
    people = random_people(rng, people_schema, 17)
    twins = Twins(people_schema)
    every = twins.expand(people)
    free = list(people_schema.free_columns)
    assert (every[:, :, free] == people[:, None, free]).all()
    assert (every[:, :, twins.columns] == twins.values).all()
    own = twins.index_of(people)
    assert (every[np.arange(17), own] == people).all()


def test_stepped_protected_values_are_found_again() -> None:
    age = Attribute(name="age", kind="integer", low=20, high=80, step=20, protected=True)
    twins = Twins(Schema((age, Attribute(name="x", kind="integer", high=1))))
    assert twins.values[:, 0].tolist() == [20, 40, 60, 80]
    assert twins.index_of(np.array([[60.0, 0], [20.0, 1]])).tolist() == [2, 0]


def test_no_protected_attribute() -> None:
    with pytest.raises(SchemaError, match="no attribute is protected"):
        Twins(Schema((Attribute(name="x", kind="integer", high=1),)))


def test_too_many_combinations_say_what_to_coarsen() -> None:
    schema = Schema(
        (
            Attribute(name="income", kind="real", low=0, high=1e6, step=1, protected=True),
            Attribute(name="sex", kind="category", labels=("F", "M"), protected=True),
        )
    )
    with pytest.raises(SchemaError, match=r"2,000,002 combinations \(income 1000001 × sex 2\).*coarsen 'income'"):
        Twins(schema)
