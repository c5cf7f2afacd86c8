"""What an ONNX graph declares, held against limits before anything computes it: tensors, nodes, operators.

Most operators make no more of their inputs than a product of them. A few make as much as a *value* says (a shape, a
count): there the value must be a constant within the limit, or follow from shapes alone, so that no row of a table
decides how much memory or time is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from fairbits.errors import ModelError
from fairbits.models.limits import too_large

_MAX_NODES = 100_000
_MAX_DEPTH = 8
_MAX_TURNS = 100_000
_NUMBER = 8
_DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}
#: Operators by the inputs that say how much comes out.
_SIZED: dict[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Range": (0, 1, 2),
    "Tile": (1,),
    "Pad": (1,),
    "OneHot": (1,),
    "Resize": (2, 3),
    "Upsample": (1,),
    "Loop": (0,),
    "TopK": (1,),
    "Trilu": (),
    "EyeLike": (),
}
#: What models of tables are made of. Anything else (random numbers, sequences, images, audio) is refused.
_KNOWN = frozenset(_SIZED) | {
    *("Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "AveragePool"),
    *("BatchNormalization", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike"),
    *("Ceil", "Celu", "Clip", "Compress", "Concat", "Constant", "Conv", "Cos", "Cosh", "CumSum", "DequantizeLinear"),
    *("Det", "Div", "Dropout", "DynamicQuantizeLinear", "Einsum", "Elu", "Equal", "Erf", "Exp", "Flatten", "Floor"),
    *("GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "Greater"),
    *("GreaterOrEqual", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "If", "IsInf"),
    *("InstanceNormalization", "IsNaN", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log"),
    *("LogSoftmax", "LpNormalization", "MatMul", "MatMulInteger", "Max", "MaxPool", "Mean", "Min", "Mish", "Mod"),
    *("MeanVarianceNormalization", "Mul", "Neg", "NonZero", "Not", "Or", "PRelu", "Pow", "QuantizeLinear", "RNN"),
    *("QLinearMatMul", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("RMSNormalization", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape"),
    *("ReverseSequence", "Round", "Scan", "ScatterElements", "ScatterND", "Scatter", "Selu", "Shape", "Shrink"),
    *("Sigmoid", "Sign", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Softsign", "Split", "Sqrt"),
    *("Squeeze", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Transpose", "Unique"),
    *("Unsqueeze", "Where", "Xor", "ArrayFeatureExtractor", "Binarizer", "CategoryMapper", "DictVectorizer"),
    *("FeatureVectorizer", "Imputer", "LabelEncoder", "LinearClassifier", "LinearRegressor", "Normalizer"),
    *("OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier"),
    *("TreeEnsembleRegressor", "ZipMap"),
}  # fmt: skip
#: Where a value becomes a size: behind these, the rows' values no longer count, only how many there are.
_SIZES = {"Shape", "Size"}


def check_proto(model: Any, path: Path, max_model_bytes: int) -> None:
    """Refuse a graph with more nodes or larger tensors than granted, and data outside the model's folder."""
    nodes = total = 0
    for graph in _graphs(model, path):
        nodes += len(graph.node)
        if nodes > _MAX_NODES:
            raise ModelError(f"the ONNX file {str(path)!r} has more than {_MAX_NODES:,} nodes; export a smaller model.")
        if graph.sparse_initializer:
            raise ModelError(f"the ONNX file {str(path)!r} has sparse constants, which are not read; export others.")
        for tensor in _tensors(graph):
            if any(size < 0 for size in tensor.dims):
                raise ModelError(f"the ONNX file {str(path)!r} has a constant of shape {list(tensor.dims)[:8]}.")
            total += math.prod(tensor.dims) * _NUMBER
            if total > max_model_bytes:
                raise too_large(path, f"constants of {total:,} bytes", max_model_bytes)
            if tensor.external_data:
                _check_place(tensor, path)
    if nodes + _inlined(model) > _MAX_NODES:
        raise ModelError(f"the ONNX file {str(path)!r} has functions that unfold to more than {_MAX_NODES:,} nodes.")


def check_operators(model: Any, nodes: list[Any], max_model_bytes: int) -> None:
    """Refuse operators that are not known, or that could make more than granted."""
    scope = _Scope(model.graph, nodes)
    scope.functions = {function.name for function in model.functions}
    _check_nodes(nodes, scope, max_model_bytes)
    for function in model.functions:
        _check_nodes(list(function.node), _Scope(function, list(function.node)), max_model_bytes, functions=True)


def _check_nodes(nodes: list[Any], scope: _Scope, limit: int, *, functions: bool = False) -> None:
    for node in nodes:
        if node.domain in _DOMAINS:
            if node.op_type not in _KNOWN:
                raise ModelError(f"its operator {_shown(node)} is not one of those that models of tables are made of.")
            if node.op_type in _SIZED:
                _check_sized(node, scope, limit, functions=functions)
        elif node.op_type not in scope.functions and not functions:
            raise ModelError(f"its operator {_shown(node)} of {node.domain[:60]!r} is not known.")
        for graph in _subgraphs(node):
            _check_nodes(list(graph.node), _Scope(graph, list(graph.node), scope), limit, functions=functions)


