"""Models behind a guard or thresholds by group (and small trees) as files of their own: in Python, and as ONNX graphs.

A Python file is the text of ``standalone`` and the facts about one model. In a graph the arithmetic is the guard's own:
NumPy's functions on a `Traced` value add nodes to it. For a guard the twins are made inside; for thresholds the nearest
twin, and with it the group, is read from the inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fairbits.domain import Doubles, Encoding, Integers, Lookup, Numeric, Schema, Unseen, table_columns
from fairbits.errors import CapabilityError
from fairbits.models import HasClassScores, Network, activation_node, import_onnx, write_graph
from fairbits.repair.proposals.guard import Guard, moved
from fairbits.repair.proposals.mitigators import TINY, GroupThresholds, twin_cuts
from fairbits.repair.proposals.tree import tree_words
from fairbits.repair.writers import standalone
from fairbits.repair.writers.check import (
    About,
    asked,
    attribute_facts,
    by_inputs,
    protected_facts,
    twin_columns,
)
from fairbits.subject import Subject

_HEAD = '''"""{what}

{proof}

    from repaired import {name}
    model = {name}({argument})
    model.predict(table)                # the decided class of each row ({classes}), or the predicted value
    model.predict_proba(table)          # probabilities, in the order of model.classes_
    model.scores(table)                 # the score of {favourable}{threshold}

A table is a pandas DataFrame, a dict of equally long lists, or a list of dicts, with the columns and values of the
table that the model was audited with; other columns are passed over. {declared}
{needs}
"""
'''


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """The facts of one Python file."""

    name: str
    what: str
    proof: str
    declared: str
    data: dict[str, Any]

    @property
    def needs_model(self) -> bool:
        """Whether it must be handed the model."""
        return self.data["model"]["network"] is None and self.data["model"]["file"] is None

    def without_file(self) -> Script:
        """The same, handed the model by its owner."""
        return replace(self, data={**self.data, "model": {**self.data["model"], "file": None}})

    def write(self, path: Path) -> None:
        """Write the file."""
        about, classes = self.data["model"], self.data["classes"]
        give = about["give"] or "hand it over as it was given to fairbits"
        favourable = repr(classes[self.data["favourable"]]) if classes else "the predicted value"
        cut = f"; favourable from {self.data['threshold']:.15g} on" if len(classes) == 2 else ""
        needs = "Needs NumPy alone: the model is in this file."
        if about["file"] is not None:
            needs = f"The model is in {about['file']} beside this file, and asked through its own library."
        elif self.needs_model:
            needs = f"The model is not in this file: {give}."
        head = _HEAD.format(
            what=self.what,
            proof="\n".join(_harmless(line) for line in self.proof.splitlines()),
            name=self.name,
            argument="model" if self.needs_model else "",
            classes=_harmless(", ".join(map(repr, classes))),
            favourable=_harmless(favourable),
            threshold=cut,
            declared=self.declared,
            needs=_harmless(needs),
        )
        facts = {**self.data, "model": {**about, "give": f"{self.name}(model) wants the model: {give}."}}
        text = json.dumps(facts, ensure_ascii=True).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        source = Path(standalone.__file__).read_text(encoding="utf-8").split('"""\n', 1)[1]
        path.write_text(head + source.replace('json.loads("{}")', f'json.loads("""{text}""")'), encoding="utf-8")

    def function(self, subject: Subject) -> Callable[[Any], Any]:
        """What its owner hands over, made from the audited model: a function of a table that gives the scores."""
        codes = by_inputs(subject.schema, Encoding.identity(subject.schema, dtype=np.float64), [])
        whole = len(subject.schema.classes) > 2 and isinstance(subject.model, HasClassScores)

        def scores(table: Any) -> Any:
            inputs = subject.encoding.encode(standalone.inputs_of(standalone.tabled(table), codes))
            model: Any = subject.model
            return model.class_scores(inputs) if whole else model.scores(inputs)

        return scores


