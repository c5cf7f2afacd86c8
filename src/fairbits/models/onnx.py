"""ONNX graphs: dense feed-forward ones become native networks, all others run in ONNX Runtime.

Reading follows the one path from the input to the output; see ``chain.py`` for how operations fold into layers.
Converters of whole pipelines (skl2onnx) put encoders and scalers in front: that stem ends where the first product
begins. With a schema at hand it is run once for every value of every attribute, which gives the encoding tables.
Two or more outputs without a Softmax are read as logits; one output without a Sigmoid as a regression.

A graph is data, and ONNX Runtime runs it in a child process first, whose memory and time are limited. Two things are
looked at before: constants lie in the file or in its folder and nowhere else, and no *value* of a row decides how much
an operator makes, since a later row could then fill all memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import MAX_MODEL_BYTES, Codes, Decoder, Encoding, Schema, table_columns
from fairbits.errors import ModelError, foreign
from fairbits.models.base import needed
from fairbits.models.black_box import BlackBox, Reading
from fairbits.models.guards import checked_file, options_after_trial
from fairbits.models.inputs import encoding_of, random_people, slots_of
from fairbits.models.native.chain import Chain, Matrix, NotNative, ParameterSource
from fairbits.models.native.network import Activation, Network
from fairbits.models.options import ModelOptions, Output
from fairbits.models.outputs import (
    Loaded,
    Owner,
    column_note,
    output_kind_of,
    plain_note,
    plain_reading,
    read_note,
    read_output,
)

#: Kinds of ONNX tensors by number, as the format fixes them.
FLOATS, WHOLES, TEXT, TRUTH = frozenset({1, 10, 11}), frozenset({2, 3, 4, 5, 6, 7, 12, 13}), 8, 9
#: Operators by the inputs that say how much comes out.
_SIZED: dict[str, tuple[int, ...]] = {
    **{"ConstantOfShape": (0,), "Expand": (1,), "Range": (0, 1, 2), "Tile": (1,), "Pad": (1,), "OneHot": (1,)},
    **{"Resize": (2, 3), "Upsample": (1,), "Loop": (0,), "TopK": (1,)},
}
#: Under this name a file states which output speaks of the favourable class.
FAVOURABLE_KEY = "fairbits.favourable"


def import_onnx() -> Any:
    return needed("onnx", "onnx", "reading and writing ONNX files")


def read_proto(path: str | Path, max_model_bytes: int = MAX_MODEL_BYTES) -> Any:
    """A checked ONNX model, within the limits of what it declares."""
    onnx = import_onnx()
    with foreign(f"the network {str(path)!r} is not a readable ONNX file"):
        model = onnx.load(str(path), load_external_data=False)
        for tensor in _external(model):
            _check_place(tensor, Path(path), max_model_bytes)
        onnx.load_external_data_for_model(model, str(Path(path).parent))
        onnx.checker.check_model(model)
    return model


def side_files(path: Path) -> tuple[str, ...]:
    """Files beside a model that hold some of its weights, as ONNX may; paths from its folder."""
    from google.protobuf.message import DecodeError

    try:
        model = import_onnx().load(str(path), load_external_data=False)
    except DecodeError:  # said by whoever reads it
        return ()
    return tuple(sorted({_stated(tensor).get("location", "") for tensor in _external(model)}))


def _external(model: Any) -> Iterator[Any]:
    """The constants that are not in the file itself, those of graphs inside nodes included."""
    waiting = [model.graph, *model.functions]
    while waiting:
        graph = waiting.pop()
        held = [attribute for node in graph.node for attribute in node.attribute]
        tensors = [
            *getattr(graph, "initializer", ()),
            *(a.t for a in held),
            *(tensor for a in held for tensor in a.tensors),
        ]
        yield from (tensor for tensor in tensors if tensor.external_data)
        waiting += [inner for node in graph.node for inner in _subgraphs(node)]


def _subgraphs(node: Any) -> list[Any]:
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else []) + list(a.graphs)]


def _stated(tensor: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _check_place(tensor: Any, path: Path, max_model_bytes: int) -> None:
    """Data beside the model lies in its folder or below, and nowhere else; and it is there."""
    location = _stated(tensor).get("location", "")
    place, found = PurePosixPath(location), path.parent / location
    outside = place.is_absolute() or ".." in place.parts or "\\" in location or "\0" in location
    if outside or found.is_symlink() or not found.resolve().is_relative_to(path.parent.resolve()):
        raise ModelError(f"the ONNX file {str(path)!r} keeps constants outside its folder; save it as one file.")
    if not location or not found.is_file():
        raise ModelError(
            f"the ONNX file {str(path)!r} keeps constants in {location[:80]!r}, which is not there; put that file "
            f"beside it, or save the model as one file."
        )
    size = checked_file(found, max_model_bytes).stat().st_size
    stated = [_stated(tensor).get(name) or "0" for name in ("offset", "length")]
    if all(number.isdecimal() and len(number) < 20 for number in stated) and sum(map(int, stated)) > size:
        raise ModelError(
            f"the ONNX file {str(path)!r} keeps constants in {location[:80]!r}, which ends after {size:,} bytes where "
            f"{sum(map(int, stated)):,} are needed; copy both files again."
        )


def check_sizes(model: Any) -> None:
    """Refuse operators that make as much as a value of a row says."""
    held = {"", *(tensor.name for tensor in model.graph.initializer)}
    for nodes, fixed in [(model.graph.node, held), *((function.node, {""}) for function in model.functions)]:
        _check_sizes(nodes, fixed)


def _check_sizes(nodes: Any, fixed: set[str]) -> None:
    """``fixed`` are the values that no row decides; those that the nodes make are added."""
    for node in nodes:
        sizes = [node.input[i] for i in _SIZED.get(node.op_type, ()) if i < len(node.input)]
        if node.op_type == "Loop" and not sizes[0]:
            raise ModelError("its Loop has no number of turns, so nobody knows when it ends.")
        if not fixed.issuperset(sizes):
            raise ModelError(
                f"how much its {str(node.op_type)[:40]!r} makes is computed from the rows, so that a row could fill "
                f"all memory; export the model with fixed sizes."
            )
        inner = _subgraphs(node)
        for graph in inner:
            _check_sizes(graph.node, fixed | {tensor.name for tensor in graph.initializer})
        if node.op_type in {"Shape", "Size"} or (fixed.issuperset(node.input) and not inner):
            fixed.update(node.output)


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a graph: (n, width) values of a kind."""

    name: str
    kind: int
    width: int | None
    flat: bool = False  # (n,) and not (n, 1)


