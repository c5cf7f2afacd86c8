"""Gradients against the reference network and encoding, and what callers may rely on."""

from __future__ import annotations

import dataclasses

import engine_reference as reference
import numpy as np
import pytest
from engine_reference import random_codes, random_plan

from fairbits import Attribute, Schema
from fairbits.domain import Encoding, Lookup, Numeric, Twins
from fairbits.engine import Plan, gradients, plan_of, scores
from fairbits.errors import ModelError, OptionError, TableError
from fairbits.models import Activation as NetworkActivation
from fairbits.models import Network
from tests.conftest import random_network, random_people

ACTIVATIONS = ["relu", "leaky_relu", "identity", "tanh", "sigmoid", "gelu", "gelu_tanh", "elu"]
HEADS = [("softmax", 2, 1), ("softmax", 2, 0), ("softmax", 3, 1), ("softmax", 7, 6), ("sigmoid", 1, 1)]
HEADS += [("sigmoid", 1, 0), ("linear", 1, 0)]


def make_schema(sizes=(2, 3, 2, 5, 9, 30, 3, 4, 1, 6), numbers=4):
    """Categories of these sizes and some numbers, with three protected attributes in between (m = 24)."""
    categories = [
        Attribute(name=f"c{i}", kind="category", labels=tuple(f"v{j}" for j in range(size)))
        for i, size in enumerate(sizes)
    ]
    real = [Attribute(name=f"x{i}", kind="real", low=-1.0, high=2.0) for i in range(numbers)]
    sex = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
    age = Attribute(name="age", kind="integer", low=1, high=4, protected=True)
    race = Attribute(name="race", kind="category", labels=("a", "b", "c"), protected=True)
    attributes = [age, *categories[::2], sex, *real, race, *categories[1::2]]
    return Schema(attributes=tuple(attributes), target="hired", classes=("no", "yes"))


def mixed_encoding(schema, rng):
    """Embeddings with a first code of their own, and numbers that are shifted and scaled."""
    parts, column = [], 0
    for attribute in schema.attributes:
        if attribute.kind == "category":
            table = rng.normal(size=(len(attribute.labels), 2))
            parts.append(Lookup(np.array([column + 1, column]), table, low=0))
            column += 2
        else:
            parts.append(Numeric(column, shift=0.5, scale=0.7))
            column += 1
    return Encoding(parts)


def exact(network):
    """The same network in double precision."""
    weights, biases = ([array.astype(np.float64) for array in arrays] for arrays in (network.weights, network.biases))
    return dataclasses.replace(network, weights=tuple(weights), biases=tuple(biases))


def assert_as_reference(network, encoding, schema, rng, n=75):
    """To five digits of a row's largest derivative, if that is not a small one among the rows."""
    twins = Twins(schema)
    people = random_people(rng, schema, n)
    chosen = rng.integers(0, twins.m, n)
    rows = twins.expand(people)[np.arange(n), chosen]
    free = list(schema.free_columns)
    expected = encoding.pull_back(exact(network).gradients(encoding.encode(rows)), rows)[:, free]
    people[:, twins.columns] = np.nan
    got = gradients(plan_of(network, encoding, twins), people, chosen, threads=1)
    assert got.dtype == np.float32
    assert got.shape == people.shape
    assert not got[:, twins.columns].any()
    size = np.abs(expected).max(axis=1, keepdims=True, initial=1e-30)
    size = np.maximum(size, 0.1 * size.max(initial=0))
    np.testing.assert_allclose(got[:, free] / size, expected / size, rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation, rng):
    schema = make_schema()
    encoding = Encoding.one_hot(schema)
    network = random_network(rng, [encoding.width, 19, 10, 5, 2], activation=activation)
    assert_as_reference(network, encoding, schema, rng)


@pytest.mark.parametrize("hidden", [(), (6,), (33, 9)], ids=str)
@pytest.mark.parametrize("head", HEADS, ids=str)
def test_heads(head, hidden, rng):
    kind, outputs, favourable = head
    schema = make_schema((2, 5, 3))
    encoding = Encoding.one_hot(schema)
    network = random_network(
        rng, [encoding.width, *hidden, outputs], activation="tanh", head=kind, favourable=favourable
    )
    assert_as_reference(network, encoding, schema, rng)


@pytest.mark.parametrize("widths", [(1,), (3,), (24, 25), (64, 32, 16, 8, 4), (30, 1, 9, 6, 11, 10)], ids=str)
@pytest.mark.parametrize(("sizes", "numbers"), [((), 5), ((2, 2), 0), ((3,) * 9, 1), ((40, 7, 1), 11)], ids=str)
@pytest.mark.parametrize("kind", ["identity", "one_hot", "mixed"])
def test_shapes_and_encodings(widths, sizes, numbers, kind, rng):
    schema = make_schema(sizes, numbers)
    encoding = mixed_encoding(schema, rng) if kind == "mixed" else getattr(Encoding, kind)(schema)
    network = random_network(rng, [encoding.width, *widths, 2], activation="elu")
    assert_as_reference(network, encoding, schema, rng)


@pytest.mark.parametrize("n", [0, 1, 23, 24, 25, 1001])
def test_sizes(n, rng):
    schema = make_schema()
    encoding = Encoding.one_hot(schema)
    assert_as_reference(random_network(rng, [encoding.width, 8, 2], activation="tanh"), encoding, schema, rng, n=n)


