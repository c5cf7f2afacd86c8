"""Native networks as ONNX files: a graph of our own, or new weights in the graph that the network came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import ModelError
from fairbits.models.native.network import Activation, Network
from fairbits.models.onnx.adapter import GraphReader, named
from fairbits.models.onnx.graph import FAVOURABLE_KEY, import_onnx

_OPERATIONS = {"relu": "Relu", "leaky_relu": "LeakyRelu", "tanh": "Tanh", "sigmoid": "Sigmoid", "elu": "Elu"}


def write_onnx(network: Network, path: str | Path) -> None:
    """Write a network as an ONNX file: Gemm and activation by turns, probabilities at the end."""
    onnx = import_onnx()
    helper = onnx.helper
    nodes, constants, current = [], [], "inputs"
    last = len(network.weights) - 1
    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        constants += [onnx.numpy_helper.from_array(w, f"W{i}"), onnx.numpy_helper.from_array(b, f"b{i}")]
        nodes.append(helper.make_node("Gemm", [current, f"W{i}", f"b{i}"], [f"before{i}"]))
        current = f"before{i}"
        if i < last:
            nodes.append(activation_node(helper, network.activations_after[i], current, f"after{i}"))
            current = f"after{i}"
    end = {"softmax": "Softmax", "sigmoid": "Sigmoid", "linear": "Identity"}[network.head]
    nodes.append(helper.make_node(end, [current], ["output"]))
    write_graph(network, nodes, constants, path)


def write_graph(
    network: Network,
    nodes: list[Any],
    constants: list[Any],
    path: str | Path,
    *,
    name: str = "fairbits",
    properties: Mapping[str, str] | None = None,
    outputs: Sequence[Any] = (),
) -> None:
    """Check a graph that leads from "inputs" to "output" (and to other outputs), and write it."""
    from fairbits._version import __version__

    onnx = import_onnx()
    helper, tensor = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("inputs", tensor, ["people", network.inputs])],
        [helper.make_tensor_value_info("output", tensor, ["people", network.widths[-1]]), *outputs],
        constants,
    )
    versions = [helper.make_opsetid(*one) for one in {("", 20), *((node.domain, 3) for node in nodes if node.domain)}]
    model = helper.make_model(graph, producer_name="fairbits", producer_version=__version__, opset_imports=versions)
    model.ir_version = 9  # what runtimes of the last years read; newer is not needed for these operations
    helper.set_model_props(model, {FAVOURABLE_KEY: str(network.favourable), **(properties or {})})
    onnx.checker.check_model(model)
    Path(path).write_bytes(model.SerializeToString())


def activation_node(helper: Any, activation: Activation, source: str, result: str) -> Any:
    """The node of an activation."""
    if activation.name in {"gelu", "gelu_tanh"}:
        approximate = "tanh" if activation.name == "gelu_tanh" else "none"
        return helper.make_node("Gelu", [source], [result], approximate=approximate)
    if activation.name == "identity":
        return helper.make_node("Identity", [source], [result])
    alpha = {"alpha": activation.alpha} if activation.name in {"leaky_relu", "elu"} else {}
    return helper.make_node(_OPERATIONS[activation.name], [source], [result], **alpha)


def has_encoders(path: str | Path) -> bool:
    """Whether a graph takes a table with labels and encodes it itself."""
    return bool(GraphReader(named(path)).stem)


def rewrite_onnx(network: Network, original: str | Path, path: str | Path) -> None:
    """The original graph with the network's weights: same shape, same encoders, other numbers."""
    onnx = import_onnx()
    graph = named(original)
    reader = GraphReader(graph)
    reader.chain.network()
    changed = reader.chain.parameters(network)
    held = {constant.name: constant for constant in graph.model.graph.initializer}
    for node in graph.model.graph.node:
        if node.op_type == "Constant":
            held |= dict.fromkeys(node.output, next((a.t for a in node.attribute if a.name == "value"), None))
    for name, array in changed.items():
        old = onnx.numpy_helper.to_array(held[name])
        if old.size != array.size:
            raise ModelError(f"parameter {name!r} has {old.size} values in the original, but {array.size} are needed.")
        new = np.ascontiguousarray(array.reshape(old.shape), dtype=old.dtype)
        held[name].CopyFrom(onnx.numpy_helper.from_array(new, held[name].name))
    onnx.checker.check_model(graph.model)
    Path(path).write_bytes(graph.model.SerializeToString())
