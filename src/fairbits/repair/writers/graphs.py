"""A native network with a guard, or with thresholds by group, as one ONNX graph: any runtime does what is done here.

For a guard the twins are made inside; for thresholds the nearest twin, and with it the group, is read from the inputs.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Lookup, Numeric, Schema
from fairbits.errors import CapabilityError, ModelError
from fairbits.models import Network, activation_node, import_onnx, write_graph
from fairbits.repair.proposals.guard import ROUNDING, Guard, least_size
from fairbits.repair.proposals.thresholds import TINY, GroupThresholds

#: Numbers that the twins' terms may take in a graph: beyond that it is slower than asking m times.
MAX_TERMS = 20_000_000

#: What the rules' operations are called in a graph.
_OPERATIONS = {
    "and": "And",
    "or": "Or",
    "not": "Not",
    "=": "Equal",
    "<": "Less",
    "<=": "LessOrEqual",
    ">": "Greater",
    ">=": "GreaterOrEqual",
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "neg": "Neg",
}
_HEADS = {"softmax": "Softmax", "sigmoid": "Sigmoid", "linear": "Identity"}


def write_onnx(model: Guard | GroupThresholds, path: str | Path, classes: list[Any]) -> None:
    """Write a guarded network as an ONNX graph: "output" has probabilities (or values), "label" the decided class.

    Averages and clips are done in double precision, as in :class:`~fairbits.Guard`. What protected inputs hold is of no
    account to the average; where it is nobody's (NaN, a value outside the schema), the average is the score.
    """
    if not isinstance(model.model, Network):
        raise CapabilityError(f"a graph is written of dense networks, and {type(model.model).__name__!r} is none.")
    if isinstance(model, GroupThresholds):
        graph = _Graph(import_onnx(), model.model)
        columns, encoded, shifts = model.by_inputs
        factors = graph.constant(np.exp(shifts[:, None] * graph.steps[None]), np.float64)
        factor = graph.node("Gather", [factors, graph.nearest(columns, encoded)], axis=0)
        output = graph.moved(graph.scored(), factor, TINY)
        words = {"fairbits.groups": model.coding.words}
        return graph.write(output, path, "fairbits-thresholds", words, model.schema, classes)
    if model.twin_rules is not None:
        model.twin_rules.check_gaps()
    terms = model.m * model.model.widths[0]
    if terms > MAX_TERMS:
        raise CapabilityError(
            f"the {model.m:,} twins need {terms:,} numbers, more than the {MAX_TERMS:,} of a graph; the Python "
            f"file holds them, and the distilled repair needs one score."
        )
    guarded = _GuardGraph(import_onnx(), model.model, model)
    centre = guarded.averaged()
    output = centre if model.tau == 0 else guarded.held(centre)
    return guarded.write(output, path, "fairbits-guard", {"fairbits.proof": model.proof}, model.schema, classes)


def write_tree(tree: dict[str, Any], path: str | Path, inputs: int, schema: Schema, classes: list[Any]) -> None:
    """Write a decision tree, as its Python file has it, as an ONNX graph with the same outputs."""
    shape: Any = SimpleNamespace(
        inputs=inputs, widths=(len(classes),), favourable=schema.favourable_index, head="softmax"
    )
    graph = _Graph(import_onnx(), shape)
    left, leaves = tree["left"], [place for place, below in enumerate(tree["left"]) if below < 0]
    # Inputs are float32: they are at most a threshold if and only if they are at most the next float32 below it.
    cuts = np.array(tree["threshold"], np.float32)
    cuts = np.where(cuts > np.array(tree["threshold"]), np.nextafter(cuts, np.float32(-np.inf)), cuts)
    each = len(classes)
    output = graph.node(
        "TreeEnsembleRegressor",
        ["inputs"],
        domain="ai.onnx.ml",
        n_targets=each,
        nodes_treeids=[0] * len(left),
        nodes_nodeids=list(range(len(left))),
        nodes_modes=["LEAF" if below < 0 else "BRANCH_LEQ" for below in left],
        nodes_featureids=[max(0, one) for one in tree["feature"]],
        nodes_values=cuts.tolist(),
        nodes_truenodeids=[max(0, one) for one in left],
        nodes_falsenodeids=[max(0, one) for one in tree["right"]],
        target_treeids=[0] * (each * len(leaves)),
        target_nodeids=[leaf for leaf in leaves for _ in range(each)],
        target_ids=list(range(each)) * len(leaves),
        target_weights=[share for leaf in leaves for share in tree["values"][leaf]],
    )
    graph.write(output, path, "fairbits-tree", {}, schema, classes)


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self, onnx: Any, network: Network):
        self._onnx, self.network = onnx, network
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def write(
        self, output: str, path: str | Path, name: str, properties: dict[str, str], schema: Schema, classes: list[Any]
    ) -> None:
        """Check the graph that ends in ``output`` and write it, with the decided classes beside."""
        onnx = self._onnx
        output = self.node("Cast", [output], to=onnx.TensorProto.FLOAT)
        self.nodes.append(onnx.helper.make_node("Identity", [output], ["output"]))
        more: tuple[Any, ...] = ()
        if classes:
            kind = self._decided(output, schema, classes)
            more = (onnx.helper.make_tensor_value_info("label", kind, ["people"]),)
            rule = schema.rule
            said = {"classes": classes, "favourable": classes[rule.favourable], "threshold": rule.threshold}
            properties = {**properties, "fairbits.decision": json.dumps(said)}
        write_graph(self.network, self.nodes, self.constants, path, name=name, properties=properties, outputs=more)

    def _decided(self, output: str, schema: Schema, classes: list[Any]) -> int:
        """The node "label": the decided class of each row, with its own type, which is returned."""
        onnx, rule = self._onnx, schema.rule
        if self.network.head == "softmax":
            favoured = self.node("Gather", [output, self.constant(rule.favourable, np.int64)], axis=1)
        else:
            favoured = self.node("Squeeze", [output, self.constant([1], np.int64)])
            if rule.favourable == 0:
                favoured = self.node("Sub", [self.constant(1.0), favoured])
        if len(classes) == 2:
            chosen = self.node("GreaterOrEqual", [favoured, self.constant(rule.threshold)])
            place = self.node(
                "Where",
                [chosen, self.constant(rule.favourable, np.int64), self.constant(1 - rule.favourable, np.int64)],
            )
        else:
            top = self.node("ReduceMax", [output, self.constant([1], np.int64)], keepdims=0)
            place = self.node(
                "Where",
                [
                    self.node("GreaterOrEqual", [favoured, top]),
                    self.constant(rule.favourable, np.int64),
                    self.node("ArgMax", [output], axis=1, keepdims=0),
                ],
            )
        kinds = {type(one) for one in classes}
        values, kind = np.array([str(one) for one in classes], object), onnx.TensorProto.STRING
        for own, dtype, number in ((bool, np.bool_, "BOOL"), (int, np.int64, "INT64"), (float, np.float64, "DOUBLE")):
            if kinds == {own}:
                values, kind = np.array(classes, dtype), getattr(onnx.TensorProto, number)
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(values, name))
        self.nodes.append(onnx.helper.make_node("Gather", [name, place], ["label"], axis=0))
        return int(kind)

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=dtype, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    @property
    def steps(self) -> npt.NDArray[np.float64]:
        """Which way the log-odds of each output go when those of the favourable class rise."""
        signs = np.array([1.0 if self.network.favourable == c else -1.0 for c in range(2)])
        return signs if self.network.head == "softmax" else signs[1:]

    def scored(self, inputs: str = "inputs") -> str:
        """The person's own output, in double precision."""
        before = self.node("MatMul", [inputs, self.constant(self.network.weights[0])])
        return self._rest(self.node("Add", [before, self.constant(self.network.biases[0])]))

    def nearest(self, columns: npt.NDArray[np.int64], table: npt.NDArray[np.float64]) -> str:
        """The row of the table that lies nearest to these inputs, (people,)."""
        own = self.node("Gather", ["inputs", self.constant(columns, np.int64)], axis=1)
        own = self.node("Cast", [own], to=self._onnx.TensorProto.DOUBLE)
        own = self.node("Unsqueeze", [own, self.constant([1], np.int64)])
        apart = self.node("Sub", [own, self.constant(table[None], np.float64)])
        apart = self.node("ReduceSum", [self.node("Mul", [apart, apart]), self.constant([2], np.int64)], keepdims=0)
        return self.node("ArgMin", [apart], axis=1, keepdims=0)

    def moved(self, output: str, factor: str, tiny: float) -> str:
        """Outputs whose odds are multiplied: p ← p·f / (1 − p + p·f), without logarithms."""
        inside = self.node("Clip", [output, self.constant(tiny, np.float64), self.constant(1 - tiny, np.float64)])
        odds = self.node("Div", [inside, self.node("Sub", [self.constant(1.0, np.float64), inside])])
        odds = self.node("Mul", [odds, factor])
        return self.node("Div", [odds, self.node("Add", [odds, self.constant(1.0, np.float64)])])

    def _rest(self, before: str) -> str:
        """From the sums of the first layer to the output after the head, in double precision."""
        network, current = self.network, before
        for i in range(1, len(network.weights)):
            node = activation_node(self._onnx.helper, network.activations_after[i - 1], current, f"v{len(self.nodes)}")
            current = f"v{len(self.nodes)}"
            self.nodes.append(node)
            current = self.node("MatMul", [current, self.constant(network.weights[i])])
            current = self.node("Add", [current, self.constant(network.biases[i])])
        head = {"axis": -1} if network.head == "softmax" else {}
        return self.node("Cast", [self.node(_HEADS[network.head], [current], **head)], to=self._onnx.TensorProto.DOUBLE)