def _harmless(text: str) -> str:
    """Text from outside in a docstring: it ends none, and escapes nothing."""
    return "".join(" " if not one.isprintable() else one for one in text).replace("\\", "/").replace('"', "'")


def script_of(model: Guard | GroupThresholds, classes: list[Any], about: About | None = None) -> Script:
    """The facts about a model: in the file itself, in one beside it, or handed over as a function of a frame."""
    schema = model.schema
    if about is None:
        speaks = {"link": None, "order": list(range(len(classes))), "speaks": schema.favourable_index}
        gives = "the value" if not classes else f"the probability of {classes[schema.favourable_index]!r}"
        give = f"a function of a frame that gives {gives if len(classes) < 3 else 'the probabilities of all classes'}"
        about = asked(schema, classes, form="frame", columns=list(table_columns(schema)), read=speaks, give=give)
    data = _facts(about, schema, classes)
    if isinstance(model, GroupThresholds):
        cuts = [twin_cuts(schema.attributes[column]) for column in model.coding.twins.columns]
        what = "A model with a threshold of its own for every group."
        proof = f"It uses protected values directly: {model.coding.words}."
        declared = "It needs everybody's protected values."
        return Script("Thresholded", what, proof, declared, {**data, "cuts": cuts, "shifts": model.by_twin.tolist()})
    names, twins = twin_columns(schema, model.subject_twins)
    data |= {
        "columns": names,
        "twins": twins,
        "weights": model.weights.tolist(),
        "tau": model.tau,
        "shift": model.shift,
        "rules": None,
    }
    rules = model.twin_rules
    if rules is not None:  # those about twins, and the attributes that they look at
        data["rules"] = {
            "programs": list(rules.programs),
            "twins": {column: values.tolist() for column, values in rules.twins.items()},
            "seen": {column: attribute_facts(schema.attributes[column]) for column in rules.seen},
        }
    what = "A guarded model: scores held close to the average over a person's twins."
    declared = (
        "Nobody needs to declare a protected value: whoever has none,\nor one that is not in the schema, gets the "
        f"average over twins. One decision costs {model.m} scores of the model."
    )
    return Script("Guarded", what, model.proof, declared, data)


def tree_script(tree: dict[str, Any], schema: Schema, encoding: Encoding, classes: list[Any]) -> Script:
    """A decision tree on unprotected inputs alone, with its nodes in the file itself."""
    about = by_inputs(schema, encoding, classes, network=tree)
    same = all(isinstance(part, Unseen) or part == Numeric(int(part.columns[0])) for part in encoding.parts)
    words = fill(f"It decides: {tree_words(tree, schema, encoding)}.", 118) if same else ""
    protected = {int(column) for i in schema.protected_columns for column in encoding.parts[i].columns}
    if protected.isdisjoint(tree["feature"]):
        words = f"No split asks for a protected attribute: all twins of a person get one score.\n{words}"
    return Script("PlainModel", "A decision tree.", words, "", _facts(about, schema, classes))


def _facts(about: About, schema: Schema, classes: list[Any]) -> dict[str, Any]:
    rule = schema.rule
    return {
        "model": about,
        "classes": classes,
        "favourable": rule.favourable,
        "threshold": rule.threshold,
        "protected": protected_facts(schema),
    }


#: Numbers that the twins' terms may take in a graph: beyond that it is slower than asking m times.
MAX_TERMS = 20_000_000
_HEADS = {"softmax": "Softmax", "sigmoid": "Sigmoid", "linear": "Identity"}
#: What NumPy's functions are called in a graph.
_OPERATIONS: dict[Any, str] = {
    **{np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.divide: "Div", np.negative: "Neg"},
    **{np.absolute: "Abs", np.exp: "Exp", np.rint: "Round", np.maximum: "Max", np.minimum: "Min"},
    **{np.logical_and: "And", np.logical_or: "Or", np.logical_not: "Not"},
    **{np.equal: "Equal", np.less: "Less", np.less_equal: "LessOrEqual", np.greater: "Greater"},
    **{np.greater_equal: "GreaterOrEqual", np.where: "Where", np.clip: "Clip"},
}