def _check_sized(node: Any, scope: _Scope, limit: int, *, functions: bool) -> None:
    """The inputs that say how much comes out must be constants within the limit, or follow from shapes."""
    places = [node.input[i] for i in _SIZED[node.op_type] if i < len(node.input) and node.input[i]]
    if node.op_type == "Loop" and not places:
        raise ModelError("its Loop has no number of turns, so nobody knows when it ends.")
    values = [scope.constant(name) for name in places]
    for name, value in zip(places, values, strict=True):
        if value is None and (functions or node.op_type == "Loop" or scope.from_values(name)):
            raise ModelError(
                f"how much its {_shown(node)} makes is computed from the rows, so that a row could fill all memory; "
                f"export the model with fixed sizes."
            )
    whole = [value.astype(np.float64) for value in values if value is not None and value.dtype.kind in "fiub"]
    if len(whole) < len(places) or not whole:
        return
    count = _count(node.op_type, whole)
    allowed = _MAX_TURNS if node.op_type == "Loop" else limit / _NUMBER
    if not count <= allowed:
        raise ModelError(f"its {_shown(node)} makes {count:.3g} values, and {allowed:,.0f} are allowed.")


def _count(kind: str, values: list[Any]) -> float:
    if kind == "Range":
        start, stop, step = (float(value.ravel()[0]) for value in values)
        return abs((stop - start) / step) if step else math.inf
    return float(np.prod(np.maximum(np.abs(values[0]), 1.0))) if kind != "Pad" else float(np.abs(values[0]).sum())


class _Scope:
    """The values that nodes can see: constants, what each node makes, and the scope around."""

    def __init__(self, graph: Any, nodes: list[Any], outer: _Scope | None = None):
        from fairbits.models.onnx.graph import import_onnx

        self._helper = import_onnx().numpy_helper
        self._tensors = {tensor.name: tensor for tensor in getattr(graph, "initializer", ())}
        self._made = {name: node for node in (*graph.node, *nodes) for name in node.output if name}
        self._outer = outer
        self.functions: set[str] = set() if outer is None else outer.functions
        self._known: dict[str, bool] = {}

    def constant(self, name: str) -> Any:
        """The value of a name that no input can change, where it is written down; None otherwise."""
        if name in self._tensors:
            return self._helper.to_array(self._tensors[name])
        node = self._made.get(name)
        if node is None:
            return None if self._outer is None else self._outer.constant(name)
        if node.op_type != "Constant" or not node.attribute:
            return None
        held = node.attribute[0]
        if held.name == "value":
            return self._helper.to_array(held.t)
        values = {"value_int": [held.i], "value_ints": held.ints, "value_float": [held.f], "value_floats": held.floats}
        return np.array(list(values[held.name])) if held.name in values else None

    def from_values(self, name: str) -> bool:
        """Whether a value depends on what stands in the rows, and not only on how many there are."""
        waiting, seen = [name], set()
        while waiting:
            current = waiting.pop()
            if current in seen or not current:
                continue
            seen.add(current)
            node = self._made.get(current)
            if node is not None and node.op_type not in _SIZES:
                if any(True for _ in _subgraphs(node)):
                    return True
                waiting += list(node.input)
            elif node is None and current not in self._tensors and self._outer_from_values(current):
                return True
        return False

    def _outer_from_values(self, name: str) -> bool:
        return True if self._outer is None else self._outer.from_values(name)


def _graphs(model: Any, path: Path) -> Iterator[Any]:
    """The graph and all graphs inside its nodes."""
    waiting = [(model.graph, 0)]
    while waiting:
        graph, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise ModelError(f"the ONNX file {str(path)!r} has graphs nested more than {_MAX_DEPTH} deep.")
        yield graph
        waiting += [(inner, depth + 1) for node in graph.node for inner in _subgraphs(node)]


def _subgraphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def places_of_data(model: Any, path: Path) -> tuple[str, ...]:
    """Where constants lie that are not in the file itself, as paths from its folder."""
    tensors = (tensor for graph in _graphs(model, path) for tensor in _tensors(graph) if tensor.external_data)
    return tuple(sorted({_stated(tensor).get("location", "") for tensor in tensors}))


def _stated(tensor: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _check_place(tensor: Any, path: Path) -> None:
    """Data beside the model lies in its folder or below, and nowhere else; and it is there."""
    stated = _stated(tensor)
    location = stated.get("location", "")
    place = PurePosixPath(location)
    found = path.parent / place
    outside = place.is_absolute() or ".." in place.parts or "\\" in location or "\0" in location
    if outside or found.is_symlink() or not found.resolve().is_relative_to(path.parent.resolve()):
        raise ModelError(f"the ONNX file {str(path)!r} keeps constants outside its folder; save it as one file.")
    if not location or not found.is_file():
        raise ModelError(
            f"the ONNX file {str(path)!r} keeps constants in {location[:80]!r}, which is not there; put that file "
            f"beside it, or save the model as one file."
        )
    first, count = (stated.get(name, "0") or "0" for name in ("offset", "length"))
    if not (first.isdecimal() and count.isdecimal() and len(first + count) < 40):
        raise ModelError(
            f"the ONNX file {str(path)!r} has constants at {first[:20]!r}, which is no place; save it again."
        )
    size = found.stat().st_size
    if int(first) + int(count) > size:
        raise ModelError(
            f"the ONNX file {str(path)!r} keeps constants in {location[:80]!r}, which ends after {size:,} bytes where "
            f"{int(first) + int(count):,} are needed; copy both files again."
        )


def _inlined(model: Any) -> int:
    """How many nodes the model's functions unfold to, each call counted."""
    bodies = {(function.domain, function.name): function for function in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(key: tuple[str, str], depth: int) -> int:
        if key in sizes or key not in bodies:
            return sizes.get(key, 0)
        if depth > _MAX_DEPTH * 4:
            return _MAX_NODES + 1
        sizes[key] = _MAX_NODES + 1  # a function that calls itself never ends
        found = 0
        for node in bodies[key].node:
            found += 1 + size((node.domain, node.op_type), depth + 1)
            if found > _MAX_NODES:
                break
        sizes[key] = found
        return found

    return sum(size((node.domain, node.op_type), 0) for node in model.graph.node)


def _shown(node: Any) -> str:
    return repr(str(node.op_type)[:40])
