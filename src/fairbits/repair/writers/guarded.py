"""The guard of a written ``repaired.py``; its text follows that of ``standalone``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.repair.writers.standalone import (
    OPERATIONS,
    ROWS,
    AskedModel,
    class_array,
    codes_of,
    column_of,
    decided,
    size_of,
    tabled,
    with_values,
)

#: The facts about one model, which stand here where the file is written.
DATA: Any = json.loads("{}")


class Guarded:
    """Asks a model about all twins of each person, and holds its score within tau of their average.

    A protected value that is missing or not in the schema is no obstacle: the average needs none, and stands where
    there is no score of the person's own.
    """

    def __init__(self, model: Any = None, *, data: Any = None, folder: Any = None) -> None:
        self.data = data = DATA if data is None else data
        self.model = AskedModel(data["model"], model, Path(__file__).parent if folder is None else folder)
        self.classes_ = class_array(data["classes"]) if data["classes"] else None
        self.threshold = data["threshold"]

    def scores(self, table: Any) -> Any:
        """The guarded score of each row: the probability of the favourable class, or the predicted value."""
        return self.predict_proba(table)[:, self.data["favourable"]].astype(np.float32)

    def predict_proba(self, table: Any) -> Any:
        """The guarded probabilities of all classes, in the order of ``classes_``; or values as a column."""
        table = tabled(table)
        people = size_of(table)
        if people == 0:
            return np.empty((0, max(1, len(self.data["classes"]))))
        step = max(1, ROWS // 8)
        pieces = [np.arange(start, min(start + step, people)) for start in range(0, people, step)]
        return np.concatenate([self._guarded(with_values(table, piece, {})) for piece in pieces])

    def predict(self, table: Any) -> Any:
        """The decided class of each row, as the owner's table names it, or the predicted value."""
        found = self.predict_proba(table)
        return found[:, 0] if self.classes_ is None else self.classes_[decided(found, self.data)]

    def _guarded(self, table: Any) -> Any:
        data, people = self.data, size_of(table)
        shares, twins = self._shares(table), data["twins"]
        centre, step = 0.0, max(1, ROWS // people)
        for start in range(0, len(twins), step):
            some = twins[start : start + step]
            found = self._asked(with_values(table, np.tile(np.arange(people), len(some)), self._columns(some, people)))
            centre = centre + (shares[start : start + step] * found.reshape(len(some), people, -1)).sum(axis=0)
        centre = self._moved(centre)
        if not data["tau"]:
            return centre
        known = np.all([np.isfinite(codes_of(table, one, strict=False)) for one in data["protected"]], axis=0)
        known &= np.all([codes_of(table, one, strict=False) != one["lacking"] for one in data["protected"]], axis=0)
        # Somebody without a protected value of their own is asked about as the first twin, and gets the average.
        own = table
        if not known.all():
            columns = self._columns(twins[:1], people)
            mine = {
                name: [a if k else b for k, a, b in zip(known, self._own(table, name, values), values, strict=True)]
                for name, values in columns.items()
            }
            own = with_values(table, np.arange(people), {name: _column(values) for name, values in mine.items()})
        apart = np.where(known[:, None], self._moved(self._asked(own)) - centre, 0.0)
        far = np.maximum(np.abs(apart).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        size = np.maximum(data["size"], np.abs(centre).max(axis=1, keepdims=True))
        room = np.maximum(data["tau"] - data["hair"] * size, 0.0)
        return centre + np.minimum(1.0, room / far) * apart

    def _own(self, table: Any, name: Any, others: Any) -> Any:
        return column_of(table, name) if name in table else others

    def _asked(self, table: Any) -> Any:
        found = self.model(table)
        return np.clip(found, 0, 1) if self.data["classes"] else found

    def _columns(self, twins: Any, people: Any) -> Any:
        """The protected columns of these twins, each for all people."""
        rows = [[twin[i] for twin in twins for _ in range(people)] for i in range(len(self.data["columns"]))]
        return {name: _column(values) for name, values in zip(self.data["columns"], rows, strict=True)}

    def _shares(self, table: Any) -> Any:
        """Each twin's weight (m, n or 1, 1): over the twins that can exist under the rules; over all where none can."""
        weights = np.array(self.data["weights"])[:, None]
        rules = self.data["rules"]
        if rules:
            columns = {int(c): np.array(codes)[:, None] for c, codes in rules["twins"].items()}
            columns |= {int(c): codes_of(table, about)[None] for c, about in rules["seen"].items()}
            valid = np.all(
                [np.broadcast_to(_holds(one, columns), (len(weights), size_of(table))) for one in rules["programs"]],
                axis=0,
            )
            left = np.where(valid, weights, 0.0)
            left = np.where(left.sum(axis=0) > 0, left, weights)
            weights = left / left.sum(axis=0)
        return weights[:, :, None]

    def _moved(self, table: Any) -> Any:
        data = self.data
        shift = data["shift"]
        if not shift or len(data["classes"]) > 2:
            return table
        if not data["classes"]:
            return table + shift
        inside = np.clip(table, 1e-9, 1 - 1e-9)
        signs = np.array([1.0 if c == data["favourable"] else -1.0 for c in range(2)])
        odds = inside / (1 - inside) * np.exp(shift * signs)
        return odds / (1 + odds)


def _column(values: Any) -> Any:
    """Text and mixtures as objects, numbers as numbers."""
    kinds = {type(one) for one in values}
    if kinds <= {int, float, bool}:
        return np.array(values)
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _holds(program: Any, columns: Any) -> Any:
    kind, *rest = program
    if kind == "column":
        return columns[rest[0]]
    if kind == "number":
        return np.float64(rest[0])
    if kind == "in":
        value = _holds(rest[0], columns)
        return np.any([value == _holds(one, columns) for one in rest[1]], axis=0)
    found = [_holds(one, columns) for one in rest]
    return np.logical_not(found[0]) | found[1] if kind == "->" else OPERATIONS[kind](*found)
