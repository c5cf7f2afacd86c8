from __future__ import annotations

import numpy as np
import pytest

from fairbits import Attribute, Decoder, Encoding, Schema, Twins
from fairbits.domain import Lookup, Numeric
from fairbits.errors import ModelError, SchemaError

from ..conftest import random_people


def scaled(schema: Schema) -> Encoding:
    """Like a fitted pipeline: numbers first and scaled, then the one-hot categories, so columns are permuted."""
    return Encoding(
        [
            Numeric(0, shift=2.0, scale=0.8),
            Lookup(np.array([3, 4, 5, 6]), np.eye(4)),
            Numeric(1, shift=1.1, scale=-0.3),
            Lookup(np.array([7, 8]), np.eye(2)),
            Numeric(2, shift=40.0, scale=1 / 12),
        ]
    )


@pytest.fixture(params=["identity", "one-hot", "scaled"])
def encoding(request, people_schema: Schema) -> Encoding:
    if request.param == "scaled":
        return scaled(people_schema)
    return Encoding.identity(people_schema) if request.param == "identity" else Encoding.one_hot(people_schema)


def test_a_category_is_always_exactly_one_category(people_schema: Schema, rng) -> None:
    inputs = Encoding.one_hot(people_schema).encode(random_people(rng, people_schema, 50))
    assert (inputs[:, 1:5].sum(axis=1) == 1).all()
    assert set(np.unique(inputs[:, 1:5])) == {0, 1}


def test_twins_are_encoded_as_if_one_by_one(people_schema: Schema, encoding: Encoding, rng) -> None:
    people, twins = random_people(rng, people_schema, 9), Twins(people_schema)
    one_by_one = encoding.encode(twins.expand(people).reshape(-1, 5)).reshape(9, 6, -1)
    np.testing.assert_array_equal(encoding.encode_twins(people, twins), one_by_one)


def test_the_first_layer_is_a_table(people_schema: Schema, encoding: Encoding, rng) -> None:
    people = random_people(rng, people_schema, 30)
    weights, bias = rng.normal(size=(encoding.width, 8)), rng.normal(size=8)
    layer = encoding.first_layer(weights, bias)
    summed = layer.bias + sum(layer.contribution(i, people[:, i]) for i in range(5))
    np.testing.assert_allclose(summed, encoding.encode(people) @ weights + bias, rtol=1e-5, atol=1e-4)


def test_gradients_are_pulled_back_to_codes(people_schema: Schema, rng) -> None:
    """For numbers: the chain rule. For categories: the mean effect of the neighbouring labels."""
    encoding = scaled(people_schema)
    people = random_people(rng, people_schema, 40)
    people[:, 1] = rng.integers(1, 3, 40)  # a job with a neighbour on both sides
    slope = rng.normal(size=(40, encoding.width))

    def output(codes: np.ndarray) -> np.ndarray:
        return (encoding.encode(codes) * slope).sum(axis=1)

    for column, step in ((0, 0.5), (1, 1.0), (2, 0.5), (4, 0.5)):
        up, down = people.copy(), people.copy()
        up[:, column] += step
        down[:, column] -= step
        numeric = (output(up) - output(down)) / (2 * step)
        np.testing.assert_allclose(encoding.pull_back(slope, people)[:, column], numeric, atol=1e-5)


def test_the_encoding_that_fits_is_found(people_schema: Schema) -> None:
    assert Encoding.fitting(people_schema, 5).width == 5
    assert Encoding.fitting(people_schema, 9).width == 9
    with pytest.raises(ModelError, match="takes 7 inputs, but the 5 attributes make 5 as codes or 9 with one-hot"):
        Encoding.fitting(people_schema, 7)


def test_an_input_without_an_attribute_is_refused() -> None:
    with pytest.raises(SchemaError, match="every input needs one attribute"):
        Encoding([Numeric(0), Numeric(2)])


def test_dates_in_records_are_text() -> None:
    """An endpoint gets them as the table has them, not as nanoseconds."""
    days = Attribute(name="day", kind="category", labels=("2022-01-03", "2023-04-23", "(missing)"), holds="date")
    found = Decoder(Schema((days,))).records(np.array([[1.0], [0.0], [2.0]]))
    assert [row["day"] for row in found] == ["2023-04-23", "2022-01-03", None]


def test_parts_that_put_in_nan_are_equal_by_value() -> None:
    """NaN equals nothing, and comparing records field by field (Python 3.13) does not look past it as tuples do."""
    nan = float("nan")  # not the object that is the default
    assert Numeric(3, gap=1.0) != Numeric(3)
    table = np.array([[0.0], [np.nan]])
    one, two, other = (
        Encoding((Numeric(0), Lookup(np.array([1]), table + value)), fixed={2: fixed, 3: 1.0})
        for value, fixed in ((0.0, nan), (0.0, np.nan), (1.0, nan))
    )
    assert one.same_as(two)
    assert not one.same_as(other)
    assert not one.same_as(Encoding(one.parts, fixed={2: 0.0, 3: 1.0}))