def test_layers_may_differ_and_slopes_may_be_negative(rng):
    schema = make_schema()
    encoding = Encoding.one_hot(schema)
    network = random_network(rng, [encoding.width, 12, 9, 8, 2])
    kinds = [NetworkActivation("leaky_relu", -0.4), NetworkActivation("gelu"), NetworkActivation("elu", 1.7)]
    network = Network.build(network.weights, network.biases, activation=kinds)
    assert_as_reference(network, encoding, schema, rng)


@pytest.mark.parametrize("activation", ACTIVATIONS[3:])
def test_slopes_are_accurate(activation):
    """One neuron whose twins are the arguments, against differences of its exact values."""
    x = np.linspace(-20, 20, 40001)
    plan = Plan(
        bias=[0],
        twins=x[:, None],
        widths=[1, 1],
        head="linear",
        activations=[activation],
        alphas=[1],
        weights=[1],
        biases=[0],
        numeric_columns=[0],
        numeric_shifts=[0],
        numeric_slopes=[[1]],
    )
    got = gradients(plan, np.zeros((x.size, 1)), np.arange(x.size), threads=1)[:, 0]
    x, step = plan.twins[:, 0].astype(np.float64), 1e-4
    value = reference.ACTIVATIONS[activation]
    expected = (value(x + step, 1.0) - value(x - step, 1.0)) / (2 * step)
    expected = np.where(np.abs(x) < 2 * step, got, expected)  # ELU's slope breaks off at zero
    np.testing.assert_allclose(got, expected, rtol=0, atol=5e-7)


def test_kinks_have_the_slope_below():
    for activation, slope in (
        ("relu", 0.0),
        ("leaky_relu", 0.25),
        ("identity", 1.0),
    ):
        plan = Plan(
            bias=[0],
            twins=[[0]],
            widths=[1, 1],
            head="linear",
            activations=[activation],
            alphas=[0.25],
            weights=[1],
            biases=[0],
            numeric_columns=[0],
            numeric_shifts=[0],
            numeric_slopes=[[1]],
        )
        assert gradients(plan, np.zeros((1, 1)), [0])[0, 0] == slope


def test_certain_networks_have_finite_gradients():
    """Margins of thousands: their slopes do not fade, as that of the score does."""
    plan = random_plan((8, 5), m=3, numeric=2, favourable=2)
    codes = random_codes(plan, 200) * 1e4
    chosen = np.arange(200) % 3
    margin = gradients(plan, codes, chosen, threads=1)
    assert np.isfinite(margin).all()
    assert (np.abs(margin).max(axis=1) > 0.01).all()


@pytest.fixture(scope="module")
def plan():
    return random_plan((64, 32, 16, 2), m=30, numeric=4, lookups=(3, 4, 9, 2, 5, 6))


def test_neither_threads_nor_neighbours_change_a_bit(plan):
    rng = np.random.default_rng(5)
    codes, chosen = random_codes(plan, 30000), rng.integers(0, plan.m, 30000)
    expected = gradients(plan, codes, chosen, threads=1)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(gradients(plan, codes, chosen, threads=threads), expected)
    order = rng.permutation(len(codes))
    np.testing.assert_array_equal(gradients(plan, codes[order], chosen[order], threads=2), expected[order])
    for row in (0, 7, 123, 29999):
        alone = gradients(plan, codes[row : row + 1], chosen[row : row + 1])
        np.testing.assert_array_equal(alone[0], expected[row])


def test_any_layout_will_do(plan):
    codes, chosen = random_codes(plan, 100), np.arange(100) % plan.m
    expected = gradients(plan, codes, chosen)
    np.testing.assert_array_equal(gradients(plan, np.asfortranarray(codes), chosen.astype(np.uint8)), expected)
    np.testing.assert_array_equal(gradients(plan, codes[::-1], list(chosen[::-1]))[::-1], expected)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([0, 1], r"twins must be 3 whole numbers, one per row of codes, but got shape \(2,\)"),
        ([0.0, 1.0, 2.0], "of float64"),
        ([0, 30, 1], r"twins must be within 0..29, but row 2 has 30"),
        ([0, 0, -1], r"but row 3 has -1"),
    ],
)
def test_twins_are_checked(plan, chosen, message):
    with pytest.raises(OptionError, match=message):
        gradients(plan, random_codes(plan, 3), chosen)


def test_codes_are_checked(plan):
    codes = random_codes(plan, 100)
    codes[77, 2] = np.nan
    with pytest.raises(TableError, match="column 3 of row 78"):
        gradients(plan, codes, np.zeros(100, int))
    with pytest.raises(TableError, match=r"d >= 11, but got \(3, 7\)"):
        gradients(plan, np.zeros((3, 7)), [0, 0, 0])


def test_overflow_is_an_error():
    plan = random_plan((9, 6, 5, 2), m=4, numeric=2)
    plan = dataclasses.replace(plan, weights=plan.weights * np.float32(1e30))
    with pytest.raises(ModelError, match="overflows for row 1;"):
        gradients(plan, random_codes(plan, 100), np.zeros(100, int))


def test_overflow_on_the_way_back_is_an_error():
    """All neurons rest at 0, where a tanh is steepest: the scores are fine."""
    plan = random_plan((9, 6, 5, 2), m=4, numeric=2, activation="tanh")
    still = {name: getattr(plan, name) * 0 for name in ("bias", "twins", "biases", "numeric_shifts")}
    plan = dataclasses.replace(plan, weights=plan.weights * np.float32(1e30), **still)
    codes = np.zeros((100, 2))
    assert (scores(plan, codes) == 0.5).all()
    with pytest.raises(ModelError, match="overflows for row 1;"):
        gradients(plan, codes, np.zeros(100, int))
