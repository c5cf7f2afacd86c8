"""ONNX both ways: dense feed-forward graphs become native networks, and native networks become graphs.

Reading follows the one path from the input to the output and keeps an affine map that is still open; an activation
or a further product closes it into a layer. Batch normalisation and scaling fold into that map.
Two or more outputs without a Softmax are read as logits; one output without a Sigmoid as a regression.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import MissingDependencyError, ModelError
from fairbits.models.activations import Activation
from fairbits.models.network import Head, Network

Matrix = npt.NDArray[np.float64]

_PASS = {"Identity", "Dropout", "Flatten", "Cast"}
_ACTIVATIONS = {"Relu": "relu", "LeakyRelu": "leaky_relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Elu": "elu"}
_DEFAULT_ALPHA = {"LeakyRelu": 0.01, "Elu": 1.0}
_FAVOURABLE_KEY = "fairbits.favourable"


def _onnx() -> ModuleType:
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError("onnx", "onnx", "reading and writing ONNX files") from None
    return onnx  # type: ignore[no-any-return]


def read_onnx(path: str | Path) -> Network:
    """The dense feed-forward network in an ONNX file."""
    onnx = _onnx()
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, ValueError, OSError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"the network {str(path)!r} is not a readable ONNX file: {reason}.") from None
    try:
        chain = _Chain(model.graph, onnx.numpy_helper)
        return chain.network(_favourable(model))
    except ModelError as error:
        raise ModelError(f"the ONNX file {str(path)!r} is not a plain dense network: {error}") from None


def _favourable(model: Any) -> int | None:
    stated = {entry.key: entry.value for entry in model.metadata_props}.get(_FAVOURABLE_KEY)
    return int(stated) if stated is not None and stated.isdigit() else None


class _Chain:
    """Walks the graph once, closing a layer at every activation."""

    def __init__(self, graph: Any, numpy_helper: Any):
        self.constants = {c.name: numpy_helper.to_array(c) for c in graph.initializer}
        free = [entry for entry in graph.input if entry.name not in self.constants]
        if len(free) != 1:
            raise ModelError(f"it has {len(free)} inputs, and only one is understood.")
        self.current = free[0].name
        self.layers: list[tuple[Matrix, Matrix, Activation]] = []
        self.open: tuple[Matrix, Matrix] | None = None
        self.dense = False  # whether the open map has had its product, or only scales so far
        self.head: Head | None = None
        self.helper = numpy_helper
        for node in graph.node:
            self._take(node)
        if self.current not in {entry.name for entry in graph.output}:
            raise ModelError(f"its output does not follow from its input; the path ends at {self.current!r}.")

    def network(self, favourable: int | None) -> Network:
        weights = [w for w, _, _ in self.layers]
        biases = [b for _, b, _ in self.layers]
        after = [a for _, _, a in self.layers]
        if self.open is None and not self.layers:
            raise ModelError("it has no dense layer.")
        if self.open is None:  # it ends in an activation: an identity layer carries it to the output
            width = weights[-1].shape[1]
            self.open = (np.eye(width), np.zeros(width))
        w, b = self.open
        head: Head = self.head or ("softmax" if w.shape[1] > 1 else "linear")
        if head == "sigmoid" and w.shape[1] > 1:
            raise ModelError(f"it ends in {w.shape[1]} independent sigmoids; a decision needs one output or a softmax.")
        return Network.build([*weights, w], [*biases, b], activation=after, head=head, favourable=favourable)

    def _take(self, node: Any) -> None:
        if node.op_type == "Constant":
            value = next((a for a in node.attribute if a.name == "value"), None)
            if value is None:
                raise ModelError(f"node {node.name or node.op_type!r} holds a constant that is no tensor.")
            self.constants[node.output[0]] = self.helper.to_array(value.t)
            return
        if self.current not in node.input:
            raise ModelError(
                f"node {node.name or node.op_type!r} ({node.op_type}) leaves the one path through the net."
            )
        if self.head is not None and node.op_type not in _PASS:
            raise ModelError(f"it goes on with {node.op_type} after its {self.head} output.")
        options = {a.name: a for a in node.attribute}
        if node.op_type in _PASS:
            pass
        elif node.op_type in _ACTIVATIONS or node.op_type == "Gelu":
            self._close(node, options)
        elif node.op_type == "Softmax":
            self.head = "softmax"
        else:
            self._affine(node, options)
        self.current = node.output[0]

    def _close(self, node: Any, options: dict[str, Any]) -> None:
        """An activation ends the open layer. A final Sigmoid is a head, which only later nodes can deny."""
        if self.open is None:
            raise ModelError(f"node {node.op_type} follows no dense layer.")
        if node.op_type == "Sigmoid" and self.open[0].shape[1] == 1:
            self.head = "sigmoid"
            return
        if node.op_type == "Gelu":
            tanh = "approximate" in options and options["approximate"].s == b"tanh"
            activation = Activation("gelu_tanh" if tanh else "gelu")
        else:
            default = _DEFAULT_ALPHA.get(node.op_type, 0.0)
            activation = Activation(_ACTIVATIONS[node.op_type], options["alpha"].f if "alpha" in options else default)
        self.layers.append((*self.open, activation))
        self.open, self.dense = None, False

    def _affine(self, node: Any, options: dict[str, Any]) -> None:
        """Fold a product, a sum, a scaling or a normalisation into the open map."""
        others = [self._constant(name, node) for name in node.input if name and name != self.current]
        first = node.input[0] == self.current
        if node.op_type == "MatMul" and first:
            self._multiply(others[0])
        elif node.op_type == "Gemm" and first and not _integer(options, "transA"):
            matrix = others[0].T if _integer(options, "transB") else others[0]
            self._multiply(matrix * _real(options, "alpha"))
            if len(others) > 1:
                self._scale(1.0, others[1] * _real(options, "beta"))
        elif node.op_type == "Add":
            self._scale(1.0, others[0])
        elif node.op_type == "Sub":
            self._scale(1.0 if first else -1.0, -others[0] if first else others[0])
        elif node.op_type == "Mul":
            self._scale(others[0], 0.0)
        elif node.op_type == "Div" and first:
            self._scale(1.0 / others[0], 0.0)
        elif node.op_type == "BatchNormalization" and first:
            gain, offset, mean, variance = others
            factor = gain / np.sqrt(variance + _real(options, "epsilon", 1e-5))
            self._scale(factor, offset - mean * factor)
        else:
            raise ModelError(f"the operation {node.op_type} is not understood.")

    def _constant(self, name: str, node: Any) -> Matrix:
        if name not in self.constants:
            raise ModelError(f"node {node.op_type} joins two computed values, {self.current!r} and {name!r}.")
        return np.asarray(self.constants[name], dtype=np.float64)

    def _multiply(self, matrix: Matrix) -> None:
        if matrix.ndim != 2:
            raise ModelError(f"a product with an array of shape {matrix.shape} is not a dense layer.")
        if self.open is not None and self.dense:  # two products in a row are two layers: the shape stays
            self.layers.append((*self.open, Activation("identity")))
            self.open = None
        self.dense = True
        if self.open is None:
            self.open = (matrix, np.zeros(matrix.shape[1]))
            return
        w, b = self.open
        if w.shape[1] != len(matrix):
            raise ModelError(f"a product of {w.shape[1]} values with a matrix of {len(matrix)} rows does not fit.")
        self.open = (w @ matrix, b @ matrix)

    def _scale(self, factor: Matrix | float, offset: Matrix | float) -> None:
        """x ↦ factor · x + offset, value by value."""
        factor, offset = np.ravel(factor), np.ravel(offset)
        if self.open is None:
            width = self.layers[-1][0].shape[1] if self.layers else max(len(factor), len(offset))
            self.open = (np.eye(width), np.zeros(width))
        w, b = self.open
        for part in (factor, offset):
            if len(part) not in (1, w.shape[1]):
                raise ModelError(f"{len(part)} constants do not fit {w.shape[1]} values.")
        self.open = (w * factor, b * factor + offset)


def _integer(options: dict[str, Any], name: str) -> int:
    return int(options[name].i) if name in options else 0


def _real(options: dict[str, Any], name: str, default: float = 1.0) -> float:
    return float(options[name].f) if name in options else default


def write_onnx(network: Network, path: str | Path) -> None:
    """A native network as an ONNX file: Gemm and activation by turns, probabilities at the end."""
    onnx = _onnx()
    from fairbits._version import __version__

    helper, tensor = onnx.helper, onnx.TensorProto.FLOAT
    nodes, constants, current = [], [], "inputs"
    last = len(network.weights) - 1
    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        constants += [onnx.numpy_helper.from_array(w, f"W{i}"), onnx.numpy_helper.from_array(b, f"b{i}")]
        nodes.append(helper.make_node("Gemm", [current, f"W{i}", f"b{i}"], [f"before{i}"]))
        current = f"before{i}"
        if i < last:
            nodes.append(_activation_node(helper, network.activations_after[i], current, f"after{i}"))
            current = f"after{i}"
    end = {"softmax": "Softmax", "sigmoid": "Sigmoid", "linear": "Identity"}[network.head]
    nodes.append(helper.make_node(end, [current], ["output"]))
    graph = helper.make_graph(
        nodes,
        "fairbits",
        [helper.make_tensor_value_info("inputs", tensor, ["people", network.inputs])],
        [helper.make_tensor_value_info("output", tensor, ["people", network.widths[-1]])],
        constants,
    )
    model = helper.make_model(
        graph, producer_name="fairbits", producer_version=__version__, opset_imports=[helper.make_opsetid("", 20)]
    )
    model.ir_version = 9  # what runtimes of the last years read; newer is not needed for these operations
    helper.set_model_props(model, {_FAVOURABLE_KEY: str(network.favourable)})
    onnx.checker.check_model(model)
    Path(path).write_bytes(model.SerializeToString())


def _activation_node(helper: Any, activation: Activation, source: str, result: str) -> Any:
    if activation.name in {"gelu", "gelu_tanh"}:
        approximate = "tanh" if activation.name == "gelu_tanh" else "none"
        return helper.make_node("Gelu", [source], [result], approximate=approximate)
    if activation.name == "identity":
        return helper.make_node("Identity", [source], [result])
    operation = next(op for op, name in _ACTIVATIONS.items() if name == activation.name)
    alpha = {"alpha": activation.alpha} if operation in _DEFAULT_ALPHA else {}
    return helper.make_node(operation, [source], [result], **alpha)