class Graph:
    """An ONNX graph cut down to what leads to its scores."""

    def __init__(self, model: Any):
        self.model = model
        graph = model.graph
        array = import_onnx().numpy_helper.to_array
        stated = [(node.output[0], a) for node in graph.node if node.op_type == "Constant" for a in node.attribute]
        self.constants: dict[str, npt.NDArray[Any]] = {one.name: array(one) for one in graph.initializer}
        self.constants |= {name: array(a.t) for name, a in stated if a.name == "value"}
        self.made_by = {name: node for node in graph.node for name in node.output if name}
        self.output = self._score_output()
        self.nodes = self.leading_to(self.output)
        used = {name for node in self.nodes for name in node.input} | {self.output}
        self.inputs = [_input(e) for e in graph.input if e.name not in self.constants and e.name in used]

    def leading_to(self, name: str) -> list[Any]:
        """The nodes that a value follows from, in order, without constants."""
        wanted, needed = [name], set()
        while wanted:
            node = self.made_by.get(wanted.pop())
            if node is None or node.op_type == "Constant" or node.output[0] in needed:
                continue
            needed.add(node.output[0])
            wanted += [source for source in node.input if source]
        return [node for node in self.model.graph.node if node.output and node.output[0] in needed]

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes, where a converter has left them in the graph."""
        inside = {node.output[0] for node in self.nodes}
        for node in reversed(self.model.graph.node):  # parts of a stack may have numbered them, before the whole does
            # A ZipMap has them, and without one the classifiers of ai.onnx.ml themselves.
            for labels in [a for a in node.attribute if a.name.startswith("classlabels_")]:
                names = tuple(s.decode() for s in labels.strings) or tuple(map(str, labels.ints))
                if names:
                    return names
            # What leads to the scores takes other values out of a list: the labels of neighbours.
            picks = node.op_type == "ArrayFeatureExtractor" and node.output[0] not in inside
            if picks and node.input[0] in self.constants:
                found = self.constants[node.input[0]].ravel().tolist()
                return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in found)
        return None

    def _score_output(self) -> str:
        """Of several outputs the one with probabilities: the last that holds reals; a ZipMap is seen through."""
        outputs = list(self.model.graph.output)
        for entry in reversed(outputs):
            node = self.made_by.get(entry.name)
            if node is not None and node.op_type == "ZipMap":
                return str(node.input[0])
        reals = [str(e.name) for e in outputs if e.type.tensor_type.elem_type in FLOATS]
        if not reals:
            raise ModelError(
                f"none of its outputs ({', '.join(e.name for e in outputs) or 'none'}) holds real numbers; export its "
                f"probabilities."
            )
        return [*reals, *(name for name in reals if "prob" in name.lower())][-1]


def piece(graph: Graph, nodes: list[Any], output: str) -> bytes:
    onnx = import_onnx()
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    constants = [node for node in graph.model.graph.node if node.op_type == "Constant"]
    keep = {node.output[0] for node in (*nodes, *constants)}
    kept = [node for node in graph.model.graph.node if node.output and node.output[0] in keep]
    used = {name for node in kept for name in node.input}
    for entries in (model.graph.input, model.graph.initializer):
        for entry in [e for e in entries if e.name not in used]:
            entries.remove(entry)
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(kept)
    model.graph.output.append(onnx.ValueInfoProto(name=output))
    return bytes(model.SerializeToString())


def _input(entry: Any) -> Input:
    shape = entry.type.tensor_type.shape.dim
    width = int(shape[1].dim_value) or None if len(shape) == 2 else (1 if len(shape) == 1 else None)
    return Input(entry.name, int(entry.type.tensor_type.elem_type), width, len(shape) == 1)


def stated_favourable(graph: Graph, options: ModelOptions) -> int | None:
    """Which output speaks of the favourable class, as the options or the file itself say; None where neither does."""
    stated = {entry.key: entry.value for entry in graph.model.metadata_props}.get(FAVOURABLE_KEY)
    if options.favourable is not None or stated is None:
        return options.favourable
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 10):
        raise ModelError(f"its favourable class is {stated[:40]!r}, which is no number; export it again.")
    return int(stated)


#: What leaves every value as it is.
_PASS = {"Identity", "Dropout", "Flatten", "Cast"}
_ACTIVATIONS = {"Relu": "relu", "LeakyRelu": "leaky_relu", "Tanh": "tanh", "Elu": "elu"}
_ACTIVATIONS |= {"Sigmoid": "sigmoid", "Softmax": "softmax"}
#: What a stem may do: look at one column at a time, and put columns side by side.
_COLUMNWISE = _PASS | {
    *("Concat", "Gather", "Reshape", "Unsqueeze", "Squeeze", "Add", "Sub", "Mul", "Div", "Where", "IsNaN", "Split"),
    *("OneHotEncoder", "Scaler", "LabelEncoder", "Imputer", "ArrayFeatureExtractor", "FeatureVectorizer"),
}  # fmt: skip


#: What its child process imports.
_NEEDS = ("onnx", "onnxruntime")


def read_onnx(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The model in an ONNX file: native where it can be, else in ONNX Runtime."""
    graph = named(path, options.max_model_bytes)
    try:
        return _native(graph, schema, options, path)
    except NotNative as error:
        return _running(graph, schema, options, path, str(error))
    except ModelError as error:
        raise ModelError(f"the ONNX file {str(path)!r} cannot be used: {error}") from None


