"""What a written guard runs on: NumPy alone, and the owner's own library where the model is no plain network.

The text of this file goes into every ``repaired.py`` with the facts about one model (``DATA``), so it imports nothing
of fairbits; the process that checks written files imports it too. A table is a pandas frame, a dict of equally long
lists, or a list of dicts, with the columns and the values of the owner's own table.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

#: Rows that the model is asked about at once.
ROWS = 65_536
#: Room for rounding, as a share of a score. Scores are float32, whose steps are 6e-8 of a score; four roundings lie
#: between two twins and the count of their classes. At exactly half of a class's width they make k = 2 of 1.
ROUNDING = 2.0**-20
FUNCTIONS: Any = {
    "relu": lambda x, _: np.maximum(x, 0),
    "leaky_relu": lambda x, a: np.where(x > 0, x, x.dtype.type(a) * x),
    "tanh": lambda x, _: np.tanh(x),
    "sigmoid": lambda x, _: sigmoid(x),
    "elu": lambda x, a: np.where(x > 0, x, x.dtype.type(a) * np.expm1(np.minimum(x, 0))),
    "gelu": lambda x, _: (x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))).astype(x.dtype),
    "gelu_tanh": lambda x, _: (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))).astype(x.dtype),
    "identity": lambda x, _: x,
}
#: What rules say about twins, in NumPy.
OPERATIONS = {
    **{"and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "neg": np.negative},
    **{"=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater},
    **{">=": np.greater_equal, "+": np.add, "-": np.subtract, "*": np.multiply},
}


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(−x)); far below 0 the power is infinite and the value is 0."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    """Powers of e that add up to 1 in every row."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# The arithmetic of a guard, here for arrays; it is written with NumPy's functions alone, so that a graph can trace it.


def moved_odds(scores: Any, shift: Any, tiny: Any) -> Any:
    """Probabilities with their log-odds moved."""
    inside = np.clip(scores, tiny, 1 - tiny)
    odds = np.exp(shift) * inside / (1 - inside)
    return odds / (1 + odds)


def twin_shares(weights: Any, valid: Any) -> Any:
    """Weights (1, m) of the twins that can exist, (n, m), made to add up to 1; of all where none can."""
    left = np.where(valid, weights, 0.0)
    left = np.where(left.sum(axis=1, keepdims=True) > 0, left, weights)
    return left / left.sum(axis=1, keepdims=True)


def clipped(own: Any, centre: Any, tau: Any) -> Any:
    """Outputs (…, values) moved towards the average until none lies further from it than tau, less room for rounding.

    All values of a person move by the same factor, so that probabilities still add up to 1. No score counts as smaller
    than 1, or than tau, where room is left: around an average of 0 it may be as large as tau (a regression).
    """
    apart = own - centre
    size = np.maximum(max(1.0, tau), np.abs(centre).max(axis=-1, keepdims=True))
    room = np.maximum(tau - ROUNDING * size, 0.0)
    far = np.maximum(np.abs(apart).max(axis=-1, keepdims=True), np.maximum(room, np.finfo(np.float64).tiny))
    return centre + room / far * apart


# Tables: a pandas frame stays one, so that columns keep their types; anything else becomes a dict of arrays.


def tabled(table: Any) -> Any:
    """A frame, or a dict of arrays of equal length."""
    if hasattr(table, "iloc"):
        return table
    if hasattr(table, "get_columns"):  # polars
        table = {one.name: one.to_list() for one in table.get_columns()}
    if isinstance(table, (list, tuple)):
        names = list(dict.fromkeys(name for row in table for name in row))
        table = {name: [row.get(name) for row in table] for name in names}
    found = {name: array_of(values) for name, values in table.items()}
    if len(set(map(len, found.values()))) > 1:
        raise ValueError("the columns of the table differ in length; give every column one value per person.")
    return found


