"""A guarded native network as a Keras model of ordinary layers, which loads in safe mode and without fairbits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Lookup
from fairbits.errors import MissingDependencyError, ModelError
from fairbits.repair.proposals.arrays import GuardArrays
from fairbits.repair.proposals.twin_rules import TwinRules

#: Activations by the names that Keras knows.
_NAMES = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "identity": "linear"}


def write_guard_keras(arrays: GuardArrays, path: str | Path) -> None:
    """Write a guarded network as a Keras model.

    The first layer of all twins is one dense layer, m times as wide; the average is a dense layer over the twins.
    """
    try:
        import keras
    except ImportError:
        raise MissingDependencyError("keras", "keras", "writing a .keras file") from None
    network, layers, ops = arrays.network, keras.layers, keras.ops
    names = [activation.name for activation in network.activations_after]
    strange = next((name for name in names if name not in _NAMES), None)
    if strange is not None:
        raise ModelError(f"activation {strange!r} is not written to .keras here; use .onnx.")
    m, width, outputs = len(arrays.weights), network.widths[0], network.widths[-1]
    filled: list[tuple[Any, list[np.ndarray[Any, Any]]]] = []

    def dense(size: int, *values: np.ndarray[Any, Any]) -> Any:
        layer = layers.Dense(size, use_bias=len(values) > 1)
        filled.append((layer, list(values)))
        return layer

    later = [dense(w.shape[1], w, b) for w, b in zip(network.weights[1:], network.biases[1:], strict=True)]
    head = {"softmax": "softmax", "sigmoid": "sigmoid", "linear": "linear"}[network.head]

    def rest(before: Any) -> Any:
        for name, layer in zip(names, later, strict=True):
            before = layer(layers.Activation(_NAMES[name])(before))
        return layers.Activation(head)(before)

    def moved(output: Any) -> Any:
        if arrays.shift == 0:
            return output
        if network.head == "linear":
            return output + arrays.shift
        inside = ops.clip(output, 1e-7, 1 - 1e-7)
        odds = inside / (1.0 - inside)
        step = float(np.exp(arrays.shift))
        if network.head == "sigmoid":
            odds = odds * (step if network.favourable == 1 else 1 / step)
        else:
            factors = [step if network.favourable == c else 1 / step for c in range(2)]
            odds = ops.concatenate([odds[:, :1] * factors[0], odds[:, 1:] * factors[1]], axis=-1)
        return odds / (odds + 1.0)

    inputs = keras.Input((network.inputs,))
    first = dense(m * width, np.tile(arrays.shared_weights, (1, m)), arrays.twin_terms.ravel())
    twins = layers.Permute((2, 1))(rest(layers.Reshape((m, width))(first(inputs))))
    if arrays.rules is None:
        share = dense(1, arrays.weights.astype(np.float32)[:, None])
        centre = moved(layers.Reshape((outputs,))(share(twins)))
    else:
        shares = _shares(ops, inputs, arrays.rules, arrays.weights)
        centre = moved(ops.sum(twins * ops.expand_dims(shares, 1), axis=2))
    output = centre
    if arrays.tau:
        apart = moved(rest(dense(width, network.weights[0], network.biases[0])(inputs))) - centre
        size = ops.maximum(ops.max(ops.abs(centre), axis=-1, keepdims=True), arrays.size)
        room = ops.maximum(arrays.tau - arrays.hair * size, 0.0)
        far = ops.maximum(ops.max(ops.abs(apart), axis=-1, keepdims=True), 1e-30)
        output = centre + ops.minimum(room / far, 1.0) * apart
    model = keras.Model(inputs, output)
    for layer, values in filled:
        layer.set_weights([np.asarray(value, np.float32) for value in values])
    model.save(path)


def _shares(ops: Any, inputs: Any, rules: TwinRules, weights: np.ndarray[Any, Any]) -> Any:
    """The twins' weights, (people, m): over those that can exist; over all where none can."""
    whole = weights.astype(np.float32)[None]
    operations = {
        **{"and": ops.logical_and, "or": ops.logical_or, "not": ops.logical_not, "neg": ops.negative},
        **{"=": ops.equal, "!=": ops.not_equal, "<": ops.less, "<=": ops.less_equal},
        **{">": ops.greater, ">=": ops.greater_equal, "+": ops.add, "-": ops.subtract, "*": ops.multiply},
    }
    # Codes of one number for everybody are added to zeros of the inputs' length: Keras traces tensors, not arrays.
    nothing = inputs[:, :1] * 0.0
    columns = {column: nothing + values.astype(np.float32)[None] for column, values in rules.twins.items()}
    for column, (part, is_whole) in rules.seen.items():
        own = ops.concatenate([inputs[:, int(c) : int(c) + 1] for c in part.columns], axis=1)
        if isinstance(part, Lookup):
            table = part.table.astype(np.float32)
            apart = [ops.sum(ops.abs(own - row[None]), axis=1, keepdims=True) for row in table]
            place = ops.argmin(ops.concatenate(apart, axis=1), axis=1, keepdims=True)
            columns[column] = ops.cast(place, "float32") + float(part.low)
        else:
            own = own / float(part.scale or 1.0) + float(part.shift)
            columns[column] = ops.round(own) if is_whole else own
    valid = ops.cast(rules.evaluate(columns, operations, float), "float32")
    left = valid * whole
    some = ops.cast(ops.sum(left, axis=1, keepdims=True) > 0.0, "float32")
    left = some * left + (1.0 - some) * whole
    return left / ops.sum(left, axis=1, keepdims=True)
