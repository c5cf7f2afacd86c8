"""Any ONNX graph as a black box in ONNX Runtime, and the bridge from codes to a graph's inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Encoding, Schema, table_columns
from fairbits.errors import MissingDependencyError, ModelError, choose_from
from fairbits.models.black_box import BlackBox
from fairbits.models.input_slots import slots_of
from fairbits.models.onnx.graph import FLOATS, TEXT, TRUTH, Graph, Input, piece, stated_favourable
from fairbits.models.options import ModelOptions, Output
from fairbits.models.outputs import Loaded, column_note, output_kind_of, plain_note, plain_reading, read_note
from fairbits.models.probe import random_people

Feed = dict[str, npt.NDArray[Any]]
#: People on whom it is tried what a graph puts out.
_TRIAL = 64


def session_of(graph: Graph, nodes: list[Any], output: str) -> Callable[[Feed], npt.NDArray[Any]]:
    """A function that runs part of a graph in ONNX Runtime."""
    try:
        import onnxruntime as runtime
    except ImportError:
        raise MissingDependencyError("onnxruntime", "onnx", "running an ONNX graph") from None
    quiet = runtime.SessionOptions()
    quiet.log_severity_level = 4  # it would write to stderr what it raises anyway
    try:
        session = runtime.InferenceSession(piece(graph, nodes, output), quiet, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the runtime's own exceptions have no common base
        raise ModelError(f"ONNX Runtime does not take the graph: {_said(error)}") from None

    def run(feed: Feed) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = session.run([output], feed)[0]
        return found

    return run


class Feeder:
    """Codes as the inputs of a graph: one input of all columns, or one input per attribute, matched by name."""

    def __init__(self, inputs: list[Input], schema: Schema, columns: tuple[str, ...] | None):
        self.inputs = inputs
        self.guessed = False  # whether columns go in by their order alone
        self._columns = columns or self._matched(schema)
        text = [name for name, entry in self._pairs() if entry.kind == TEXT]
        self.decoder = Decoder(schema, self._columns, as_text=text)
        self.names = self.decoder.names
        self._pick = [schema.column(name) for name in self.names]

    def __call__(self, codes: Codes) -> Feed:
        """Rows of all attributes as the graph wants them."""
        return self.feed(codes[:, self._pick])

    def feed(self, seen: Codes) -> Feed:
        """Inputs of the graph."""
        if len(self.inputs) == 1:
            entry = self.inputs[0]
            rows = self.decoder.array(seen) if entry.kind == TEXT else _numeric(self.decoder, seen)
            return {entry.name: typed(rows, entry)}
        pairs = zip(self.inputs, self.decoder.columns, strict=True)
        made = [(entry, typed(self.decoder.values(column, seen), entry)) for entry, column in pairs]
        return {entry.name: values if entry.flat else values[:, None] for entry, values in made}

    def notes(self, options: ModelOptions) -> tuple[str, ...]:
        """What is guessed about the columns."""
        if not self.guessed:
            return ()
        coded = len(self.inputs) == 1 and self.inputs[0].kind != TEXT and self.decoder.mixed
        return column_note(self._columns, options, how="categories as codes" if coded else "")

    def _matched(self, schema: Schema) -> tuple[str, ...]:
        names = tuple(entry.name for entry in self.inputs)
        known = table_columns(schema)
        if len(names) == 1 and len(known) > 1:
            width = self.inputs[0].width
            if width in (None, len(known)):
                self.guessed = True
                return known
            raise ModelError(
                f"its input takes {width} columns, but the schema has {len(schema)} attributes "
                f"({', '.join(schema.names)}); list those that it sees under [model] columns."
            )
        strange = next((name for name in names if name not in known), None)
        if strange is None:
            return names
        raise ModelError(f"its input {strange!r} is not a column of the table; {choose_from(strange, known)}")

    def _pairs(self) -> list[tuple[str, Input]]:
        if len(self.inputs) == 1:
            return [(name, self.inputs[0]) for name in self._columns]
        if len(self.inputs) != len(self._columns):
            raise ModelError(f"it has {len(self.inputs)} inputs, but {len(self._columns)} columns are listed.")
        return list(zip(self._columns, self.inputs, strict=True))


class SlotFeeder:
    """Encoded rows as the inputs of a graph with several, some of which hold several attributes."""

    def __init__(self, inputs: list[Input], schema: Schema, options: ModelOptions):
        names, widths = [entry.name for entry in inputs], [entry.width for entry in inputs]
        self.slots, self.encoding = slots_of(names, widths, schema, options)
        self.inputs = inputs
        self._schema = schema

    def feed(self, rows: npt.NDArray[Any]) -> Feed:
        """Inputs of the graph."""
        found: Feed = {}
        for entry, slot in zip(self.inputs, self.slots, strict=True):
            values = np.asarray(rows[:, slot.start : slot.stop])
            if entry.kind == TEXT:
                values = np.column_stack([self._texts(name, values[:, i]) for i, name in enumerate(slot.attributes)])
            given = typed(values, entry)
            found[entry.name] = given[:, 0] if entry.flat else given
        return found

    def notes(self, _options: ModelOptions) -> tuple[str, ...]:
        """Nothing is guessed."""
        return ()

    def _texts(self, name: str, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        attribute = self._schema[name]
        return np.array([attribute.read(code) for code in codes.tolist()], dtype=object)


def feeder_of(graph: Graph, schema: Schema, options: ModelOptions) -> Feeder | SlotFeeder:
    """What fills the inputs: one by one from the columns of their names, else as [model.inputs] says."""
    inputs = graph.inputs
    known = table_columns(schema)
    wide = any(entry.width not in (None, 1) for entry in inputs)
    named = options.columns or all(entry.name in known for entry in inputs)
    if len(inputs) < 2 or (named and not wide and not options.inputs):
        return Feeder(inputs, schema, options.columns)
    return SlotFeeder(inputs, schema, options)


def run_graph(graph: Graph, schema: Schema | None, options: ModelOptions, *, why: str = "") -> Loaded:
    """The whole graph as a black box. Without a schema its rows are those of its single numeric input."""
    if not graph.inputs:
        raise ModelError("its output depends on none of its inputs.")
    run = session_of(graph, graph.nodes, graph.output)
    name = "the ONNX model"
    if schema is None:
        if len(graph.inputs) != 1 or graph.inputs[0].kind == TEXT or graph.inputs[0].width is None:
            held = ", ".join(entry.name for entry in graph.inputs)
            raise ModelError(f"its inputs ({held}) are not one table of numbers; give the schema that they belong to.")
        entry = graph.inputs[0]
        width, favourable = entry.width or 1, stated_favourable(graph, options)
        box = BlackBox(
            lambda rows: run({entry.name: typed(rows, entry)}),
            width,
            name=name,
            batch=options.batch,
            reading=replace(plain_reading(options), favourable=favourable, reverse=favourable == 0),
        )
        return Loaded(box, None, graph.classes)
    encoded = _one_hot(graph, schema, options)
    feeder = None if encoded is not None else feeder_of(graph, schema, options)
    encoding = encoded if encoded is not None else _encoding(feeder)
    only = graph.inputs[0]

    def ask(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return run({only.name: typed(rows, only)} if feeder is None else feeder.feed(rows))

    output = options.output
    if output is None and schema.classes and graph.classes is None:
        output = _put_out(graph, ask, encoding.encode(random_people(schema, _TRIAL)))
    reading = replace(plain_reading(options), logits=output == "logit")
    box = BlackBox(ask, encoding.width, name=name, batch=options.batch, reading=reading)
    notes = () if feeder is None else feeder.notes(options)
    if why:
        notes = (f"the model runs in ONNX Runtime and is not read as a network: {why.rstrip('.')}.", *notes)
    if output == "logit":
        notes = (*notes, *read_note(output, options))
    if encoded is not None:
        notes = (*plain_note(encoded, schema, options), *notes)
    return Loaded(box, encoding, graph.classes, notes)


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


def _encoding(feeder: Feeder | SlotFeeder | None) -> Encoding:
    assert feeder is not None  # noqa: S101 - there is none only where rows are one-hot
    return feeder.encoding if isinstance(feeder, SlotFeeder) else feeder.decoder.encoding


def _one_hot(graph: Graph, schema: Schema, options: ModelOptions) -> Encoding | None:
    """The one-hot encoding, where the graph's only input is as wide as that and not as wide as the table."""
    if options.columns is not None or len(graph.inputs) != 1 or graph.inputs[0].kind == TEXT:
        return None
    width, encoding = graph.inputs[0].width, Encoding.one_hot(schema)
    return encoding if width == encoding.width and width != len(table_columns(schema)) else None


def _said(error: Exception) -> str:
    """What ONNX Runtime complains about, without the places in its source."""
    text = " ".join(str(error).split()).rsplit(") ", 1)[-1].rsplit("FAIL : ", 1)[-1]
    return (text if len(text) <= 200 else text[:199] + "…").rstrip(".") + "."


def _numeric(decoder: Decoder, seen: Codes) -> npt.NDArray[Any]:
    """One table of numbers: categories whose labels are no numbers go in as their codes."""
    rows = decoder.array(seen)
    return rows if rows.dtype != object or len(decoder.columns) != seen.shape[1] else seen


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
