"""A guard as a small Python file of its own: NumPy alone, around whatever model gives the scores."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fairbits.domain import Decoder, Schema
from fairbits.repair.proposals.clip import HAIR, least_size
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.proposals.shown_twins import plain_value, shown_twins
from fairbits.repair.proposals.twin_rules import TwinRules

_SOURCE = '''"""A guarded model: scores held close to the average over a person's twins. Needs NumPy alone.

{proof}

    from repaired import Guarded
    guarded = Guarded(model)            # anything with predict_proba, predict, or a function of a frame
    guarded.scores(frame)               # the score of {favourable}
    guarded.predict(frame)

One decision costs {m} scores of the model. A frame is a pandas DataFrame, or a dict of equally long lists.
"""

import json

import numpy as np

DATA = json.loads(r"""{data}""")


class Guarded:
    """Asks a model about all twins of each person, and holds its score within tau of their average."""

    def __init__(self, model):
        self.model = model
        self.classes_ = np.array(DATA["classes"]) if DATA["classes"] else None

    def scores(self, frame):
        """The guarded score of each row: a probability, or the predicted value."""
        centre, own = self._pair(frame)
        return (centre[:, DATA["favourable"]] + self._apart(centre, own)[:, DATA["favourable"]]).astype(np.float32)

    def predict_proba(self, frame):
        """The guarded probabilities of all classes, in the order of ``classes_``."""
        centre, own = self._pair(frame)
        return centre + self._apart(centre, own)

    def predict(self, frame):
        """The decided class of each row, or the predicted value."""
        table = self.predict_proba(frame)
        if self.classes_ is None:
            return table[:, 0]
        if len(self.classes_) == 2:
            favourable = DATA["favourable"]
            return self.classes_[np.where(self.scores(frame) >= DATA["threshold"], favourable, 1 - favourable)]
        return self.classes_[np.argmax(table, axis=1)]

    def _pair(self, frame):
        frames = frame if hasattr(frame, "columns") else {{name: np.asarray(v, object) for name, v in frame.items()}}
        total, shares = 0.0, self._shares(frames)
        for share, twin in zip(shares, DATA["twins"]):
            total = total + share * self._asked(self._with(frames, dict(zip(DATA["columns"], twin))))
        own = self._asked(frames) if DATA["tau"] else total
        return self._moved(total), self._moved(own)

    def _shares(self, frame):
        """Each twin's weight (m, n, 1): over the twins that can exist under the rules; over all where none can."""
        weights = np.array(DATA["weights"])[:, None]
        rules = DATA["rules"]
        if rules:
            columns = {{int(c): np.array(codes)[:, None] for c, codes in rules["twins"].items()}}
            for column, about in rules["seen"].items():
                columns[int(column)] = self._codes(frame, about)[None]
            valid = True
            for program in rules["programs"]:
                valid = valid & self._holds(program, columns)
            left = np.where(valid, weights, 0.0)
            left = np.where(left.sum(axis=0) > 0, left, weights)
            weights = left / left.sum(axis=0)
        return weights[:, :, None]

    def _codes(self, frame, about):
        """What people read, as the rules' numbers."""
        if about["columns"]:  # a category spread over columns of 0 and 1; one without a column is 0 in all others
            size = len(frame[next(name for name in about["columns"] if name)])
            spread = [np.asarray(frame[name], np.float64) if name else np.full(size, 0.5) for name in about["columns"]]
            return np.argmax(spread, axis=0).astype(np.float64)
        values = frame[about["name"]]
        if about["labels"] is not None:
            labels = {{str(label): code for code, label in enumerate(about["labels"])}}
            return np.array([labels[str(value)] for value in values], np.float64)
        found = np.array([np.nan if value is None else value for value in values], np.float64)
        return found if about["gap"] is None else np.where(np.isnan(found), about["gap"], found)

    def _holds(self, program, columns):
        kind, *rest = program
        if kind == "column":
            return columns[rest[0]]
        if kind == "number":
            return np.float64(rest[0])
        if kind == "in":
            value = self._holds(rest[0], columns)
            return np.any([value == self._holds(one, columns) for one in rest[1]], axis=0)
        found = [self._holds(one, columns) for one in rest]
        if kind == "->":
            return np.logical_not(found[0]) | found[1]
        names = {{"and": "logical_and", "or": "logical_or", "not": "logical_not", "neg": "negative", "=": "equal",
                 "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
                 "+": "add", "-": "subtract", "*": "multiply"}}
        return getattr(np, names[kind])(*found)

    def _with(self, frame, values):
        if hasattr(frame, "assign"):
            changed = frame.copy()
            for name, value in values.items():
                column = [value] * len(changed)
                kind = frame[name].dtype
                changed[name] = column if str(kind) in ("object", "str", "string") else np.array(column)
                if str(kind) == "category":
                    changed[name] = changed[name].astype(kind)
            return changed
        size = len(next(iter(frame.values())))
        return {{**frame, **{{name: np.array([value] * size, object) for name, value in values.items()}}}}

    def _asked(self, frame):
        """Probabilities of all classes (n, classes), or values (n, 1)."""
        model, classes = self.model, len(DATA["classes"])
        if hasattr(model, "predict_proba"):
            found = np.asarray(model.predict_proba(frame), np.float64)
        else:
            found = np.asarray(model.predict(frame) if hasattr(model, "predict") else model(frame), np.float64)
        if not np.isfinite(found).all():
            raise ValueError("the model gave a score that is not finite, for which no bound holds; check its inputs.")
        if found.ndim == 1:
            found = found[:, None]
        if classes == 2 and found.shape[1] == 1:  # the score of the favourable class
            found = np.hstack([1 - found, found] if DATA["favourable"] == 1 else [found, 1 - found])
        return found

    def _moved(self, table):
        shift = DATA["shift"]
        if not shift or len(DATA["classes"]) > 2:
            return table
        if not DATA["classes"]:
            return table + shift
        inside = np.clip(table, 1e-9, 1 - 1e-9)
        signs = np.array([1.0 if c == DATA["favourable"] else -1.0 for c in range(2)])
        odds = inside / (1 - inside) * np.exp(shift * signs)
        return odds / (1 + odds)

    def _apart(self, centre, own):
        apart = own - centre
        far = np.maximum(np.abs(apart).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        size = np.maximum(DATA["size"], np.abs(centre).max(axis=1, keepdims=True))
        room = np.maximum(DATA["tau"] - DATA["hair"] * size, 0.0)
        return np.minimum(1.0, room / far) * apart
'''


def module_text(guard: Guard, decoder: Decoder | None = None) -> str:
    """The file's text: the twins, their weights, and the rules that leave some people fewer twins."""
    schema, twins = guard.schema, guard.subject_twins
    decoder = decoder or Decoder(schema)
    names, rows = shown_twins(schema, twins, decoder)
    data: dict[str, Any] = {
        "columns": names,
        "twins": rows,
        "weights": guard.weights.tolist(),
        "tau": guard.tau,
        "hair": HAIR,
        "size": least_size(guard.tau),
        "shift": guard.shift,
        "threshold": guard.threshold,
        "classes": list(schema.classes),
        "favourable": schema.favourable_index,
        "rules": None if guard.twin_rules is None else _rules(guard.twin_rules, schema, decoder),
    }
    text = json.dumps(data, ensure_ascii=True).replace('"""', "\\u0022\\u0022\\u0022")
    favourable = "the predicted value" if schema.favourable is None else json.dumps(schema.favourable)
    return _SOURCE.format(proof=guard.proof, favourable=favourable.replace('"""', "'"), m=guard.m, data=text)


def _rules(rules: TwinRules, schema: Schema, decoder: Decoder) -> dict[str, Any]:
    """The rules about twins, as JSON holds them; what they look at in people's own words."""
    seen = {}
    for column in rules.seen:
        attribute = schema.attributes[column]
        labels = None
        if attribute.kind == "category" and not attribute.columns:
            person = np.array([[a.first for a in schema.attributes]] * len(attribute.labels))
            person[:, column] = np.arange(len(attribute.labels))
            labels = [plain_value(value) for value in decoder.frame(person)[attribute.name]]
        gap = None if attribute.kind == "category" else attribute.gap
        spread = list(attribute.columns) or None
        seen[column] = {"name": attribute.name, "labels": labels, "gap": gap, "columns": spread}
    return {
        "programs": list(rules.programs),
        "twins": {column: values.tolist() for column, values in rules.twins.items()},
        "seen": seen,
    }