def array_of(values: Any) -> Any:
    """One column: numbers as numbers, anything else as it is."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values
    listed = list(values)
    if listed and all(isinstance(one, (int, float, np.number, np.bool_)) for one in listed):
        return np.asarray(listed)
    return np.fromiter(listed, object, len(listed))


def size_of(table: Any) -> Any:
    """How many people a table has."""
    return len(table) if hasattr(table, "iloc") else max((len(values) for values in table.values()), default=0)


def column_of(table: Any, name: Any) -> Any:
    """One column of the table as an array."""
    if name not in table:
        raise ValueError(f"the table has no column {name!r}, which the model takes; add it.")
    values = table[name]
    if not hasattr(table, "iloc"):
        return values
    return values.to_numpy(dtype=None if isinstance(values.dtype, np.dtype) else object)


def with_values(table: Any, index: Any, values: Any) -> Any:
    """The rows of these positions, with other values in some columns (the column is added where there is none)."""
    if hasattr(table, "iloc"):
        changed = table.iloc[index].reset_index(drop=True)
        for name, column in values.items():
            changed[name] = column
        return changed
    return {**{name: column[index] for name, column in table.items()}, **values}


# Values as codes, and codes as inputs: for networks, for models that were trained on codes, and for rules about twins.


def is_missing(value: Any) -> Any:
    """None, NaN, NaT and pandas' NA."""
    gone = value is None or type(value).__name__ in ("NAType", "NaTType")
    return gone or (isinstance(value, float) and math.isnan(value))


def text_of(value: Any) -> Any:
    """1, 1.0 and True as '1', '1' and 'true'."""
    value = value.item() if isinstance(value, np.generic) else value
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return text.lower() if isinstance(value, bool) else text


def code_of(value: Any, about: Any) -> Any:
    """The code of one value; None where the attribute does not have it."""
    if is_missing(value):
        return about["gap"]
    if about["labels"] is not None:
        text = text_of(value)
        found = about["labels"].get(text, about["labels"].get(text.strip()))
        if found is not None or isinstance(value, str) or not about["coded"]:
            return found
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    inside = number in about["allowed"] if about["allowed"] else about["low"] <= number <= about["high"]
    return number if inside and (not about["whole"] or number == round(number)) else None


def codes_of(table: Any, about: Any, strict: bool = True) -> Any:
    """The codes of one attribute, (n,); a value that it does not have is refused, or NaN."""
    names = [name for name in about["columns"] or [about["name"]] if name]
    if not strict and any(name not in table for name in names):
        return np.full(size_of(table), np.nan)
    columns = [column_of(table, name).tolist() for name in names]
    if about["columns"]:  # a category spread over columns of 0 and 1; one without a column is 0 in all others
        cells = np.array([[np.nan if is_missing(one) else float(one) for one in column] for column in columns])
        sums = cells.sum(axis=0)
        right = ((sums == 1) | ((sums == 0) & ("" in about["columns"]))) & np.isin(cells, (0, 1)).all(axis=0)
        if strict and not right.all():
            raise ValueError(
                f"row {int(np.argmin(right)) + 1}: the columns of {about['name']!r} must hold one 1 and otherwise 0."
            )
        spread = np.full((len(about["columns"]), size_of(table)), 0.5)
        spread[[name != "" for name in about["columns"]]] = cells
        return np.where(right, np.argmax(np.nan_to_num(spread), axis=0), np.nan)
    seen, found = {}, []
    for row, value in enumerate(columns[0]):
        key = (type(value), value) if not is_missing(value) else None
        if key not in seen:
            seen[key] = code_of(value, about)
        if seen[key] is None and strict:
            takes = f"{about['low']:g} to {about['high']:g}"
            takes = f"one of {', '.join(list(about['labels'])[:8])}" if about["labels"] else takes
            raise ValueError(
                f"row {row + 1}: {about['name']!r} is {value!r}, which the model was not audited for; it takes {takes}."
            )
        found.append(np.nan if seen[key] is None else seen[key])
    return np.array(found, np.float64)


def inputs_of(table: Any, about: Any) -> Any:
    """What the model was given for people: codes moved and scaled, or rows of tables, (n, inputs)."""
    found = np.empty((size_of(table), about["width"]), np.dtype(about["dtype"]))
    for column, value in about["fixed"].items():
        found[:, int(column)] = value
    for one in (one for one in about["attributes"] if one["part"] is not None):
        part, codes = one["part"], codes_of(table, one)
        if "table" in part:
            found[:, part["columns"]] = np.array(part["table"])[np.rint(codes).astype(int) - part["low"]]
        else:
            inputs = (codes - part["shift"]) * part["scale"]
            found[:, part["column"]] = inputs if part["gap"] is None else np.where(codes == part["gap"], np.nan, inputs)
    return found


# Models


module = importlib.import_module
#: By the ending of a model file, how the library that it belongs to opens it.
OPENERS: Any = {
    ".skops": lambda path, trusted: module("skops.io").load(path, trusted=list(trusted or ())),
    **dict.fromkeys((".joblib", ".pkl", ".pickle"), lambda path, _: module("joblib").load(path)),
    ".txt": lambda path, _: module("lightgbm").Booster(model_file=path),
    **dict.fromkeys((".json", ".ubj"), lambda path, _: module("xgboost").Booster(model_file=path)),
    ".cbm": lambda path, _: module("catboost").CatBoost().load_model(path),
    ".onnx": lambda path, _: module("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"]),
    ".keras": lambda path, _: module("keras").saving.load_model(path),
    ".pt2": lambda path, _: module("torch").export.load(path).module(),
}


