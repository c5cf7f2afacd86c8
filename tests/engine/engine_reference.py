"""The engine's task in plain NumPy, as literally as it can be said: what the tests compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from fairbits.engine import Plan

_erf = np.vectorize(math.erf, otypes=[np.float64])

ACTIVATIONS = {
    "identity": lambda x, _: x,
    "relu": lambda x, _: np.maximum(x, 0),
    "leaky_relu": lambda x, alpha: np.where(x > 0, x, alpha * x),
    "tanh": lambda x, _: np.tanh(x),
    "sigmoid": lambda x, _: 1 / (1 + np.exp(-x)),
    "gelu": lambda x, _: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x, _: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
}


def random_plan(
    widths: Sequence[int],
    *,
    m: int = 5,
    numeric: int = 3,
    lookups: Sequence[int] = (),
    activation: str = "relu",
    head: str = "softmax",
    favourable: int = 1,
    seed: int = 0,
) -> Plan:
    """A random network. Columns: the numeric attributes, one that nobody reads, the categorical ones."""
    rng = np.random.default_rng(seed)
    h, c = widths[0], len(lookups)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 1.5 / math.sqrt(max(shape[0], 1)), shape).astype(np.float32)

    layers = list(pairwise(widths))
    return Plan(
        bias=normal(h),
        twins=rng.normal(0, 0.7, (m, h)).astype(np.float32),
        widths=np.array(widths),
        head=head,
        favourable=favourable,
        activations=np.full(len(layers), activation),
        alphas=np.full(len(layers), 0.3),
        weights=np.concatenate([normal(i, o).ravel() for i, o in layers] or [np.empty(0)]),
        biases=normal(sum(widths[1:])),
        numeric_columns=np.arange(numeric)[::-1],
        numeric_shifts=rng.normal(size=numeric),
        numeric_slopes=normal(numeric, h),
        lookup_columns=numeric + 1 + np.arange(c),
        lookup_lows=np.arange(c) % 3 - 1,
        lookup_offsets=np.cumsum([0, *lookups])[:-1] if c else np.empty(0),
        lookup_tables=normal(sum(lookups), h),
    )


def random_codes(plan: Plan, n: int, seed: int = 1) -> np.ndarray:
    """Valid people of a `random_plan`; the column that nobody reads holds NaN."""
    rng = np.random.default_rng(seed)
    a, c = plan.numeric_columns.size, plan.lookup_columns.size
    codes = np.full((n, a + 1 + c), np.nan)
    codes[:, :a] = rng.normal(size=(n, a))
    codes[:, a + 1 :] = rng.integers(plan.lookup_lows, plan.lookup_lows + plan.lookup_sizes, (n, c))
    return codes


def logits(plan: Plan, codes: np.ndarray) -> np.ndarray:
    """The last layer's outputs of every twin, (n, m, outputs), in float64."""
    x = plan.bias + np.zeros((len(codes), 1))
    for column, shift, slope in zip(plan.numeric_columns, plan.numeric_shifts, plan.numeric_slopes, strict=True):
        x = x + (codes[:, column] - shift)[:, None] * slope
    for column, low, offset in zip(plan.lookup_columns, plan.lookup_lows, plan.lookup_offsets, strict=True):
        x = x + plan.lookup_tables[offset + codes[:, column].astype(int) - low].astype(np.float64)
    x = x[:, None, :] + plan.twins
    weight, bias = 0, 0
    for layer, (i, o) in enumerate(pairwise(plan.widths)):
        x = ACTIVATIONS[plan.activations[layer]](x, float(plan.alphas[layer]))
        x = x @ plan.weights[weight : weight + i * o].reshape(i, o).astype(np.float64)
        x = x + plan.biases[bias : bias + o]
        weight, bias = weight + i * o, bias + o
    return x


def score(plan: Plan, outputs: np.ndarray) -> np.ndarray:
    """The head."""
    if plan.head == "linear":
        return outputs[..., 0]
    if plan.head == "sigmoid":
        return 1 / (1 + np.exp(-outputs[..., 0]))
    powers = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return powers[..., plan.favourable] / powers.sum(axis=-1)


def sweep(scores: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """k and Q1 of each row by sorting and sweeping up and down, in the float32 arithmetic that the engine promises."""
    width = np.float32(epsilon + max(epsilon / 65536, min(2.0**-23, epsilon / 16)))
    up = _bits([_class_sizes(np.sort(row), width) for row in scores])
    down = _bits([_class_sizes(np.sort(-row), width) for row in scores])
    np.testing.assert_array_equal(up[0], down[0])
    return up[0], np.maximum(up[1], down[1])


def grid(scores: np.ndarray, epsilon: float, bounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """k and Q1 of each row by bins of width epsilon."""
    bins = np.floor(scores / np.float32(epsilon))
    if bounded:
        bins = np.minimum(bins, round(1 / epsilon) - 1)
    return _bits([np.unique(row, return_counts=True)[1].tolist() for row in bins])


def _class_sizes(row: np.ndarray, epsilon: np.float32) -> list[int]:
    sizes, opened = [0], row[0]
    for value in row:
        if value - opened > epsilon:
            sizes.append(0)
            opened = value
        sizes[-1] += 1
    return sizes


def _bits(sizes: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    masses = [np.array(row) / sum(row) for row in sizes]
    return np.array([len(row) for row in sizes]), np.array([-(p * np.log2(p)).sum() for p in masses])