def write_onnx(model: Guard | GroupThresholds, path: str | Path, classes: list[Any]) -> None:
    """Write a guarded network as an ONNX graph: "output" has probabilities (or values), "label" the decided class.

    Averages and clips are done in double precision, as in :class:`~fairbits.Guard`. What protected inputs hold is of no
    account to the average; where it is nobody's (NaN, a value outside the schema), the average is the score.
    """
    if not isinstance(model.model, Network):
        raise CapabilityError(f"a graph is written of dense networks, and {type(model.model).__name__!r} is none.")
    graph = _Graph(import_onnx(), model.model)
    if isinstance(model, GroupThresholds):
        shift = graph.node("Gather", model.by_twin, _twin(graph, model).astype("INT64"), axis=0)
        output = standalone.moved_odds(graph.own_score("inputs"), shift, TINY)
        words = {"fairbits.groups": model.coding.words}
        return graph.write(graph.as_outputs(output), path, "fairbits-thresholds", words, model.schema, classes)
    seen = [] if model.twin_rules is None else model.twin_rules.seen.values()
    if any(isinstance(part, Numeric) and part.gap is not None for part, _ in seen):
        raise CapabilityError(
            "a rule about twins looks at an attribute that may be missing, which a graph of plain layers cannot read "
            "back; the Python file can."
        )
    if (terms := model.m * model.model.widths[0]) > MAX_TERMS:
        raise CapabilityError(
            f"the {model.m:,} twins need {terms:,} numbers, more than the {MAX_TERMS:,} of a graph; the Python "
            f"file holds them, and the distilled repair needs one score."
        )
    words = {"fairbits.proof": model.proof}
    return graph.write(graph.as_outputs(_guarded(graph, model)), path, "fairbits-guard", words, model.schema, classes)


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
        "inputs",
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


class Traced(NDArrayOperatorsMixin):
    """A value of a graph: operators and NumPy's functions on it add nodes."""

    def __init__(self, graph: _Graph, name: str):
        self.graph, self.name = graph, name

    def __array_ufunc__(self, function: Any, method: str, *values: Any, **options: Any) -> Any:
        if function is np.not_equal:
            return np.logical_not(np.equal(*values))
        return self.graph.node(_OPERATIONS[function], *map(_exact, values))

    def __array_function__(self, function: Any, types: Any, values: Any, options: Any) -> Any:
        return self.graph.node(_OPERATIONS[function], *map(_exact, values))

    def sum(self, *, axis: int, keepdims: bool = False) -> Any:
        return self.graph.node("ReduceSum", self, [axis], keepdims=int(keepdims))

    def max(self, *, axis: int, keepdims: bool = False) -> Any:
        return self.graph.node("ReduceMax", self, [axis], keepdims=int(keepdims))

    def astype(self, kind: str) -> Any:
        return self.graph.node("Cast", self, to=getattr(self.graph.onnx.TensorProto, kind))


