"""One-hot groups of a table that is encoded already: columns of 0 and 1 of which exactly one is 1 in every row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Attribute

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands between the name of an attribute and its value in the name of a column: job_Sales, job=Sales.
_MARKS = "_=.:-/ "


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that are one category: its name, its labels, and the column of each."""

    name: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]

    def attribute(self, *, protected: bool = False) -> Attribute:
        """The category that the columns stand for."""
        return Attribute(name=self.name, kind="category", labels=self.labels, columns=self.columns, protected=protected)


def one_hot_groups(data: pa.Table, *, leave_out: tuple[str, ...] = ()) -> list[Group]:
    """Groups in column order. The largest go first, then those with the longest name: each column is in one at most."""
    values = {name: _zeros_and_ones(data[name]) for name in data.column_names if name not in leave_out}
    binary = {name: column for name, column in values.items() if column is not None}
    candidates: dict[str, list[str]] = defaultdict(list)
    for name in binary:
        for place, character in enumerate(name):
            if character in _MARKS and 0 < place < len(name) - 1:
                candidates[name[: place + 1]].append(name)
    found: list[Group] = []
    taken: set[str] = set()
    for prefix, columns in sorted(candidates.items(), key=lambda item: (-len(item[1]), -len(item[0]))):
        labels = tuple(column[len(prefix) :] for column in columns)
        name = prefix[:-1].rstrip(_MARKS)
        if len(columns) < 2 or taken.intersection(columns) or not name or name in data.column_names:
            continue
        if (np.sum([binary[column] for column in columns], axis=0) == 1).all():
            found.append(Group(name, labels, tuple(columns)))
            taken.update(columns)
    return sorted(found, key=lambda group: data.column_names.index(group.columns[0]))


def _zeros_and_ones(column: Any) -> npt.NDArray[np.float64] | None:
    """The column as numbers, if it holds nothing but 0 and 1."""
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    values = column.cast(pa.float64()).to_numpy()
    return values if np.isin(values, (0.0, 1.0)).all() else None
