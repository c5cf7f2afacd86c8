"""How far a network's scores can be from those of real arithmetic, whatever library computes them.

Networks compute in float32, each library in an order of its own: a dot product of n terms is off by at most
γ_n = n u / (1 - n u), u = 2⁻²⁴, times the sum of its terms' sizes, in any order of summation (Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 3.1). What a certificate says about decisions holds for every library
that keeps to it. Where all numbers are so short that every sum is exact, nothing is off, and ties are decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbits.domain import Encoding, Lookup, Numeric, Schema, Twins, Unseen
from fairbits.models import Network

Doubles = NDArray[np.float64]

#: The relative error of one operation in float32 and in float64, and the smallest number of full precision in float32.
SINGLE, DOUBLE, TINY = 2.0**-24, 2.0**-53, 2.0**-126
#: Roundings of a term beside those of the sum: of its input and weight, of scales and biases that are folded into them.
EXTRA = 8
#: What a head or a smooth activation may be off by (16 units in the last place of 1), and the largest sum that float32
#: holds with room to spare.
HEAD, LARGEST = 2.0**-20, 1e37
#: A margin that nobody has.
NEVER = 1e300
#: How steep activations are at most.
_STEEPEST = {"sigmoid": 0.25, "gelu": 1.13, "gelu_tanh": 1.13}


def gamma(terms: int) -> float:
    """The relative error of a float32 dot product, in any order of summation, a little rounded up."""
    n = (terms + EXTRA) * SINGLE
    return 1.001 * n / (1.0 - n) if n < 0.5 else math.inf


def quantum(values: NDArray[np.floating]) -> float:
    """The largest power of two of which all values are multiples; infinity where all are 0."""
    some = np.asarray(values, dtype=np.float64)
    some = np.abs(some[some != 0])
    if not len(some):
        return math.inf
    mantissa, exponent = np.frexp(some)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponent - 53).min())


def terms_of(encoding: Encoding) -> int:
    """How many inputs differ from 0 at most: adding zeros rounds nothing."""
    lookups = (int(np.count_nonzero(p.table, axis=1).max(initial=0)) for p in encoding.parts if isinstance(p, Lookup))
    return sum(lookups) + sum(isinstance(p, Numeric) for p in encoding.parts) + len(encoding.fixed)


def sizes_of(encoding: Encoding, column: int, values: Doubles, weights: Doubles) -> Doubles:
    """What an attribute's values add at most to the sum of sizes of each first-layer neuron, (values, neurons)."""
    part = encoding.parts[column]
    rows = np.abs(np.asarray(part.encode(values), dtype=np.float64)).reshape(len(values), -1)
    return np.asarray(rows @ np.abs(weights[part.columns]))


def ends_of(schema: Schema, column: int, twins: Twins) -> Doubles:
    """Values among which every other one of an attribute lies, where its encoding is a line; else all of them."""
    place, attribute = np.flatnonzero(twins.columns == column), schema.attributes[column]
    if len(place) and not (twins.most > twins.m and attribute.open):  # else people have values of their own
        return np.unique(twins.values[:, place[0]])
    if attribute.allowed:
        return np.array(attribute.allowed)
    if attribute.kind == "category":
        return attribute.values()
    return np.array([attribute.low, attribute.upper], dtype=np.float64)


def exact_layers(network: Network, schema: Schema, encoding: Encoding, twins: Twins) -> list[bool]:
    """By layer: whether all its sums are exact in float32, because all numbers are multiples of a coarse enough step.

    Inputs that are computed (scaled, or real numbers) are not taken for exact.
    """
    step, size = math.inf, np.abs(network.biases[0].astype(np.float64))
    weights = network.weights[0].astype(np.float64)
    for column, part in enumerate(encoding.parts):
        attribute = schema.attributes[column]
        if isinstance(part, Unseen):
            continue
        plain = isinstance(part, Lookup) or (part.shift == 0 and part.scale == 1)
        if not plain or not (attribute.discrete or attribute.allowed):
            return [False] * len(network.weights)
        values = ends_of(schema, column, twins)
        step = min(step, quantum(np.asarray(part.encode(values))), 1.0 if isinstance(part, Numeric) else math.inf)
        size = size + sizes_of(encoding, column, values, weights).max(axis=0)
    for column, value in encoding.fixed.items():
        step, size = min(step, quantum(np.array([value]))), size + np.abs(value * weights[column])
    found: list[bool] = []
    for layer, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        if layer:
            size = np.abs(b.astype(np.float64)) + np.abs(w.astype(np.float64)).T @ size
        step = min(step * quantum(w), quantum(b))
        before = found[-1] if found else True
        relu = layer == 0 or network.activations_after[layer - 1].name in ("relu", "identity")
        found.append(before and relu and bool(2 * size.max() <= min(2.0**24 * step, LARGEST)))
    return found


