"""Finding one's way in an ONNX graph: constants, the output that holds the scores, and what leads up to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import MAX_MODEL_BYTES
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError
from fairbits.models.black_box import reason
from fairbits.models.onnx.limits import check_proto, places_of_data
from fairbits.models.options import ModelOptions

#: Kinds of ONNX tensors by number, as the format fixes them.
FLOATS, WHOLES, TEXT, TRUTH = frozenset({1, 10, 11}), frozenset({2, 3, 4, 5, 6, 7, 12, 13}), 8, 9
#: Under this name a file states which output speaks of the favourable class.
FAVOURABLE_KEY = "fairbits.favourable"


def import_onnx() -> ModuleType:
    """The onnx package, or how to get it."""
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError("onnx", "onnx", "reading and writing ONNX files") from None
    return onnx


def read_proto(path: str | Path, max_model_bytes: int = MAX_MODEL_BYTES) -> Any:
    """A checked ONNX model, within the limits of what it declares."""
    onnx = import_onnx()
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), load_external_data=False)
        check_proto(model, Path(path), max_model_bytes)
        onnx.load_external_data_for_model(model, str(Path(path).parent))
        onnx.checker.check_model(model)
    except FairbitsError:
        raise
    except (DecodeError, onnx.checker.ValidationError, ValueError, OSError, AttributeError, RuntimeError) as error:
        raise ModelError(f"the network {str(path)!r} is not a readable ONNX file: {reason(error)}") from None
    return model


def side_files(path: Path) -> tuple[str, ...]:
    """Files beside a model that hold some of its weights, as ONNX may; paths from its folder."""
    if path.suffix.lower() != ".onnx":
        return ()
    from google.protobuf.message import DecodeError

    try:
        return places_of_data(import_onnx().load(str(path), load_external_data=False), path)
    except DecodeError:  # said by whoever reads it
        return ()


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
        helper = import_onnx().numpy_helper
        graph = model.graph
        self.constants: dict[str, npt.NDArray[Any]] = {}
        for constant in graph.initializer:
            self.constants[constant.name] = helper.to_array(constant)
        for node in graph.node:
            if node.op_type == "Constant":
                value = next((a for a in node.attribute if a.name == "value"), None)
                if value is not None:
                    self.constants[node.output[0]] = helper.to_array(value.t)
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
    """Part of a graph as a model of its own."""
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


def as_reals(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """A constant as numbers."""
    if array.dtype.kind not in "fiub":
        raise ModelError(f"it computes with a constant of {array.dtype} where numbers were expected.")
    return np.asarray(array, dtype=np.float64)


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