def _running(graph: Graph, schema: Schema | None, options: ModelOptions, path: Path, why: str) -> Loaded:
    """The whole graph in ONNX Runtime, tried in a child first, and why it is not read."""
    try:
        check_sizes(graph.model)
        return run_graph(graph, schema, options_after_trial(path, schema, options, needs=_NEEDS), why)
    except ModelError as trouble:
        if str(trouble).startswith("the ONNX file"):  # said by the child process, which reads it the same way
            raise
        raise ModelError(
            f"the ONNX file {str(path)!r} is not a plain dense network: {why} Nor can it run as it is: {trouble}"
        ) from None


def named(path: str | Path, max_model_bytes: int = MAX_MODEL_BYTES) -> Graph:
    """The graph in a file; errors name the file."""
    proto = read_proto(path, max_model_bytes)
    try:
        with foreign("its graph is odd"):
            return Graph(proto)
    except ModelError as error:
        raise ModelError(f"the ONNX file {str(path)!r} cannot be used: {error}") from None


def _native(graph: Graph, schema: Schema | None, options: ModelOptions, path: Path) -> Loaded:
    with foreign("its graph is odd", NotNative):  # constants that do not fit pass ONNX's own checks
        reader = GraphReader(graph)
    network = read_output(reader.chain.network(stated_favourable(graph, options)), options)
    library = partial(_running, graph, schema, options, path)
    if not reader.stem or schema is None:
        return Loaded(network, None, graph.classes, owner=_owner(graph, None, library))
    check_sizes(graph.model)
    options_after_trial(path, schema, options, needs=_NEEDS)
    feeder, run = feeder_of(graph, schema, options), session_of(graph, reader.stem, reader.start)
    encoding = encoding_of(lambda codes: run(feeder(codes)), schema, schema.names)
    return Loaded(network, encoding, graph.classes, feeder.notes, owner=_owner(graph, feeder, library))