def opened(path: Any, trusted: Any = False) -> Any:
    """A model file, opened by the library that it belongs to; code that it brings runs only where it is trusted."""
    name, ending = Path(path).name, Path(path).suffix.lower()
    if ending in (".joblib", ".pkl", ".pickle") and not trusted:
        raise ValueError(f"{name} is a pickle, which runs code; it is opened where it is trusted.")
    if ending not in OPENERS:
        raise ValueError(f"{name} has no reader here; hand over the model itself.")
    return OPENERS[ending](str(path), trusted)


def library_of(model: Any) -> Any:
    """The library of a model, by the module of its class."""
    homes = [kind.__module__.partition(".")[0] for kind in type(model).__mro__]
    return next(
        (name for name in ("onnxruntime", "keras", "torch", "lightgbm", "xgboost", "catboost") if name in homes),
        homes[0],
    )


class DenseLayers:
    """Dense layers, from arrays in the file itself."""

    def __init__(self, about: Any) -> None:
        with np.load(io.BytesIO(base64.b64decode(about["arrays"])), allow_pickle=False) as file:
            self.weights = [file[f"W{i}"] for i in range(len(about["activations"]) + 1)]
            self.biases = [file[f"b{i}"] for i in range(len(about["activations"]) + 1)]
        self.about = about

    def __call__(self, inputs: Any) -> Any:
        """Probabilities, or values."""
        found = inputs @ self.weights[0] + self.biases[0]
        for (name, alpha), w, b in zip(self.about["activations"], self.weights[1:], self.biases[1:], strict=True):
            found = FUNCTIONS[name](found, alpha) @ w + b
        return {"softmax": softmax, "sigmoid": sigmoid}.get(self.about["head"], np.asarray)(found)


class TreeNodes:
    """A decision tree, from lists in the file itself: whoever has at most the threshold goes left."""

    def __init__(self, about: Any) -> None:
        self.about = {name: np.array(values) for name, values in about.items()}

    def __call__(self, inputs: Any) -> Any:
        """The shares of the classes in each row's leaf."""
        about, rows, node = self.about, np.arange(len(inputs)), np.zeros(len(inputs), int)
        while (about["left"][node] >= 0).any():
            low = np.asarray(inputs, np.float32)[rows, about["feature"][node]] <= about["threshold"][node]
            node = np.where(about["left"][node] < 0, node, np.where(low, about["left"][node], about["right"][node]))
        return about["values"][node]


class AskedModel:
    """A model as its owner asks it: a table in, probabilities of all classes (or values) out."""

    def __init__(self, about: Any, model: Any = None, folder: Any = ".") -> None:
        self.about = about
        if model is None and about["network"] is not None:
            model = (TreeNodes if "left" in about["network"] else DenseLayers)(about["network"])
        if model is None and about["file"] is None:
            raise TypeError(about["give"])
        self.model = opened(Path(folder) / about["file"], about["trusted"]) if model is None else model

    def __call__(self, table: Any) -> Any:
        """Probabilities of all classes (n, classes), or values (n, 1)."""
        return read(self.outputs(table), self.about)

    def outputs(self, table: Any) -> Any:
        """What the model answers, as it comes."""
        rows, call, model = self.rows(table), self.about["call"], self.model
        kind = library_of(model)
        if call == "predict_proba":
            return model.predict_proba(rows)
        if kind == "torch":
            with module("torch").no_grad():
                found = model(module("torch").from_numpy(np.asarray(rows, np.float32)))
            return (found[0] if isinstance(found, tuple) else found).numpy()
        if kind == "onnxruntime":
            return answered(model, table, rows)
        if kind == "keras":
            return np.asarray(model.predict(np.asarray(rows, np.float32), verbose=0))
        if kind == "xgboost" and type(model).__name__ == "Booster":
            framed = hasattr(rows, "iloc")
            names = None if framed else model.feature_names
            rows = module("xgboost").DMatrix(rows, feature_names=names, enable_categorical=framed)
        if kind == "catboost" and type(model).__name__ == "CatBoost":
            return model.predict(rows, prediction_type="Probability" if self.about["classes"] else "RawFormulaVal")
        return model.predict(rows) if call == "predict" else model(rows)

    def rows(self, table: Any) -> Any:
        """What the model is given: a frame of columns, an array of them, or inputs."""
        about, form = self.about, self.about["form"]
        columns = {name: column_of(table, name) for name in about["columns"]}
        found = inputs_of(table, about) if form == "inputs" else columns
        if form == "array":
            kinds = {values.dtype.kind for values in columns.values()}
            found = np.empty((size_of(table), len(columns)), np.float64 if kinds <= set("biuf") else object)
            for i, values in enumerate(columns.values()):
                found[:, i] = values
        if form != "frame":
            return module("pandas").DataFrame(found, columns=about["names"]) if about["names"] else found
        found = table[about["columns"]].copy() if hasattr(table, "iloc") else module("pandas").DataFrame(found)
        for name, values in about["categories"].items():
            known = module("pandas").Series(values).astype("category").cat.categories
            found[name] = module("pandas").Categorical(found[name], categories=known)
        return found


