"""From codes back to the values of the table: what a model eats that brings its own preprocessing.

A category is its label again, a number a number. Labels that were numbers or truth values in the table ("1", "true":
the schema keeps all labels as text) become numbers and truth values again, and a missing value is NaN again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import MISSING, Attribute, Codes
from fairbits.domain.encoding import Encoding
from fairbits.domain.schema import Schema
from fairbits.errors import MissingDependencyError

Values = npt.NDArray[Any]


class Decoder:
    """Codes of the attributes that a model sees, in its order, as frames, arrays or records.

    ``as_text`` names categories whose labels stay text although they look like numbers; ``categorical`` makes
    frames of pandas categories, for models that were trained on those.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Iterable[str] | None = None,
        *,
        as_text: Sequence[str] = (),
        categorical: bool = False,
    ):
        self.schema = schema
        self.names = schema.names if columns is None else tuple(columns)
        self.categorical = categorical
        self.encoding = Encoding.identity(schema, columns=self.names, dtype=np.float64)
        attributes = [schema[name] for name in self.names]
        self._tables: Mapping[int, Values] = {
            i: values_of(a, text=a.name in as_text) for i, a in enumerate(attributes) if a.kind == "category"
        }
        self._frames: dict[int, Any] = {}
        self._whole = [a.kind == "integer" for a in attributes]

    def column(self, position: int, codes: Codes) -> Values:
        """The values of one column."""
        if position in self._tables:
            return self._tables[position][codes.astype(np.int64)]
        return codes.astype(np.int64) if self._whole[position] else codes

    def columns(self, codes: Codes) -> dict[str, Values]:
        """All of them, by name."""
        return {name: self.column(i, codes[:, i]) for i, name in enumerate(self.names)}

    def frame(self, codes: Codes) -> Any:
        """A pandas frame, as the model was trained on."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependencyError("pandas", "pandas", "a model that was trained on a data frame") from None
        found: dict[str, Any] = {}
        for i, name in enumerate(self.names):
            if i not in self._tables:
                found[name] = self.column(i, codes[:, i])
                continue
            if i not in self._frames:  # pandas finds out once what kind of values these are, not in every batch
                values = pd.Series(self._tables[i])
                self._frames[i] = (values.astype("category") if self.categorical else values).array
            found[name] = self._frames[i].take(codes[:, i].astype(np.int64))
        return pd.DataFrame(found, copy=False)

    def array(self, codes: Codes) -> Values:
        """One array: of numbers where all columns are numbers, else of objects."""
        if all(table.dtype.kind in "iufb" for table in self._tables.values()):
            found = np.array(codes, dtype=np.float64)
            for i, table in self._tables.items():
                found[:, i] = table[codes[:, i].astype(np.int64)]
            return found
        mixed = np.empty(codes.shape, dtype=object)
        for i in range(codes.shape[1]):
            mixed[:, i] = self.column(i, codes[:, i])
        return mixed

    def records(self, codes: Codes) -> list[dict[str, Any]]:
        """One dictionary per row, of plain Python values; a missing value is None."""
        columns = [self.column(i, codes[:, i]).tolist() for i in range(len(self.names))]
        rows = [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]
        missing = [i for i, table in self._tables.items() if _missing(table).any()]
        for i in missing:
            gone = _missing(self._tables[i])[codes[:, i].astype(np.int64)]
            for row in np.flatnonzero(gone):
                rows[row][self.names[i]] = None
        return rows


def values_of(attribute: Attribute, *, text: bool = False) -> Values:
    """What the table held for each label of a category, by code."""
    present = [label for label in attribute.labels if label != MISSING]
    plain: list[Any] = list(present) if text else _numbers(present) or _truths(present) or list(present)
    missing = len(present) < len(attribute.labels)
    values = [float("nan") if label == MISSING else plain[present.index(label)] for label in attribute.labels]
    if isinstance(plain[0] if plain else "", str) or (missing and isinstance(plain[0], bool)):
        table = np.empty(len(values), dtype=object)
        table[:] = values
        return table
    return np.array(values)


def _missing(table: Values) -> npt.NDArray[np.bool_]:
    return np.array([isinstance(value, float) and np.isnan(value) for value in table.tolist()], dtype=np.bool_)


def _numbers(labels: Sequence[str]) -> list[int] | list[float] | None:
    for kind in (int, float):
        try:
            found = [kind(label) for label in labels]
        except ValueError:
            continue
        # "007" is a name, not the number seven: only what prints back the same was a number.
        if all(np.isfinite(found)) and all(str(v) == label for v, label in zip(found, labels, strict=True)):
            return found
    return None


def _truths(labels: Sequence[str]) -> list[bool] | None:
    return [label == "true" for label in labels] if labels and set(labels) <= {"true", "false"} else None
