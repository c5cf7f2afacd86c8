"""A network, its encoding and the twins, written as the plain arrays that the kernels take."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, FirstLayer, Twins
from fairbits.engine.plan import ActivationCode, Head, Plan
from fairbits.models import Network


def plan_of(network: Network, encoding: Encoding, twins: Twins | None) -> Plan:
    """The plan for scoring people and their twins by a network."""
    weights, biases = _scored_outputs(network)
    layer = encoding.first_layer(weights[0], biases[0])
    protected = set() if twins is None else {int(column) for column in twins.columns}
    numeric = [i for i in layer.slopes if i not in protected]
    lookup = [i for i in layer.tables if i not in protected]
    sizes = [len(layer.tables[i][1]) for i in lookup]
    width = len(layer.bias)
    return Plan(
        bias=layer.bias,
        twins=_protected_part(layer, twins),
        widths=np.array(network.widths),
        head=Head[network.head.upper()],
        favourable=network.favourable if network.head == "softmax" else 0,
        activations=np.array([ActivationCode[a.name.upper()] for a in network.activations_after], dtype=np.int64),
        alphas=np.array([a.alpha for a in network.activations_after], dtype=np.float32),
        weights=_flat(weights[1:]),
        biases=_flat(biases[1:]),
        numeric_columns=np.array(numeric, dtype=np.int64),
        numeric_shifts=np.array([layer.slopes[i][0] for i in numeric], dtype=np.float64),
        numeric_slopes=np.array([layer.slopes[i][1] for i in numeric], dtype=np.float32).reshape(-1, width),
        lookup_columns=np.array(lookup, dtype=np.int64),
        lookup_lows=np.array([layer.tables[i][0] for i in lookup], dtype=np.int64),
        lookup_offsets=np.cumsum([0, *sizes[:-1]]) if sizes else np.empty(0, np.int64),
        lookup_tables=np.concatenate([layer.tables[i][1] for i in lookup])
        if lookup
        else np.empty((0, width), np.float32),
    )


def _protected_part(layer: FirstLayer, twins: Twins | None) -> npt.NDArray[np.float32]:
    """What the protected values add to the first layer, once per twin, summed in double precision."""
    if twins is None:
        return np.zeros((1, len(layer.bias)), np.float32)
    parts = [
        layer.contribution(int(column), twins.values[:, position]).astype(np.float64)
        for position, column in enumerate(twins.columns)
    ]
    return np.sum(parts, axis=0).astype(np.float32)


def _scored_outputs(network: Network) -> tuple[list[npt.NDArray[np.float32]], list[npt.NDArray[np.float32]]]:
    """A sigmoid gives class 1; where class 0 is favourable, its score is the sigmoid of the negated output."""
    weights, biases = list(network.weights), list(network.biases)
    if network.head == "sigmoid" and network.favourable == 0:
        weights[-1], biases[-1] = -weights[-1], -biases[-1]
    return weights, biases


def _flat(arrays: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    return np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0, np.float32)