def answered(session: Any, table: Any, rows: Any) -> Any:
    """Probabilities or values of an ONNX graph that takes one table, or the owner's columns one by one."""
    wanted = session.get_inputs()
    kinds = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32, "bool": np.bool_}
    feed = {}
    for one in wanted:
        values, kind = np.asarray(rows if len(wanted) == 1 else column_of(table, one.name)), one.type[7:-1]  # tensor(…)
        if kind == "string":
            feed[one.name] = np.array([text_of(v) for v in values.ravel()], object).reshape(values.shape)
        else:
            feed[one.name] = values.astype(kinds.get(kind, np.bool_))
        if len(wanted) > 1:
            feed[one.name] = feed[one.name].reshape((-1, 1) if len(one.shape) > 1 else -1)
    names = [one.name for one in session.get_outputs()]
    name = next((one for one in names if "label" not in one.lower()), names[0])
    found = session.run([name], feed)[0]
    # A list has a dict of classes for each row.
    return np.array([list(row.values()) for row in found], np.float64) if isinstance(found, list) else found


def read(outputs: Any, about: Any) -> Any:
    """Outputs of a model as the probabilities of all classes in their order, or as values."""
    classes, how = len(about["classes"]), about["read"]
    if how["link"] == "labels":
        texts = np.array([text_of(one) for one in np.ravel(outputs)], object)
        return np.column_stack([texts == text_of(one) for one in about["classes"]]).astype(np.float64)
    found = np.asarray(outputs, np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if not np.isfinite(found).all():
        raise ValueError("the model gave a score that is not finite, for which no bound holds; check its inputs.")
    if not classes:
        return found[:, :1]
    if how["link"] == "logit":
        found = (sigmoid if found.shape[1] == 1 else softmax)(found)
    return both(found[:, 0], how["speaks"]) if found.shape[1] == 1 else found[:, how["order"]]


def both(score: Any, place: Any) -> Any:
    """The probabilities of two classes, by that of one of them."""
    return np.column_stack([1 - score, score][:: 1 if place == 1 else -1])


def decided(probabilities: Any, data: Any) -> Any:
    """The positions of the decided classes: by the threshold between two, the most likely one of more."""
    favourable = data["favourable"]
    found = probabilities.astype(np.float32)
    if len(data["classes"]) == 2:
        return np.where(found[:, favourable] >= np.float32(data["threshold"]), favourable, 1 - favourable)
    return np.where(found[:, favourable] >= found.max(axis=1), favourable, np.argmax(found, axis=1))


#: The facts about one model, which stand here where the file is written.
DATA: Any = json.loads("{}")


class PlainModel:
    """A written model: asked with a table of people, it answers as the model that was judged."""

    def __init__(self, model: Any = None, *, data: Any = None, folder: Any = None) -> None:
        self.data = data = DATA if data is None else data
        self.model = AskedModel(data["model"], model, Path(__file__).parent if folder is None else folder)
        kinds = {type(one) for one in data["classes"]}  # of one type, classes keep it
        self.classes_ = np.array(data["classes"], None if len(kinds) == 1 else object) if kinds else None
        self.threshold = data["threshold"]

    def scores(self, table: Any) -> Any:
        """The score of each row: the probability of the favourable class, or the predicted value."""
        return self.predict_proba(table)[:, self.data["favourable"]].astype(np.float32)

    def predict_proba(self, table: Any) -> Any:
        """The probabilities of all classes, in the order of ``classes_``; or values as a column."""
        table = tabled(table)
        people = size_of(table)
        if people == 0:
            return np.empty((0, max(1, len(self.data["classes"]))))
        pieces = np.array_split(np.arange(people), math.ceil(people / (ROWS // 8)))
        return np.concatenate([self._answered(with_values(table, piece, {})) for piece in pieces])

    def predict(self, table: Any) -> Any:
        """The decided class of each row, as the owner's table names it, or the predicted value."""
        found = self.predict_proba(table)
        return found[:, 0] if self.classes_ is None else self.classes_[decided(found, self.data)]

    def _answered(self, table: Any) -> Any:
        return self.model(table)


class Guarded(PlainModel):
    """Asks a model about all twins of each person, and holds its score within tau of their average.

    A protected value that is missing or not in the schema is no obstacle: the average needs none, and stands where
    there is no score of the person's own.
    """

    def _answered(self, table: Any) -> Any:
        data, people = self.data, size_of(table)
        shares, twins = self._shares(table), data["twins"]
        centre, step = 0.0, max(1, ROWS // people)
        for start in range(0, len(twins), step):
            some = twins[start : start + step]
            found = self._asked(with_values(table, np.tile(np.arange(people), len(some)), self._columns(some, people)))
            weights = shares[:, start : start + step].T[:, :, None]
            centre = centre + (weights * found.reshape(len(some), people, -1)).sum(axis=0)
        centre = self._moved(centre)
        if not data["tau"]:
            return centre
        codes = [(codes_of(table, one, strict=False), one["lacking"]) for one in data["protected"]]
        known = np.all([np.isfinite(own) & (own != lacking) for own, lacking in codes], axis=0)
        # Somebody without a protected value of their own is asked about as the first twin, and gets the average.
        own = table
        if not known.all():
            mine = {
                name: column_of(table, name).astype(object) if name in table else values
                for name, values in self._columns(twins[:1], people).items()
            }
            for name, value in zip(data["columns"], twins[0], strict=True):
                mine[name][~known] = value
            own = with_values(table, np.arange(people), {name: array_of(list(one)) for name, one in mine.items()})
        return clipped(np.where(known[:, None], self._moved(self._asked(own)), centre), centre, data["tau"])

    def _asked(self, table: Any) -> Any:
        found = self.model(table)
        return np.clip(found, 0, 1) if self.data["classes"] else found

    def _columns(self, twins: Any, people: Any) -> Any:
        """The protected columns of these twins, each for all people."""
        rows = [[twin[i] for twin in twins for _ in range(people)] for i in range(len(self.data["columns"]))]
        return {name: array_of(values) for name, values in zip(self.data["columns"], rows, strict=True)}

    def _shares(self, table: Any) -> Any:
        """Each twin's weight (n or 1, m): over the twins that can exist under the rules; over all where none can."""
        weights, rules = np.array(self.data["weights"])[None], self.data["rules"]
        if not rules:
            return weights
        columns = {int(c): np.array(codes)[None] for c, codes in rules["twins"].items()}
        columns |= {int(c): codes_of(table, about)[:, None] for c, about in rules["seen"].items()}
        shape = size_of(table), weights.shape[1]
        valid = np.all([np.broadcast_to(_holds(one, columns), shape) for one in rules["programs"]], axis=0)
        return twin_shares(weights, valid)

    def _moved(self, table: Any) -> Any:
        data, shift = self.data, self.data["shift"]
        if not data["classes"]:
            return table + shift
        signs = np.where(np.arange(table.shape[1]) == data["favourable"], 1.0, -1.0)
        return moved_odds(table, shift * signs, 1e-9) if shift and len(signs) == 2 else table


def _holds(program: Any, columns: Any) -> Any:
    kind, *rest = program
    if kind == "column":
        return columns[rest[0]]
    if kind == "number":
        return np.float64(rest[0])
    if kind == "in":
        value = _holds(rest[0], columns)
        return np.any([value == _holds(one, columns) for one in rest[1:]], axis=0)
    found = [_holds(one, columns) for one in rest]
    return np.logical_not(found[0]) | found[1] if kind == "->" else OPERATIONS[kind](*found)


class Thresholded(PlainModel):
    """Asks a model, and moves the log-odds by group. It needs everybody's protected values, and refuses others."""

    def _answered(self, table: Any) -> Any:
        data, twin = self.data, np.zeros(size_of(table), int)
        for about, cuts in zip(data["protected"], data["cuts"], strict=True):
            codes = codes_of(table, about)
            place = np.where(codes == about["lacking"], 0, np.searchsorted(cuts, codes, side="right"))
            twin = twin * (len(cuts) + 1) + place
        own = self.model(table)[:, data["favourable"]]
        return both(moved_odds(own, np.array(data["shifts"])[twin], 1e-6), data["favourable"])