class _GuardGraph(_Graph):
    """The average over the twins, and what is held within reach of it."""

    def __init__(self, onnx: Any, network: Network, guard: Guard):
        super().__init__(onnx, network)
        self.guard = guard

    def averaged(self) -> str:
        """The average over the twins: what they share is computed once, what they add is a table."""
        guard, network = self.guard, self.network
        first = network.weights[0].astype(np.float64)
        terms = guard.twin_inputs.astype(np.float64) @ first[guard.protected_inputs] + network.biases[0]
        free = np.setdiff1d(np.arange(network.inputs), guard.protected_inputs)
        others = self.node("Gather", ["inputs", self.constant(free, np.int64)], axis=1)
        shared = self.node("MatMul", [others, self.constant(network.weights[0][free])])
        shared = self.node("Unsqueeze", [shared, self.constant([1], np.int64)])
        found = self._rest(self.node("Add", [shared, self.constant(terms[None])]))
        weighted = self.node("Mul", [found, self._shares()])
        return self._moved(self.node("ReduceSum", [weighted, self.constant([1], np.int64)], keepdims=0))

    def held(self, centre: str) -> str:
        """The person's own output within reach of the average; the average for somebody without protected values."""
        guard = self.guard
        known = self._known()
        mask = np.zeros((1, self.network.inputs), bool)
        mask[0, guard.protected_inputs] = True
        someone = np.zeros((1, self.network.inputs), np.float32)
        someone[0, guard.protected_inputs] = guard.twin_inputs[0]
        keep = self.node("Or", [known, self.node("Not", [self.constant(mask, np.bool_)])])
        inputs = self.node("Where", [keep, "inputs", self.constant(someone)])
        return self.node("Where", [known, self.clipped(self._moved(self.scored(inputs)), centre), centre])

    def _known(self) -> str:
        """Whether every protected attribute has a value of the schema, (people, 1)."""
        known = ""
        for part, domain in self.guard.protected_parts:
            own = self.node("Gather", ["inputs", self.constant(part.columns, np.int64)], axis=1)
            own = self.node("Cast", [own], to=self._onnx.TensorProto.DOUBLE)
            if isinstance(part, Numeric):
                low, high = (self.constant(end, np.float64) for end in domain)
                mine = self.node(
                    "And", [self.node("GreaterOrEqual", [own, low]), self.node("LessOrEqual", [own, high])]
                )
            else:
                apart = self.node("Unsqueeze", [own, self.constant([1], np.int64)])
                apart = self.node("Abs", [self.node("Sub", [apart, self.constant(part.table[None], np.float64)])])
                apart = self.node("ReduceSum", [apart, self.constant([2], np.int64)], keepdims=0)
                near = self.node("LessOrEqual", [apart, self.constant(1e-6, np.float64)])  # never true of NaN
                near = self.node("Cast", [near], to=self._onnx.TensorProto.INT64)
                near = self.node("ReduceMax", [near, self.constant([1], np.int64)], keepdims=1)
                mine = self.node("Cast", [near], to=self._onnx.TensorProto.BOOL)
            known = self.node("And", [known, mine]) if known else mine
        return known

    def _shares(self) -> str:
        """The twins' weights, (people or 1, m, 1): over those that can exist; over all where none can."""
        weights = self.constant(self.guard.weights[None], np.float64)
        rules = self.guard.twin_rules
        if rules is None:
            return self.node("Unsqueeze", [weights, self.constant([2], np.int64)])
        columns = {c: self.constant(values[None], np.float64) for c, values in rules.twins.items()}
        columns |= {c: self._decoded(part, whole) for c, (part, whole) in rules.seen.items()}
        operations: dict[str, Any] = {name: partial(self._applied, kind) for name, kind in _OPERATIONS.items()}
        operations["!="] = lambda a, b: self.node("Not", [self.node("Equal", [a, b])])
        valid = rules.evaluate(columns, operations, lambda value: self.constant([[value]], np.float64))
        zero = self.constant(0.0, np.float64)
        left = self.node("Where", [valid, weights, zero])
        total = self.node("ReduceSum", [left, self.constant([1], np.int64)], keepdims=1)
        some = self.node("Greater", [total, zero])
        left = self.node("Where", [some, left, weights])
        total = self.node("ReduceSum", [left, self.constant([1], np.int64)], keepdims=1)
        return self.node("Unsqueeze", [self.node("Div", [left, total]), self.constant([2], np.int64)])

    def _applied(self, kind: str, *operands: str) -> str:
        return self.node(kind, list(operands))

    def _decoded(self, part: Numeric | Lookup, whole: bool) -> str:
        """The codes of an attribute, (people, 1), read back from the inputs."""
        own = self.node("Gather", ["inputs", self.constant(part.columns, np.int64)], axis=1)
        own = self.node("Cast", [own], to=self._onnx.TensorProto.DOUBLE)
        if isinstance(part, Numeric):
            own = self.node("Div", [own, self.constant(part.scale or 1.0, np.float64)])
            own = self.node("Add", [own, self.constant(part.shift, np.float64)])
            return self.node("Round", [own]) if whole else own
        apart = self.node("Unsqueeze", [own, self.constant([1], np.int64)])
        apart = self.node("Abs", [self.node("Sub", [apart, self.constant(part.table[None], np.float64)])])
        apart = self.node("ReduceSum", [apart, self.constant([2], np.int64)], keepdims=0)
        place = self.node("Cast", [self.node("ArgMin", [apart], axis=1, keepdims=1)], to=self._onnx.TensorProto.DOUBLE)
        return self.node("Add", [place, self.constant(float(part.low), np.float64)])

    def clipped(self, own: str, centre: str) -> str:
        """``centre + min(1, room / max|own − centre|) · (own − centre)``."""
        apart = self.node("Sub", [own, centre])
        far = self.node("ReduceMax", [self.node("Abs", [apart]), self.constant([-1], np.int64)], keepdims=1)
        size = self.node("Abs", [centre])
        if self.network.widths[-1] > 1:
            size = self.node("ReduceMax", [size, self.constant([-1], np.int64)], keepdims=1)
        size = self.node("Max", [size, self.constant(least_size(self.guard.tau), np.float64)])
        hair = self.node("Mul", [size, self.constant(ROUNDING, np.float64)])
        room = self.node("Sub", [self.constant(self.guard.tau, np.float64), hair])
        room = self.node("Max", [room, self.constant(0.0, np.float64)])
        far = self.node("Max", [far, self.constant(np.finfo(np.float64).tiny, np.float64)])
        factor = self.node("Min", [self.node("Div", [room, far]), self.constant(1.0, np.float64)])
        return self.node("Add", [centre, self.node("Mul", [factor, apart])])

    def _moved(self, output: str) -> str:
        """The favourable class's log-odds moved by the shift (a regression: its values)."""
        shift, network = self.guard.shift, self.network
        if shift == 0:
            return output
        if network.head == "linear":
            return self.node("Add", [output, self.constant(shift, np.float64)])
        if network.classes != 2:
            raise ModelError(f"a shift is for two classes, and this network has {network.classes}.")
        return self.moved(output, self.constant(np.exp(shift * self.steps)[None], np.float64), 1e-9)
