"""Finding one's way in an ONNX graph: constants, the output that holds the scores, and what leads up to it.

A graph is data, and ONNX Runtime runs it in a child process first, whose memory and time are limited. Two things are
looked at before: constants lie in the file or in its folder and nowhere else, and no *value* of a row decides how much
an operator makes, since a later row could then fill all memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.typing as npt

from fairbits.domain import MAX_MODEL_BYTES
from fairbits.errors import ModelError
from fairbits.models.base import needed
from fairbits.models.black_box import foreign
from fairbits.models.guards import check_file
from fairbits.models.options import ModelOptions

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
    check_file(found, max_model_bytes)
    stated = [_stated(tensor).get(name) or "0" for name in ("offset", "length")]
    size = found.stat().st_size
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
        for node in self.model.graph.node:
            # A ZipMap has them, and without one the classifiers of ai.onnx.ml themselves.
            for labels in [a for a in node.attribute if a.name.startswith("classlabels_")]:
                names = tuple(s.decode() for s in labels.strings) or tuple(map(str, labels.ints))
                if names:
                    return names
            if node.op_type == "ArrayFeatureExtractor" and node.input[0] in self.constants:
                return tuple(_text(value) for value in self.constants[node.input[0]].ravel().tolist())
        return None

    def _score_output(self) -> str:
        """Of several outputs the one with probabilities: the last that holds reals; a ZipMap is seen through."""
        outputs = list(self.model.graph.output)
        for entry in reversed(outputs):
            node = self.made_by.get(entry.name)
            if node is not None and node.op_type == "ZipMap":
                return str(node.input[0])
        reals = [e.name for e in outputs if e.type.tensor_type.elem_type in FLOATS]
        if not reals:
            held = ", ".join(e.name for e in outputs) or "none"
            raise ModelError(f"none of its outputs ({held}) holds real numbers; export its probabilities.")
        named = [name for name in reals if "prob" in name.lower()]
        return str((named or reals)[-1])


def piece(graph: Graph, nodes: list[Any], output: str) -> bytes:
    onnx = import_onnx()
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    constants = [node for node in graph.model.graph.node if node.op_type == "Constant"]
    keep = {node.output[0] for node in (*nodes, *constants)}
    kept = [node for node in graph.model.graph.node if node.output and node.output[0] in keep]
    used = {name for node in kept for name in node.input}
    for entries, wanted in ((model.graph.input, used), (model.graph.initializer, used)):
        for entry in [e for e in entries if e.name not in wanted]:
            entries.remove(entry)
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(kept)
    model.graph.output.append(onnx.ValueInfoProto(name=output))
    return bytes(model.SerializeToString())


def _input(entry: Any) -> Input:
    shape = entry.type.tensor_type.shape.dim
    width = int(shape[1].dim_value) or None if len(shape) == 2 else (1 if len(shape) == 1 else None)
    return Input(entry.name, int(entry.type.tensor_type.elem_type), width, len(shape) == 1)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def stated_favourable(graph: Graph, options: ModelOptions) -> int | None:
    """Which output speaks of the favourable class, as the options or the file itself say; None where neither does."""
    if options.favourable is not None:
        return options.favourable
    stated = {entry.key: entry.value for entry in graph.model.metadata_props}.get(FAVOURABLE_KEY)
    if stated is None:
        return None
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 10):
        raise ModelError(f"its favourable class is {stated[:40]!r}, which is no number; export it again.")
    return int(stated)