def _owner(graph: Graph, feed: Any, library: Callable[[str], Loaded]) -> Owner | None:
    """The whole graph in ONNX Runtime, asked about the rows of the network that was read of it, or about codes."""
    only = graph.inputs[0]
    if feed is None and (len(graph.inputs) != 1 or only.kind == TEXT):
        return None

    def ask(rows: Any) -> Any:
        given = {only.name: typed(np.asarray(rows), only)} if feed is None else feed(rows)
        return session_of(graph, graph.nodes, graph.output)(given)

    return Owner(ask, (), "inputs" if feed is None else "codes", library=library)


class GraphReader:
    """Walks the graph once. ``stem`` holds the encoders in front, if there are any, and ``start`` what they make."""

    def __init__(self, graph: Graph):
        self.graph, self.chain = graph, Chain()
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
        encoders = {"OneHotEncoder", "LabelEncoder", "Gather", "ArrayFeatureExtractor", "Concat"}
        straight = all(len([s for s in n.input if s not in self.graph.constants]) == 1 for n in before)
        if plain and straight and not any(n.op_type in encoders for n in before):
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
        elif node.op_type == "Gelu":
            tanh = "approximate" in options and options["approximate"].s == b"tanh"
            self.chain.function("gelu_tanh" if tanh else "gelu")
        elif node.op_type in _ACTIVATIONS:
            self.chain.function(_ACTIVATIONS[node.op_type], options["alpha"].f if "alpha" in options else None)
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
        shape = self.graph.constants.get(node.input[1], np.empty(0))
        return shape.tolist() in ([-1, self.chain.width], [0, -1], [0, self.chain.width])

    def _affine(self, node: Any, options: dict[str, Any]) -> None:
        """Fold a product, a sum, a scaling or a normalisation into the chain."""
        chain, kind = self.chain, node.op_type
        others = [(n, self._constant(n, node)) for n in node.input if n and n != self.current]
        first = node.input[0] == self.current
        if kind == "MatMul" and first:
            chain.multiply(others[0][1], ParameterSource(others[0][0]))
        elif kind == "Gemm" and first and not ("transA" in options and options["transA"].i):
            flip, gain = "transB" in options and bool(options["transB"].i), _real(options, "alpha")
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
            spread = np.sqrt(variance + _real(options, "epsilon", 1e-5))
            chain.normalise(mean, spread, gain_, offset_, others[1][0])
        else:
            raise NotNative(f"the operation {kind} is not understood.")

    def _constant(self, name: str, node: Any) -> Matrix:
        if name not in self.graph.constants:
            raise NotNative(f"node {node.op_type} joins two computed values, {self.current!r} and {name!r}.")
        array = self.graph.constants[name]
        if array.dtype.kind not in "fiub":
            raise ModelError(f"it computes with a constant of {array.dtype} where numbers were expected.")
        return np.asarray(array, dtype=np.float64)


