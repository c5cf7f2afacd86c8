"""Linear models, perceptrons and common encoders in .skops files, read as data.

A .skops file is a description (JSON) and arrays. Where it holds nothing but what is listed here, the encoders are a few
NumPy expressions, and neither skops nor scikit-learn has to be imported, which takes longer than a whole measurement.
Stand-ins have the names and attributes of scikit-learn's classes, so that the same code reads both. Whatever else a
file holds, and whatever goes wrong, is left to the library.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
#: A table by name of column, or an array.
Rows = Mapping[str, Values] | Values
_FINAL = {
    *("LogisticRegression", "LogisticRegressionCV", "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV"),
    *("ElasticNet", "ElasticNetCV", "SGDClassifier", "SGDRegressor", "MLPClassifier", "MLPRegressor"),
}  # fmt: skip


#: Nodes that are read at most: a description may name the same ones again and again.
_MAX_NODES = 200_000
#: What reading a damaged file can end in.
DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OSError, RecursionError)


class NotPlain(Exception):
    """The file holds something that is not read as data."""


class SkopsArchive:
    """The content of a .skops file: nodes by their number, and arrays by their name."""

    def __init__(self, path: Path):
        with zipfile.ZipFile(path) as file:
            self.root = json.loads(file.read("schema.json"))
            self._arrays = {name: file.read(name) for name in file.namelist() if name.endswith(".npy")}
        self._nodes: dict[Any, Any] = {}
        self._left = _MAX_NODES
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                if "__id__" in node and node.get("__loader__") != "CachedNode":
                    self._nodes[node["__id__"]] = node
                waiting += node.values()
            elif isinstance(node, list):
                waiting += node

    def value(self, node: Any) -> Any:
        """What a node stands for: plain values, arrays, and stand-ins for objects."""
        self._left -= 1
        if self._left < 0:
            raise NotPlain
        kind, content = node["__loader__"], node.get("content")
        if kind == "CachedNode":
            return self.value(self._nodes[node["__id__"]])
        if kind == "JsonNode":
            return json.loads(content)
        if kind == "ListNode":
            return [self.value(one) for one in content]
        if kind == "TupleNode":
            return tuple(self.value(one) for one in content)
        if kind == "NdArrayNode":
            return self._array(node)
        if kind == "ObjectNode":
            return self._object(node)
        raise NotPlain

    def _array(self, node: Any) -> Any:
        if node["type"] == "json":
            found = np.empty(len(node["content"]), dtype=object)
            found[:] = [self.value(one) for one in node["content"]]
            return found.reshape(self.value(node["shape"]))
        if node["type"] != "numpy":
            raise NotPlain
        return np.load(io.BytesIO(self._arrays[node["file"]]), allow_pickle=False)

    def _object(self, node: Any) -> Any:
        home, name = str(node["__module__"]), str(node["__class__"])
        base = _Model if name in _FINAL else _STAND_INS.get(name)
        if base is None or not home.startswith("sklearn."):
            raise NotPlain
        state = node["content"]
        if not isinstance(state, dict) or state.get("__loader__") != "DictNode":
            raise NotPlain
        return type(name, (base,), {"__module__": home})(self, state["content"])


class StoredObject:
    """An object of the file: attributes are read when they are asked for."""

    def __init__(self, archive: SkopsArchive, state: dict[str, Any]):
        self._archive, self._state = archive, state
        self._read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._state:
            raise AttributeError(name)
        if name not in self._read:
            try:
                self._read[name] = self._archive.value(self._state[name])
            except DAMAGE as error:
                raise NotPlain from error
        return self._read[name]

    def off(self, *names: str) -> None:
        """Refuse settings that are not computed here."""
        if any(getattr(self, name, None) not in (None, False) for name in names):
            raise NotPlain


class _Model(StoredObject):
    """What stands at the end: only its weights are asked for."""


class _Pipeline(StoredObject):
    @property
    def feature_names_in_(self) -> Any:
        return self.steps[0][1].feature_names_in_

    @property
    def n_features_in_(self) -> Any:
        return self.steps[0][1].n_features_in_

    def transform(self, rows: Rows) -> Values:
        for _, step in self.steps:
            rows = rows if step in (None, "passthrough") else step.transform(rows)
        return _array_of(rows)


class _ColumnTransformer(StoredObject):
    def transform(self, rows: Rows) -> Values:
        self.off("transformer_weights")
        names = list(rows) if isinstance(rows, Mapping) else None
        made = []
        for _, step, columns in self.transformers_:
            chosen = [columns] if isinstance(columns, str) else columns
            if not isinstance(chosen, list) or isinstance(columns, str):  # one name alone gives a flat column
                raise NotPlain
            if step == "drop" or not chosen:
                continue
            if names is not None:
                picked: Rows = {str(c): rows[c if isinstance(c, str) else names[c]] for c in chosen}
            else:
                picked = np.asarray(rows)[:, [int(c) for c in chosen]]
            made.append(_array_of(picked) if step == "passthrough" else step.transform(picked))
        return np.hstack(made)


class _StandardScaler(StoredObject):
    def transform(self, rows: Rows) -> Values:
        found = _numbers(rows)
        found = found - self.mean_ if self.with_mean else found
        return found / self.scale_ if self.with_std else found


class _MinMaxScaler(StoredObject):
    def transform(self, rows: Rows) -> Values:
        found = _numbers(rows) * self.scale_ + self.min_
        return np.clip(found, *self.feature_range) if self.clip else found


class _MaxAbsScaler(StoredObject):
    def transform(self, rows: Rows) -> Values:
        self.off("clip")
        return np.asarray(_numbers(rows) / self.scale_)


class _RobustScaler(StoredObject):
    def transform(self, rows: Rows) -> Values:
        found = _numbers(rows)
        found = found - self.center_ if self.with_centering else found
        return found / self.scale_ if self.with_scaling else found


class _OneHotEncoder(StoredObject):
    def transform(self, rows: Rows) -> Values:
        self.off("min_frequency", "max_categories")
        found = _array_of(rows)
        dropped = getattr(self, "drop_idx_", None)
        made = []
        for i, known in enumerate(self.categories_):
            place = _places(found[:, i], known)
            if (place < 0).any() and self.handle_unknown != "ignore":
                raise NotPlain
            hot = (place[:, None] == np.arange(len(known))).astype(np.float64)
            gone = None if dropped is None else dropped[i]
            made.append(hot if gone is None else np.delete(hot, int(gone), axis=1))
        return np.hstack(made)


class _OrdinalEncoder(StoredObject):
    def transform(self, rows: Rows) -> Values:
        self.off("min_frequency", "max_categories")
        found = _array_of(rows)
        places = np.column_stack([_places(found[:, i], known) for i, known in enumerate(self.categories_)])
        if (places < 0).any():
            raise NotPlain
        return places.astype(np.float64)


class _SimpleImputer(StoredObject):
    def transform(self, rows: Rows) -> Values:
        """Numbers with their gaps filled; gaps among texts are left to the library."""
        self.off("add_indicator")
        found = _array_of(rows)
        filled = np.asarray(self.statistics_)
        if not _missing(self.missing_values) or any(map(_missing, filled.tolist())):
            raise NotPlain
        if found.dtype.kind == "f" and filled.dtype.kind == "f":
            return np.where(np.isnan(found), filled, found)
        if any(map(_missing, found.ravel().tolist())):
            raise NotPlain
        return found


#: Encoders by name; their settings that are not computed here are refused when they are asked.
_STAND_INS: dict[str, type[StoredObject]] = {
    "Pipeline": _Pipeline,
    "ColumnTransformer": _ColumnTransformer,
    "StandardScaler": _StandardScaler,
    "MinMaxScaler": _MinMaxScaler,
    "MaxAbsScaler": _MaxAbsScaler,
    "RobustScaler": _RobustScaler,
    "OneHotEncoder": _OneHotEncoder,
    "OrdinalEncoder": _OrdinalEncoder,
    "SimpleImputer": _SimpleImputer,
}


def _array_of(rows: Rows) -> Values:
    """Columns side by side: numbers where all are numbers, else objects."""
    if not isinstance(rows, Mapping):
        return np.asarray(rows)
    columns = [np.asarray(column) for column in rows.values()]
    kind = np.float64 if all(one.dtype.kind in "iuf" for one in columns) else object
    return np.column_stack([one.astype(kind) for one in columns])


def _numbers(rows: Rows) -> npt.NDArray[np.float64]:
    found = _array_of(rows)
    if found.dtype == object and any(isinstance(one, str | bool) for one in found.ravel().tolist()):
        raise NotPlain
    found = found.astype(np.float64)
    if np.isnan(found).any():
        raise NotPlain
    return found


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _places(values: Values, known: Any) -> npt.NDArray[np.int64]:
    """Where values stand among the known ones; -1 for others. Texts are texts, and numbers are numbers."""
    listed, asked = np.asarray(known).tolist(), values.tolist()
    kinds = {str if isinstance(one, str) else type(one) for one in (*listed, *asked)}
    if not (kinds <= {str} or kinds <= {int, float}) or any(map(_missing, (*listed, *asked))):
        raise NotPlain
    place = {one: i for i, one in enumerate(listed)}
    return np.array([place.get(one, -1) for one in asked], dtype=np.int64)


def plain_model(path: Path) -> Any:
    """A stand-in for the model in a .skops file."""
    try:
        archive = SkopsArchive(path)
        return archive.value(archive.root)
    except (*DAMAGE, zipfile.BadZipFile) as error:
        raise NotPlain from error
