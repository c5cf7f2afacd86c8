"""ONNX graphs: dense feed-forward ones become native networks, all others run in ONNX Runtime.

Reading follows the one path from the input to the output; see ``chain.py`` for how operations fold into layers.
Converters of whole pipelines (skl2onnx) put encoders and scalers in front: that stem ends where the first product
begins. With a schema at hand it is run once for every value of every attribute, which gives the encoding tables.
Two or more outputs without a Softmax are read as logits; one output without a Sigmoid as a regression.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import MAX_MODEL_BYTES, Schema
from fairbits.errors import ModelError
from fairbits.models.black_box import reason
from fairbits.models.native.activations import Activation
from fairbits.models.native.chain import Chain, Matrix, NotNative, ParameterSource
from fairbits.models.onnx.graph import FLOATS, TEXT, Graph, as_reals, check_sizes, read_proto, stated_favourable
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner, read_output
from fairbits.models.probe import encoding_of
from fairbits.models.trial import tried

#: What leaves every value as it is.
_PASS = {"Identity", "Dropout", "Flatten", "Cast"}
_ACTIVATIONS = {"Relu": "relu", "LeakyRelu": "leaky_relu", "Tanh": "tanh", "Elu": "elu"}
_DEFAULT_ALPHA = {"LeakyRelu": 0.01, "Elu": 1.0}
#: What a stem may do: look at one column at a time, and put columns side by side.
_COLUMNWISE = _PASS | {
    *("Concat", "Gather", "Reshape", "Unsqueeze", "Squeeze", "Add", "Sub", "Mul", "Div", "Where", "IsNaN", "Split"),
    *("OneHotEncoder", "Scaler", "LabelEncoder", "Imputer", "ArrayFeatureExtractor", "FeatureVectorizer"),
}  # fmt: skip
#: What a graph that passes ONNX's own checks can still trip over: missing inputs, constants that do not fit.
_ODD = (ValueError, TypeError, IndexError, KeyError, OverflowError)


def read_onnx(path: str | Path, schema: Schema | None = None, options: ModelOptions | None = None) -> Loaded:
    """The model in an ONNX file: native where it can be, else in ONNX Runtime."""
    options = options or ModelOptions()
    graph = named(path, options.max_model_bytes)
    try:
        return _native(graph, schema, options, Path(path))
    except NotNative as error:
        from fairbits.models.onnx.runtime import run_graph

        try:
            check_sizes(graph.model)
            options = tried(Path(path), schema, options, needs=("onnx", "onnxruntime"))
            return run_graph(graph, schema, options, why=str(error))
        except ModelError as trouble:
            if str(trouble).startswith("the ONNX file"):  # said by the child process, which reads it the same way
                raise
            raise ModelError(
                f"the ONNX file {str(path)!r} is not a plain dense network: {error} Nor can it run as it is: {trouble}"
            ) from None
    except ModelError as error:
        raise ModelError(f"the ONNX file {str(path)!r} cannot be used: {error}") from None


def named(path: str | Path, max_model_bytes: int = MAX_MODEL_BYTES) -> Graph:
    """The graph in a file; errors name the file."""
    proto = read_proto(path, max_model_bytes)
    try:
        return Graph(proto)
    except ModelError as error:
        raise ModelError(f"the ONNX file {str(path)!r} cannot be used: {error}") from None
    except _ODD as error:
        raise ModelError(f"the ONNX file {str(path)!r} cannot be used: {reason(error)}") from None


def _native(graph: Graph, schema: Schema | None, options: ModelOptions, path: Path) -> Loaded:
    try:
        reader = GraphReader(graph)
    except _ODD as error:
        raise NotNative(f"its graph is odd ({reason(error).rstrip('.')}).") from None
    network = read_output(reader.chain.network(stated_favourable(graph, options)), options)
    encoding, notes, feed = None, tuple[str, ...](), None
    if reader.stem and schema is not None:
        from fairbits.models.onnx.runtime import Feeder, feeder_of, session_of

        check_sizes(graph.model)
        tried(path, schema, options, needs=("onnx", "onnxruntime"))
        feeder = feeder_of(graph, schema, options)
        if not isinstance(feeder, Feeder):
            raise NotNative(f"it has {len(graph.inputs)} inputs, some of which take several columns.")
        run, feed = session_of(graph, reader.stem, reader.start), feeder
        encoding = encoding_of(lambda codes: run(feeder(codes)), schema, feeder.names)
        notes = feeder.notes(options)
    return Loaded(network, encoding, graph.classes, notes, owner=_owner(graph, feed))


def _owner(graph: Graph, feed: Any) -> Owner | None:
    """The whole graph in ONNX Runtime, asked about the rows of the network that was read of it, or about codes."""
    only = graph.inputs[0]
    if feed is None and (len(graph.inputs) != 1 or only.kind == TEXT):
        return None

    def ask(rows: Any) -> Any:
        from fairbits.models.onnx.runtime import session_of, typed

        given = {only.name: typed(np.asarray(rows), only)} if feed is None else feed(rows)
        return session_of(graph, graph.nodes, graph.output)(given)

    return Owner(ask, (), "inputs" if feed is None else "codes")


class GraphReader:
    """Walks the graph once. ``stem`` holds the encoders in front, if there are any, and ``start`` what they make."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.chain = Chain()
        self.stem, self.start = self._stem()
        self.current = self.start
        self._negative: str | None = None
        front = {node.output[0] for node in self.stem}
        for node in graph.nodes:
            if node.output[0] not in front:
                self._take(node)
        if self.current != graph.output:
            raise NotNative(f"its output does not follow from its input; the path ends at {self.current!r}.")

    def _stem(self) -> tuple[list[Any], str]:
        inputs = self.graph.inputs
        if not inputs:
            raise NotNative("it has no input that its output depends on.")
        first = next((n for n in self.graph.nodes if n.op_type in {"MatMul", "Gemm"}), None)
        before = [] if first is None else self.graph.leading_to(first.input[0])
        plain = len(inputs) == 1 and inputs[0].kind in FLOATS
        if plain and all(len([s for s in n.input if s not in self.graph.constants]) == 1 for n in before):
            encoders = {"OneHotEncoder", "LabelEncoder", "Gather", "ArrayFeatureExtractor", "Concat"}
            if not any(n.op_type in encoders for n in before):
                return [], inputs[0].name
        if first is None:
            raise NotNative(f"it has {len(inputs)} inputs and no dense layer.")
        strange = next((n.op_type for n in before if n.op_type not in _COLUMNWISE), None)
        if strange is not None:
            raise NotNative(f"the operation {strange} in front of its first layer is not understood.")
        return before, str(first.input[0])

    def _take(self, node: Any) -> None:
        options = {a.name: a for a in node.attribute}
        if self.chain.head == "sigmoid" and self._both_classes(node):
            return
        if self.current not in node.input:
            raise NotNative(f"node {node.name or node.op_type!r} ({node.op_type}) leaves the one path through the net.")
        if node.op_type in _PASS or (node.op_type in {"Reshape", "Squeeze", "Unsqueeze"} and self._harmless(node)):
            pass
        elif node.op_type in _ACTIVATIONS or node.op_type == "Gelu":
            self.chain.activate(_activation(node, options))
        elif node.op_type == "Sigmoid":
            self.chain.sigmoid()
        elif node.op_type == "Softmax":
            self.chain.end("softmax")
        else:
            self._affine(node, options)
        self.current = node.output[0]

    def _both_classes(self, node: Any) -> bool:
        """1 − p beside p: how scikit-learn's binary probabilities are written."""
        if node.op_type == "Sub" and node.input[1] == self.current and (self._constant(node.input[0], node) == 1).all():
            self._negative = node.output[0]
            return True
        if node.op_type == "Concat" and list(node.input) == [self._negative, self.current]:
            self.current = node.output[0]
            return True
        return False

    def _harmless(self, node: Any) -> bool:
        """Whether a reshaping keeps rows as rows: one size is left open, and the other is the width."""
        if node.op_type != "Reshape":
            return self.chain.width in (None, 1)
        shape = self.graph.constants.get(node.input[1])
        return shape is not None and shape.tolist() in ([-1, self.chain.width], [0, -1], [0, self.chain.width])

    def _affine(self, node: Any, options: dict[str, Any]) -> None:
        """Fold a product, a sum, a scaling or a normalisation into the chain."""
        chain, kind = self.chain, node.op_type
        others = [(n, self._constant(n, node)) for n in node.input if n and n != self.current]
        first = node.input[0] == self.current
        if kind == "MatMul" and first:
            chain.multiply(others[0][1], ParameterSource(others[0][0]))
        elif kind == "Gemm" and first and not _integer(options, "transA"):
            flip, gain = bool(_integer(options, "transB")), _real(options, "alpha")
            name, matrix = others[0]
            chain.multiply((matrix.T if flip else matrix) * gain, ParameterSource(name, transposed=flip, gain=gain))
            if len(others) > 1:
                beta = _real(options, "beta")
                chain.scale(1.0, others[1][1] * beta, ParameterSource(others[1][0], gain=beta))
        elif kind == "Add":
            chain.scale(1.0, others[0][1], ParameterSource(others[0][0]))
        elif kind == "Sub":
            chain.scale(1.0 if first else -1.0, -others[0][1] if first else others[0][1])
        elif kind == "Mul":
            chain.scale(others[0][1], 0.0)
        elif kind == "Div" and first:
            chain.scale(1.0 / others[0][1], 0.0)
        elif kind == "Scaler":
            scale, offset = (np.asarray(options[n].floats or [d]) for n, d in (("scale", 1.0), ("offset", 0.0)))
            chain.scale(scale, -offset * scale)
        elif kind == "BatchNormalization" and first:
            gain_, offset_, mean, variance = (array for _, array in others)
            factor = gain_ / np.sqrt(variance + _real(options, "epsilon", 1e-5))
            chain.scale(factor, offset_ - mean * factor, ParameterSource(others[1][0], plus=mean * factor))
        else:
            raise NotNative(f"the operation {kind} is not understood.")

    def _constant(self, name: str, node: Any) -> Matrix:
        if name not in self.graph.constants:
            raise NotNative(f"node {node.op_type} joins two computed values, {self.current!r} and {name!r}.")
        return as_reals(self.graph.constants[name])


def _activation(node: Any, options: dict[str, Any]) -> Activation:
    if node.op_type == "Gelu":
        tanh = "approximate" in options and options["approximate"].s == b"tanh"
        return Activation("gelu_tanh" if tanh else "gelu")
    default = _DEFAULT_ALPHA.get(node.op_type, 0.0)
    return Activation(_ACTIVATIONS[node.op_type], options["alpha"].f if "alpha" in options else default)


def _integer(options: dict[str, Any], name: str) -> int:
    return int(options[name].i) if name in options else 0


def _real(options: dict[str, Any], name: str, default: float = 1.0) -> float:
    return float(options[name].f) if name in options else default
