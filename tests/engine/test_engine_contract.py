"""What callers may rely on: same bits always, nothing read out of bounds, clear refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from engine_reference import random_codes, random_plan

from fairbits.engine import Evaluation, Plan, evaluate, gradients, scores
from fairbits.errors import ModelError, OptionError, TableError

FIELDS = [f.name for f in dataclasses.fields(Evaluation) if f.default is dataclasses.MISSING and f.name != "m"]


def run(plan, codes, threads=1):
    return evaluate(plan, codes, epsilon=0.025, partition="constrained", threads=threads)


@pytest.fixture(scope="module")
def plan():
    return random_plan((64, 32, 16, 2), m=30, numeric=4, lookups=(3, 4, 9))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_a_bit(plan, threads):
    codes = random_codes(plan, 2500)
    one, many = run(plan, codes), run(plan, codes, threads)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
    np.testing.assert_array_equal(scores(plan, codes, threads=1), scores(plan, codes, threads=threads))


def test_neighbours_do_not_change_a_bit(plan):
    codes = random_codes(plan, 700)
    order = np.random.default_rng(5).permutation(700)
    together, shuffled = run(plan, codes), run(plan, codes[order])
    alone = run(plan, codes[123:124])
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(together, name)[order], getattr(shuffled, name))
        np.testing.assert_array_equal(getattr(together, name)[123:124], getattr(alone, name))


@pytest.mark.parametrize("m", [1, 2, 5, 30, 700])
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_few_people_fill_a_tile_with_their_twins_and_no_bit_changes(m, partition):
    plan = random_plan((40, 7, 3), m=m, numeric=2, lookups=(3, 9), head="softmax", favourable=1, seed=m)
    codes = random_codes(plan, 60)
    options = {"epsilon": 0.01, "partition": partition, "threads": 1}
    together, table = evaluate(plan, codes, **options), scores(plan, codes, threads=1)
    for count in (1, 2, 3, 5, 8, 11, 12, 13, 25, 35):
        few = evaluate(plan, codes[:count], **options)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(together, name)[:count], getattr(few, name))
        np.testing.assert_array_equal(table[:count], scores(plan, codes[:count], threads=1))


def test_any_layout_of_codes_will_do(plan):
    codes = random_codes(plan, 100)
    expected = scores(plan, codes, threads=1)
    frozen = codes.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(codes), np.repeat(codes, 2, axis=0)[::2], frozen):
        np.testing.assert_array_equal(scores(plan, same, threads=1), expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_numeric_codes_must_be_finite(plan, value):
    codes = random_codes(plan, 100)
    codes[77, 2] = value
    with pytest.raises(TableError, match="column 3 of row 78"):
        run(plan, codes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -2, 2, 1e300, -1e300, 0.5])
def test_categorical_codes_must_have_a_row(plan, value):
    codes = random_codes(plan, 100)
    codes[98, 5] = value
    with pytest.raises(TableError, match=r"column 6 must be whole numbers within -1..1, but row 99 holds"):
        run(plan, codes, 2)


def test_columns_must_be_there(plan):
    with pytest.raises(TableError, match=r"d >= 8, but got \(3, 7\)"):
        scores(plan, np.zeros((3, 7)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0; the tolerance between scores must be larger than 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"partition": "kmeans"}, "'kmeans'"),
        ({"threads": 0}, "threads must be 1 or more, but got 0"),
    ],
)
def test_options_are_checked(plan, options, message):
    good = {"epsilon": 0.025, "partition": "grid", "threads": 1}
    with pytest.raises(OptionError, match=message):
        evaluate(plan, random_codes(plan, 3), **(good | options))


def test_plans_must_be_finite():
    with pytest.raises(ModelError, match="bias must be finite"):
        Plan(bias=[0, np.nan], twins=[[1, 2]], widths=[2], head="softmax")


def overflowing(activation, head, scale=1e30):
    """A network whose products leave float32 for people with a code above 1e6 or so."""
    plan = random_plan((9, 6, 5, 2 if head == "softmax" else 1), m=4, lookups=(3,), activation=activation, head=head)
    return dataclasses.replace(plan, weights=plan.weights * np.float32(scale), biases=plan.biases)


@pytest.mark.parametrize("head", ["softmax", "sigmoid", "linear"])
@pytest.mark.parametrize("activation", ["RELU", "LEAKY_RELU", "GELU", "GELU_TANH", "ELU", "IDENTITY"])
def test_overflow_is_an_error_and_not_a_score(activation, head):
    plan = overflowing(activation.lower(), head)
    codes = random_codes(plan, 100)
    for ask in (lambda: scores(plan, codes, threads=1), lambda: run(plan, codes, 2)):
        with pytest.raises(ModelError, match="must stay within float32, but it overflows for row 1;"):
            ask()


@pytest.mark.parametrize("outputs", [2, 3, 7])
def test_overflow_names_the_first_row(outputs):
    plan = random_plan((9, 6, outputs), m=4, numeric=2)
    plan = dataclasses.replace(plan, weights=plan.weights * np.float32(1e10))
    codes = random_codes(plan, 2000)
    scores(plan, codes, threads=1)
    codes[[1234, 1235, 1900], 0] = 1e37
    for threads in (1, 3):
        with pytest.raises(ModelError, match="overflows for row 1,235;"):
            scores(plan, codes, threads=threads)


@pytest.mark.parametrize("activation", ["TANH", "SIGMOID", "ELU", "GELU", "GELU_TANH"])
def test_nan_inside_a_network_reaches_the_check(activation):
    """Infinity minus infinity in the second layer, then an activation that knows how to saturate."""
    size = 3e38
    plan = Plan(
        bias=[0, 0],
        twins=[[size, size]],
        widths=[2, 2, 1, 1],
        head="sigmoid",
        activations=["identity", "identity", activation.lower()],
        alphas=[0, 0, 1],
        weights=[10, 0, 0, 10, 1, -1, 1],
        biases=[0, 0, 0, 0],
    )
    with pytest.raises(ModelError, match="row 1;"):
        scores(plan, np.zeros((1, 0)), threads=1)


def test_saturated_neurons_are_fine():
    """Huge weights before a tanh only make it certain."""
    plan = random_plan((9, 6, 2), activation="tanh")
    plan = dataclasses.replace(plan, bias=plan.bias * np.float32(1e38), twins=plan.twins * np.float32(1e38))
    assert np.isfinite(scores(plan, random_codes(plan, 30), threads=1)).all()


def test_weights_that_are_not_normal_numbers_are_none() -> None:
    plan = Plan(
        bias=np.array([1e-40, 1.0]),
        twins=np.zeros((2, 2)),
        widths=np.array([2, 1]),
        head="linear",
        activations=["relu"],
        alphas=np.zeros(1),
        weights=np.array([3e-39, 2.0]),
        biases=np.zeros(1),
    )
    assert plan.bias.tolist() == [0.0, 1.0]
    assert plan.weights.tolist() == [0.0, 2.0]


def test_what_was_left_in_working_memory_changes_no_bit():
    plan = random_plan((40, 17, 3), m=5, numeric=2, lookups=(3, 9), activation="gelu")
    codes, chosen = random_codes(plan, 61), np.arange(61) % 5
    expected, slopes = run(plan, codes), gradients(plan, codes, chosen, threads=1)
    for buffer in (buffer for buffers in plan.spare.values() for buffer in buffers):
        for array in buffer:
            array[:] = np.nan if array.dtype.kind == "f" else 2**30
    found = run(plan, codes)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(gradients(plan, codes, chosen, threads=1), slopes)
    assert {len(buffers) for buffers in plan.spare.values()} == {1}