def _exact(value: Any) -> Any:
    """A number among traced values, in double precision."""
    plain = isinstance(value, Traced) or np.asarray(value).dtype == np.bool_
    return value if plain else np.asarray(value, np.float64)


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self, onnx: Any, network: Network):
        self.onnx, self.network = onnx, network
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *values: Any, result: str = "", **attributes: Any) -> Any:
        """Add a node; what is neither traced nor a name is a constant."""
        name = result or f"v{len(self.nodes)}"
        sources = [one if isinstance(one, str) else self._name(one) for one in values]
        self.nodes.append(self.onnx.helper.make_node(kind, sources, [name], **attributes))
        return Traced(self, name)

    def _name(self, value: Any) -> str:
        if isinstance(value, Traced):
            return value.name
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def write(
        self, output: Any, path: str | Path, name: str, properties: dict[str, str], schema: Schema, classes: list[Any]
    ) -> None:
        """Check the graph that ends in ``output`` and write it, with the decided classes beside."""
        output = self.node("Identity", output.astype("FLOAT"), result="output")
        more: tuple[Any, ...] = ()
        if classes:
            kind = self._decided(output, schema, classes)
            more = (self.onnx.helper.make_tensor_value_info("label", kind, ["people"]),)
            rule = schema.rule
            said = {"classes": classes, "favourable": classes[rule.favourable], "threshold": rule.threshold}
            properties = {**properties, "fairbits.decision": json.dumps(said)}
        write_graph(self.network, self.nodes, self.constants, path, name=name, properties=properties, outputs=more)

    def _decided(self, output: Any, schema: Schema, classes: list[Any]) -> int:
        """The node "label": the decided class of each row, with its own type, which is returned."""
        rule, others = schema.rule, np.int64(1 - schema.rule.favourable)
        if self.network.head == "softmax":
            favoured = self.node("Gather", output, np.int64(rule.favourable), axis=1)
        else:
            favoured = self.node("Squeeze", output, [1])
            if rule.favourable == 0:
                favoured = self.node("Sub", np.float32(1), favoured)
        least: Any = np.float32(rule.threshold or 0)
        if len(classes) > 2:
            least, others = output.max(axis=1), self.node("ArgMax", output, axis=1, keepdims=0)
        place = self.node("Where", self.node("GreaterOrEqual", favoured, least), np.int64(rule.favourable), others)
        kinds = {type(one) for one in classes}
        numbers = {bool: "BOOL", int: "INT64", float: "DOUBLE"}
        kind = numbers.get(kinds.pop()) if len(kinds) == 1 else None
        values = np.array([str(one) for one in classes], object) if kind is None else np.array(classes)
        self.node("Gather", values, place, result="label", axis=0)
        return int(getattr(self.onnx.TensorProto, kind or "STRING"))

    def own_score(self, inputs: Any) -> Any:
        """What the network says of rows, (people, 1 or classes), as the guard looks at it."""
        first = self.node("MatMul", inputs, self.network.weights[0])
        return self.score_of(self.node("Add", first, self.network.biases[0]))

    def score_of(self, current: Any) -> Any:
        """From the sums of the first layer: the favourable class's probability, those of three or more, or values.

        Layers are computed in single precision, as the network is, and everything behind them in double.
        """
        network = self.network
        for i in range(1, len(network.weights)):
            name = f"v{len(self.nodes)}"
            self.nodes.append(activation_node(self.onnx.helper, network.activations_after[i - 1], current.name, name))
            current = self.node("MatMul", Traced(self, name), network.weights[i])
            current = self.node("Add", current, network.biases[i])
        head: dict[str, Any] = {"axis": -1} if network.head == "softmax" else {}
        found = self.node(_HEADS[network.head], current, **head).astype("DOUBLE")
        if network.head == "softmax" and network.classes == 2:
            return self.node("Gather", found, [network.favourable], axis=-1)
        return 1 - found if network.head == "sigmoid" and network.favourable == 0 else found

    def as_outputs(self, score: Any) -> Any:
        """The other way round: outputs as the network has them."""
        network = self.network
        if network.head == "softmax" and network.classes == 2:
            return self.node("Concat", *([1 - score, score][:: 1 if network.favourable == 1 else -1]), axis=1)
        return 1 - score if network.head == "sigmoid" and network.favourable == 0 else score

    def gathered(self, columns: Integers) -> Any:
        """Some of the inputs in double precision, (people, columns)."""
        return self.node("Gather", "inputs", np.asarray(columns, np.int64), axis=1).astype("DOUBLE")

    def apart(self, part: Lookup) -> Any:
        """How far these inputs lie from every row of their table, (people, rows)."""
        return np.abs(self.node("Unsqueeze", self.gathered(part.columns), [1]) - part.table[None]).sum(axis=2)

    def codes(self, part: Numeric | Lookup, whole: bool) -> Any:
        """The codes of an attribute, (people, 1), read back from the inputs."""
        if isinstance(part, Lookup):
            return self.node("ArgMin", self.apart(part), axis=1, keepdims=1).astype("DOUBLE") + float(part.low)
        codes = self.gathered(part.columns) / (part.scale or 1.0) + part.shift
        return np.rint(codes) if whole else codes