@dataclass(frozen=True, slots=True)
class ScoreError:
    """How far any library's logits, and with them a score, can be from real arithmetic, over the whole domain."""

    logits: float
    linear: bool = False

    def cuts(self, threshold: float) -> tuple[float, float]:
        """Scores that we computed below the first are unfavourable in every library, from the second on favourable."""
        apart = 2.0 * self.logits  # ours and the library's are both off
        low, high = margin_cuts(threshold, linear=self.linear)
        if self.linear:
            return low - apart, high + apart
        down, up = special.expit(low - apart) - HEAD, special.expit(high + apart) + HEAD
        if apart == 0.0 and high == 0.0:
            up = 0.5  # no library makes less than a half of a logit of 0
        return float(down), float(up)

    def apart(self, largest: float = 1.0) -> float:
        """How far a score that we computed can be from any library's, where none is larger."""
        if self.linear:
            return 2.0 * self.logits + (4.0 * SINGLE * largest if self.logits else 0.0)
        return min(1.0, self.logits) + 2.0 * HEAD  # two softmaxes whose logits differ by 2 e, each by a head's rounding


def margin_cuts(threshold: float, *, linear: bool = False) -> tuple[float, float]:
    """Logits below the first certainly give a score under the threshold, from the second on one that reaches it."""
    single = float(np.float32(threshold))
    low, high = min(threshold, single), max(threshold, single)
    if linear:
        return low, high
    down = float(special.logit(low - HEAD)) if low > HEAD else -NEVER
    if low == high == 0.5:
        return down - 1e-12, 0.0  # no library makes less than a half of a logit of 0
    up = float(special.logit(high + HEAD)) if high + HEAD < 1.0 else NEVER
    return down - 1e-12, up + 1e-12


def score_error(network: Network, schema: Schema, encoding: Encoding, twins: Twins) -> ScoreError:
    """How far rounding can move the logits of anybody in the domain: bounds of all neurons, layer by layer."""
    weights = [w.astype(np.float64) for w in network.weights]
    biases = [b.astype(np.float64) for b in network.biases]
    low = high = biases[0] + sum(value * weights[0][column] for column, value in encoding.fixed.items())
    size = np.abs(biases[0]) + sum(abs(value) * np.abs(weights[0][column]) for column, value in encoding.fixed.items())
    for column, part in enumerate(encoding.parts):
        if isinstance(part, Unseen):
            continue
        values = ends_of(schema, column, twins)
        rows = np.asarray(part.encode(values), dtype=np.float64).reshape(len(values), -1) @ weights[0][part.columns]
        low, high = low + rows.min(axis=0), high + rows.max(axis=0)
        size = size + sizes_of(encoding, column, values, weights[0]).max(axis=0)
        if isinstance(part, Numeric):  # what float64 loses of a value before the float32 sees it
            lost = 16.0 * DOUBLE * (np.abs(values).max() + abs(part.shift)) * abs(part.scale)
            size = size + lost / SINGLE * np.abs(weights[0][part.column])
    exact = exact_layers(network, schema, encoding, twins)
    error = np.zeros(len(size)) if exact[0] else gamma(terms_of(encoding)) * size + TINY * len(encoding.parts)
    for layer in range(1, len(weights)):
        if not size.max(initial=0.0) < LARGEST:
            return ScoreError(math.inf, linear=network.head == "linear")
        activation = network.activations_after[layer - 1]
        low, high = low - 1e-9 * size, high + 1e-9 * size  # float64 rounds as well
        steepest = _STEEPEST.get(activation.name, max(1.0, abs(activation.alpha)))
        if activation.name.startswith("gelu"):
            below, above = np.full_like(low, -0.2), np.maximum(high, 0.0)
        else:
            below, above = activation(low), activation(high)
            below, above = np.minimum(below, above), np.maximum(below, above)
        error = steepest * error
        if activation.name not in ("relu", "identity"):
            error = error + HEAD * np.maximum(1.0, np.maximum(np.abs(below), np.abs(above)))
        else:
            error = np.where((high + error <= 0.0) & (activation.name == "relu"), 0.0, error)
        w, b = weights[layer], biases[layer]
        up, down = np.maximum(w, 0.0), np.minimum(w, 0.0)
        reach = np.maximum(np.abs(below), np.abs(above)) + error
        size = np.abs(b) + np.abs(w).T @ reach
        low, high = b + up.T @ below + down.T @ above, b + up.T @ above + down.T @ below
        lost = 0.0 if exact[layer] else gamma(len(w)) * size + TINY * len(w) * (1.0 + float(reach.sum()))
        error = np.abs(w).T @ error + lost
    if not size.max(initial=0.0) < LARGEST:
        return ScoreError(math.inf, linear=network.head == "linear")
    if network.head == "linear":
        return ScoreError(float(error.max()), linear=True)
    # A margin is the difference of two logits, itself rounded.
    return ScoreError(float(2.0 * error.max() + (0.0 if exact[-1] else 2.0 * SINGLE * size.max())))


__all__ = ["ScoreError", "gamma", "margin_cuts", "score_error"]