def _real(options: dict[str, Any], name: str, default: float = 1.0) -> float:
    return float(options[name].f) if name in options else default


Feed = dict[str, npt.NDArray[Any]]
#: People on whom it is tried what a graph puts out.
_TRIAL = 64


def session_of(graph: Graph, nodes: list[Any], output: str) -> Callable[[Feed], npt.NDArray[Any]]:
    runtime = needed("onnxruntime", "onnx", "running an ONNX graph")
    quiet = runtime.SessionOptions()
    quiet.log_severity_level = 4  # it would write to stderr what it raises anyway
    with foreign("ONNX Runtime does not take the graph"):
        session = runtime.InferenceSession(piece(graph, nodes, output), quiet, providers=["CPUExecutionProvider"])
    return lambda feed: session.run([output], feed)[0]


@dataclass(frozen=True, slots=True)
class Feeder:
    """How people become the inputs of a graph: as encoded rows, and these as its inputs; and what is guessed."""

    encoding: Encoding
    feed: Callable[[npt.NDArray[Any]], Feed]
    notes: tuple[str, ...] = ()

    def __call__(self, codes: Codes) -> Feed:
        return self.feed(self.encoding.encode(codes))


def feeder_of(graph: Graph, schema: Schema, options: ModelOptions) -> Feeder:
    """What fills the inputs: one of all columns, one each from the columns of their names, else as [model.inputs]
    says."""
    inputs, names = graph.inputs, tuple(entry.name for entry in graph.inputs)
    if len(inputs) == 1:
        return _one_table(inputs[0], schema, options)
    wide = any(entry.width not in (None, 1) for entry in inputs)
    if not (options.columns or set(names) <= set(table_columns(schema))) or wide or options.inputs:
        return _by_slots(inputs, schema, options)
    columns = options.columns or names
    if len(inputs) != len(columns):
        raise ModelError(f"it has {len(inputs)} inputs, but {len(columns)} columns are listed.")
    decoder = Decoder(
        schema, columns, as_text=[name for name, one in zip(columns, inputs, strict=True) if one.kind == TEXT]
    )

    def feed(rows: npt.NDArray[Any]) -> Feed:
        columns = zip(inputs, (decoder.values(column, rows) for column in decoder.columns), strict=True)
        made = [(entry, typed(values, entry)) for entry, values in columns]
        return {entry.name: values if entry.flat else values[:, None] for entry, values in made}

    return Feeder(decoder.encoding, feed)