def _twin(graph: _Graph, model: GroupThresholds) -> Any:
    """Which protected combination everybody has, (people, 1)."""
    twin: Any = np.zeros((1, 1))
    for column in model.coding.twins.columns:
        part, attribute = model.encoding.parts[column], model.schema.attributes[column]
        if isinstance(part, Unseen):
            raise CapabilityError(
                f"a graph does not get {attribute.name!r}, which says whose threshold it is; a table does."
            )
        codes, cuts = graph.codes(part, attribute.discrete), np.array(twin_cuts(attribute))
        place = (codes >= cuts[None]).astype("DOUBLE").sum(axis=1, keepdims=True)
        lacking = None if attribute.missing == "value" else attribute.gap
        twin = twin * (len(cuts) + 1) + (place if lacking is None else np.where(np.equal(codes, lacking), 0.0, place))
    return twin


def _guarded(graph: _Graph, guard: Guard) -> Any:
    """The average over the twins, and the person's own output within reach of it.

    What twins share is computed once, what they add is a table. Somebody without protected values gets the average.
    """
    network, protected = graph.network, guard.protected_inputs
    first = network.weights[0].astype(np.float64)
    terms = guard.twin_inputs.astype(np.float64) @ first[protected] + network.biases[0]
    free = np.setdiff1d(np.arange(network.inputs), protected)
    others = graph.node("Gather", "inputs", free.astype(np.int64), axis=1)
    shared = graph.node("Unsqueeze", graph.node("MatMul", others, network.weights[0][free]), [1])
    twins = graph.score_of(graph.node("Add", shared, terms[None].astype(np.float32)))

    def lifted(outputs: Any) -> Any:
        return moved(outputs, guard.shift, regression=guard.schema.regression)

    centre = lifted((twins * _shares(graph, guard)).sum(axis=1))
    if guard.tau == 0:
        return centre
    known = _known(graph, guard)
    mask, sample_row = np.zeros((1, network.inputs), bool), np.zeros((1, network.inputs), np.float32)
    mask[0, protected], sample_row[0, protected] = True, guard.twin_inputs[0]
    inputs = graph.node("Where", np.logical_or(known, ~mask), "inputs", sample_row)
    return np.where(known, standalone.clipped(lifted(graph.own_score(inputs)), centre, guard.tau), centre)


def _known(graph: _Graph, guard: Guard) -> Any:
    """Whether every protected attribute has a value of the schema, (people, 1); NaN is none."""

    def one(part: Numeric | Lookup, ends: Doubles) -> Any:
        if isinstance(part, Lookup):
            return (graph.apart(part) <= 1e-6).astype("INT64").max(axis=1, keepdims=True).astype("BOOL")
        own = graph.gathered(part.columns)
        return np.logical_and(own >= ends[0], own <= ends[1])

    return reduce(np.logical_and, [one(part, ends) for part, ends in guard.protected_parts])


def _shares(graph: _Graph, guard: Guard) -> Any:
    """The twins' weights, (people or 1, m, 1)."""
    rules = guard.twin_rules
    if rules is None:
        return guard.weights[None, :, None]
    columns: dict[int, Any] = {column: values[None] for column, values in rules.twins.items()}
    columns |= {column: graph.codes(part, whole) for column, (part, whole) in rules.seen.items()}
    return graph.node("Unsqueeze", standalone.twin_shares(guard.weights[None], rules.evaluate(columns)), [2])
