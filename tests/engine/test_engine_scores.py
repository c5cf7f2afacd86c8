"""The engine's scores against plain NumPy: shapes, activations, heads, encodings."""

from __future__ import annotations

import numpy as np
import pytest
from engine_reference import ACTIVATIONS, logits, random_codes, random_plan, score

from fairbits.engine import Plan, evaluate, scores

SHAPES = [
    (2,),
    (1, 2),
    (3, 2),
    (5, 3, 2),
    (7, 13, 2),
    (24, 25, 2),
    (64, 32, 16, 8, 4, 2),
    (30, 1, 9, 6, 11, 10, 2),
]


def assert_close(plan, codes):
    expected = score(plan, logits(plan, codes))
    got = scores(plan, codes, threads=1)
    assert got.dtype == np.float32
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("widths", SHAPES, ids=str)
@pytest.mark.parametrize("encoding", [(3, ()), (0, (2, 3, 4)), (11, (2, 40, 7)), (0, ()), (1, (2,) * 30)], ids=str)
def test_shapes_and_encodings(widths, encoding):
    plan = random_plan(widths, numeric=encoding[0], lookups=encoding[1])
    assert_close(plan, random_codes(plan, 50))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    plan = random_plan((19, 10, 5, 2), activation=activation, lookups=(3,))
    assert_close(plan, random_codes(plan, 50) * 3 // 3)


@pytest.mark.parametrize(
    "head",
    [
        ("sigmoid", 1, 0),
        ("linear", 1, 0),
        ("softmax", 3, 0),
        ("softmax", 3, 1),
        ("softmax", 9, 8),
    ],
)
@pytest.mark.parametrize("hidden", [(), (6,), (17, 9)])
def test_heads(head, hidden):
    kind, outputs, favourable = head
    plan = random_plan((*hidden, outputs), head=kind, favourable=favourable, lookups=(5, 2))
    codes = random_codes(plan, 60)
    assert_close(plan, codes)
    result = evaluate(plan, codes, epsilon=0.025, partition="constrained", threads=1)
    outputs = logits(plan, codes)
    decided = {
        "linear": lambda: np.zeros(outputs.shape[:2], bool),
        "sigmoid": lambda: outputs[..., 0] >= 0,
        "softmax": lambda: outputs.argmax(axis=-1) == favourable,
    }[kind]()
    np.testing.assert_array_equal(result.favourable, decided.sum(axis=1))


@pytest.mark.parametrize("n", [0, 1, 7, 24, 48, 1001])
@pytest.mark.parametrize("m", [1, 2, 5, 90])
def test_sizes(n, m):
    plan = random_plan((12, 6, 2), m=m, lookups=(4,))
    assert_close(plan, random_codes(plan, n))


@pytest.mark.parametrize(
    ("activation", "limit"),
    [("TANH", 1.5e-7), ("SIGMOID", 1.5e-7), ("GELU", 4e-7), ("GELU_TANH", 4e-7), ("ELU", 2e-7)],
)
def test_elementary_functions_are_accurate(activation, limit):
    """One neuron whose twins are the arguments, and a linear head that hands its output on."""
    x = np.linspace(-12, 4, 40001, dtype=np.float32)
    kind = activation.lower()
    plan = Plan(
        bias=[0],
        twins=x[:, None],
        widths=[1, 1],
        head="linear",
        activations=[kind],
        alphas=[1],
        weights=[1],
        biases=[0],
    )
    got = scores(plan, np.zeros((1, 0)), threads=1)[0]
    error = np.abs(got - ACTIVATIONS[kind](x.astype(np.float64), 1.0))
    assert error.max() < limit


def test_far_logits_give_certain_scores():
    plan = random_plan((1,), numeric=1, head="sigmoid")
    codes = np.array([[1e30, 0.0], [-1e30, 0.0]])
    got = scores(plan, codes, threads=1)
    np.testing.assert_allclose(np.sort(got[:, 0]), [0, 1], atol=1e-37)