def _one_table(entry: Input, schema: Schema, options: ModelOptions) -> Feeder:
    """One input of all columns: one-hot where it is as wide as that and not as wide as the table."""
    known, hot = table_columns(schema), Encoding.one_hot(schema)
    if options.columns is None and entry.kind != TEXT and entry.width == hot.width != len(known):
        return Feeder(hot, lambda rows: {entry.name: typed(rows, entry)}, plain_note(hot, schema, options))
    columns = options.columns or known
    if options.columns is None and entry.width not in (None, len(known)):
        raise ModelError(
            f"its input takes {entry.width} columns, but the schema has {len(schema)} attributes "
            f"({', '.join(schema.names)}); list those that it sees under [model] columns."
        )
    decoder = Decoder(schema, columns, as_text=columns if entry.kind == TEXT else ())
    coded = entry.kind != TEXT and decoder.mixed  # categories whose labels are no numbers go in as their codes
    make = decoder.numbers if coded and len(decoder.columns) == len(decoder.names) else decoder.array
    notes = column_note(columns, options, how="categories as codes" if coded else "")
    return Feeder(decoder.encoding, lambda rows: {entry.name: typed(make(rows), entry)}, notes)


def _by_slots(inputs: list[Input], schema: Schema, options: ModelOptions) -> Feeder:
    slots, encoding = slots_of([entry.name for entry in inputs], [entry.width for entry in inputs], schema, options)

    def feed(rows: npt.NDArray[Any]) -> Feed:
        found: Feed = {}
        for entry, slot in zip(inputs, slots, strict=True):
            values = np.asarray(rows[:, slot.start : slot.stop])
            if entry.kind == TEXT:
                texts = [[schema[name].read(code) for code in values[:, i]] for i, name in enumerate(slot.attributes)]
                values = np.array(texts, dtype=object).T
            found[entry.name] = typed(values[:, 0] if entry.flat else values, entry)
        return found

    return Feeder(encoding, feed)


def run_graph(graph: Graph, schema: Schema | None, options: ModelOptions, why: str) -> Loaded:
    """The whole graph as a black box. Without a schema its rows are those of its single numeric input."""
    if not graph.inputs:
        raise ModelError("its output depends on none of its inputs.")
    run, only, reading = session_of(graph, graph.nodes, graph.output), graph.inputs[0], plain_reading(options)

    def box(feed: Callable[[npt.NDArray[Any]], Feed], width: int, reading: Reading) -> BlackBox:
        return BlackBox(
            lambda rows: run(feed(rows)), width, name="the ONNX model", batch=options.batch, reading=reading
        )

    if schema is None:
        if len(graph.inputs) != 1 or only.kind == TEXT or only.width is None:
            raise ModelError(
                f"its inputs ({', '.join(one.name for one in graph.inputs)}) are not one table of numbers; give the "
                f"schema that they belong to."
            )
        favourable = stated_favourable(graph, options)
        reading = replace(reading, favourable=favourable, reverse=favourable == 0)
        return Loaded(box(lambda rows: {only.name: typed(rows, only)}, only.width, reading), None, graph.classes)
    feeder = feeder_of(graph, schema, options)
    output = options.output
    if output is None and schema.classes and graph.classes is None:
        output = _put_out(graph, lambda rows: run(feeder(rows)), random_people(schema, _TRIAL))
    note = f"the model runs in ONNX Runtime and is not read as a network: {why.rstrip('.')}."
    notes = (note, *feeder.notes, *(read_note(output, options) if output == "logit" else ()))
    asked = box(feeder.feed, feeder.encoding.width, replace(reading, logits=output == "logit"))
    return Loaded(asked, feeder.encoding, graph.classes, notes)


def _put_out(graph: Graph, ask: Callable[[Any], npt.NDArray[Any]], rows: npt.NDArray[Any]) -> Output | None:
    """Logits, where the graph ends in neither a sigmoid nor a softmax and people's numbers are no probabilities."""
    end = graph.made_by.get(graph.output)
    if end is not None and end.op_type in {"Sigmoid", "Softmax", "HardSigmoid"}:
        return None
    try:
        found = np.asarray(ask(rows), dtype=np.float32).reshape(len(rows), -1)
    except Exception:  # noqa: BLE001 - random people may be none that it takes: the table decides
        return None
    return "logit" if np.isfinite(found).all() and output_kind_of(found, regression=False) == "logit" else None


