"""What callers may rely on: same bits always, nothing read out of bounds, clear refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from engine_reference import random_codes, random_plan

from fairbits.engine import Evaluation, Head, Plan, classes, evaluate, scores
from fairbits.errors import ModelError, OptionError, TableError

FIELDS = [field.name for field in dataclasses.fields(Evaluation) if field.name != "m"]


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
    with pytest.raises(TableError, match="row 77, column 2"):
        run(plan, codes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -2, 2, 1e300, -1e300, 0.5])
def test_categorical_codes_must_have_a_row(plan, value):
    codes = random_codes(plan, 100)
    codes[98, 5] = value
    with pytest.raises(TableError, match=r"column 5 must be whole numbers within -1..1, but row 98 holds"):
        run(plan, codes, 2)


def test_columns_must_be_there(plan):
    with pytest.raises(TableError, match=r"d >= 8, but got \(3, 7\)"):
        scores(plan, np.zeros((3, 7)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a positive number, but got 0.0"),
        ({"epsilon": float("nan")}, "epsilon must be a positive number"),
        ({"partition": "kmeans"}, "'kmeans'"),
        ({"threads": 0}, "threads must be 1 or more, but got 0"),
    ],
)
def test_options_are_checked(plan, options, message):
    good = {"epsilon": 0.025, "partition": "grid", "threads": 1}
    with pytest.raises(OptionError, match=message):
        evaluate(plan, random_codes(plan, 3), **(good | options))


def test_ready_scores_are_checked():
    with pytest.raises(OptionError, match="finite"):
        classes(np.array([[0.1, np.nan]]), epsilon=0.1, partition="grid")
    with pytest.raises(OptionError, match="shape"):
        classes(np.zeros(3), epsilon=0.1, partition="grid")


GOOD = {
    "bias": [0, 0],
    "twins": [[1, 2], [3, 4]],
    "widths": [2, 1],
    "head": Head.SIGMOID,
    "activations": [1],
    "alphas": [0],
    "weights": [1, 1],
    "biases": [0],
}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weights": [1, 1, 1]}, r"weights must have shape \(2,\), but got \(3,\)"),
        ({"bias": [0, np.nan]}, "bias must be finite"),
        ({"widths": []}, "widths"),
        ({"twins": np.zeros((0, 2))}, "m >= 1"),
        ({"head": Head.SOFTMAX}, "two or more outputs"),
        ({"activations": [99]}, r"activations must be of Activation, but got \[99\]"),
        (
            {"lookup_columns": [0], "lookup_lows": [0], "lookup_offsets": [0]},
            "lookup_tables must have 2 columns",
        ),
        (
            {"numeric_columns": [-1], "numeric_shifts": [0], "numeric_slopes": [[1, 1]]},
            "columns must be 0 or more",
        ),
    ],
)
def test_plans_are_checked(wrong, message):
    Plan(**GOOD)
    with pytest.raises(ModelError, match=message):
        Plan(**(GOOD | wrong))
