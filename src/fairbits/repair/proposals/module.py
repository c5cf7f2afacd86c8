"""A guard as a small Python file of its own: NumPy alone, around whatever model gives the scores."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fairbits.domain import Codes, Decoder
from fairbits.errors import CapabilityError
from fairbits.repair.proposals.clip import HAIR
from fairbits.repair.proposals.guard import Guard

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
        total = 0.0
        for weight, twin in zip(DATA["weights"], DATA["twins"]):
            total = total + weight * self._asked(self._with(frames, dict(zip(DATA["columns"], twin))))
        own = self._asked(frames) if DATA["tau"] else total
        return self._moved(total), self._moved(own)

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
        size = np.maximum(1.0, np.abs(centre).max(axis=1, keepdims=True))
        room = np.maximum(DATA["tau"] - DATA["hair"] * size, 0.0)
        return np.minimum(1.0, room / far) * apart
'''


def module_text(guard: Guard, decoder: Decoder | None = None) -> str:
    """The text of a Python file that guards a model.

    Parameters
    ----------
    guard
        The guarded model.
    decoder
        Makes the table's values from codes, where the model takes them.

    Returns
    -------
    str
        Python code.

    Raises
    ------
    CapabilityError
        If rules leave some people fewer twins, which the file could not know.
    """
    if guard.by_rules:
        raise CapabilityError("rules leave some people fewer twins, which a file without fairbits cannot tell.")
    schema, twins = guard.schema, guard.subject_twins
    decoder = decoder or Decoder(schema)
    first: Codes = np.array([[attribute.first for attribute in schema.attributes]])
    frame = decoder.frame(twins.expand(first)[0])
    names = [schema.names[i] for i in twins.columns]
    data: dict[str, Any] = {
        "columns": names,
        "twins": [[_plain(value) for value in row] for row in zip(*(frame[name] for name in names), strict=True)],
        "weights": guard.weights.tolist(),
        "tau": guard.tau,
        "hair": HAIR,
        "shift": guard.shift,
        "threshold": guard.threshold,
        "classes": list(schema.classes),
        "favourable": schema.favourable_index,
    }
    text = json.dumps(data, ensure_ascii=True).replace('"""', "\\u0022\\u0022\\u0022")
    favourable = "the predicted value" if schema.favourable is None else json.dumps(schema.favourable)
    return _SOURCE.format(proof=guard.proof, favourable=favourable.replace('"""', "'"), m=guard.m, data=text)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