def typed(values: npt.NDArray[Any], entry: Input) -> npt.NDArray[Any]:
    if entry.kind == TEXT:
        return np.array([str(v) for v in values.ravel()], dtype=object).reshape(values.shape)
    if entry.kind == TRUTH:
        return values.astype(np.bool_)
    if values.dtype == object:
        raise ModelError(
            f"its input {entry.name!r} takes numbers, but the attribute has labels; was it trained on codes?"
        )
    kinds: dict[int, type[np.generic]] = {1: np.float32, 10: np.float16, 11: np.float64, 6: np.int32, 7: np.int64}
    return values.astype(kinds.get(entry.kind, np.float32 if entry.kind in FLOATS else np.int64))


_OPERATIONS = {
    **{"relu": "Relu", "leaky_relu": "LeakyRelu", "tanh": "Tanh", "sigmoid": "Sigmoid", "elu": "Elu"},
    **{"gelu": "Gelu", "gelu_tanh": "Gelu", "identity": "Identity"},
}


def write_onnx(network: Network, path: str | Path) -> None:
    """Write a network as an ONNX file: Gemm and activation by turns, probabilities at the end."""
    onnx = import_onnx()
    helper, make = onnx.helper, onnx.numpy_helper.from_array
    nodes, constants, current = [], [], "inputs"
    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        constants += [make(w, f"W{i}"), make(b, f"b{i}")]
        nodes.append(helper.make_node("Gemm", [current, f"W{i}", f"b{i}"], [f"before{i}"]))
        current = f"after{i}"
        nodes += [activation_node(helper, one, f"before{i}", current) for one in network.activations_after[i : i + 1]]
    end = {"softmax": "Softmax", "sigmoid": "Sigmoid", "linear": "Identity"}[network.head]
    nodes.append(helper.make_node(end, [nodes[-1].output[0]], ["output"]))
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
    bent, gelu = {"alpha": activation.alpha}, {"gelu": {"approximate": "none"}, "gelu_tanh": {"approximate": "tanh"}}
    settings: dict[str, dict[str, Any]] = {"leaky_relu": bent, "elu": bent, **gelu}
    return helper.make_node(_OPERATIONS[activation.name], [source], [result], **settings.get(activation.name, {}))


def rewrite_onnx(network: Network, original: Path, path: Path, _options: ModelOptions) -> None:
    """Write the original graph with the network's weights: same shape, same encoders, other numbers."""
    graph = named(original)
    reader = GraphReader(graph)
    try:
        _reweigh(graph, reader.chain.parameters(network))
        path.write_bytes(graph.model.SerializeToString())
    except ModelError:
        if reader.stem:  # our own graph would begin behind these encoders
            raise
        write_onnx(network, path)


def _reweigh(graph: Graph, changed: Mapping[str, Matrix]) -> None:
    onnx = import_onnx()
    held = {constant.name: constant for constant in graph.model.graph.initializer}
    stated = [(node, a.t) for node in graph.model.graph.node for a in node.attribute if a.name == "value"]
    held |= {name: value for node, value in stated if node.op_type == "Constant" for name in node.output}
    for name, array in changed.items():
        old = onnx.numpy_helper.to_array(held[name])
        if old.size != array.size:
            raise ModelError(f"parameter {name!r} has {old.size} values in the original, but {array.size} are needed.")
        new = np.ascontiguousarray(array.reshape(old.shape), dtype=old.dtype)
        held[name].CopyFrom(onnx.numpy_helper.from_array(new, held[name].name))
    onnx.checker.check_model(graph.model)
