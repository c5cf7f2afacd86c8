"""A subject's ReLU network as the kernel of certificates takes it: its margin, seen from the attributes, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Numeric, Schema, Twins, Unseen
from fairbits.engine.kernels.box_bounds import Doubles, Integers, Layers
from fairbits.errors import CapabilityError
from fairbits.models import Network

#: The relative error of one operation in double precision.
UNIT = 2.0**-53
#: Values of an attribute that a set of values can hold.
MAX_SET = 64


@dataclass(frozen=True, slots=True, eq=False)
class BoxNetwork:
    """A network over boxes of people."""

    layers: Layers
    columns: Integers
    values: tuple[Doubles, ...]
    others: tuple[tuple[int, Doubles], ...]
    factor: int

    @property
    def numeric(self) -> int:
        """How many attributes are ranges of steps."""
        return self.layers.numeric

    @property
    def people(self) -> int:
        """How many people there are in all."""
        return self.factor * math.prod(len(values) for values in self.values)

    def whole(self) -> tuple[Doubles, Doubles, NDArray[np.uint64]]:
        """The box of everybody: first and last steps, and sets."""
        last = np.array([len(values) - 1 for values in self.values[: self.numeric]], dtype=np.float64)
        sets = [(1 << len(values)) - 1 for values in self.values[self.numeric :]]
        return np.zeros((1, self.numeric)), last[None], np.array([sets], dtype=np.uint64).reshape(1, -1)


def box_network(network: Network, schema: Schema, encoding: Encoding, twins: Twins) -> BoxNetwork:
    """The margin of a network, over boxes of people."""
    weights, biases = _margin(network)
    first = weights[0]
    bias = biases[0].copy()
    for column, value in encoding.fixed.items():
        bias += value * first[column]
    magnitude = np.abs(bias)
    numeric: list[tuple[int, Doubles, Doubles]] = []
    lookups: list[tuple[int, Doubles, Doubles]] = []
    others: list[tuple[int, Doubles]] = []
    for column in schema.free_columns:
        values = schema.attributes[column].domain_values()
        part = encoding.parts[column]
        if isinstance(part, Unseen):
            others.append((column, values))
            continue
        rows = np.asarray(part.encode(values), dtype=np.float64).reshape(len(values), -1) @ first[part.columns]
        if not np.ptp(rows, axis=0).any():
            bias += rows[0]
            others.append((column, values))
        elif isinstance(part, Numeric) and (
            not schema.attributes[column].allowed or len(set(np.diff(values).tolist())) == 1
        ):
            slope = (values[1] - values[0]) * part.scale * first[part.column]
            bias += (values[0] - part.shift) * part.scale * first[part.column]
            numeric.append((column, values, slope))
        else:
            if len(values) > MAX_SET:
                raise CapabilityError(
                    f"attribute {schema.attributes[column].name!r} has {len(values)} values without an even step, and "
                    f"a box holds sets of up to {MAX_SET}; coarsen it, or rely on the statistical statement."
                )
            order = _by_effect(rows)
            lookups.append((column, values[order], rows[order]))
        magnitude = magnitude + np.abs(rows).max(axis=0)
    added = _twins(first, encoding, twins)
    magnitude = magnitude + np.abs(added).max(axis=0)
    if len(network.weights) == 1:
        # Without hidden layers the sum passes through one neuron that is lifted so far that it is always on.
        lift = 2.0 ** math.ceil(math.log2(2.0 * float(magnitude.max()) + 1.0))
        bias, magnitude, biases[1] = bias + lift, magnitude + lift, biases[1] - lift
    steps = [slope[:, None] for _, _, slope in numeric] + [rows.T for _, _, rows in lookups]
    ends = np.cumsum([len(numeric), *(len(values) for _, values, _ in lookups)])
    slacks = _slacks(magnitude, weights, biases, sum(step.shape[1] for step in steps) + twins.m)
    up = np.concatenate([w.ravel() for w in weights[1:]])
    layers = Layers(
        np.array([len(b) for b in biases[:-1]], dtype=np.int64),
        bias,
        np.ascontiguousarray(added),
        np.stack([added.min(axis=0), added.max(axis=0)]),
        np.ascontiguousarray(np.concatenate(steps, axis=1) if steps else np.empty((len(bias), 0))),
        len(numeric),
        ends.astype(np.int64),
        np.concatenate([w.T.ravel() for w in weights[1:]]),
        np.maximum(up, 0.0),
        np.minimum(up, 0.0),
        np.concatenate(biases[1:]),
        float(slacks[-1]),
        slacks[:-1],
    )
    return BoxNetwork(
        layers,
        np.array([column for column, *_ in (*numeric, *lookups)], dtype=np.int64),
        tuple(values for _, values, _ in (*numeric, *lookups)),
        tuple(others),
        math.prod(len(values) for _, values in others),
    )


def _margin(network: Network) -> tuple[list[Doubles], list[Doubles]]:
    """The network with one output: the logit margin of the favourable class, or the predicted value."""
    strange = next((a for a in network.activations_after if a.name != "relu"), None)
    if strange is not None:
        raise CapabilityError(
            f"boxes need a dense ReLU network, but this one has {strange.name} layers; the statistical statement holds "
            f"for it as for every model."
        )
    weights = [w.astype(np.float64) for w in network.weights]
    biases = [b.astype(np.float64) for b in network.biases]
    if network.head == "softmax":
        if network.classes != 2:
            raise CapabilityError(
                f"boxes need a decision between two classes, but this network has {network.classes}; the statistical "
                f"statement holds for it as for every model."
            )
        signs = np.where(np.arange(2) == network.favourable, 1.0, -1.0)
        weights[-1], biases[-1] = (weights[-1] @ signs)[:, None], np.array([biases[-1] @ signs])
    elif network.head == "sigmoid" and network.favourable == 0:
        weights[-1], biases[-1] = -weights[-1], -biases[-1]
    if len(weights) == 1:
        weights, biases = [weights[0], np.ones((1, 1))], [biases[0], np.zeros(1)]
    return weights, biases


def _twins(first: Doubles, encoding: Encoding, twins: Twins) -> Doubles:
    """What each twin adds to the first layer, (m, h)."""
    total = np.zeros((twins.m, first.shape[1]))
    for place, column in enumerate(twins.columns):
        part = encoding.parts[int(column)]
        if not isinstance(part, Unseen):
            encoded = np.asarray(part.encode(twins.values[:, place]), dtype=np.float64).reshape(twins.m, -1)
            total += encoded @ first[part.columns]
    return total


def _by_effect(rows: Doubles) -> Integers:
    """An order in which values with similar effects stand side by side, so that halves of a set are alike."""
    centred = rows - rows.mean(axis=0)
    return np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0], kind="stable")


def _slacks(magnitude: Doubles, weights: list[Doubles], biases: list[Doubles], inputs: int) -> Doubles:
    """How far rounding can move a bound of each layer's pre-activations.

    A bound is a sum of products. Back-substitution passes at most one sum over each layer's width and one over the
    inputs, and a handful of operations per layer for slopes and intercepts, so no term sees more than ``n`` roundings,
    and the computed bound differs from the exact one by at most n u / (1 - n u) times the sum of the terms' sizes
    (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1). Slopes lie in 0 to 1, so these sizes
    are at most what the network makes of absolute weights and inputs (``magnitude``), once for the linear function and
    once for the intercepts of every layer below. The factor 2 covers the roundings of this computation itself.
    """
    slacks, below = [], 0
    for depth in range(len(biases)):
        if depth:
            magnitude = np.abs(biases[depth]) + np.abs(weights[depth]).T @ magnitude
        below += len(magnitude)
        n = inputs + below + 16 * (depth + 2)
        slacks.append(2.0 * n * UNIT * (depth + 2) * float(magnitude.max(initial=0.0)))
    return np.array(slacks)


__all__ = ["BoxNetwork", "box_network"]
